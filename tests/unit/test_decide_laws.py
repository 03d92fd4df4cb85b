"""The laws of `decide`, over any sequence of facts. A child here does whatever it likes; see tests/self_bench.py.

A run ends in bounded time, exactly once, with nothing after it; its end goes up the ladder in order and after each step's bound; a
flush leaves exactly one hand-off; only spans of a monotonic clock count.
"""

import ast
import itertools
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from mind_body.self_run.actions import (
    Action,
    CloseStdin,
    Feed,
    Interrupt,
    Kill,
    Outcome,
    Record,
    Reopen,
    Terminate,
    Wait,
    Why,
    WriteFlush,
)
from mind_body.self_run.constants import Constants
from mind_body.self_run.decide import decide, find_row, state_of
from mind_body.self_run.facts import Child, Facts, Flush, Ladder, Standing, Verdict
from mind_body.self_run.ladder import decide_leave
from tests.examples import share
from tests.self_bench import DONE, LADDER, Bench, begin

REAL = Constants()
ROOT = Path(__file__).parents[2]


# What a child, its people and its operator may do, in any order.

_SPANS = st.sampled_from([1, 900, 9_000, 11_000, 119_000, 599_000, 3_000_000, 90_000_000])
_SIZES = st.sampled_from([None, 0, 1, 16 * 1024, 16 * 1024 + 1, 99_999])
_PREFIXES = st.sampled_from([0, 20_000, 139_999, 140_000, 170_000, 200_001, 310_000, 400_000])
_VERDICTS = st.sampled_from(
    [DONE, *(Verdict(outcome, "so") for outcome in (Outcome.NO_RESULT, Outcome.REFUSED, Outcome.LIMITED, Outcome.BUDGET))]
)
_TOOLS = st.sampled_from([None, 1, 150_000, 99_999_999])
_CALLS = st.sampled_from(["held", "stopped", "spent", "capped", "limited"])

_EVENTS = st.one_of(
    st.tuples(st.just("time"), _SPANS),
    st.tuples(st.just("wait"), st.none()),
    st.tuples(st.just("up"), st.sampled_from([None, 100_000, 200_000, 1_000_000])),
    st.tuples(st.just("line"), _PREFIXES),
    st.tuples(st.just("message"), st.none()),
    st.tuples(st.just("turn"), st.none()),
    st.tuples(st.just("end"), _VERDICTS),
    st.tuples(st.just("tool"), _TOOLS),
    st.tuples(st.just("background"), st.integers(0, 2)),
    st.tuples(st.just("flush starts"), st.none()),
    st.tuples(st.just("flush over"), _SIZES),
    st.tuples(st.just("call"), _CALLS),
    st.tuples(st.just("release"), _CALLS),
    st.tuples(st.just("deaf"), st.none()),
    st.tuples(st.just("unknown end"), st.none()),
    st.tuples(st.just("exit"), st.sampled_from([None, 0, 1, 143, -9])),
    st.tuples(st.just("drained"), st.none()),
)


def happen(bench: Bench, event: str, value: Any) -> None:
    """One thing happens. What cannot happen to a child that is gone, or to a flush that was not asked, does not."""
    facts = bench.facts
    gone = facts.child.standing is Standing.GONE
    always: dict[str, Callable[[], object]] = {
        "time": lambda: bench.pass_time(value),
        "wait": lambda: bench.until is None or bench.wait_out(),
        "message": lambda: bench.change(next_message="steer"),
        "call": lambda: bench.change(**{value: "so"}),
        "release": lambda: bench.change(**{value: None}),
        "drained": lambda: bench.change_child(drained=gone or facts.child.drained),
    }
    alive: dict[str, Callable[[], object]] = {
        "up": lambda: facts.child.standing is not Standing.STARTING or bench.comes_up(value),
        "line": lambda: bench.works(value),
        "turn": lambda: bench.change(busy=True, last_line_at=facts.now),
        "end": lambda: bench.ends_turn(value),
        "tool": lambda: bench.change(tool_limit_ms=value, last_line_at=facts.now),
        "background": lambda: bench.change(background=value, last_line_at=facts.now),
        "flush starts": lambda: facts.flush is None or bench.starts_flush(),
        "flush over": lambda: facts.flush is None or bench.answers_flush(value),
        "deaf": lambda: facts.child.standing is Standing.DEAF or bench.goes_deaf(),
        "unknown end": lambda: bench.change(ladder=replace(facts.ladder, end_refused=facts.ladder.ended_at is not None)),
        "exit": lambda: bench.exits(value, drained=False),
    }
    if event in always:
        always[event]()
    elif not gone:
        alive[event]()


@st.composite
def plays(draw: st.DrawFn) -> Bench:
    """Any sequence of facts, and then nothing any more, until the end."""
    bench = begin(warm=draw(st.booleans()), prefix=draw(_PREFIXES))
    for event, value in draw(st.lists(_EVENTS, max_size=40)):
        happen(bench, event, value)
    return bench.wait_for_the_end()


def bound(constants: Constants) -> int:
    """The longest that any run can take, from the constants alone."""
    opening = 2 * (constants.start_ms + constants.exit_drain_ms)
    ask = 2 * constants.flush_grace_ms + constants.tool_limit_max_ms + constants.escalate_flush_ms
    ends = len(LADDER) * constants.escalate_flush_ms + 2 * constants.exit_drain_ms
    return constants.run_limit_ms + opening + 3 * ask + ends


# The laws, each over the whole course of a run.


def law_ends_in_bounded_time(bench: Bench) -> None:
    at = next(at for at, action in bench.trace if isinstance(action, Record))
    assert at - bench.facts.began_at <= bound(bench.constants)


def law_records_once_and_then_nothing(bench: Bench) -> None:
    assert [isinstance(action, Record) for action in bench.actions].count(True) == 1
    assert isinstance(bench.actions[-1], Record)
    assert decide(bench.facts, bench.constants) == Wait(None)


def law_one_handoff_for_a_flush(bench: Bench) -> None:
    assert bench.stored == bench.flushes
    assert bench.flushes <= 1


def law_steps_in_order(bench: Bench) -> None:
    """Each step after the one before it, once; an interrupt of a flush may come before the ladder's own."""
    steps = [action for action in bench.actions if isinstance(action, LADDER)]
    places = [LADDER.index(type(step)) for step in steps]
    assert places == sorted(places)
    assert all(places.count(place) == 1 for place in places if place)
    for place in places:
        assert all(before in places for before in range(place))


def law_steps_after_their_bounds(bench: Bench) -> None:
    """Close, terminate and kill each come no sooner than the step before it allows."""
    at: dict[type, int] = {type(action): at for at, action in bench.trace}
    refused = bench.facts.ladder.end_refused
    for before, after in itertools.pairwise(LADDER[1:]):
        if after in at and not (after is CloseStdin and refused):
            assert at[after] - at[before] >= bench.constants.escalate_stop_ms


def law_interrupt_before_closing_and_before_signals(bench: Bench) -> None:
    interrupted = False
    for action in bench.actions:
        interrupted = interrupted or isinstance(action, Interrupt)
        assert interrupted or not isinstance(action, CloseStdin | Terminate | Kill)


def law_nothing_is_fed_after_a_flush(bench: Bench) -> None:
    kinds = [type(action) for action in bench.actions]
    assert WriteFlush not in kinds or Feed not in kinds[kinds.index(WriteFlush) :]


def law_asks_once_again_and_once_shorter(bench: Bench) -> None:
    asks = [action.ask for action in bench.actions if isinstance(action, WriteFlush)]
    assert asks in ([], ["flush"], ["flush", "again"], ["flush", "shorter"], ["flush", "again", "shorter"])


def law_reopens_once(bench: Bench) -> None:
    assert [isinstance(action, Reopen) for action in bench.actions].count(True) <= 1


LAWS = [value for name, value in sorted(globals().items()) if name.startswith("law_")]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__.removeprefix("law_"))
def test_whatever_happens_a_run(law: Callable[[Bench], None]) -> None:
    @settings(max_examples=share(1.0), deadline=None)
    @given(plays())
    def holds(bench: Bench) -> None:
        law(bench)

    holds()


@pytest.mark.long
def test_every_law_holds_over_twenty_thousand_runs() -> None:
    @settings(max_examples=20_000, deadline=None)
    @given(plays())
    def holds(bench: Bench) -> None:
        for law in LAWS:
            law(bench)

    holds()


class AnyRun(RuleBasedStateMachine):
    """The same, stepwise: the laws that can be broken in the middle are asked for after every step."""

    @initialize(warm=st.booleans(), prefix=_PREFIXES)
    def opens(self, warm: bool, prefix: int) -> None:
        self.bench = begin(warm=warm, prefix=prefix)

    @precondition(lambda self: hasattr(self, "bench"))
    @rule(event=_EVENTS)
    def something_happens(self, event: tuple[str, Any]) -> None:
        happen(self.bench, *event)

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "bench"):
            for law in (law_steps_in_order, law_interrupt_before_closing_and_before_signals, law_asks_once_again_and_once_shorter):
                law(self.bench)
            assert self.bench.stored <= self.bench.flushes
            assert self.bench.recorded is None or isinstance(self.bench.actions[-1], Record)
            assert self.bench.until is None or self.bench.until > self.bench.facts.now

    def teardown(self) -> None:
        if hasattr(self, "bench"):
            self.bench.wait_for_the_end()
            for law in LAWS:
                law(self.bench)


TestAnyRun = AnyRun.TestCase
TestAnyRun.settings = settings(max_examples=share(0.5), stateful_step_count=40, deadline=None)


@pytest.mark.long
def test_every_law_holds_stepwise_over_two_thousand_runs() -> None:
    run_state_machine_as_test(AnyRun, settings=settings(max_examples=2_000, stateful_step_count=60, deadline=None))


# Facts that no driver would bring are answered too.

_instants = st.none() | st.integers(-(10**7), 10**9)
_any_flush = st.builds(
    Flush,
    ask=st.sampled_from(["flush", "again", "shorter"]),
    reason=st.just("so"),
    asked_at=st.integers(-(10**7), 10**9),
    asked_prefix_tokens=_PREFIXES,
    started_at=_instants,
    answer_bytes=_SIZES,
    kept_bytes=_SIZES,
    interrupted_at=_instants,
)
_any_ladder = st.builds(
    Ladder,
    why=st.none() | st.sampled_from(Why),
    interrupted_at=_instants,
    ended_at=_instants,
    closed_at=_instants,
    terminated_at=_instants,
    killed_at=_instants,
)
_any_child = st.builds(
    Child, standing=st.sampled_from(Standing), started_at=st.integers(-(10**7), 10**9), deaf_at=_instants, gone_at=_instants
)
_any_facts = st.builds(
    Facts,
    now=st.integers(-(10**7), 10**9),
    began_at=st.integers(-(10**7), 10**9),
    child=_any_child,
    window_tokens=st.none() | st.integers(-5, 10**7),
    next_message=st.none() | st.just("m"),
    fed=st.integers(0, 3),
    tool_limit_ms=_TOOLS,
    prefix_tokens=_PREFIXES,
    last_line_at=st.integers(-(10**7), 10**9),
    last_write_at=st.integers(-(10**7), 10**9),
    result=st.none() | _VERDICTS,
    flush=st.none() | _any_flush,
    ladder=_any_ladder,
    held=st.none() | st.just("h"),
    stopped=st.none() | st.just("s"),
)


@given(_any_facts)
def test_any_facts_have_an_answer(facts: Facts) -> None:
    assert isinstance(decide(facts, REAL), Action)
    assert isinstance(decide_leave(facts, REAL), Action)


def shift(value: Any, ms: int) -> Any:
    """The same facts on a clock that began at another time."""
    if is_dataclass(value) and not isinstance(value, type):
        changes = {field.name: _shift_field(field.name, getattr(value, field.name), ms) for field in fields(value)}
        return replace(value, **changes)
    return value


def _shift_field(name: str, value: Any, ms: int) -> Any:
    instant = name in {"now", "until"} or name.endswith("_at")
    return value + ms if instant and isinstance(value, int) else shift(value, ms)


@given(_any_facts, st.integers(-(10**9), 10**9))
def test_only_spans_count_and_never_what_the_clock_says(facts: Facts, ms: int) -> None:
    assert decide(shift(facts, ms), REAL) == shift(decide(facts, REAL), ms)


def test_no_rule_of_it_knows_a_wall_clock() -> None:
    for name in ("actions", "constants", "facts", "conditions", "ladder", "decide"):
        tree = ast.parse((ROOT / "mind_body" / "self_run" / f"{name}.py").read_text())
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not imported & {"mind_body.clock", "time", "datetime", "trio"}, name


@given(_any_facts)
def test_a_row_answers_with_the_actions_that_it_names(facts: Facts) -> None:
    row = find_row(facts, REAL)
    answer = row.act(facts, REAL)
    name = "wait" if isinstance(answer, Wait) else type(answer).__name__
    assert row.state is state_of(facts)
    assert name in [one.split()[0] for one in row.does.split(", ")]
