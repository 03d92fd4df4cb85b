"""Every record a test needs, with defaults that mean nothing: a test names only what it is about."""

import functools
import itertools
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from mind_body.control.effective import BrakeFile, DialFile
from mind_body.control.files import write_brake, write_dial
from mind_body.home import Home, directory_home
from mind_body.mind import store
from mind_body.mind.asking_records import Campaign, Question
from mind_body.mind.records import NewSaid, Run, RunKind, Said, SaidKind, SaidState
from mind_body.mind.store import Mind, Transaction, open_mind
from mind_body.mind.wake_facts import WaitingMail, Window
from mind_body.settings import MindConfig
from mind_body.shared import make_shared, open_shared
from mind_body.sqlite_file import Migration

NOW = 1_800_000_000_000
"""An instant like any other."""
OPERATOR = "@op:example.org"
WINDOW = Window("2027-01-15", NOW - 3_600_000, "2027-01", NOW - 14 * 86_400_000)
"""The operator's day and month then: an hour and two weeks old."""
_serial = itertools.count(1)


def make_config(**tables: dict[str, Any]) -> MindConfig:
    """`make_config(persona={"beat": True})`."""
    matrix = {"homeserver": "http://127.0.0.1:1", "user": "@ada:example.org"} | tables.pop("matrix", {})
    people = {"operators": (OPERATOR,)} | tables.pop("people", {})
    return MindConfig.model_validate({"matrix": matrix, "people": people, **tables})


def make_home(root: Path, *names: str, toml: str = "", host: str = "") -> Home:
    """A home with these Minds, each with a file of its own and its brake released. `toml` goes into each Mind's file."""
    home = directory_home(root, root / "r")
    home.minds_dir.mkdir(parents=True, exist_ok=True)
    home.run.mkdir(mode=0o700, parents=True, exist_ok=True)
    if host:
        home.config_file.write_text(host)
    for name in names:
        add_mind(home, name, toml)
    return home


def add_mind(home: Home, name: str, toml: str = "") -> None:
    home.mind_file(name).write_text(f'[matrix]\nhomeserver = "http://127.0.0.1:1"\nuser = "@{name}:example.org"\n{toml}\n')
    make_mind(home.mind_db(name).parent, home.mind_db(name).name).close()
    release(home, name)


def release(home: Home, name: str, **dial: float) -> None:
    write_brake(home, name, BrakeFile(state="released"))
    write_dial(home, name, DialFile(**dial))


def hold(home: Home, name: str, reason: str = "") -> None:
    write_brake(home, name, BrakeFile(state="held", reason=reason))


def make_mind(directory: Path, name: str = "mind.db") -> Mind:
    """As `open_mind` makes one, whose statements take longer than most tests: they are run once, and the file is copied."""
    path = directory / name
    if not path.exists():
        make_shared(directory)
        os.close(open_shared(path))
        path.write_bytes(_new_mind(vars(store)["MIGRATIONS"]))  # a test may have set others
    return open_mind(path, create=True)


def open_descriptors(path: Path) -> list[str]:
    """What this process holds open of a database: its file, its log, the log's index."""
    links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - one of them is gone at once
    return sorted(found for link in links if os.path.lexists(link) and (found := str(link.readlink())).startswith(str(path)))


def pass_hours(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """For the minds in this directory an hour passes, and their file system's clock has ticked."""
    probe, at = directory / ".tick", vars(store)["now_ms"]() + 3_600_000
    probe.touch()
    began = probe.stat().st_mtime_ns
    while probe.stat().st_mtime_ns == began:
        probe.touch()
    probe.unlink()
    patch.setattr(store, "now_ms", lambda: at)


@functools.cache
def _new_mind(_: tuple[Migration, ...]) -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "mind.db"
        open_mind(path, create=True).close()
        return path.read_bytes()


def make_run(**columns: Any) -> Run:
    values: dict[str, Any] = {
        "id": f"run-{next(_serial)}",
        "kind": RunKind.PERSONA_TURN,
        "conversations": ("open",),
        "cause": "direct",
        "reason": "1 message (direct)",
        "opened_at": NOW,
        "holder": None,
        "held_at": None,
        "ended_at": None,
        "outcome": None,
        "end_reason": None,
        "turns": 0,
        "cost_micro_usd": 0,
    }
    return Run(**(values | columns))


def insert(tx: Transaction, table: str, **columns: Any) -> None:
    names = ", ".join(columns)
    tx.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})", tuple(columns.values()))


def insert_room(tx: Transaction, room_id: str = "!a:example.org", **columns: Any) -> str:
    """A joined room; its conversation is its own."""
    number = int(tx.execute("SELECT coalesce(max(number), 0) + 1 FROM room").fetchone()[0])
    values = {"number": number, "membership": "joined", "conversation": f"room:{room_id}"} | columns
    insert(tx, "room", room_id=room_id, **values)
    return room_id


def insert_heard(tx: Transaction, room_id: str = "!a:example.org", *, at: int = NOW, **columns: Any) -> int:
    """Pending mail by somebody; its seq."""
    values = {
        "event_id": f"$event-{next(_serial)}",
        "sender": "@bob:example.org",
        "sender_name": "Bob",
        "kind": "m.text",
        "body": "hello",
        "sent_at": at,
        "heard_at": at,
        "standing": "mail",
        "reason": "a direct message",
    } | columns
    insert(tx, "heard", room_id=room_id, **values)
    return int(tx.execute("SELECT max(seq) FROM heard").fetchone()[0])


def insert_session(tx: Transaction, session_id: str = "s", **columns: Any) -> str:
    """An open session of her one conversation."""
    texts = ("provider", "model", "instructions", "instructions_digest", "schema_json", "schema_digest", "rehydration")
    values = dict.fromkeys(texts, "") | {"conversation": "open", "opened_at": NOW, "last_used_at": NOW} | columns
    insert(tx, "session", id=session_id, **values)
    return session_id


def insert_run(tx: Transaction, **columns: Any) -> str:
    """A persona's run that has ended well; its id. `ended_at=None` for a live one."""
    values = {
        "id": f"run-{next(_serial)}",
        "kind": "persona_turn",
        "conversations": '["open"]',
        "cause": "direct",
        "reason": "1 message (direct)",
        "opened_at": NOW,
        "ended_at": NOW,
        "outcome": "done",
    } | columns
    if values["ended_at"] is None:
        values["outcome"] = None
    insert(tx, "run", **values)
    return str(values["id"])


def insert_turn(tx: Transaction, turn_id: str, *, run_id: str, session_id: str = "s", **columns: Any) -> str:
    """An answered turn, with a run and a session that are there."""
    values = {"number": 1, "conversation": "open", "state": "replied", "opened_at": NOW, "input": ""} | columns
    insert(tx, "turn", id=turn_id, run_id=run_id, session_id=session_id, **values)
    return turn_id


def make_waiting(room_id: str = "!a:example.org", **columns: Any) -> WaitingMail:
    """One message that somebody wrote outside threads."""
    values: dict[str, Any] = {
        "conversation": f"room:{room_id}",
        "thread": "",
        "sender": "@bob:example.org",
        "person": True,
        "count": 1,
        "oldest_at": NOW,
        "newest_at": NOW,
        "oldest_event": "$event",
    }
    return WaitingMail(room_id=room_id, **(values | columns))


def make_question(question_id: str = "question-1", **columns: Any) -> Question:
    """One of the breaker's, as it is before anybody was asked."""
    values: dict[str, Any] = {
        "kind": "breaker",
        "about": "work:1",
        "text": "its last 3 runs came to nothing",
        "asked_at": NOW,
        "room_id": None,
        "said_id": None,
    }
    return Question(id=question_id, **(values | columns))


def make_campaign(slug: str = "spring", **columns: Any) -> Campaign:
    values: dict[str, Any] = {"text": "Sow the beds.", "opened_by": OPERATOR, "opened_at": NOW, "closed_at": None}
    return Campaign(slug=slug, **(values | columns))


def make_new_said(said_id: str, room_id: str = "!a:example.org", kind: SaidKind = SaidKind.SAY, **columns: Any) -> NewSaid:
    """A said row before it is admitted."""
    body = columns.pop("body", "hi")
    return NewSaid(said_id, kind, room_id, "m.room.message", {"msgtype": "m.text", "body": body}, **columns)


def make_said(new: NewSaid, **columns: Any) -> Said:
    """A said row as it is read back."""
    values: dict[str, Any] = {
        **{name: getattr(new, name) for name in NewSaid.__slots__},
        "place": 1,
        "turn_id": None,
        "state": SaidState.QUEUED,
        "queued_at": NOW,
        "attempted_at": None,
        "device_id": None,
        "event_id": None,
        "not_before": 0,
        "tries": 0,
        "reason": None,
    }
    return Said(**(values | columns))
