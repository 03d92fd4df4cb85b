"""Rule: how a child is brought to its end, how long each step is given, and what a run that ended so came to (design §8).

1. interrupt → end session → close stdin → SIGTERM → kill of the pid namespace, each only after the one before. A turn that is over
   needs no waiting; everything else waits its bound.
2. Interrupt comes before closing stdin, because a CLI whose stdin is closed in a turn finishes that turn (wire.md §3). An idle
   child gets it too: whether it is idle is known only after the fact.
3. A person who waits is given seconds; a turn that is cut short for its own good is given minutes.
4. What the work came to outranks how its child went: a result stays a result, and a stored hand-off is taken up again.
"""

from dataclasses import dataclass

from mind_body.self_run.actions import Action, CloseStdin, EndSession, Interrupt, Kill, Outcome, Record, Terminate, Wait, Why
from mind_body.self_run.constants import Constants
from mind_body.self_run.facts import Facts, Standing


@dataclass(frozen=True, slots=True)
class Manner:
    """How a run is ended that is ended for one reason."""

    outcome: Outcome
    killed: Outcome
    """The outcome where only the kill helped."""
    patient: bool
    """`escalate_flush_ms` between steps, not `escalate_stop_ms`."""
    may_stay: bool
    """An interrupt that worked is enough: the session can be used again."""


MANNERS = {
    Why.STOPPED: Manner(Outcome.INTERRUPTED, Outcome.KILLED, patient=False, may_stay=True),
    Why.HELD: Manner(Outcome.HELD, Outcome.HELD, patient=False, may_stay=False),
    Why.SPENT: Manner(Outcome.BUDGET, Outcome.BUDGET, patient=False, may_stay=True),
    Why.CAPPED: Manner(Outcome.SPEND, Outcome.SPEND, patient=False, may_stay=True),
    Why.LIMITED: Manner(Outcome.LIMITED, Outcome.LIMITED, patient=False, may_stay=True),
    Why.STALLED: Manner(Outcome.INTERRUPTED, Outcome.KILLED, patient=True, may_stay=False),
    Why.OVERRAN: Manner(Outcome.FLUSHED, Outcome.FLUSHED, patient=True, may_stay=False),
    Why.FLUSHED: Manner(Outcome.FLUSHED, Outcome.FLUSHED, patient=False, may_stay=False),
    Why.DEAF: Manner(Outcome.NO_RESULT, Outcome.KILLED, patient=False, may_stay=False),
    Why.UNREADY: Manner(Outcome.REFUSED, Outcome.KILLED, patient=False, may_stay=False),
    Why.LEFTOVER: Manner(Outcome.RESULT, Outcome.RESULT, patient=False, may_stay=False),
    Why.LINGERED: Manner(Outcome.RESULT, Outcome.RESULT, patient=False, may_stay=False),
}
_TAKEN_UP = frozenset({Why.FLUSHED, Why.OVERRAN, Why.DEAF, None})
"""Ends after which a stored hand-off makes the run a flushed one. The others have a name of their own, and it says more."""


def find_call(facts: Facts) -> tuple[Why, str] | None:
    """Who or what wants the run ended now, the most urgent first."""
    if facts.held is not None:
        return Why.HELD, f"held: {facts.held}"
    if facts.stopped is not None:
        return Why.STOPPED, f"stopped by {facts.stopped}"
    if facts.spent is not None:
        return Why.SPENT, facts.spent
    if facts.capped is not None:
        return Why.CAPPED, facts.capped
    if facts.limited is not None:
        return Why.LIMITED, facts.limited
    return None


def may_stay(facts: Facts) -> bool:
    """Whether the child is fit for the next brief, and the run is ended in a manner that lets it."""
    why = facts.ladder.why
    fit = facts.child.standing is Standing.READY and not facts.busy and not facts.background and not facts.handoff_stored
    return fit and facts.ladder.ended_at is None and facts.held is None and (why is None or MANNERS[why].may_stay)


def plan_step(facts: Facts, constants: Constants) -> Action | None:
    """The next step of the ladder whose time has come; None where it has not; Wait(None) where there is none left."""
    ladder, now = facts.ladder, facts.now
    bound = _bound(facts, constants)
    if ladder.ended_at is None:
        since = ladder.interrupted_at
        due = since is None or now >= since + bound or not facts.busy or facts.child.standing is Standing.DEAF
        return EndSession(ladder.why or Why.LINGERED, ladder.reason) if due else None
    if ladder.closed_at is None:
        return CloseStdin() if ladder.end_refused or now >= ladder.ended_at + bound else None
    if ladder.terminated_at is None:
        return Terminate() if now >= ladder.closed_at + bound else None
    if ladder.killed_at is None:
        return Kill() if now >= ladder.terminated_at + bound else None
    return Wait(None) if now >= ladder.killed_at + bound else None


def next_step_at(facts: Facts, constants: Constants) -> int:
    """When the ladder goes on, if nothing is seen before."""
    ladder = facts.ladder
    steps = (ladder.killed_at, ladder.terminated_at, ladder.closed_at, ladder.ended_at, ladder.interrupted_at)
    return next((step for step in steps if step is not None), facts.now) + _bound(facts, constants)


def decide_leave(facts: Facts, constants: Constants) -> Action:
    """The ladder for a child that no run wants any more. Wait(None) when it is gone, or nothing more can be done."""
    if facts.child.standing is Standing.GONE:
        return Wait(None)
    if facts.ladder.why is None:
        return Interrupt(Why.LINGERED, "nothing more came for it")
    return plan_step(facts, constants) or Wait(next_step_at(facts, constants))


def record_end(facts: Facts, *, stays: bool) -> Record:
    """What a run came to that ends now, however it ends."""
    ladder, result = facts.ladder, facts.result
    outcome, reason = _end(facts)
    if result is not None and result.outcome is Outcome.RESULT:
        outcome, reason = result.outcome, result.reason
    elif facts.handoff_stored and ladder.why in _TAKEN_UP:
        outcome = Outcome.FLUSHED
    return Record(outcome, reason + _how_far(facts), stays)


def _end(facts: Facts) -> tuple[Outcome, str]:
    ladder = facts.ladder
    why, reason = (ladder.why, ladder.reason) if ladder.why else find_call(facts) or (None, "")
    if why is not None:
        manner = MANNERS[why]
        return manner.outcome if ladder.killed_at is None else manner.killed, reason
    if facts.result is not None:
        return facts.result.outcome, facts.result.reason
    if facts.child.standing is not Standing.GONE:
        return Outcome.NO_RESULT, "claude finished the message without a result"
    code, words = facts.child.exit_code, facts.child.words
    reason = "claude could not be started" if code is None else f"claude ended by itself (exit {code})"
    reason += f": {words}" if words else ""
    if facts.fed == 0:
        return Outcome.REFUSED, reason
    return Outcome.NO_RESULT if code == 0 else Outcome.DIED, reason


def _how_far(facts: Facts) -> str:
    if facts.ladder.killed_at is not None:
        return "; it had to be killed"
    return "; it went at SIGTERM" if facts.ladder.terminated_at is not None else ""


def _bound(facts: Facts, constants: Constants) -> int:
    why = facts.ladder.why
    patient = why is not None and MANNERS[why].patient and find_call(facts) is None
    return constants.escalate_flush_ms if patient else constants.escalate_stop_ms
