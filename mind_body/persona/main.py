"""Wiring: `mind organ persona --mind NAME`, started by a poke, gone when idle."""

from dataclasses import dataclass, replace

import trio

from mind_body.clock import now_ms
from mind_body.config import ConfigFiles
from mind_body.control.effective import Held
from mind_body.errors import MindBodyError
from mind_body.home import Home
from mind_body.host.post import Post, keep_half
from mind_body.mind.records import RunKind
from mind_body.mind.runs import adopt_run, end_run, live_run, read_pauses, set_pause
from mind_body.mind.store import Mind, open_mind
from mind_body.model.lease import open_lease
from mind_body.model.pausing import plan_fault
from mind_body.persona.open_sessions import OpenSessions
from mind_body.persona.opening import Place
from mind_body.persona.prompt import Persona
from mind_body.persona.providers import CLOSE_S, open_provider
from mind_body.persona.stay import Look, Sitter, adopt_open_run, stay
from mind_body.persona.turn import TurnTaker
from mind_body.persona.words import read_words


async def run(home: Home, name: str) -> int:
    """Until there is nothing to do, or SIGTERM; 0. Raises MindBodyError for what an operator must mend."""
    return await keep_half("persona", home, name, _serve)


async def _serve(post: Post, name: str) -> None:
    mind = open_mind(post.home.mind_db(name))
    try:
        post.pokes.drain()
        files, worked = ConfigFiles(post.home), False
        while worked or _has_open_run(mind):
            try:
                worked = await _serve_configured(post, files, name, mind, worked=worked)
            except MindBodyError as error:
                _give_back(mind, post, error)
                # Nothing is open now, and the heartbeat pokes again for what it opens: one that is left would start her in vain.
                post.pokes.drain()
                raise
            if not worked:
                break
        post.notify.ready("Nothing to do")
    finally:
        mind.close()


async def _serve_configured(post: Post, files: ConfigFiles, name: str, mind: Mind, *, worked: bool) -> bool:
    """Serve under the configuration as it is now; True when it has changed and is to be read again."""
    config, host = files.read_mind(name), files.read_host()
    async with (
        open_lease(post.home, name, post.journal) as lease,
        open_provider(post.home, name, config, lease, post.journal) as provider,
    ):
        me = Persona(name, config.matrix.user, config.people, provider.small)
        words = read_words(post.home, config, me)
        place = Place(post.home, me, config, host, provider, mind, post.journal, post.hold.holder, words)
        sessions = OpenSessions(provider, config.persona.children)
        taker = TurnTaker(place, sessions, post.pokes.wait, post.notify.progress)
        post.notify.ready(f"Ready to take turns with {provider.instance}")
        try:
            sitter = Sitter(post, taker, sessions, lease)
            return await stay(post, config.persona.linger_s, _Looker(files, taker, sitter).look, sitter.show, worked=worked)
        finally:
            with trio.move_on_after(CLOSE_S) as scope:
                scope.shield = True
                await sessions.aclose()


@dataclass(frozen=True, slots=True)
class _Looker:
    """One look: is there an open run for her, and may she take it?"""

    files: ConfigFiles
    taker: TurnTaker
    sitter: Sitter

    async def look(self) -> Look:
        place = self.taker.place
        if isinstance(self.taker.ask_brake(), Held) or not _has_open_run(place.mind):
            return "nothing"
        if (self.files.read_mind(place.me.name), self.files.read_host()) != (place.config, place.host):
            return "changed"
        self.taker.place = replace(place, words=read_words(place.home, place.config, place.me))
        run = adopt_open_run(place.mind, place.holder, now_ms())
        if run is None:
            return "nothing"
        await self.sitter.sit(run)
        return "worked"


def _has_open_run(mind: Mind) -> bool:
    with mind.read() as tx:
        found = live_run(tx, RunKind.PERSONA_TURN)
    return found is not None and found.holder is None


def _give_back(mind: Mind, post: Post, error: MindBodyError) -> None:
    """She cannot serve: the open run is ended in order, so that the reason stands on it and the heartbeat backs off.

    What an operator must mend is a pause: she is not poked again before it may be mended.
    """
    now, reason = now_ms(), str(error)
    with mind.write() as tx:
        pause = plan_fault(error, read_pauses(tx), now)
        if pause is not None:
            set_pause(tx, pause)
        found = live_run(tx, RunKind.PERSONA_TURN)
        if found is not None and (found.holder == post.hold.holder or adopt_run(tx, found.id, post.hold.holder, now)):
            end_run(tx, found.id, post.hold.holder, "failed", reason, now)
    post.journal.note("persona.failed", f"She cannot take turns: {reason}", level="error", REASON=reason)
