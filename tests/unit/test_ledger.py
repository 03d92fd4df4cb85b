"""The ledger: its file, its sums, and who reads beside the organ."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.errors import LedgerError, StorageError
from mind_body.lease import ledger_file
from mind_body.lease.grant import Stop
from mind_body.lease.ledger import (
    NewCall,
    admit_call,
    clear_stop,
    prune,
    raise_call,
    read_asked,
    read_figures,
    read_key,
    read_standing,
    read_stops,
    save_stop,
    settle_call,
)
from mind_body.lease.ledger_file import Ledger, LedgerPlace, open_ledger
from mind_body.lease.ledger_read import SpendRow, Totals, read_calls, read_difference, read_pauses, read_spend, read_totals
from mind_body.lease.ledger_schema import MIGRATIONS, NEWEST
from mind_body.model.lease_lines import Settle, Tokens
from tests.builders import NOW


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "lease.d" / "ledger.db"


def make_call(call_id: str = "c1", ceiling: int = 100, **values: Any) -> NewCall:
    defaults: dict[str, Any] = {
        "mind": "ada",
        "half": "persona",
        "run": "run-1",
        "conversation": "open",
        "credential": "digest",
        "model": "asked",
        "day": "2026-11-30",
        "month": "2026-11",
        "at": NOW,
    }
    return NewCall(id=call_id, ceiling=ceiling, **(defaults | values))


def reserve(ledger: Ledger, *calls: NewCall) -> None:
    with ledger.write() as tx:
        for call in calls:
            admit_call(tx, call)


def settle(ledger: Ledger, call_id: str, cost: int, mind: str = "ada", **usage: Tokens) -> bool:
    with ledger.write() as tx:
        return settle_call(tx, mind, Settle(call=call_id, cost_micro_usd=cost, usage=usage), NOW + 5)


# The file


def test_it_is_made_for_its_owner_alone_and_is_there_again(path: Path) -> None:
    ledger = open_ledger(path, begin=True)
    reserve(ledger, make_call())
    ledger.close()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert {entry.stat().st_mode & 0o777 for entry in path.parent.iterdir()} == {0o600}
    again = open_ledger(path)
    with again.read() as tx:
        assert read_asked(tx, make_call(ceiling=7)).reserved == 100
        assert tx.execute("PRAGMA synchronous").fetchone()[0] == 2, "FULL"
        assert tx.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    again.close()


def test_one_that_is_not_there_is_begun_by_who_may_alone(path: Path) -> None:
    with pytest.raises(LedgerError, match="is gone"):
        open_ledger(path)
    assert not path.parent.exists()


def test_one_that_was_there_and_is_gone_is_not_begun_anew_behind_the_operators_back(path: Path) -> None:
    open_ledger(path, begin=True).close()
    path.unlink()
    with pytest.raises(LedgerError, match=r"is gone; put it back, or remove .*lease\.d to begin with nothing spent"):
        open_ledger(path, begin=True)
    assert not path.exists()


def test_one_that_was_never_finished_is_begun_again(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.with_name("ledger.db.part").write_text("half of it")
    open_ledger(path, begin=True).close()
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["begun", "ledger.db"]


def make_garbage(path: Path) -> None:
    path.write_bytes(b"no database at all" * 1000)


def make_other(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE another (thing)")


def make_newer(path: Path) -> None:
    open_ledger(path, begin=True).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version={NEWEST + 1}")


@pytest.mark.parametrize(
    ("make", "said"),
    [(make_garbage, "cannot be read as a ledger"), (make_other, "is not a ledger"), (make_newer, "written by a newer mind-body")],
)
def test_what_is_no_ledger_of_ours_is_refused_with_a_sentence_and_left_alone(
    path: Path, make: Callable[[Path], None], said: str
) -> None:
    path.parent.mkdir(parents=True)
    make(path)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=said):
        open_ledger(path, begin=True)
    with pytest.raises(LedgerError):
        read_spend(path)
    assert path.read_bytes() == before


def test_a_ledger_that_is_moved_away_takes_no_more_rows_and_none_is_begun_in_its_place(path: Path) -> None:
    place = LedgerPlace(path)
    reserve(place.open(), make_call())
    aside = path.with_name("aside")
    path.rename(aside)
    for left in path.parent.glob("begun"):
        left.unlink()
    for _ in range(2):
        with pytest.raises(LedgerError, match="is gone"):
            place.open()
    aside.rename(path)
    with place.open().read() as tx:
        assert read_asked(tx, make_call()).state == "reserved"
    place.close()


def test_a_full_disk_is_a_sentence_and_nothing_of_the_transaction_is_there(path: Path) -> None:
    ledger = open_ledger(path, begin=True)
    reserve(ledger, make_call())
    with ledger.read() as tx:
        pages = tx.execute("PRAGMA page_count").fetchone()[0]
        tx.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StorageError, match="database or disk is full"):
        reserve(ledger, *(make_call(f"more-{number}", run="x" * 200) for number in range(2000)))
    with ledger.read() as tx:
        tx.execute("PRAGMA max_page_count=100000")
    assert settle(ledger, "c1", 1)
    assert read_difference(path) == 0
    assert len(read_calls(path)) == 1
    ledger.close()


def test_an_older_ledger_is_copied_and_brought_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_ledger(path, begin=True)
    reserve(ledger, make_call())
    ledger.close()
    monkeypatch.setattr(ledger_file, "MIGRATIONS", (*MIGRATIONS, (NEWEST + 1, "CREATE TABLE further (thing);")))
    monkeypatch.setattr(ledger_file, "NEWEST", NEWEST + 1)
    newer = open_ledger(path)
    with newer.read() as tx:
        assert tx.execute("SELECT count(*) FROM further").fetchone()[0] == 0
    newer.close()
    assert [call.id for call in read_calls(path)] == ["c1"]
    monkeypatch.undo()
    assert [call.id for call in read_calls(path.with_name(f"ledger.db.before-{NEWEST + 1}"))] == ["c1"]


OPENS = """
import select, sys
from pathlib import Path
from types import SimpleNamespace
from mind_body import sqlite_file
from mind_body.lease.ledger_file import open_ledger

def wait(*args):
    print("waits", flush=True)
    return select.select(*args)

sqlite_file.select = SimpleNamespace(select=wait)
open_ledger(Path(sys.argv[1])).close()
"""


def test_processes_that_open_a_new_ledger_together_wait_for_each_other(path: Path) -> None:
    open_ledger(path, begin=True).close()
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("PRAGMA journal_mode=DELETE")  # as it is until somebody has opened it for the first time
    raw.execute("BEGIN IMMEDIATE")  # and somebody is about to
    openers = [
        subprocess.Popen([sys.executable, "-c", OPENS, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for opener in openers:
        assert opener.stdout is not None
        assert opener.stdout.readline() == "waits\n", opener.communicate()[1]
    raw.execute("ROLLBACK")
    assert [(opener.communicate()[1], opener.returncode) for opener in openers] == [("", 0)] * 4
    raw.close()
    again = sqlite3.connect(path)
    assert again.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    again.close()


# Rows and sums


def test_a_call_is_reserved_whole_and_settled_once_at_what_it_came_to(path: Path) -> None:
    ledger = open_ledger(path, begin=True)
    reserve(ledger, make_call("c1", 100), make_call("c2", 50, conversation="room:x"), make_call("c3", 7, mind="eve"))
    with ledger.read() as tx:
        before = read_standing(tx, make_call("c4"))
    assert (before.run, before.mind_day, before.mind_month, before.conversation_day) == (150, 150, 150, 100)
    assert (before.host_day, before.host_month, before.conversation_month) == (157, 157, 100)
    assert settle(ledger, "c1", 30, big=Tokens(uncached=5, output=9), small=Tokens(uncached=1))
    assert not settle(ledger, "c1", 99)
    assert not settle(ledger, "c9", 99)
    with ledger.read() as tx:
        after = read_standing(tx, make_call("c4"))
        assert (after.run, after.mind_day, after.conversation_month, after.host_month) == (80, 80, 30, 87)
        assert read_asked(tx, make_call("c1")).state == "settled"
    ledger.close()


def test_no_mind_settles_anothers_call(path: Path) -> None:
    ledger = open_ledger(path, begin=True)
    reserve(ledger, make_call("c1", 100))
    assert not settle(ledger, "c1", 0, mind="eve")
    reserve(ledger, make_call("c1", 5, mind="eve"))
    assert settle(ledger, "c1", 5, mind="eve")
    assert [(call.mind, call.state) for call in read_calls(path)] == [("ada", "reserved"), ("eve", "settled")]
    ledger.close()


def test_a_call_stays_in_the_day_in_which_it_was_reserved(path: Path) -> None:
    ledger = open_ledger(path, begin=True)
    reserve(ledger, make_call("late", 100))
    settle(ledger, "late", 60)
    reserve(ledger, make_call("early", 10, day="2026-12-01", month="2026-12"))
    assert read_totals(path, "2026-11-30", "2026-11").host == Totals(60, 60)
    assert read_totals(path, "2026-12-01", "2026-12").minds == {"ada": Totals(10, 10)}
    assert read_totals(path, "2026-12-02", "2026-12").host == Totals(0, 10)
    ledger.close()


windows = st.sampled_from([("2026-11-30", "2026-11"), ("2026-12-01", "2026-12"), ("2026-12-02", "2026-12")])
steps = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "settle", "raise"]),
        st.sampled_from(["ada", "eve"]),
        st.sampled_from(["open", "room:x"]),
        windows,
        st.integers(0, 8),
        st.integers(0, 1000),
    ),
    max_size=40,
)


@given(steps)
def test_what_caps_are_held_against_is_the_sum_of_the_rows(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    ledger = open_ledger(path, begin=True)
    counted: dict[tuple[str, str], tuple[str, str, int]] = {}
    for what, mind, conversation, (day, month), number, amount in steps:
        call = make_call(f"c{number}", amount, mind=mind, conversation=conversation, day=day, month=month)
        with ledger.write() as tx:
            asked = read_asked(tx, call)
            if what == "reserve" and asked.state == "new":
                admit_call(tx, call)
                counted[mind, call.id] = (day, month, amount)
            elif what == "settle" and settle_call(tx, mind, Settle(call=call.id, cost_micro_usd=amount), NOW):
                counted[mind, call.id] = (*counted[mind, call.id][:2], amount)
            elif what == "raise" and asked.state == "reserved" and asked.more > 0:
                raise_call(tx, call)
                counted[mind, call.id] = (*counted[mind, call.id][:2], amount)
    ledger.close()
    assert read_difference(path) == 0
    for day, month in (("2026-11-30", "2026-11"), ("2026-12-01", "2026-12")):
        found = read_totals(path, day, month)
        assert found.host.day == sum(amount for its, _, amount in counted.values() if its == day)
        assert found.host.month == sum(amount for _, its, amount in counted.values() if its == month)
        for mind, totals in found.minds.items():
            assert totals.day == sum(amount for (whose, _), (its, _, amount) in counted.items() if its == day and whose == mind)


def test_a_difference_between_sums_and_rows_is_seen(path: Path) -> None:
    ledger = open_ledger(path, begin=True)
    reserve(ledger, make_call("c1", 100))
    with ledger.write() as tx:
        tx.execute("UPDATE total SET committed = committed - 1 WHERE scope = 'mind'")
    assert read_difference(path) == 2, "of its day and of its month"
    ledger.close()


# Credentials


def test_what_is_wrong_with_a_credential_is_one_row_per_kind(path: Path) -> None:
    ledger = open_ledger(path, begin=True)
    limited, payment = Stop("limited", NOW + 9, "a limit", NOW), Stop("payment", None, "no money", NOW)
    with ledger.write() as tx:
        for stop in (Stop("limited", NOW + 5, "first", NOW), limited, payment):
            save_stop(tx, "digest", stop)
        assert read_stops(tx, "digest") == (limited, payment)
        assert read_stops(tx, "another") == ()
    reserve(ledger, make_call("c1"), make_call("c2", mind="eve"))
    assert [(one.kind, one.until, one.minds) for one in read_pauses(path)] == [
        ("limited", NOW + 9, ("ada", "eve")),
        ("payment", None, ("ada", "eve")),
    ]
    with ledger.write() as tx:
        clear_stop(tx, "digest", "payment")
        assert read_stops(tx, "digest") == (limited,)
    ledger.close()


def test_every_ledger_has_a_key_of_its_own(tmp_path: Path) -> None:
    keys = set()
    for name in ("one", "two"):
        ledger = open_ledger(tmp_path / name / "ledger.db", begin=True)
        with ledger.read() as tx:
            keys.add(read_key(tx))
        ledger.close()
    assert len(keys) == 2
    assert all(len(key) == 64 for key in keys)


# Who reads


def test_readers_see_what_was_spent_by_day_mind_model_and_conversation(path: Path) -> None:
    ledger = open_ledger(path, begin=True)
    reserve(
        ledger,
        make_call("c1", 100),
        make_call("c2", 50, day="2026-12-01", month="2026-12", conversation="room:x"),
        make_call("c3", 40, mind="eve"),
        make_call("c4", 5, model=""),
    )
    settle(ledger, "c1", 30, answered=Tokens(uncached=5, cache_read=2, output=1))
    settle(ledger, "c3", 40, mind="eve", answered=Tokens(output=2))

    def rows(**wanted: Any) -> list[SpendRow]:
        return read_spend(path, **wanted)

    assert [(row.what, row.calls, row.cost_micro_usd, row.open_calls, row.reserved_micro_usd) for row in rows()] == [
        ("2026-11-30", 2, 70, 1, 5),
        ("2026-12-01", 0, 0, 1, 50),
    ]
    assert [(row.what, row.cost_micro_usd) for row in rows(by="mind")] == [("ada", 30), ("eve", 40)]
    assert [(row.what, row.calls, row.tokens) for row in rows(by="model")] == [("", 0, 0), ("answered", 2, 10), ("asked", 0, 0)]
    assert [(row.what, row.mind, row.calls) for row in rows(by="conversation")] == [
        ("open", "ada", 1),
        ("open", "eve", 1),
        ("room:x", "ada", 0),
    ]
    assert [row.what for row in rows(since_day="2026-12-01")] == ["2026-12-01"]
    assert [row.calls for row in rows(until_day="2026-11-30", mind="eve")] == [1]
    ledger.close()


def test_readers_read_while_the_organ_writes_and_hold_it_up_no_moment(path: Path) -> None:
    ledger = open_ledger(path, begin=True)
    reserve(ledger, make_call("c1", 100))
    with ledger.write() as tx:
        admit_call(tx, make_call("c2", 50))
        assert [call.id for call in read_calls(path)] == ["c1"]
    assert [call.id for call in read_calls(path)] == ["c1", "c2"]
    with ledger_file.open_reader(path) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM call")
    with ledger_file.open_reader(path) as reader:
        before = reader.execute("SELECT count(*) FROM call").fetchone()[0]
        reserve(ledger, make_call("c3", 1))
        assert reader.execute("SELECT count(*) FROM call").fetchone()[0] == before, "one snapshot"
    ledger.close()
    assert len(read_calls(path)) == 3, "also when nobody has it open"


def test_a_call_whose_answer_was_lost_is_open_for_an_hour_and_counts_for_ever(path: Path) -> None:
    ledger = open_ledger(path, begin=True)
    reserve(ledger, make_call("c1", 100), make_call("c2", 20))
    settle(ledger, "c2", 3)
    with ledger.read() as tx:
        assert read_figures(tx, "2026-11-30", NOW + 1000) == (103, 1)
        assert read_figures(tx, "2026-11-30", NOW + 3_600_001) == (103, 0)
        assert read_figures(tx, "2026-12-01", NOW) == (0, 1)
    ledger.close()


def test_months_that_no_cap_asks_for_are_forgotten_whole_and_never_one_of_the_newest(path: Path) -> None:
    ledger = open_ledger(path, begin=True)
    months = [f"{year}-{month:02}" for year in (2024, 2025) for month in range(1, 13)]
    for month in months:
        reserve(
            ledger, make_call(month, month=month, day=f"{month}-01"), make_call(f"{month}-lost", month=month, day=f"{month}-02")
        )
        settle(ledger, month, 7, m=Tokens(output=1))
    with ledger.write() as tx:
        save_stop(tx, "digest", Stop("payment", None, "unpaid", NOW))
        save_stop(tx, "of a key that is gone", Stop("payment", None, "unpaid", NOW))
        assert prune(tx, "2024-03", 0) == 4
        assert prune(tx, "2024-03", 0) == 0
        assert prune(tx, "2099-01", 0) == 2 * (24 - 2 - 13), "the clock is mad: a year is kept all the same"
        assert read_stops(tx, "digest")
        assert not read_stops(tx, "of a key that is gone")
        assert tx.execute("SELECT count(*) FROM usage").fetchone()[0] == 13
    ledger.close()
    assert read_difference(path) == 0
    assert read_spend(path)[0].what == "2024-12-01"
