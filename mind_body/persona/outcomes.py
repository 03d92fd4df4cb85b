"""Rule: what a turn's outcome is on record as (design §3, cases.md M3). The pause that it begins is `model.pausing`'s."""

from collections.abc import Sequence
from typing import assert_never

from mind_body.mind.records import TurnState
from mind_body.model.session import Failed, Limited, Outcome, Refused, Reply, TurnResult, Unreadable, Usage


def state_of(outcome: Outcome) -> TurnState:
    """How the turn is recorded. A Reply still has to be read."""
    match outcome:
        case Reply():
            return TurnState.REPLIED
        case Unreadable():
            return TurnState.UNREADABLE
        case Refused():
            return TurnState.REFUSED
        case Limited():
            return TurnState.LIMITED
        case Failed():
            return TurnState.FAILED
        case _:
            assert_never(outcome)


def reason_of(outcome: Outcome) -> str | None:
    """Why, in the provider's words; None for an answer."""
    match outcome:
        case Reply():
            return None
        case Unreadable(why):
            return why
        case Failed(kind, _, reason):
            return f"{kind}: {reason}"
        case Refused(reason) | Limited(_, reason):
            return reason
        case _:
            assert_never(outcome)


def answered_text(result: TurnResult) -> str | None:
    """What the session goes on with as the model's words; None where no answer came."""
    match result.outcome:
        case Reply(text) | Unreadable(_, text):
            return text
        case Refused() if result.received:
            return "".join(block["content"] for block in result.received if isinstance(block.get("content"), str))
        case _:
            return None


def total_usage(results: Sequence[TurnResult]) -> Usage:
    total = Usage()
    for result in results:
        total = total.plus(result.usage)
    return total
