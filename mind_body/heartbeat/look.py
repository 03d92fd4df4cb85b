"""Loop: the heartbeat's rounds over all Minds of a host.

1. A round asks every Mind whether its file changed (`data_version`) and whether its configuration, brake, dial or a key did (six
   stats, seven with a Self): some 25 µs each. Only then is a mind read. One for whom nothing has happened for two looks rests
   (see `mind.store`): she holds no connection, and two stats more tell whether her file changed.
2. A Mind with a live run is looked at in every round. One that could not be read is tried again when one of its files changes, and
   in every thorough round, which comes each `look_s`.
3. After that comes the host's beat, where one is due: of those who may speak unprompted one is picked, and looked at again. When
   the last beat was is in their minds, so that restarts change nothing, and a machine that slept catches up with one beat.
4. One Mind's fault is told once and stops no other Mind.
5. The host's configuration is read anew when it changes, as the lease does: a cap and a time zone are the same for both.
"""

import contextlib
from collections.abc import Callable, Iterator

import trio

from mind_body.clock import now_ms
from mind_body.config import list_minds, read_host_config
from mind_body.crash import crash_point
from mind_body.errors import MindBodyError
from mind_body.heartbeat.pick import pick
from mind_body.heartbeat.tempo import next_beat, tempo
from mind_body.heartbeat.watched import Mark, Watched, mark_file
from mind_body.home import Home
from mind_body.host.memory import return_memory
from mind_body.host.post import Post
from mind_body.log import Journal
from mind_body.settings import HostConfig

SPACING_MAX_S = 0.1
"""Between two rounds at most; it grows with what a round takes, so that a storm of pokes costs at most a third of a core."""
REST_MAX_S = 0.05
"""What all resting of one round may take: closing a file may wait for the disk."""


class Heartbeat:
    """All Minds of a host."""

    def __init__(self, home: Home, host: HostConfig, journal: Journal, progress: Callable[[], None] = lambda: None) -> None:
        self._home = home
        self._host = host
        self._journal = journal
        self._progress = progress
        """Called for every Mind that was looked after: a long round is no hang."""
        self._watched: dict[str, Watched] = {}
        self._listed: Mark = None
        self._host_mark = mark_file(str(home.config_file))
        self._latest = 0
        """The instant of the last round; an earlier one after it means that the clock was set back."""

    async def look_round(self, now: int, *, thorough: bool) -> int | None:
        """Look where there is something to see; the next instant at which something is due, or None."""
        crash_point("heartbeat.look")
        self._reread_host()
        self._list_minds(thorough=thorough)
        stepped_back, self._latest = now < self._latest, now
        rested, rested_s = False, 0.0
        for watched in list(self._watched.values()):
            with self._contained(watched):
                if self._has_news(watched, now, thorough=thorough, stepped_back=stepped_back):
                    watched.look(now)
                    self._recovered(watched)
                    self._progress()
                    await trio.lowlevel.checkpoint()
                elif thorough and rested_s < REST_MAX_S and not watched.resting:
                    begun = trio.current_time()
                    rested |= watched.rest(now)
                    rested_s += trio.current_time() - begun
        if rested:
            return_memory()
        due = [self._beat(now), *(w.due for w in self._watched.values())]
        return min((one for one in due if one is not None), default=None)

    def render_status(self) -> str:
        live = sum(w.live for w in self._watched.values())
        faulty = sum(w.fault is not None for w in self._watched.values())
        minds = "1 Mind" if len(self._watched) == 1 else f"{len(self._watched)} Minds"
        return f"{minds}, {live} awake" + (f", {faulty} with a fault" if faulty else "")

    def close(self) -> None:
        for watched in self._watched.values():
            watched.close()

    def _beat(self, now: int) -> int | None:
        """The host's beat, if one is due; when the next one is, where somebody would speak on it."""
        contending = {w.name: w for w in self._watched.values() if w.launcher.contender is not None}
        if not contending:
            return None
        beat_s = tempo(w.launcher.vote for w in self._watched.values())
        while contending:
            at = next_beat((w.launcher.last_beat for w in self._watched.values()), beat_s, now)
            if at > now:
                return at
            found = pick([w.launcher.contender for w in contending.values() if w.launcher.contender], beat_s * 1000, now)
            assert found is not None
            watched = contending.pop(found.name)
            with self._contained(watched):
                watched.look_for_beat(now)
        return None

    def _reread_host(self) -> None:
        """Every Mind is looked at anew: whatever held her up may be over."""
        mark = mark_file(str(self._home.config_file))
        if mark == self._host_mark:
            return
        self._host_mark = mark
        try:
            self._host = read_host_config(self._home)
        except MindBodyError as error:
            self._journal.note("host.fault", f"The host's configuration is as it was before: {error}.", level="error")
            return
        self.close()
        self._watched, self._listed = {}, None
        self._journal.note("host.changed", "The host's configuration was changed, and counts from now on.")

    def _list_minds(self, *, thorough: bool) -> None:
        mark = mark_file(str(self._home.minds_dir))
        if mark == self._listed and not thorough:
            return
        self._listed = mark
        names = list_minds(self._home)
        for gone in set(self._watched) - set(names):
            self._watched.pop(gone).close()
            self._journal.bind(MIND=gone).note("mind.left", "Her configuration is gone; she is looked after no more.")
        for name in names:
            if name not in self._watched:
                self._watched[name] = Watched(name, self._home, self._host, self._journal)

    def _has_news(self, watched: Watched, now: int, *, thorough: bool, stepped_back: bool) -> bool:
        """Whether to look; opens what is not open. In a faulty Mind there is news when one of its files changed.

        What was due by a clock that was set back since is asked for anew.
        """
        changed = watched.take_marks()
        if watched.config is None or watched.mind is None:
            if not (changed or thorough):
                return False
            watched.open()
        assert watched.mind is not None
        wrote = watched.mind.changed()
        due = watched.due
        return changed or wrote or watched.live or (due is not None and (due <= now or stepped_back))

    def _recovered(self, watched: Watched) -> None:
        if watched.fault is not None:
            watched.fault = None
            self._journal.bind(MIND=watched.name).note("mind.recovered", "She can be looked after again.")

    @contextlib.contextmanager
    def _contained(self, watched: Watched) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - one Mind's fault, of whatever kind, must not stop the others
            sentence = str(error) if isinstance(error, MindBodyError) else f"{type(error).__name__}: {error}"
            watched.close()
            if watched.fault != sentence:
                watched.fault = sentence
                self._journal.bind(MIND=watched.name).note("mind.fault", f"She is left alone: {sentence}.", level="error")


def look_interval_s(post: Post) -> float:
    """How often it looks though nothing happens: as often as the operator says, and as the manager wants to hear of it."""
    return min(post.host.look_s, (post.notify.watchdog_s or 120.0) / 2)


async def keep_looking(heartbeat: Heartbeat, post: Post, ready: trio.Event, progress: Callable[[], None]) -> None:
    """Rounds, for ever: at a poke, when something is due, and at least every `look_s`. `ready` once the first is over."""
    look_s = look_interval_s(post)
    next_thorough, status = trio.current_time(), ""
    while True:
        began = trio.current_time()
        thorough = began >= next_thorough
        if thorough:
            next_thorough = began + look_s
        due = await heartbeat.look_round(now_ms(), thorough=thorough)
        progress()
        post.notify.progress()
        if heartbeat.render_status() != status:
            status = heartbeat.render_status()
            post.notify.status(status)
        ready.set()
        await trio.sleep(min(2 * (trio.current_time() - began), SPACING_MAX_S))
        until_due = look_s if due is None else (due - now_ms()) / 1000
        await post.pokes.wait(min(next_thorough - trio.current_time(), until_due))
