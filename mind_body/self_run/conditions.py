"""Rule: the conditions that the table of `decide` names, and the instants at which they come true.

Each is a question to the facts, true or false, and says nothing about what follows. An instant is where a condition turns true by
itself if nothing is seen before: that is what `Wait` waits for.
"""

from mind_body.self_run.actions import Outcome, Wait
from mind_body.self_run.constants import Constants
from mind_body.self_run.facts import Facts, Standing
from mind_body.self_run.ladder import find_call, may_stay, plan_step


def always(_facts: Facts, _constants: Constants) -> bool:
    return True


def called(facts: Facts, _constants: Constants) -> bool:
    """Brake, stop, budget or limit."""
    return find_call(facts) is not None


def deaf_until(facts: Facts, constants: Constants) -> int:
    """How long a child whose streams closed is given to exit."""
    return (facts.now if facts.child.deaf_at is None else facts.child.deaf_at) + constants.exit_drain_ms


def deaf(facts: Facts, constants: Constants) -> bool:
    """Nothing more can be asked of it, and it lives on."""
    return facts.now >= deaf_until(facts, constants)


def late_to_start(facts: Facts, constants: Constants) -> bool:
    return facts.now >= facts.child.started_at + constants.start_ms


def narrow(facts: Facts, constants: Constants) -> bool:
    return facts.window_tokens is not None and facts.window_tokens < constants.window_min_tokens


def ready(facts: Facts, constants: Constants) -> bool:
    """It answers, and told its window or had its time to."""
    known = facts.window_tokens is not None or late_to_start(facts, constants)
    return facts.child.standing is Standing.READY and known and facts.next_message is not None


def message_waits(facts: Facts, _constants: Constants) -> bool:
    return facts.next_message is not None


def refused(facts: Facts, _constants: Constants) -> bool:
    """Nor would it answer the flush."""
    no = {Outcome.AUTHENTICATION, Outcome.PAYMENT, Outcome.OVERLOADED}
    return not facts.busy and facts.result is not None and facts.result.outcome in no


def full(facts: Facts, constants: Constants) -> bool:
    return facts.prefix_tokens >= constants.ceiling(facts.window_tokens)


def aged(facts: Facts, constants: Constants) -> bool:
    return facts.now >= facts.began_at + constants.run_limit_ms


def finished(facts: Facts, _constants: Constants) -> bool:
    return not facts.busy and not facts.background


def quiet_at(facts: Facts, constants: Constants) -> int:
    """When it counts as hung, if no line comes. A tool that knows its own limit is given that."""
    patience = constants.stall_ms if facts.tool_limit_ms is None else _tool_patience(facts, constants)
    return max(facts.last_line_at, facts.last_write_at, facts.child.started_at) + patience


def quiet(facts: Facts, constants: Constants) -> bool:
    return facts.now >= quiet_at(facts, constants)


def quiet_and_idle(facts: Facts, constants: Constants) -> bool:
    return not facts.busy and quiet(facts, constants)


def fits(facts: Facts, constants: Constants) -> bool:
    answer = facts.flush.answer_bytes if facts.flush else None
    return answer is not None and answer <= constants.handoff_max_bytes


def long(facts: Facts, constants: Constants) -> bool:
    """An answer over the bound that has not yet been asked for again."""
    flush = facts.flush
    return flush is not None and flush.answer_bytes is not None and flush.ask != "shorter" and not fits(facts, constants)


def over(facts: Facts, _constants: Constants) -> bool:
    """The turn that was to answer the flush has ended."""
    return facts.flush is not None and (facts.flush.over or not facts.busy)


def first_over(facts: Facts, constants: Constants) -> bool:
    return over(facts, constants) and facts.flush is not None and facts.flush.ask == "flush"


def flush_late_at(facts: Facts, constants: Constants) -> int:
    """Counted from when it was folded in; until then it may wait for the tool that runs (wire.md §2)."""
    flush = facts.flush
    if flush is None:
        return facts.now
    if flush.started_at is not None:
        return flush.started_at + constants.flush_grace_ms
    return flush.asked_at + constants.flush_grace_ms + _tool_patience(facts, constants)


def overran(facts: Facts, constants: Constants) -> bool:
    return _grown(facts, constants) or quiet(facts, constants) or facts.now >= flush_late_at(facts, constants)


def given_up_at(facts: Facts, constants: Constants) -> int:
    interrupted = facts.flush.interrupted_at if facts.flush else None
    return (facts.now if interrupted is None else interrupted) + constants.escalate_flush_ms


def given_up(facts: Facts, constants: Constants) -> bool:
    return facts.now >= given_up_at(facts, constants)


def owed(facts: Facts, _constants: Constants) -> bool:
    """A flush was asked, and its hand-off is not stored."""
    return facts.flush is not None and not facts.handoff_stored


def owed_at_last(facts: Facts, constants: Constants) -> bool:
    return owed(facts, constants) and (not facts.busy or exhausted(facts, constants))


def ignored(facts: Facts, constants: Constants) -> bool:
    """It did not heed the interrupt of its flush, and nobody else calls: a second one would say nothing new."""
    return facts.busy and facts.flush is not None and facts.flush.interrupted_at is not None and not called(facts, constants)


def stays(facts: Facts, _constants: Constants) -> bool:
    return may_stay(facts)


def exhausted(facts: Facts, constants: Constants) -> bool:
    """It was killed, and there it is still."""
    return plan_step(facts, constants) == Wait(None)


def step_due(facts: Facts, constants: Constants) -> bool:
    return plan_step(facts, constants) is not None


def drained_at(facts: Facts, constants: Constants) -> int:
    return (facts.now if facts.child.gone_at is None else facts.child.gone_at) + constants.exit_drain_ms


def draining(facts: Facts, constants: Constants) -> bool:
    return not facts.child.drained and facts.now < drained_at(facts, constants)


def unanswered(facts: Facts, constants: Constants) -> bool:
    """It went without a word of the model's, nobody wanted it to, and it was the first one. A login or a limit is not mended so."""
    tried = facts.child.reopened or facts.ladder.why is not None or facts.flush is not None or called(facts, constants)
    hopeless = facts.result is not None and facts.result.outcome is not Outcome.NO_RESULT
    return not facts.answered and not tried and not hopeless


def _tool_patience(facts: Facts, constants: Constants) -> int:
    return min((facts.tool_limit_ms or 0) // constants.divisor, constants.tool_limit_max_ms)


def _grown(facts: Facts, constants: Constants) -> bool:
    bound = constants.ceiling(facts.window_tokens) + constants.flush_headroom_tokens
    asked = facts.flush.asked_prefix_tokens if facts.flush else 0
    return facts.prefix_tokens > (bound if asked <= bound else asked + constants.flush_headroom_tokens)
