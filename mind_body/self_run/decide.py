"""Rule: the one next step of a Self run. A table; the picture in docs/self-run.md is drawn from it (design §8).

1. Pure and total: `state_of` names one state for any facts, the rows of that state are asked in their order, and the last of them
   always holds. Nothing here has a clock; every instant is a monotonic one that the facts carry.
2. Every run ends: whatever the child does or does not, a day, a flush's grace, an interrupt and the ladder have bounds, and after
   the last of them stands `Record`. After `Record` there is nothing.
3. A flush that was asked for has one hand-off: the model's answer if it came in time and in size, else one made from the record.
4. Nothing is fed to a child that has been asked for its hand-off. What waits then is for whoever takes the work up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mind_body.self_run import conditions as on
from mind_body.self_run.actions import Action, EndSession, Feed, Interrupt, Reopen, StoreHandoff, Wait, Why, WriteFlush
from mind_body.self_run.constants import Constants
from mind_body.self_run.facts import Facts, Standing
from mind_body.self_run.ladder import find_call, next_step_at, plan_step, record_end


class State(StrEnum):
    """Where a run is."""

    OPENING = "Opening"
    """The child has been fed nothing yet."""
    WORKING = "Working"
    FLUSHING = "Flushing"
    """Asked for its hand-off."""
    OVERRUN = "Overrun"
    """Interrupted in that."""
    KEPT = "Kept"
    """The hand-off is stored, and the child still there."""
    DEAF = "Deaf"
    """Its streams are closed."""
    LEAVING = "Leaving"
    """On the ladder."""
    GONE = "Gone"
    ENDED = "Ended"
    """Recorded."""


Condition = Callable[[Facts, Constants], bool]
Doing = Callable[[Facts, Constants], Action]


@dataclass(frozen=True, slots=True)
class Row:
    """In `state`, when `holds`, the answer is `act`, and that leads `to`."""

    state: State
    when: str
    holds: Condition
    does: str
    act: Doing
    to: State


def decide(facts: Facts, constants: Constants) -> Action:
    """The one answer."""
    return find_row(facts, constants).act(facts, constants)


def find_row(facts: Facts, constants: Constants) -> Row:
    """The row that gives it."""
    return next(row for row in _ROWS[state_of(facts)] if row.holds(facts, constants))


def state_of(facts: Facts) -> State:
    """The first that fits."""
    if facts.recorded:
        return State.ENDED
    if facts.child.standing is Standing.GONE:
        return State.GONE
    return _course(facts) if facts.ladder.why is None else State.LEAVING


def _course(facts: Facts) -> State:
    """Where a run is that nobody ends."""
    if facts.child.standing is Standing.DEAF:
        return State.DEAF
    if facts.handoff_stored:
        return State.KEPT
    if facts.flush is not None:
        return State.FLUSHING if facts.flush.interrupted_at is None else State.OVERRUN
    return State.WORKING if facts.fed else State.OPENING


def _heed(facts: Facts, _constants: Constants) -> Action:
    why, reason = find_call(facts) or (Why.FLUSHED, _flush_reason(facts))
    return Interrupt(why, reason)


def _interrupt(why: Why, reason: str) -> Doing:
    return lambda _facts, _constants: Interrupt(why, reason)


def _feed(facts: Facts, _constants: Constants) -> Action:
    return Feed(facts.next_message or "")


def _flush_full(facts: Facts, constants: Constants) -> Action:
    ceiling = constants.ceiling(facts.window_tokens)
    return WriteFlush("flush", f"its context holds {facts.prefix_tokens} tokens, and the ceiling is {ceiling}")


def _flush_aged(_facts: Facts, constants: Constants) -> Action:
    return WriteFlush("flush", f"the run is older than {constants.run_limit_ms / 3_600_000:g} h")


def _flush_again(facts: Facts, _constants: Constants) -> Action:
    return WriteFlush("again", _flush_reason(facts))


def _flush_shorter(facts: Facts, _constants: Constants) -> Action:
    return WriteFlush("shorter", _flush_reason(facts))


def _flush_reason(facts: Facts) -> str:
    return facts.flush.reason if facts.flush else "its hand-off is stored"


def _store(facts: Facts, constants: Constants) -> Action:
    """The best there is."""
    flush = facts.flush
    if flush is not None and flush.answer_bytes is not None:
        return StoreHandoff("model", cut=flush.answer_bytes > constants.handoff_max_bytes)
    if flush is not None and flush.kept_bytes is not None:
        return StoreHandoff("model", cut=True, kept=True)
    return StoreHandoff("record", cut=False)


def _end_session(facts: Facts, _constants: Constants) -> Action:
    return EndSession(Why.OVERRAN, f"{_flush_reason(facts)}; the flush overran, and its interrupt was not heeded")


def _climb(facts: Facts, constants: Constants) -> Action:
    return plan_step(facts, constants) or Wait(next_step_at(facts, constants))


def _record(facts: Facts, _constants: Constants) -> Action:
    return record_end(facts, stays=False)


def _record_and_stay(facts: Facts, _constants: Constants) -> Action:
    return record_end(facts, stays=True)


def _reopen(facts: Facts, _constants: Constants) -> Action:
    return Reopen(record_end(facts, stays=False).reason)


def _wait_opening(facts: Facts, constants: Constants) -> Action:
    return Wait(facts.child.started_at + constants.start_ms)


def _wait_working(facts: Facts, constants: Constants) -> Action:
    return Wait(min(on.quiet_at(facts, constants), facts.began_at + constants.run_limit_ms))


def _wait_flushing(facts: Facts, constants: Constants) -> Action:
    return Wait(min(on.quiet_at(facts, constants), on.flush_late_at(facts, constants)))


def _wait_overrun(facts: Facts, constants: Constants) -> Action:
    return Wait(on.given_up_at(facts, constants))


def _wait_deaf(facts: Facts, constants: Constants) -> Action:
    return Wait(on.deaf_until(facts, constants))


def _wait_gone(facts: Facts, constants: Constants) -> Action:
    return Wait(on.drained_at(facts, constants))


def _wait_for_ever(_facts: Facts, _constants: Constants) -> Action:
    return Wait(None)


_CALLED = "held, stopped, spent or limited"
_OPENING, _WORKING, _FLUSHING, _OVERRUN = State.OPENING, State.WORKING, State.FLUSHING, State.OVERRUN
_KEPT, _DEAF, _LEAVING, _GONE, _ENDED = State.KEPT, State.DEAF, State.LEAVING, State.GONE, State.ENDED

TABLE: Final = (
    Row(_OPENING, _CALLED, on.called, "Interrupt", _heed, _LEAVING),
    Row(_OPENING, "window too small", on.narrow, "Interrupt", _interrupt(Why.UNREADY, "its window is too small"), _LEAVING),
    Row(_OPENING, "ready, window told or late", on.ready, "Feed", _feed, _WORKING),
    Row(_OPENING, "not up in time", on.late_to_start, "Interrupt", _interrupt(Why.UNREADY, "it did not come up"), _LEAVING),
    Row(_OPENING, "else", on.always, "wait", _wait_opening, _OPENING),
    Row(_WORKING, _CALLED, on.called, "Interrupt", _heed, _LEAVING),
    Row(_WORKING, "provider refused", on.refused, "Record", _record_and_stay, _ENDED),
    Row(_WORKING, "prefix at the ceiling", on.full, "WriteFlush", _flush_full, _FLUSHING),
    Row(_WORKING, "run too old", on.aged, "WriteFlush", _flush_aged, _FLUSHING),
    Row(_WORKING, "a message waits", on.message_waits, "Feed", _feed, _WORKING),
    Row(_WORKING, "idle, no background work", on.finished, "Record", _record_and_stay, _ENDED),
    Row(
        _WORKING,
        "idle, quiet",
        on.quiet_and_idle,
        "Interrupt",
        _interrupt(Why.LEFTOVER, "its background work will not end"),
        _LEAVING,
    ),
    Row(_WORKING, "quiet", on.quiet, "Interrupt", _interrupt(Why.STALLED, "no line came in time"), _LEAVING),
    Row(_WORKING, "else", on.always, "wait", _wait_working, _WORKING),
    Row(_FLUSHING, "answer fits", on.fits, "StoreHandoff", _store, _KEPT),
    Row(_FLUSHING, _CALLED, on.called, "Interrupt", _heed, _LEAVING),
    Row(_FLUSHING, "answer too long, first time", on.long, "WriteFlush shorter", _flush_shorter, _FLUSHING),
    Row(_FLUSHING, "first ask over, no answer", on.first_over, "WriteFlush again", _flush_again, _FLUSHING),
    Row(_FLUSHING, "later ask over", on.over, "StoreHandoff", _store, _KEPT),
    Row(_FLUSHING, "too large, too long, quiet", on.overran, "Interrupt", _interrupt(Why.OVERRAN, "the flush overran"), _OVERRUN),
    Row(_FLUSHING, "else", on.always, "wait", _wait_flushing, _FLUSHING),
    Row(_OVERRUN, "answer fits", on.fits, "StoreHandoff", _store, _KEPT),
    Row(_OVERRUN, _CALLED, on.called, "Interrupt", _heed, _LEAVING),
    Row(_OVERRUN, "first ask over", on.first_over, "WriteFlush again", _flush_again, _FLUSHING),
    Row(_OVERRUN, "later ask over", on.over, "StoreHandoff", _store, _KEPT),
    Row(_OVERRUN, "interrupt not heeded", on.given_up, "StoreHandoff", _store, _KEPT),
    Row(_OVERRUN, "else", on.always, "wait", _wait_overrun, _OVERRUN),
    Row(_KEPT, "interrupt not heeded", on.ignored, "EndSession", _end_session, _LEAVING),
    Row(_KEPT, "else", on.always, "Interrupt", _heed, _LEAVING),
    Row(_DEAF, _CALLED, on.called, "Interrupt", _heed, _LEAVING),
    Row(_DEAF, "lives on", on.deaf, "Interrupt", _interrupt(Why.DEAF, "it closed its streams and lived on"), _LEAVING),
    Row(_DEAF, "else", on.always, "wait", _wait_deaf, _DEAF),
    Row(_LEAVING, "hand-off owed, and idle or lost", on.owed_at_last, "StoreHandoff", _store, _LEAVING),
    Row(_LEAVING, "idle, fit to stay", on.stays, "Record", _record_and_stay, _ENDED),
    Row(_LEAVING, "not even the kill helped", on.exhausted, "Record", _record, _ENDED),
    Row(_LEAVING, "step over, or idle", on.step_due, "EndSession, CloseStdin, Terminate, Kill", _climb, _LEAVING),
    Row(_LEAVING, "else", on.always, "wait", _climb, _LEAVING),
    Row(_GONE, "streams still open", on.draining, "wait", _wait_gone, _GONE),
    Row(_GONE, "hand-off owed", on.owed, "StoreHandoff", _store, _GONE),
    Row(_GONE, "answered nothing, first child", on.unanswered, "Reopen", _reopen, _OPENING),
    Row(_GONE, "else", on.always, "Record", _record, _ENDED),
    Row(_ENDED, "always", on.always, "wait", _wait_for_ever, _ENDED),
)

_ROWS: Final = {state: tuple(row for row in TABLE if row.state is state) for state in State}
