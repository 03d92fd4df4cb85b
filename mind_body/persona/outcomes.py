"""Rule: what a turn's outcome means for what comes after it: its record, the pause, who is told (design §3, cases.md M3).

1. An answer ends every pause that only time or luck could end.
2. A limit sleeps until its reset. Anything else is tried again no sooner than it says, each time in a row after twice as long.
3. What only the operator can mend is tried again at most once an hour.
4. A hold is no pause: the brake is asked anew before every wake.
5. People who wait are told once: at a limit of some seconds, at the third failure in a row, at once where only the
   operator can mend it, in every room that the run was opened for. "Once" is by the oldest message that waits in their room.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from mind_body.mind.records import Heard, Pause, TurnState
from mind_body.model.session import Failed, Limited, Outcome, Refused, Reply, TurnResult, Unreadable, Usage

BACKOFF_MS = 5_000
BACKOFF_MAX_MS = 600_000
OPERATOR_WAIT_MS = 3_600_000
TELL_AFTER_STRIKES = 3
TELL_LIMIT_MS = 3_000
"""A shorter limit is over before a notice would be read."""
PASSING = ("limited", "overloaded", "fault", "network", "authentication", "payment", "budget")
"""Causes of a pause that an answer proves to be over."""


@dataclass(frozen=True, slots=True)
class Tell:
    """A notice for one room, about its oldest waiting message."""

    key: Literal["limited", "unreachable"]
    room_id: str
    thread: str | None
    cause: str
    until: int


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
            return Pause("limited", max(until, now + 1), reason, strikes)
        case Failed(kind, retry_at, reason) if kind != "held":
            strikes = _strikes(kind, pauses)
            backoff = min(BACKOFF_MS * 2 ** min(strikes - 1, 16), BACKOFF_MAX_MS)
            hopeless = OPERATOR_WAIT_MS if retry_at is None and kind != "budget" else 0
            return Pause(kind, max(retry_at or 0, now + max(backoff, hopeless)), reason, strikes, since=now)
        case _:
            return None


def plan_tell(outcome: Outcome, pause: Pause | None, mail: Sequence[Heard], now: int) -> list[Tell]:
    """Who is told, one notice per room."""
    key: Literal["limited", "unreachable"]
    match outcome:
        case Limited(until, _) if until - now >= TELL_LIMIT_MS:
            key = "limited"
        case Failed("overloaded" | "fault" | "network", retry_at, _) if pause and (
            pause.strikes >= TELL_AFTER_STRIKES or retry_at is None
        ):
            key = "unreachable"
        case Failed("authentication" | "payment" | "budget", _, _):
            key = "unreachable"
        case _:
            return []
    oldest: dict[str, Heard] = {}
    for heard in mail:
        oldest.setdefault(heard.room_id, heard)
    until = pause.until if pause else now
    return [Tell(key, room_id, heard.thread, heard.event_id, until) for room_id, heard in oldest.items()]


def total_usage(results: Sequence[TurnResult]) -> Usage:
    total = Usage()
    for result in results:
        total = total.plus(result.usage)
    return total


def _strikes(cause: str, pauses: Sequence[Pause]) -> int:
    return 1 + next((pause.strikes for pause in pauses if pause.cause == cause), 0)
