"""Rule: what a turn's outcome means for what comes after it: its record, and the pause (design §3, cases.md M3).

1. An answer ends every pause that only time or luck could end.
2. A limit sleeps until its reset, and a cap of spending until the lease opens it again. Anything else is tried again no sooner
   than it says, each time in a row after twice as long.
3. What only the operator can mend is tried again at most once an hour.
4. A hold is no pause: the brake is asked anew before every wake.
5. Who is told of a pause is not decided here: it is in the mind, and the heartbeat tells those who wait.
"""

from collections.abc import Sequence
from typing import assert_never

from mind_body.mind.records import Pause, TurnState
from mind_body.model.session import Failed, Limited, Outcome, Refused, Reply, TurnResult, Unreadable, Usage

BACKOFF_MS = 5_000
BACKOFF_MAX_MS = 600_000
OPERATOR_WAIT_MS = 3_600_000
PASSING = ("limited", "overloaded", "fault", "network", "authentication", "payment", "budget", "spend")
"""Causes of a pause that an answer proves to be over."""


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


def plan_pause(outcome: Outcome, pauses: Sequence[Pause], now: int) -> Pause | None:
    """The pause that this outcome begins or lengthens."""
    match outcome:
        case Limited(until, reason):
            strikes = _strikes("limited", pauses)
            return Pause("limited", max(until, now + 1), reason, strikes, since=now)
        case Failed("spend", retry_at, reason):
            until = max(retry_at or now + OPERATOR_WAIT_MS, now + BACKOFF_MS)
            return Pause("spend", until, reason, _strikes("spend", pauses), since=now)
        case Failed(kind, retry_at, reason) if kind != "held":
            strikes = _strikes(kind, pauses)
            backoff = min(BACKOFF_MS * 2 ** min(strikes - 1, 16), BACKOFF_MAX_MS)
            hopeless = OPERATOR_WAIT_MS if retry_at is None and kind != "budget" else 0
            return Pause(kind, max(retry_at or 0, now + max(backoff, hopeless)), reason, strikes, since=now)
        case _:
            return None


def total_usage(results: Sequence[TurnResult]) -> Usage:
    total = Usage()
    for result in results:
        total = total.plus(result.usage)
    return total


def _strikes(cause: str, pauses: Sequence[Pause]) -> int:
    return 1 + next((pause.strikes for pause in pauses if pause.cause == cause), 0)
