"""Wiring: a heartbeat over real minds that looks when it is told to, and deeds of everybody around it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mind_body.heartbeat.look import Heartbeat
from mind_body.mind.changes import NewHeard
from mind_body.mind.hearing import admit_heard
from mind_body.mind.questions import read_questions
from mind_body.mind.records import Pause, Run, RunKind, Standing, TurnState
from mind_body.mind.runs import adopt_run, end_run, live_run, set_pause
from mind_body.mind.store import Mind, open_mind
from mind_body.mind.turning import NewTurn, TurnEnd
from mind_body.mind.turns import close_turn, open_turn, read_mail
from mind_body.settings import HostConfig
from tests.builders import NOW, OPERATOR, insert_room, insert_session, make_home
from tests.fakes import Notes

HOME = "!home:example.org"
ROOM = "!a:example.org"
BOB, BOT = "@bob:example.org", "@bot:example.org"
BEATS = f'[persona]\nbeat = true\nhome_room = "{HOME}"\n'
PEOPLE = f'[people]\noperators = ["{OPERATOR}"]\nbots = ["@bot:example.org"]\n'


class Stage:
    """Some Minds, each in her home room and in ROOM, and one heartbeat."""

    def __init__(self, root: Path, *names: str, toml: str = BEATS, host: HostConfig | None = None) -> None:
        self.home = make_home(root, *names, toml=PEOPLE + toml)
        self.host = host or HostConfig()
        self.notes = Notes()
        self.heartbeat = Heartbeat(self.home, self.host, self.notes)
        self.minds: dict[str, Mind] = {}
        self._heard = 0
        for name in names:
            mind = self.minds[name] = open_mind(self.home.mind_db(name))
            mind._db.execute("PRAGMA synchronous=OFF")  # no power is cut here
            with mind.write() as tx:
                insert_room(tx, HOME)
                insert_room(tx, ROOM)
                insert_session(tx)

    async def look(self, now: int) -> int | None:
        return await self.heartbeat.look_round(now, thorough=False)

    def restart(self) -> None:
        self.heartbeat.close()
        self.heartbeat = Heartbeat(self.home, self.host, self.notes)

    def close(self) -> None:
        self.heartbeat.close()
        for mind in self.minds.values():
            mind.close()

    def hear(self, name: str, at: int, *, room_id: str = ROOM, **columns: Any) -> str:
        """Somebody writes to her: Bob, unless a bot is named as the sender; the event id."""
        self._heard += 1
        sender = columns.pop("sender", BOB)
        values: dict[str, Any] = {
            "event_id": f"$event-{self._heard}",
            "room_id": room_id,
            "sender": sender,
            "sender_name": "",
            "kind": "m.text",
            "body": "hello",
            "sent_at": at,
            "reply_to": None,
            "thread": None,
            "standing": Standing.MAIL,
            "reason": "a mention",
            "person": sender != BOT,
        } | columns
        with self.minds[name].write() as tx:
            admit_heard(tx, [NewHeard(**values)], at)
        return str(values["event_id"])

    def begin(self, name: str, now: int) -> None:
        """Her run is held, and takes a turn for the mail of its conversations."""
        run = self.live(name)
        assert run is not None
        with self.minds[name].write() as tx:
            assert adopt_run(tx, run.id, "her", now)
            mail = tuple(one.heard.seq for one in read_mail(tx, run.conversations))
            assert open_turn(tx, NewTurn(run.id, run.id, "s", 1, run.conversations[0], "", mail), "her", now)

    def answered(self, name: str, now: int) -> None:
        """That turn closes its mail, and the run ends."""
        run = self.live(name)
        assert run is not None
        if run.holder is None:
            self.begin(name, now)
        with self.minds[name].write() as tx:
            assert close_turn(tx, run.id, run.id, holder="her", end=TurnEnd(TurnState.REPLIED), now=now)
            assert end_run(tx, run.id, "her", "done", "a test", now)

    def end(self, name: str, outcome: str, now: int) -> None:
        run = self.live(name)
        assert run is not None
        with self.minds[name].write() as tx:
            assert adopt_run(tx, run.id, "her", now)
            assert end_run(tx, run.id, "her", outcome, "a test", now)

    def pause(self, name: str, cause: str, until: int, since: int = 0, strikes: int = 1) -> None:
        with self.minds[name].write() as tx:
            set_pause(tx, Pause(cause, until, "a test", strikes, since))

    def feel(self, name: str, urgency: int = 0, tempo_s: int | None = None) -> None:
        """What her newest turn said of speaking."""
        self.execute(name, "INSERT INTO pulse SELECT 'turn-' || count(*), ?, ?, ? FROM pulse", (urgency, tempo_s, NOW))

    def execute(self, name: str, sql: str, values: tuple[Any, ...] = ()) -> None:
        with self.minds[name].write() as tx:
            tx.execute(sql, values)

    def rows(self, name: str, sql: str) -> list[dict[str, Any]]:
        with self.minds[name].read() as tx:
            return [dict(row) for row in tx.execute(sql)]

    def live(self, name: str) -> Run | None:
        with self.minds[name].read() as tx:
            return live_run(tx, RunKind.PERSONA_TURN)

    def awake(self) -> list[str]:
        return [name for name in self.minds if self.live(name) is not None]

    def beats(self, name: str) -> list[int]:
        return [row["opened_at"] for row in self.rows(name, "SELECT opened_at FROM run WHERE cause = 'beat' ORDER BY rowid")]

    def told(self, name: str) -> list[tuple[str, str | None, str]]:
        """Room, thread and words of every notice."""
        rows = self.rows(name, "SELECT room_id, thread, content FROM said WHERE kind = 'notice' ORDER BY place")
        return [(row["room_id"], row["thread"], json.loads(row["content"])["body"]) for row in rows]

    def questions(self, name: str) -> list[str]:
        with self.minds[name].read() as tx:
            return [one.about for one in read_questions(tx)]

    async def live_through(self, since: int, until: int, between: Callable[[int], None] = lambda _: None) -> int:
        """Look whenever something is due, and let every run that is opened end at once, silently; how many looks it took."""
        looks, now = 0, since
        while now < until:
            due = await self.look(now)
            looks += 1
            for name in self.awake():
                self.answered(name, now)
            between(now)
            # A commit of hers is a poke: she is looked at again in the same instant.
            again = await self.look(now)
            now = max(min(one for one in (due, again, until) if one is not None), now + 1)
        return looks
