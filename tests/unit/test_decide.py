"""Decide, scene by scene: a run's course, its flush, its ends; and the table as it is drawn in the docs."""

from dataclasses import replace
from pathlib import Path

import pytest

from mind_body.self_run import conditions, ladder
from mind_body.self_run.actions import (
    Action,
    CloseStdin,
    EndSession,
    Feed,
    Interrupt,
    Kill,
    Outcome,
    Record,
    Reopen,
    StoreHandoff,
    Terminate,
    Wait,
    Why,
    WriteFlush,
)
from mind_body.self_run.constants import Constants
from mind_body.self_run.decide import TABLE, State
from mind_body.self_run.facts import Child, Facts, Ladder, Standing, Verdict
from mind_body.self_run.ladder import decide_leave
from mind_body.self_run.picture import render_picture
from tests.self_bench import BEGAN, DONE, LADDER, Bench, begin, flushing, make_facts, working

REAL = Constants()
ROOT = Path(__file__).parents[2]


# The constants.


def test_the_constants_are_those_of_the_design() -> None:
    assert (REAL.ceiling_tokens, REAL.flush_headroom_tokens) == (300_000, 60_000)
    assert (REAL.flush_grace_ms, REAL.stall_ms, REAL.exit_drain_ms) == (900_000, 600_000, 2_000)
    assert (REAL.escalate_flush_ms, REAL.escalate_stop_ms) == (120_000, 10_000)
    assert REAL.handoff_max_bytes == 16_384


@pytest.mark.parametrize(("window", "ceiling"), [(1_000_000, 300_000), (360_000, 300_000), (200_000, 140_000), (None, 68_000)])
def test_the_ceiling_leaves_the_headroom_free_in_a_small_window(window: int | None, ceiling: int) -> None:
    assert REAL.ceiling(window) == ceiling


def test_scaled_constants_divide_time_and_nothing_else() -> None:
    scaled = REAL.scaled(100)
    assert (scaled.stall_ms, scaled.exit_drain_ms, scaled.run_limit_ms) == (6_000, 20, 864_000)
    assert (scaled.ceiling_tokens, scaled.handoff_max_bytes, scaled.divisor) == (300_000, 16_384, 100)
    assert REAL.scaled(10**9).stall_ms == 1
    bash = working(tool_limit_ms=150_000)
    assert Bench(bash.facts, scaled).settle().until == bash.facts.now + 1_500


# The course of a run, scene by scene.


def kinds(bench: Bench) -> list[type[Action]]:
    return [type(action) for action in bench.actions]


def test_nothing_is_said_before_the_window_is_known() -> None:
    bench = Bench().settle()
    assert (bench.actions, bench.until) == ([], BEGAN + 60_000)
    bench.change_child(standing=Standing.READY)
    assert bench.actions == []
    assert bench.change(window_tokens=200_000).actions == [Feed("start")]


def test_a_window_that_is_never_told_holds_nothing_up_for_ever() -> None:
    bench = Bench().settle().change_child(standing=Standing.READY).wait_out()
    assert bench.actions == [Feed("start")]


def test_a_warm_child_is_fed_at_once() -> None:
    assert begin(warm=True, prefix=100_000).actions == [Feed("start")]


def test_a_child_that_does_not_come_up_is_refused() -> None:
    end = Bench().settle().wait_out().wait_for_the_end().recorded
    assert end is not None
    assert (end.outcome, end.stays) == (Outcome.KILLED, False)
    quick = Bench().settle().wait_out().exits(1).recorded
    assert quick == Record(Outcome.REFUSED, "it did not come up", stays=False)


def test_a_window_too_small_to_work_in_is_refused() -> None:
    bench = Bench().settle().comes_up(window=127_999)
    assert bench.exits().recorded == Record(Outcome.REFUSED, "its window is too small", stays=False)


@pytest.mark.parametrize(
    ("call", "why", "reason"),
    [
        ("held", Why.HELD, "held: so"),
        ("stopped", Why.STOPPED, "stopped by so"),
        ("spent", Why.SPENT, "so"),
        ("capped", Why.CAPPED, "so"),
        ("limited", Why.LIMITED, "so"),
    ],
)
def test_a_call_that_comes_before_the_first_word_says_none(call: str, why: Why, reason: str) -> None:
    bench = Bench().settle().change(**{call: "so"})
    assert bench.actions[0] == Interrupt(why, reason)
    assert Feed not in kinds(bench)


def test_a_result_is_recorded_once_and_its_child_stays() -> None:
    bench = working().ends_turn()
    assert bench.recorded == Record(Outcome.RESULT, "done", stays=True)
    assert bench.change(next_message="late").until is None
    assert len(bench.actions) == 2


def test_a_message_without_a_result_is_no_result() -> None:
    bench = working().change(busy=False)
    assert bench.recorded == Record(Outcome.NO_RESULT, "claude finished the message without a result", stays=True)


def test_steering_is_fed_into_the_running_turn_and_after_a_result() -> None:
    bench = working().change(next_message="steer")
    assert bench.actions == [Feed("start"), Feed("steer")]
    bench.change(busy=False, result=DONE, next_message="more")
    assert bench.actions[-1] == Feed("more")
    assert bench.recorded is None


@pytest.mark.parametrize("outcome", [Outcome.AUTHENTICATION, Outcome.PAYMENT, Outcome.OVERLOADED])
def test_the_provider_that_refuses_is_not_asked_for_a_handoff(outcome: Outcome) -> None:
    bench = working(prefix=139_000).change(prefix_tokens=150_000, busy=False, result=Verdict(outcome, "who are you"))
    assert bench.recorded == Record(outcome, "who are you", stays=True)


def test_background_work_is_waited_for_and_then_left() -> None:
    bench = working().change(background=1)
    bench.ends_turn()
    assert bench.recorded is None
    assert bench.wait_out().actions[1:] == [
        Interrupt(Why.LEFTOVER, "its background work will not end"),
        EndSession(Why.LEFTOVER, "its background work will not end"),
    ]
    assert bench.exits().recorded == Record(Outcome.RESULT, "done", stays=False)


def test_background_work_that_ends_lets_the_run_end() -> None:
    bench = working().change(background=1).ends_turn()
    assert bench.change(background=0).recorded == Record(Outcome.RESULT, "done", stays=True)


def test_a_silent_api_is_interrupted_after_the_stall_and_patiently_ended() -> None:
    bench = working()
    assert bench.until == BEGAN + 600_000
    bench.wait_out()
    assert bench.actions[-1] == Interrupt(Why.STALLED, "no line came in time")
    began = bench.facts.now
    assert bench.wait_for_the_end().recorded == Record(Outcome.KILLED, "no line came in time; it had to be killed", stays=False)
    assert [(at - began) // 1000 for at, action in bench.trace if isinstance(action, LADDER)] == [0, 120, 240, 360, 480]


def test_a_stalled_turn_that_heeds_the_interrupt_is_interrupted() -> None:
    bench = working().wait_out().ends_turn(Verdict(Outcome.NO_RESULT, "broken off"))
    assert isinstance(bench.actions[-1], EndSession)
    assert bench.exits().recorded == Record(Outcome.INTERRUPTED, "no line came in time", stays=False)


def test_a_running_tool_is_given_its_own_limit() -> None:
    assert working(tool_limit_ms=150_000).until == BEGAN + 150_000
    assert working(tool_limit_ms=1_800_000).until == BEGAN + 1_800_000
    assert working(tool_limit_ms=10**9).until == BEGAN + 3_600_000


def test_each_line_begins_the_stall_anew() -> None:
    bench = working().pass_time(599_000).works()
    assert bench.until == BEGAN + 599_000 + 600_000


def test_a_stop_is_an_interrupt_at_once_and_the_session_lives_on() -> None:
    bench = working().change(stopped="@ada:example.org")
    assert bench.actions[-1] == Interrupt(Why.STOPPED, "stopped by @ada:example.org")
    bench.ends_turn(Verdict(Outcome.NO_RESULT, "broken off"))
    assert bench.recorded == Record(Outcome.INTERRUPTED, "stopped by @ada:example.org", stays=True)


def test_a_stop_that_is_not_heeded_climbs_the_ladder_ten_seconds_a_step() -> None:
    bench = working().change(stopped="ada")
    began = bench.facts.now
    bench.wait_for_the_end()
    steps = [((at - began) // 1000, type(action)) for at, action in bench.trace if isinstance(action, LADDER)]
    assert steps == list(zip([0, 10, 20, 30, 40], LADDER, strict=True))
    assert bench.recorded == Record(Outcome.KILLED, "stopped by ada; it had to be killed", stays=False)


def test_a_stop_hurries_a_ladder_that_was_patient() -> None:
    bench = working().wait_out().pass_time(11_000)
    assert isinstance(bench.actions[-1], Interrupt)
    assert isinstance(bench.change(stopped="ada").actions[-1], EndSession)


def test_work_that_was_done_before_the_stop_came_is_done() -> None:
    bench = working().change(stopped="ada").ends_turn(DONE)
    assert bench.recorded == Record(Outcome.RESULT, "done", stays=True)


@pytest.mark.parametrize(("call", "outcome"), [("spent", Outcome.BUDGET), ("capped", Outcome.SPEND), ("limited", Outcome.LIMITED)])
def test_spent_and_limited_end_the_run_in_order_and_keep_the_session(call: str, outcome: Outcome) -> None:
    bench = working().change(**{call: "so"}).ends_turn(Verdict(Outcome.NO_RESULT, "broken off"))
    assert bench.recorded == Record(outcome, "so", stays=True)


def test_a_held_brake_ends_the_run_in_order_and_the_child_goes() -> None:
    bench = working().change(held="by hand").ends_turn(Verdict(Outcome.NO_RESULT, "broken off"))
    assert kinds(bench) == [Feed, Interrupt, EndSession]
    assert bench.exits().recorded == Record(Outcome.HELD, "held: by hand", stays=False)


def test_a_brake_that_is_released_again_does_not_take_the_interrupt_back() -> None:
    bench = working().change(held="by hand").change(held=None)
    assert bench.ends_turn(Verdict(Outcome.NO_RESULT, "broken off")).exits().recorded == Record(
        Outcome.HELD, "held: by hand", stays=False
    )


def test_an_end_session_that_the_cli_does_not_know_is_not_waited_for() -> None:
    bench = working().change(held="so").ends_turn()
    bench.change(ladder=replace(bench.facts.ladder, end_refused=True))
    assert kinds(bench)[-2:] == [EndSession, CloseStdin]


def test_a_child_that_goes_at_sigterm_says_so() -> None:
    bench = working().change(stopped="ada").wait_out().wait_out().wait_out()
    assert bench.exits(143).recorded == Record(Outcome.INTERRUPTED, "stopped by ada; it went at SIGTERM", stays=False)


# Flush and hand-off.


def test_the_first_request_at_the_ceiling_asks_for_the_flush_once() -> None:
    bench = working(prefix=139_999)
    assert WriteFlush not in kinds(bench)
    bench.works(140_000)
    assert bench.actions[-1] == WriteFlush("flush", "its context holds 140000 tokens, and the ceiling is 140000")
    assert bench.works(145_000).flushes == 1


def test_a_flush_is_stored_its_child_ended_and_the_run_is_flushed() -> None:
    bench = flushing().starts_flush().answers_flush(900)
    assert kinds(bench)[1:] == [WriteFlush, StoreHandoff, Interrupt, EndSession]
    assert bench.actions[2] == StoreHandoff("model", cut=False)
    end = bench.exits().recorded
    assert end is not None
    assert (end.outcome, end.stays) == (Outcome.FLUSHED, False)


def test_work_that_ended_while_the_flush_was_on_its_way_is_a_result_with_a_handoff() -> None:
    bench = flushing().change(result=DONE)
    bench.starts_flush().answers_flush(900).exits()
    assert bench.stored == 1
    assert bench.recorded == Record(Outcome.RESULT, "done", stays=False)


def test_a_folded_flush_counts_from_when_it_starts() -> None:
    bench = flushing(tool_limit_ms=1_000_000)
    asked = bench.facts.now
    assert bench.until == asked + 1_000_000
    bench.pass_time(800_000).starts_flush().change(tool_limit_ms=None, last_line_at=bench.facts.now + 800_000)
    bench.pass_time(500_000).works(145_000).pass_time(399_000).works(145_000)
    assert Interrupt not in kinds(bench)
    bench.wait_out()
    assert bench.facts.now == asked + 800_000 + 900_000
    assert bench.actions[-1] == Interrupt(Why.OVERRAN, "the flush overran")


def test_a_flush_that_never_starts_is_not_waited_for_longer_than_its_grace_and_the_tool() -> None:
    bench = flushing()
    asked = bench.facts.now
    for _ in range(2):
        assert Interrupt not in kinds(bench)
        bench.pass_time(500_000).works(140_000)
    assert Interrupt in kinds(bench)
    assert bench.facts.now - asked == 900_000


def test_a_flush_that_grows_past_the_headroom_is_interrupted() -> None:
    bench = flushing().starts_flush().works(200_000)
    assert Interrupt not in kinds(bench)
    assert bench.works(200_001).actions[-1] == Interrupt(Why.OVERRAN, "the flush overran")


def test_a_flush_asked_for_beyond_the_headroom_may_still_grow_by_it() -> None:
    bench = working(prefix=250_000).starts_flush().works(300_000)
    assert Interrupt not in kinds(bench)
    assert isinstance(bench.works(310_001).actions[-1], Interrupt)


def test_an_overrun_is_interrupted_and_asked_once_more_as_a_turn_of_its_own() -> None:
    bench = flushing().starts_flush().works(200_001).answers_flush(None)
    assert bench.actions[-1] == WriteFlush("again", "its context holds 140000 tokens, and the ceiling is 140000")
    assert bench.starts_flush().answers_flush(800).stored == 1
    assert StoreHandoff("model", cut=False) in bench.actions


def test_after_two_overruns_the_handoff_is_made_from_the_record() -> None:
    bench = flushing().starts_flush().works(200_001).answers_flush(None)
    bench.starts_flush().works(261_000).works(262_000).answers_flush(None)
    assert StoreHandoff("record", cut=False) in bench.actions
    assert bench.stored == 1


def test_an_answer_that_comes_with_the_interrupt_counts() -> None:
    bench = flushing().starts_flush().works(200_001).answers_flush(12)
    assert StoreHandoff("model", cut=False) in bench.actions


def test_an_interrupt_of_the_flush_that_is_not_heeded_ends_the_session_after_two_minutes() -> None:
    bench = flushing().starts_flush().works(200_001)
    began = bench.facts.now
    bench.wait_for_the_end()
    assert kinds(bench)[-6:] == [StoreHandoff, EndSession, CloseStdin, Terminate, Kill, Record]
    assert [(at - began) // 1000 for at, action in bench.trace if isinstance(action, LADDER)] == [0, 120, 240, 360, 480]
    assert bench.recorded is not None
    assert bench.recorded.outcome is Outcome.FLUSHED


def test_a_flush_without_an_answer_is_asked_for_again_and_then_made_from_the_record() -> None:
    bench = flushing().starts_flush().answers_flush(None)
    assert bench.actions[-1] == WriteFlush("again", "its context holds 140000 tokens, and the ceiling is 140000")
    assert StoreHandoff("record", cut=False) in bench.answers_flush(None).actions


def test_a_long_answer_is_asked_back_once_for_a_shorter_one() -> None:
    bench = flushing().starts_flush().answers_flush(20_000)
    assert bench.actions[-1] == WriteFlush("shorter", "its context holds 140000 tokens, and the ceiling is 140000")
    assert StoreHandoff("model", cut=False) in bench.starts_flush().answers_flush(16_384).actions
    assert bench.flushes == 1


def test_a_shorter_answer_that_is_long_again_is_cut() -> None:
    bench = flushing().starts_flush().answers_flush(20_000).starts_flush().answers_flush(16_385)
    assert StoreHandoff("model", cut=True) in bench.actions


def test_without_the_shorter_answer_the_long_one_is_kept_and_cut() -> None:
    bench = flushing().starts_flush().answers_flush(20_000).answers_flush(None)
    assert StoreHandoff("model", cut=True, kept=True) in bench.actions


def test_a_shorter_answer_that_overruns_is_interrupted_and_the_long_one_kept() -> None:
    bench = flushing().starts_flush().answers_flush(20_000).starts_flush().wait_out()
    assert bench.actions[-1] == Interrupt(Why.OVERRAN, "the flush overran")
    assert StoreHandoff("model", cut=True, kept=True) in bench.answers_flush(None).actions


def test_a_run_that_is_a_day_old_is_asked_for_its_handoff() -> None:
    bench = working()
    for _ in range(173):
        assert WriteFlush not in kinds(bench)
        bench.pass_time(500_000).works()
    assert bench.facts.now == BEGAN + 86_400_000
    assert bench.actions[-1] == WriteFlush("flush", "the run is older than 24 h")


def test_a_stop_in_the_middle_of_a_flush_leaves_a_handoff_and_is_interrupted() -> None:
    bench = flushing().starts_flush().change(stopped="ada")
    assert isinstance(bench.actions[-1], Interrupt)
    bench.answers_flush(None)
    assert StoreHandoff("record", cut=False) in bench.actions
    assert bench.exits().recorded == Record(Outcome.INTERRUPTED, "stopped by ada", stays=False)


def test_a_stop_after_the_interrupt_of_a_flush_is_heeded() -> None:
    bench = flushing().starts_flush().works(200_001).change(stopped="ada")
    assert bench.actions[-1] == Interrupt(Why.STOPPED, "stopped by ada")


def test_a_hold_that_comes_with_the_answer_stores_it_and_holds() -> None:
    bench = flushing().starts_flush()
    bench.facts = replace(bench.facts, held="by hand")
    bench.answers_flush(5)
    assert bench.actions[-3:] == [
        StoreHandoff("model", cut=False),
        Interrupt(Why.HELD, "held: by hand"),
        EndSession(Why.HELD, "held: by hand"),
    ]
    assert bench.exits().recorded == Record(Outcome.HELD, "held: by hand", stays=False)


def test_a_child_that_dies_in_its_flush_leaves_one_made_from_the_record() -> None:
    bench = flushing().starts_flush().exits(1)
    assert bench.actions[-2:] == [
        StoreHandoff("record", cut=False),
        Record(Outcome.FLUSHED, "claude ended by itself (exit 1)", stays=False),
    ]


def test_without_a_flush_nothing_of_one_is_late_or_owed() -> None:
    facts = make_facts()
    assert conditions.flush_late_at(facts, REAL) == facts.now
    assert not conditions.owed(facts, REAL)


# A child that goes, or goes deaf.


def test_what_is_left_in_its_streams_is_read_first_for_two_seconds() -> None:
    bench = working().exits(1, drained=False)
    assert (bench.recorded, bench.until) == (None, BEGAN + 2_000)
    assert bench.change_child(drained=True).recorded == Record(Outcome.DIED, "claude ended by itself (exit 1)", stays=False)
    assert working().exits(1, drained=False).wait_out().recorded is not None


def test_its_last_words_are_the_reason() -> None:
    bench = working().change_child(words="disk full").exits(1)
    assert bench.recorded == Record(Outcome.DIED, "claude ended by itself (exit 1): disk full", stays=False)


def test_an_exit_0_without_a_result_is_no_result() -> None:
    assert working().exits(0).recorded == Record(Outcome.NO_RESULT, "claude ended by itself (exit 0)", stays=False)


def test_a_result_before_its_exit_counts() -> None:
    bench = working()
    bench.facts = replace(bench.facts, busy=False, result=DONE)
    assert bench.exits(0).recorded == Record(Outcome.RESULT, "done", stays=False)


def test_a_child_that_answered_nothing_is_begun_anew_once() -> None:
    bench = Bench().settle().comes_up().exits(1)
    assert kinds(bench) == [Feed, Reopen]
    bench.comes_up()
    assert kinds(bench) == [Feed, Reopen, Feed]
    assert bench.exits(1).recorded == Record(Outcome.DIED, "claude ended by itself (exit 1)", stays=False)


def test_a_child_that_cannot_be_started_twice_is_refused() -> None:
    bench = Bench().settle().change_child(words="no such file").exits(None).exits(None)
    assert bench.recorded == Record(Outcome.REFUSED, "claude could not be started", stays=False)


def test_a_refused_login_is_not_tried_anew() -> None:
    bench = Bench().settle().comes_up()
    bench.facts = replace(bench.facts, result=Verdict(Outcome.REFUSED, "who are you"))
    assert bench.exits(1).recorded == Record(Outcome.REFUSED, "who are you", stays=False)


def test_a_child_that_went_when_it_was_held_is_held() -> None:
    bench = Bench().settle().comes_up()
    bench.facts = replace(bench.facts, held="by hand")
    assert bench.exits(1).recorded == Record(Outcome.HELD, "held: by hand", stays=False)


def test_closed_streams_are_most_often_an_exit() -> None:
    bench = working().goes_deaf()
    assert bench.until == BEGAN + 2_000
    assert bench.exits(1).recorded == Record(Outcome.DIED, "claude ended by itself (exit 1)", stays=False)


def test_a_child_that_closed_its_streams_and_lives_on_is_ended() -> None:
    bench = working().goes_deaf().wait_out()
    assert kinds(bench)[1:] == [Interrupt, EndSession]
    end = bench.wait_for_the_end().recorded
    assert end is not None
    assert (end.outcome, end.reason) == (Outcome.KILLED, "it closed its streams and lived on; it had to be killed")


def test_a_stop_does_not_wait_for_a_deaf_child() -> None:
    bench = working().goes_deaf().change(stopped="ada")
    assert kinds(bench)[1:] == [Interrupt, EndSession]


def test_a_child_that_even_the_kill_leaves_there_holds_nothing_up() -> None:
    bench = flushing().starts_flush().change(stopped="ada").wait_for_the_end()
    assert kinds(bench)[-3:] == [Kill, StoreHandoff, Record]


# A child that no run wants.


def leave(facts: Facts) -> Action:
    return decide_leave(facts, REAL)


def test_a_child_without_a_run_is_ended_by_the_same_ladder() -> None:
    idle = make_facts(child=Child(Standing.READY, BEGAN))
    assert leave(idle) == Interrupt(Why.LINGERED, "nothing more came for it")
    asked = replace(idle, ladder=Ladder(Why.LINGERED, "so", interrupted_at=BEGAN))
    assert leave(asked) == EndSession(Why.LINGERED, "so")
    ended = replace(asked, ladder=replace(asked.ladder, ended_at=BEGAN))
    assert leave(ended) == Wait(BEGAN + 10_000)
    assert leave(replace(ended, now=BEGAN + 10_000)) == CloseStdin()
    assert leave(replace(ended, child=Child(Standing.GONE, BEGAN))) == Wait(None)


def test_a_child_in_a_turn_of_its_own_making_is_given_the_bound_of_its_interrupt() -> None:
    busy = make_facts(child=Child(Standing.READY, BEGAN), busy=True, ladder=Ladder(Why.LINGERED, "so", interrupted_at=BEGAN))
    assert leave(busy) == Wait(BEGAN + 10_000)


# The table.


@pytest.mark.parametrize("state", State)
def test_the_last_row_of_every_state_always_holds(state: State) -> None:
    rows = [row for row in TABLE if row.state is state]
    assert rows[-1].holds is conditions.always
    assert all(row.holds is not conditions.always for row in rows[:-1])


def test_every_way_of_ending_has_its_manner() -> None:
    assert set(ladder.MANNERS) == set(Why)


def test_the_picture_in_the_docs_is_drawn_from_the_table() -> None:
    assert render_picture() in (ROOT / "docs" / "self-run.md").read_text()
