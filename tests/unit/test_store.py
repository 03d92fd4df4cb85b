"""The mind file: two writers, migrations, backups, and every way in which a file or a disk can be bad."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mind_body.errors import MindFileError, StorageError
from mind_body.mind import schema, store
from mind_body.mind.outbox import admit_said, read_said
from mind_body.mind.places import newest_seq, read_place
from mind_body.mind.records import RunKind, SaidKind
from mind_body.mind.runs import read_run
from mind_body.mind.store import Mind, Transaction, check_mind, open_mind
from mind_body.mind.wakes import read_standing
from tests.builders import WINDOW, insert, insert_heard, insert_room, insert_session, insert_turn, make_mind, make_new_said

NEXT = schema.NEWEST + 1
SECOND = (NEXT, "CREATE TABLE second (x INTEGER NOT NULL);\nINSERT INTO second VALUES (1);\n")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mind.db"


def count(mind: Mind, table: str = "heard") -> int:
    with mind.read() as tx:
        return int(tx.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_new_mind_is_one_of_ours_durable_and_whole(path: Path) -> None:
    mind = open_mind(path, create=True)
    with mind.read() as tx:
        asked = ("journal_mode", "synchronous", "foreign_keys", "user_version", "application_id")
        values = [tx.execute(f"PRAGMA {name}").fetchone()[0] for name in asked]
    assert values == ["wal", 2, 1, schema.NEWEST, store.APPLICATION_ID]
    mind.close()
    assert check_mind(path) == "ok"
    assert not list(path.parent.glob("*.before-*")), "there was nothing to copy"


def test_a_mind_that_is_not_there_is_not_made_by_accident(path: Path) -> None:
    with pytest.raises(MindFileError, match="mind new"):
        open_mind(path)
    assert not path.exists()


WRITES = """
import sys
from pathlib import Path
from mind_body.mind.store import open_mind
from tests.builders import insert_heard
mind = open_mind(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.readline()
for i in range(500):
    with mind.write() as tx:
        seen = tx.execute("SELECT receipt_seq FROM room").fetchone()[0]
        insert_heard(tx, event_id=f"${sys.argv[2]}-{i}")
        tx.execute("UPDATE room SET receipt_seq = ?", (seen + 1,))
"""


def start_writer(path: Path, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITES, str(path), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def let_go(*writers: subprocess.Popen[str]) -> None:
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdin is not None
        assert writer.stdout.readline() == "open\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()


def finish(*writers: subprocess.Popen[str]) -> list[tuple[int, str]]:
    return [(writer.returncode, errors) for writer in writers for _, errors in [writer.communicate()]]


def test_two_processes_write_at_once_without_a_lost_update_or_a_locked_database(path: Path) -> None:
    mind = open_mind(path, create=True)
    with mind.write() as tx:
        insert_room(tx)
    writers = start_writer(path, "a"), start_writer(path, "b")
    let_go(*writers)
    assert finish(*writers) == [(0, ""), (0, "")]
    assert count(mind) == 1000
    with mind.read() as tx:
        assert tx.execute("SELECT receipt_seq FROM room").fetchone()[0] == 1000
    mind.close()


def test_a_backup_made_while_another_process_writes_is_consistent_and_stands_alone(path: Path, tmp_path: Path) -> None:
    mind = open_mind(path, create=True)
    with mind.write() as tx:
        insert_room(tx)
    writer = start_writer(path, "a")
    let_go(writer)
    sizes = []
    for number in range(5):
        copy_path = tmp_path / "copies" / f"{number}.db"
        copy_path.parent.mkdir(exist_ok=True)
        mind.backup_to(copy_path)
        assert not list(copy_path.parent.glob("*-wal")) + list(copy_path.parent.glob("*.part"))
        assert check_mind(copy_path) == "ok"
        copy = open_mind(copy_path)
        with copy.read() as tx:
            rows, updates = tx.execute("SELECT (SELECT count(*) FROM heard), receipt_seq FROM room").fetchone()
        assert rows == updates, "a copy holds whole transactions"
        sizes.append(rows)
        copy.close()
    assert finish(writer) == [(0, "")]
    assert sizes == sorted(sizes)
    mind.close()


def test_a_backup_never_overwrites(path: Path, tmp_path: Path) -> None:
    mind = open_mind(path, create=True)
    (tmp_path / "there").write_text("dear")
    with pytest.raises(StorageError, match="never overwrites"):
        mind.backup_to(tmp_path / "there")
    assert (tmp_path / "there").read_text() == "dear"
    with pytest.raises(StorageError):
        mind.backup_to(tmp_path / "no" / "such" / "directory.db")
    mind.close()


def write_half(mind: Mind, error: Exception | None) -> None:
    with mind.write() as tx:
        insert_room(tx)
        if error:
            raise error
        insert_room(tx)


def test_a_write_that_fails_half_way_leaves_nothing_and_the_mind_usable(tmp_path: Path) -> None:
    mind = make_mind(tmp_path)
    with pytest.raises(KeyError):
        write_half(mind, KeyError())
    with pytest.raises(sqlite3.IntegrityError):
        write_half(mind, None)
    assert count(mind, "room") == 0
    with mind.write() as tx:
        insert_room(tx)
    assert count(mind, "room") == 1


def test_a_read_sees_one_instant_and_never_writes(path: Path) -> None:
    ours, theirs = open_mind(path, create=True), open_mind(path)
    with theirs.write() as tx:
        insert_room(tx)
    with ours.read() as tx:
        assert tx.execute("SELECT count(*) FROM heard").fetchone()[0] == 0
        with theirs.write() as other:
            insert_heard(other)
        assert tx.execute("SELECT count(*) FROM heard").fetchone()[0] == 0
    assert count(ours) == 1
    with ours.read() as tx:
        insert_room(tx, "!never")
    assert count(ours, "room") == 1
    ours.close()
    theirs.close()


def test_what_was_weighed_is_acted_upon_where_nobody_has_written_since(path: Path) -> None:
    mind, other = make_mind(path.parent), open_mind(path)
    with mind.weigh() as weighing:
        assert weighing.tx.execute("SELECT count(*) FROM room").fetchone()[0] == 0
        assert weighing.act()
        insert_room(weighing.tx)
    assert (count(other, "room"), count(mind, "room")) == (1, 1)


def test_what_was_weighed_is_no_ground_to_act_where_somebody_has_written_since(path: Path) -> None:
    mind, other = make_mind(path.parent), open_mind(path)
    with mind.weigh() as weighing:
        weighing.tx.execute("SELECT count(*) FROM room").fetchone()
        with other.write() as tx:
            insert_room(tx)
        assert not weighing.act()
        assert weighing.tx.execute("SELECT count(*) FROM room").fetchone()[0] == 0, "it is the same instant still"
    with mind.write() as tx:
        assert tx.execute("SELECT count(*) FROM room").fetchone()[0] == 1


def test_acting_does_not_wait_for_who_is_writing(path: Path) -> None:
    mind, other = make_mind(path.parent), open_mind(path)
    with mind.weigh() as weighing, other.write() as tx:
        weighing.tx.execute("SELECT count(*) FROM room").fetchone()
        insert_room(tx)
        began = time.monotonic()
        assert not weighing.act()
        assert time.monotonic() - began < store.BUSY_TIMEOUT_MS / 1000 / 2
    assert count(other, "room") == 1


@pytest.mark.parametrize("acts", [True, False])
def test_a_weighing_that_fails_leaves_nothing_and_holds_up_nobody(path: Path, *, acts: bool) -> None:
    mind, other = make_mind(path.parent), open_mind(path)
    with contextlib.suppress(RuntimeError), mind.weigh() as weighing:
        if acts and weighing.act():
            insert_room(weighing.tx)
        raise RuntimeError
    with other.write() as tx:
        assert tx.execute("SELECT count(*) FROM room").fetchone()[0] == 0
        insert_room(tx)
    assert count(mind, "room") == 1


def test_a_weighing_that_does_nothing_writes_nothing(path: Path) -> None:
    mind = make_mind(path.parent)
    log = path.with_name(path.name + "-wal")
    before = log.stat().st_size
    with mind.weigh() as weighing:
        assert weighing.act()
    assert log.stat().st_size == before


def test_changed_tells_of_others_commits_once_and_of_nothing_else(path: Path) -> None:
    ours, theirs = open_mind(path, create=True), open_mind(path)
    assert ours.changed(), "at first everything is news"
    assert not ours.changed()
    with ours.write() as tx:
        insert_room(tx)
    assert not ours.changed()
    with theirs.write() as tx:
        insert_heard(tx)
    assert ours.changed()
    assert not ours.changed()
    ours.close()
    theirs.close()


DIES = """
import os, signal, sys
from pathlib import Path
from mind_body.mind.store import open_mind
from tests.builders import insert_heard
mind = open_mind(Path(sys.argv[1]))
for i in range(10):
    with mind.write() as tx:
        insert_heard(tx)
with mind.write() as tx:
    for i in range(5000):
        insert_heard(tx, body="x" * 1000)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_dying_inside_a_transaction_takes_back_that_one_and_no_other(path: Path) -> None:
    make_mind(path.parent).close()
    died = subprocess.run([sys.executable, "-c", DIES, str(path)], cwd=Path(__file__).parents[2], check=False)
    assert died.returncode == -signal.SIGKILL
    mind = open_mind(path)
    assert count(mind) == 10
    mind.close()
    assert check_mind(path) == "ok"


def test_a_mind_from_a_newer_release_is_refused_and_left_untouched(path: Path) -> None:
    make_mind(path.parent).close()
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA user_version=99")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(MindFileError, match=r"newer mind-body .*99.*untouched"):
        open_mind(path)
    assert path.read_bytes() == before
    assert [found.name for found in path.parent.glob("mind.db*") if not found.name.endswith("-lock")] == ["mind.db"]


@pytest.mark.parametrize("application", [0, 7])
def test_a_database_of_somebody_else_is_refused(path: Path, application: int) -> None:
    raw = sqlite3.connect(path)
    raw.execute(f"PRAGMA application_id={application}")
    raw.execute("CREATE TABLE theirs (x)")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(MindFileError, match="not a mind"):
        open_mind(path, create=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("garbage", [b"this is no database", b"SQLite format 3\0" + bytes(4080), b"\xff" * 9000])
def test_a_corrupt_file_is_a_sentence_and_is_left_untouched(path: Path, garbage: bytes) -> None:
    path.write_bytes(garbage)
    with pytest.raises(MindFileError, match="mind restore"):
        open_mind(path)
    assert path.read_bytes() == garbage


def read_bodies(path: Path) -> None:
    mind = open_mind(path)
    try:
        with mind.read() as tx:
            tx.execute("SELECT sum(length(body)) FROM heard").fetchone()
    finally:
        mind.close()


def test_a_page_that_went_bad_is_a_sentence_when_it_is_met(path: Path) -> None:
    mind = open_mind(path, create=True)
    with mind.write() as tx:
        for _ in range(2000):
            insert_heard(tx)
    mind.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:40_000] + os.urandom(len(whole) - 40_000))
    with pytest.raises(MindFileError, match="mind restore"):
        read_bodies(path)


@pytest.fixture
def two_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MIGRATIONS", (*schema.MIGRATIONS, SECOND))
    monkeypatch.setattr(store, "NEWEST", NEXT)


def test_a_migration_keeps_what_was_there_and_a_copy_of_how_it_was(path: Path, request: pytest.FixtureRequest) -> None:
    mind = open_mind(path, create=True)
    with mind.write() as tx:
        insert_heard(tx)
    mind.close()
    request.getfixturevalue("two_versions")
    mind = open_mind(path)
    assert count(mind) == count(mind, "second") == 1
    mind.close()
    copy = sqlite3.connect(path.with_name(f"mind.db.before-{NEXT}"))
    assert copy.execute("SELECT count(*) FROM heard").fetchone() == (1,)
    assert copy.execute("PRAGMA user_version").fetchone() == (schema.NEWEST,)
    copy.close()
    open_mind(path).close()


def test_a_migration_that_fails_leaves_the_version_before_and_can_be_tried_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_mind(path.parent).close()
    broken = (NEXT, "CREATE TABLE second (x);\nINSERT INTO nowhere VALUES (1);\n")
    with monkeypatch.context() as patch:
        patch.setattr(store, "MIGRATIONS", (*schema.MIGRATIONS, broken))
        patch.setattr(store, "NEWEST", NEXT)
        with pytest.raises(StorageError):
            open_mind(path)
    mind = open_mind(path)
    with pytest.raises(StorageError):
        count(mind, "second")
    mind.close()
    monkeypatch.setattr(store, "MIGRATIONS", (*schema.MIGRATIONS, SECOND))
    monkeypatch.setattr(store, "NEWEST", NEXT)
    mind = open_mind(path)
    assert count(mind, "second") == 1
    mind.close()


ONCE: dict[str, dict[str, object]] = {
    "run": {
        "id": "r", "kind": "persona_turn", "conversations": "[]", "cause": "mail", "reason": "", "opened_at": 1, "ended_at": 2,
        "outcome": "done", "turns": 3, "cost_micro_usd": 4,
    },
    "said": {
        "place": 7, "id": "s", "kind": "say", "room_id": "!a", "event_type": "m.room.message", "content": "{}", "thread": "$t",
        "reply_to": "$r", "after_said": "a", "turn_id": "t", "state": "sent", "queued_at": 1, "attempted_at": 2, "device_id": "D",
        "event_id": "$s", "not_before": 3, "tries": 4, "reason": "why",
    },
    "heard": {
        "seq": 5, "event_id": "$e", "room_id": "!a", "sender": "@b", "sender_name": "B", "kind": "m.text", "body": "dear",
        "sent_at": 1, "heard_at": 2, "standing": "mail", "reason": "", "state": "closed", "closed_how": "replied",
    },
}  # fmt: skip
"""Rows of the first release."""


def test_a_mind_of_the_first_release_is_taken_over_whole_and_kept_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store, "MIGRATIONS", schema.MIGRATIONS[:1])
        patch.setattr(store, "NEWEST", 1)
        mind = open_mind(path, create=True)
        with mind.write() as tx:
            for table, columns in ONCE.items():
                insert(tx, table, **columns)
        mind.close()
    mind = open_mind(path)
    with mind.write() as tx:
        for table, columns in ONCE.items():
            row = dict(tx.execute(f"SELECT * FROM {table}").fetchone())
            assert {name: row[name] for name in columns} == columns
        run, said = read_run(tx, "r"), read_said(tx, "s")
        assert run is not None
        assert said is not None
        assert (run.follow_up_id, run.model_usage, said.edits, said.thread_said) == (None, {}, None, None)
        admit_said(tx, [make_new_said("later", kind=SaidKind.EDIT, edits="s")], None, 9)
        later = read_said(tx, "later")
        assert later is not None
        assert later.place > 7
        with pytest.raises(sqlite3.IntegrityError):
            insert(tx, "said", **(ONCE["said"] | {"id": "x", "place": 99, "kind": "shout"}))
        indexes = {row["name"] for row in tx.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'said'")}
    assert {"said_unsent", "said_turn", "said_event"} <= indexes
    mind.close()
    assert check_mind(path) == "ok"
    copy = sqlite3.connect(path.with_name("mind.db.before-2"))
    assert copy.execute("PRAGMA user_version").fetchone() == (1,)
    assert copy.execute("SELECT body FROM heard").fetchone() == ("dear",)
    copy.close()


def test_a_mind_of_before_the_loop_budget_keeps_every_row_and_knows_where_people_spoke(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store, "MIGRATIONS", schema.MIGRATIONS[:2])
        patch.setattr(store, "NEWEST", 2)
        mind = open_mind(path, create=True)
        with mind.write() as tx:
            before = fill_second_release(tx)
        mind.close()
    mind = open_mind(path)
    with mind.write() as tx:
        for table, rows in before.items():
            now = [dict(row) for row in tx.execute(f"SELECT * FROM {table}")]
            assert [{name: row[name] for name in rows[0]} for row in now] == rows
        words = [tuple(row) for row in tx.execute("SELECT room_id, thread, seq, at FROM spoke ORDER BY seq")]
        assert words == [("!a", "$t", 3, 30), ("!b", "", 5, 50), ("!a", "", 6, 20)], "bots' and our own notes are nobody's word"
        assert [row["person"] for row in tx.execute("SELECT person FROM heard ORDER BY seq")] == [1, 1, 1, 0, 1, 1, 1]
        place, standing = read_place(tx, "!a", ""), read_standing(tx, RunKind.PERSONA_TURN, WINDOW)
        assert (place.turns_here, place.turns_room, place.spoke_seq) == (0, 0, 6), "what was before is forgiven"
        assert standing.silent_beats == 0
        assert [run.id for run in standing.recent] == ["r"]
        assert newest_seq(tx) == 7
    mind.close()
    assert check_mind(path) == "ok"
    copy = sqlite3.connect(path.with_name("mind.db.before-3"))
    assert copy.execute("PRAGMA user_version").fetchone() == (2,)
    copy.close()


def fill_second_release(tx: Transaction) -> dict[str, list[dict[str, object]]]:
    """Rows as they were written then, and what reading them gave."""
    insert_room(tx, "!a")
    for thread, kind, room, at in [
        (None, "m.text", "!a", 10), (None, "m.text", "!a", 15), ("$t", "m.text", "!a", 30), (None, "m.notice", "!a", 40),
        (None, "m.emote", "!b", 50), (None, "m.text", "!a", 20), (None, "missed", "!a", 60),
    ]:  # fmt: skip
        insert_heard(tx, room, at=at, thread=thread, kind=kind, standing="context")
    insert_session(tx)
    insert(tx, "run", **(ONCE["run"] | {"cause": "beat"}))
    insert(tx, "said", **ONCE["said"])
    insert_turn(tx, "t", run_id="r", ended_at=2, cost_micro_usd=9)
    insert(tx, "turn_heard", turn_id="t", seq=1, role="mail")
    work = {"conversation": "open", "room_id": "!a", "asked_by": "@b", "brief": "dig", "workspace": "main", "state": "open"}
    insert(tx, "follow_up", id="f", opened_at=1, campaign="spring", **work)
    insert(tx, "pause", cause="limited", until=9, reason="x")
    insert(tx, "reaction", event_id="$r", room_id="!a", target="$s", sender="@b", key="+", at=1)
    tables = [row["name"] for row in tx.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
    found = {table: [dict(row) for row in tx.execute(f"SELECT * FROM {table}")] for table in tables}
    return {table: rows for table, rows in found.items() if rows}


DIES_NEW = """
import os, signal, sqlite3, sys
from pathlib import Path
from mind_body.mind.store import open_mind

def die(sql):
    if sys.argv[2] in sql:
        os.kill(os.getpid(), signal.SIGKILL)

class Traced(sqlite3.Connection):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.set_trace_callback(die)

connect = sqlite3.connect
sqlite3.connect = lambda *args, **kwargs: connect(*args, factory=Traced, **kwargs)
open_mind(Path(sys.argv[1]), create=True)
"""


MAKING = ["CREATE TABLE heard", "RENAME TO said_before", "CREATE TABLE pulse", f"user_version={schema.NEWEST}", "COMMIT"]


@pytest.mark.parametrize("last", MAKING)
def test_dying_while_a_mind_is_made_leaves_nothing_of_it_and_it_can_be_made_again(path: Path, last: str) -> None:
    died = subprocess.run([sys.executable, "-c", DIES_NEW, str(path), last], check=False)
    assert died.returncode == -signal.SIGKILL
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT count(*) FROM sqlite_master").fetchone() == raw.execute("PRAGMA user_version").fetchone() == (0,)
    raw.close()
    open_mind(path, create=True).close()
    assert check_mind(path) == "ok"
    assert not list(path.parent.glob("*.before-*"))


def read_schema(path: Path) -> set[tuple[str, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as raw:
        return set(raw.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def test_a_mind_that_came_all_the_way_is_like_a_new_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for newest in range(1, schema.NEWEST + 1):
        with monkeypatch.context() as patch:
            patch.setattr(store, "MIGRATIONS", schema.MIGRATIONS[:newest])
            patch.setattr(store, "NEWEST", newest)
            open_mind(path, create=True).close()
    open_mind(path.with_name("new.db"), create=True).close()
    assert read_schema(path) == read_schema(path.with_name("new.db"))
    copies = {before.name for before in path.parent.glob("*.before-*")}
    assert copies == {f"mind.db.before-{number}" for number in range(2, schema.NEWEST + 1)}


OPENS = """
import sys
from pathlib import Path
from mind_body.mind import schema, store
store.MIGRATIONS, store.NEWEST = (*schema.MIGRATIONS, %r), schema.NEWEST + 1
sys.stdin.readline()
store.open_mind(Path(sys.argv[1]), create=True).close()
"""


@pytest.mark.parametrize("existed", [False, True])
def test_processes_that_arrive_together_migrate_once(path: Path, existed: bool) -> None:
    if existed:
        make_mind(path.parent).close()
    openers = [
        subprocess.Popen(
            [sys.executable, "-c", OPENS % (SECOND,), str(path)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for opener in openers:
        assert opener.stdin is not None
        opener.stdin.write("\n")
        opener.stdin.flush()
    assert [(opener.communicate()[1], opener.returncode) for opener in openers] == [("", 0)] * 4
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT count(*) FROM second").fetchone() == (1,)
    raw.close()


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a tiny tmpfs; run as root")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=False, stderr=subprocess.PIPE
    ).returncode:
        pytest.skip("a tmpfs may not be mounted here; run where root may mount")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def write_for_ever(mind: Mind, seqs: list[int]) -> None:
    while True:
        with mind.write() as tx:
            seq = insert_heard(tx, body="x" * 20_000)
        seqs.append(seq)


def test_a_full_disk_is_a_sentence_and_loses_nothing(tiny_disk: Path) -> None:
    mind = open_mind(tiny_disk / "mind.db", create=True)
    kept: list[int] = []
    with pytest.raises(StorageError, match=r"disk has room.*nothing was changed"):
        write_for_ever(mind, kept)
    assert len(kept) == count(mind) > 0
    with pytest.raises(StorageError):
        mind.backup_to(tiny_disk / "copy.db")
    assert not list(tiny_disk.glob("copy*")), "what could not be finished takes no room"
    mind.close()
    mind = open_mind(tiny_disk / "mind.db")
    assert count(mind) == len(kept)
    subprocess.run(["mount", "-o", "remount,size=8m", str(tiny_disk)], check=True)
    with mind.write() as tx:
        insert_heard(tx)
    assert count(mind) == len(kept) + 1
    mind.close()
    assert check_mind(tiny_disk / "mind.db") == "ok"
