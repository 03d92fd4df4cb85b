"""Rule: the pause that an outcome begins or lengthens, for either half of a Mind (design §3, cases.md M3).

1. A limit sleeps until its reset, a cap of spending until the lease opens it again. A conversation's own cap holds up that one and
   no other; so does a call for it that no run could pay for.
2. Anything else is tried again no sooner than it says, each time in a row after twice as long. What only the operator can mend is
   tried again at most once an hour; by a Self, whom nobody waits for in a chat, after twice as long each time, and once a day.
3. A hold is no pause: the brake is asked anew before every wake.
4. An answer ends every pause that only time or luck could end.
5. Who is told of a pause is not decided here: it is in the mind, and the heartbeat tells those who wait.
"""

from collections.abc import Sequence
from typing import Final

from mind_body.control.govern import CONVERSATIONS, RUN_CAP
from mind_body.errors import MindBodyError, OperatorError
from mind_body.mind.records import Pause
from mind_body.model.session import Failed, Limited, Outcome

BACKOFF_MS = 5_000
BACKOFF_MAX_MS = 600_000
OPERATOR_WAIT_MS, DAY_MS = 3_600_000, 86_400_000
PASSING: Final = ("limited", "overloaded", "fault", "network", "authentication", "payment", "budget", "spend")
"""Causes of a pause that an answer proves to be over."""


def plan_pause(
    outcome: Outcome | None, pauses: Sequence[Pause], now: int, prefix: str = "", conversation: str = ""
) -> Pause | None:
    """`prefix`: what the causes of this half's pauses begin with; `conversation`: whose call it was."""
    match outcome:
        case Limited(until, reason):
            return _pause("limited", max(until, now + 1), reason, pauses, now, prefix)
        case Failed("spend", retry_at, reason):
            until = max(now + OPERATOR_WAIT_MS if retry_at is None else retry_at, now + BACKOFF_MS)
            kind = name_apart("spend", conversation) if CONVERSATIONS in reason else "spend"
            return _pause(kind, until, reason, pauses, now, prefix)
        case Failed(kind, retry_at, reason) if kind != "held":
            cause = name_apart(RUN_CAP, conversation) if kind == "budget" and retry_at is None else kind
            strikes = _strikes(prefix + cause, pauses)
            backoff = min(BACKOFF_MS * 2 ** min(strikes - 1, 16), BACKOFF_MAX_MS)
            longer = min(OPERATOR_WAIT_MS * 2 ** min(strikes - 1, 8), DAY_MS) if prefix else OPERATOR_WAIT_MS
            hopeless = longer if retry_at is None else 0
            return _pause(cause, max(retry_at or 0, now + max(backoff, hopeless)), reason, pauses, now, prefix)
        case _:
            return None


def plan_fault(error: MindBodyError, pauses: Sequence[Pause], now: int, prefix: str = "") -> Pause | None:
    """Where there was no call: a half that could not even begin. None where another start may mend it."""
    if not isinstance(error, OperatorError):
        return None
    return plan_pause(Failed("fault", None, str(error)), pauses, now, prefix)


def name_apart(cause: str, conversation: str) -> str:
    """The cause of a pause that holds up one conversation alone, where one is named."""
    return f"{cause}:{conversation}" if conversation else cause


def _pause(  # noqa: PLR0917 - a record's columns, in their order
    kind: str, until: int, reason: str, pauses: Sequence[Pause], now: int, prefix: str
) -> Pause:
    return Pause(prefix + kind, until, reason, _strikes(prefix + kind, pauses), since=now)


def _strikes(cause: str, pauses: Sequence[Pause]) -> int:
    return 1 + next((pause.strikes for pause in pauses if pause.cause == cause), 0)
