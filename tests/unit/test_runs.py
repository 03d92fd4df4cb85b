"""Runs in a real mind file: one live run per kind, ended exactly once, and what a wake depends on."""

import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mind_body.control.effective import Held
from mind_body.mind.acks import admit_ack, is_acked
from mind_body.mind.records import Pause, RunKind
from mind_body.mind.runs import (
    adopt_run,
    charge_run,
    clear_pause,
    close_dead_run,
    end_run,
    holds_run,
    live_run,
    open_run,
    read_pauses,
    read_run,
    recent_runs,
    set_pause,
)
from mind_body.mind.wakes import read_waiting_mail
from tests.builders import NOW, insert_heard, insert_room, insert_session, insert_turn, make_mind
from tests.examples import share

KIND = RunKind.PERSONA_TURN


def test_a_run_is_read_back_as_it_was_opened(tmp_path: Path) -> None:
    mind = make_mind(tmp_path)
    with mind.write() as tx:
        run = open_run(tx, KIND, ["open", "direct:!a"], "direct", "1 message", NOW)
    with mind.read() as tx:
        assert live_run(tx, KIND) == read_run(tx, run.id) == run
        assert live_run(tx, RunKind.TOUCH) is None


def test_a_second_live_run_of_a_kind_cannot_be_opened(tmp_path: Path) -> None:
    mind = make_mind(tmp_path)
    with mind.write() as tx:
        open_run(tx, KIND, ["open"], "direct", "x", NOW)
        open_run(tx, RunKind.TOUCH, ["open"], "touch", "x", NOW)
    with pytest.raises(sqlite3.IntegrityError), mind.write() as tx:
        open_run(tx, KIND, ["open"], "direct", "x", NOW)


def test_only_the_first_adopts_and_only_the_holder_ends(tmp_path: Path) -> None:
    mind = make_mind(tmp_path)
    with mind.write() as tx:
        run = open_run(tx, KIND, ["open"], "direct", "x", NOW)
        assert adopt_run(tx, run.id, "a", NOW)
        assert not adopt_run(tx, run.id, "b", NOW)
        assert holds_run(tx, run.id, "a")
        assert not holds_run(tx, run.id, "b")
        assert charge_run(tx, run.id, "a", 7)
        assert not charge_run(tx, run.id, "b", 7)
        assert not end_run(tx, run.id, "b", "done", "x", NOW)
        assert not end_run(tx, run.id, None, "done", "x", NOW)
        assert end_run(tx, run.id, "a", "done", "no mail is left", NOW + 5)
        assert not end_run(tx, run.id, "a", "failed", "again", NOW + 6)
        assert not holds_run(tx, run.id, "a")
        assert not charge_run(tx, run.id, "a", 7)
        [found] = recent_runs(tx, KIND, 5)
    assert (found.outcome, found.end_reason, found.ended_at, found.turns, found.cost_micro_usd) == (
        "done",
        "no mail is left",
        NOW + 5,
        1,
        7,
    )


def test_closing_a_dead_run_loses_its_open_turns_and_keeps_its_mail(tmp_path: Path) -> None:
    mind = make_mind(tmp_path)
    with mind.write() as tx:
        insert_room(tx)
        insert_heard(tx)
        run = open_run(tx, KIND, ["room:!a:example.org"], "direct", "x", NOW)
        adopt_run(tx, run.id, "a", NOW)
        found = live_run(tx, KIND)
        assert found is not None
        insert_session(tx, "s")
        for turn, state in [("t1", "opened"), ("t2", "replied")]:
            insert_turn(tx, turn, run_id=run.id, session_id="s", state=state)
        assert not close_dead_run(tx, run, "as it was before it was adopted", NOW)
        assert close_dead_run(tx, found, "its holder is gone", NOW)
        assert not close_dead_run(tx, found, "its holder is gone", NOW)
        assert {row["id"]: row["state"] for row in tx.execute("SELECT id, state FROM turn")} == {"t1": "lost", "t2": "replied"}
        assert live_run(tx, KIND) is None
        assert recent_runs(tx, KIND, 5)[0].outcome == "dead"
        assert read_waiting_mail(tx)[0].count == 1


def test_a_run_knows_what_was_heard_before_it_and_the_newest_is_the_one_that_was_opened_last(tmp_path: Path) -> None:
    mind = make_mind(tmp_path)
    with mind.write() as tx:
        insert_room(tx)
        seqs = [0, insert_heard(tx), insert_heard(tx)]
        for number, seq in enumerate(seqs):
            tx.execute("DELETE FROM heard WHERE seq > ?", (seq,))
            run = open_run(tx, KIND, ["open"], "direct", str(number), NOW - number)
            assert end_run(tx, run.id, None, "done", "x", NOW - number)
        found = recent_runs(tx, KIND, 2)
    assert [(run.reason, run.after_seq) for run in found] == [("2", 2), ("1", 2)], "a row that is gone was heard all the same"


def test_pauses_are_one_per_cause_and_cleared_by_cause(tmp_path: Path) -> None:
    mind = make_mind(tmp_path)
    with mind.write() as tx:
        set_pause(tx, Pause("limited", 5, "a"))
        set_pause(tx, Pause("limited", 9, "b", 2))
        set_pause(tx, Pause("fault", 7, "c", 1))
        assert read_pauses(tx) == (Pause("fault", 7, "c", 1), Pause("limited", 9, "b", 2))
        assert clear_pause(tx, "limited")
        assert not clear_pause(tx, "limited")
        assert clear_pause(tx)
        assert read_pauses(tx) == ()


def test_an_acknowledgement_is_written_once_per_change(tmp_path: Path) -> None:
    mind = make_mind(tmp_path)
    with mind.write() as tx:
        assert admit_ack(tx, "mouth", Held("a"), 1)
        assert not admit_ack(tx, "mouth", Held("a"), 2)
        assert admit_ack(tx, "mouth", Held("b"), 3)
        assert is_acked(tx, "mouth", Held("b"))
        assert not is_acked(tx, "mouth", Held("a"))
        assert not is_acked(tx, "heartbeat", Held("b"))
        assert [tuple(row) for row in tx.execute("SELECT organ, at FROM ack")] == [("mouth", 3)]


class RunLives(RuleBasedStateMachine):
    """Heartbeat and personas in any order: whatever they try, a run is live once and ends once."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = TemporaryDirectory()
        self.mind = make_mind(Path(self.directory.name))
        self.ended: dict[str, tuple[object, ...]] = {}

    def teardown(self) -> None:
        self.mind.close()
        self.directory.cleanup()

    def live(self) -> bool:
        with self.mind.read() as tx:
            return live_run(tx, KIND) is not None

    @rule()
    def open(self) -> None:
        try:
            with self.mind.write() as tx:
                open_run(tx, KIND, ["open"], "direct", "x", NOW)
        except sqlite3.IntegrityError:
            assert self.live()

    @precondition(live)
    @rule(holder=st.sampled_from(["a", "b"]))
    def adopt(self, holder: str) -> None:
        with self.mind.write() as tx:
            run = live_run(tx, KIND)
            assert run is not None
            assert adopt_run(tx, run.id, holder, NOW) is (run.holder is None)

    @precondition(live)
    @rule(holder=st.sampled_from(["a", "b", None]), outcome=st.sampled_from(["done", "failed"]))
    def end(self, holder: str | None, outcome: str) -> None:
        with self.mind.write() as tx:
            run = live_run(tx, KIND)
            assert run is not None
            assert end_run(tx, run.id, holder, outcome, "x", NOW) is (run.holder == holder)

    @precondition(live)
    @rule()
    def die(self) -> None:
        with self.mind.write() as tx:
            run = live_run(tx, KIND)
            assert run is not None
            assert close_dead_run(tx, run, "x", NOW)

    @precondition(lambda self: self.ended)
    @rule(data=st.data(), holder=st.sampled_from(["a", "b", None]))
    def meddle_with_an_ended_run(self, data: st.DataObject, holder: str | None) -> None:
        run_id = data.draw(st.sampled_from(sorted(self.ended)))
        with self.mind.write() as tx:
            assert not adopt_run(tx, run_id, "z", NOW)
            assert not end_run(tx, run_id, holder, "failed", "again", NOW)
            assert not charge_run(tx, run_id, holder or "", 1)

    @invariant()
    def at_most_one_is_live_and_ended_ones_never_change(self) -> None:
        with self.mind.read() as tx:
            rows = [tuple(row) for row in tx.execute("SELECT id, ended_at, outcome, holder FROM run")]
        assert sum(row[1] is None for row in rows) <= 1
        now_ended = {str(row[0]): row for row in rows if row[1] is not None}
        assert self.ended.items() <= now_ended.items()
        self.ended = now_ended


TestRunLives = RunLives.TestCase
TestRunLives.settings = settings(max_examples=share(0.2), stateful_step_count=20, deadline=None)
