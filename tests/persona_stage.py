"""A stage for the persona: a real home and mind, a model that is a function, and a run opened as the heartbeat would.

Run as a program it is the persona organ itself with that model: `python -m tests.persona_stage HOME NAME ANSWER-FILE CALLS-FILE`.
Each call is appended to CALLS-FILE as a JSON line; the answer is what ANSWER-FILE holds.
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from mind_body.config import read_mind_config
from mind_body.control.effective import Released
from mind_body.control.files import read_control
from mind_body.home import Home, directory_home
from mind_body.ids import new_id
from mind_body.mind.records import Pause, Run, RunKind
from mind_body.mind.runs import adopt_run, close_dead_run, live_run, open_run, read_pauses, read_run
from mind_body.mind.store import Mind, open_mind
from mind_body.model.lease import Lease
from mind_body.model.session import Outcome, Provider
from mind_body.persona import main as persona_main
from mind_body.persona.open_sessions import OpenSessions
from mind_body.persona.opening import Opened, Opening, Place, open_next
from mind_body.persona.prompt import Persona
from mind_body.persona.turn import TurnTaker
from mind_body.persona.words import read_words
from mind_body.settings import HostConfig
from tests.builders import NOW, insert_heard, insert_room, make_home
from tests.fakes import Ask, FunctionProvider, Notes

ROOM = "!a:example.org"
CONVERSATION = f"room:{ROOM}"
PERSONA = "You are Ada, a calm gardener."


def silent(_: Ask) -> dict[str, list[Any]]:
    return {"say": [], "react": []}


def saying(*texts: str, room: str = "r1", **more: Any) -> dict[str, Any]:
    """A full reply."""
    says = [{"room": room, "text": text, "reply_to": None, "thread": None, **more} for text in texts]
    return {"say": says, "react": []}


class Stage:
    """Ada, with one room `r1` unless told otherwise."""

    def __init__(self, root: Path, toml: str = "", *, rooms: bool = True) -> None:
        self.home = make_home(root, "ada", toml=toml)
        write_persona(self.home, PERSONA)
        self.mind: Mind = open_mind(self.home.mind_db("ada"))
        self.provider = FunctionProvider(silent, small=False)
        self.host = HostConfig()
        self.journal = Notes()
        self.holder = new_id()
        self.pokes: list[float] = []
        self.poked = trio.Event()
        if rooms:
            with self.mind.write() as tx:
                insert_room(tx, ROOM, number=1, name="Garden")
        self.restart()

    def restart(self) -> None:
        """Another process: sessions gone, another holder."""
        self.holder = new_id()
        config = read_mind_config(self.home, "ada")
        me = Persona("ada", config.matrix.user, config.people, self.provider.small)
        words = read_words(self.home, config, me)
        place = Place(self.home, me, config, self.host, self.provider, self.mind, self.journal, self.holder, words)
        self.sessions = OpenSessions(self.provider, 2)
        self.taker = TurnTaker(place, self.sessions, self._wait_for_poke, lambda: None)
        self.lease = Lease(self.home, "ada", self.journal)

    async def _wait_for_poke(self, timeout_s: float) -> bool:
        with trio.move_on_after(timeout_s):
            await self.poked.wait()
        self.poked = trio.Event()
        return True

    def hear(self, *bodies: str, room_id: str = ROOM, **columns: Any) -> list[int]:
        with self.mind.write() as tx:
            return [insert_heard(tx, room_id, body=body, **columns) for body in bodies]

    def grant(self, *conversations: str, cause: str = "mention") -> Run:
        """A run, opened and held by us."""
        with self.mind.write() as tx:
            run = open_run(tx, RunKind.PERSONA_TURN, conversations or (CONVERSATION,), cause, "a test", NOW)
            assert adopt_run(tx, run.id, self.holder, NOW)
        return run

    def open(self, run: Run, *, turns: int = 0, now: int = NOW) -> Opening:
        control = read_control(self.home, "ada")
        assert isinstance(control, Released)
        return open_next(self.taker.place, run, control, turns=turns, is_alive=self.sessions.is_alive, now=now)

    async def turn(self, run: Run, *, turns: int = 0, now: int = NOW) -> Outcome | None:
        opening = self.open(run, turns=turns, now=now)
        assert isinstance(opening, Opened), opening
        return (await self.taker.take(opening)).outcome

    def rows(self, sql: str) -> list[dict[str, Any]]:
        with self.mind.read() as tx:
            return [dict(row) for row in tx.execute(sql)]

    def run(self, run: Run) -> Run:
        with self.mind.read() as tx:
            found = read_run(tx, run.id)
        assert found is not None
        return found

    def bury(self, run: Run) -> None:
        """What the heartbeat does about a run whose holder is gone."""
        found = self.run(run)
        with self.mind.write() as tx:
            assert close_dead_run(tx, found, "its holder is gone", NOW)

    def live(self) -> Run | None:
        with self.mind.read() as tx:
            return live_run(tx, RunKind.PERSONA_TURN)

    def pauses(self) -> tuple[Pause, ...]:
        with self.mind.read() as tx:
            return read_pauses(tx)

    def said(self) -> list[str]:
        """Bodies of what was said, in order; reactions as their key."""
        contents = [json.loads(row["content"]) for row in self.rows("SELECT content FROM said ORDER BY place")]
        return [one["body"] if "body" in one else one["m.relates_to"]["key"] for one in contents]

    def pending(self) -> list[int]:
        return [row["seq"] for row in self.rows("SELECT seq FROM heard WHERE state = 'pending' AND standing = 'mail' ORDER BY seq")]


def write_persona(home: Home, text: str) -> None:
    home.persona_file("ada").parent.mkdir(parents=True, exist_ok=True)
    home.persona_file("ada").write_text(text)


def _main(root: str, name: str, answers: str, calls: str) -> int:
    def answer(ask: Ask) -> str:
        with Path(calls).open("a") as file:
            file.write(json.dumps({"text": ask.text, "blocks": ask.blocks}) + "\n")
        return Path(answers).read_text()

    @asynccontextmanager
    async def open_function(*_: Any) -> AsyncIterator[Provider]:
        provider = FunctionProvider(answer, small=False)
        if Path(answers).read_text() == "wait":
            provider.hold = trio.Event()
        yield provider

    vars(persona_main)["open_provider"] = open_function
    return trio.run(persona_main.run, directory_home(Path(root), Path(root) / "r"), name)


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:5]))
