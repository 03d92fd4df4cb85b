"""Shapes: what may be done to a Self run, one step at a time, and what it may come to. `facts` says how each step is noted."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias


class Outcome(StrEnum):
    """What a run came to."""

    RESULT = "result"
    FLUSHED = "flushed"
    """Its hand-off is stored and the work is not done: it is taken up again by itself."""
    NO_RESULT = "no-result"
    INTERRUPTED = "interrupted"
    KILLED = "killed"
    DIED = "died"
    REFUSED = "refused"
    """The child would not start."""
    HELD = "held"
    BUDGET = "budget"
    """The run's cap is used up."""
    SPEND = "spend"
    """A cap of the day's or the month's is."""
    LIMITED = "limited"
    """A limit of the plan, or of a rate."""
    OVERLOADED = "overloaded"
    AUTHENTICATION = "authentication"
    PAYMENT = "payment"


class Why(StrEnum):
    """Why the run is being ended before it ended by itself."""

    STOPPED = "stopped"
    HELD = "held"
    SPENT = "spent"
    CAPPED = "capped"
    LIMITED = "limited"
    STALLED = "stalled"
    OVERRAN = "overran"
    """A flush grew too large, took too long, or went quiet."""
    FLUSHED = "flushed"
    """The hand-off is stored: nothing more is wanted of this child."""
    DEAF = "deaf"
    UNREADY = "unready"
    """It did not come up, or its window is too small to work in."""
    LEFTOVER = "leftover"
    """The work is done, and background work of it will not end."""
    LINGERED = "lingered"
    """No run wants the child any more: `decide_leave` alone."""


Ask: TypeAlias = Literal["flush", "again", "shorter"]
"""`flush` once; `again` as a turn of its own after an overrun; `shorter` for an answer over the bound, which is no second flush."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is to be done. `until` is monotonic ms; None is until something is seen."""

    until: int | None


@dataclass(frozen=True, slots=True)
class Feed:
    """Write the message that `next_message` names. Note: fed + 1, last_write_at, busy, no result any more, the next message.

    What is still queued when the run ends is left to whoever takes the work up.
    """

    message: str


@dataclass(frozen=True, slots=True)
class WriteFlush:
    """Write the flush message of this kind. Note: a new `Flush` with this ask and reason, last_write_at, busy."""

    ask: Ask
    reason: str


@dataclass(frozen=True, slots=True)
class StoreHandoff:
    """Store the run's one hand-off. Note: handoff_stored."""

    origin: Literal["model", "record"]
    cut: bool
    """The answer is longer than the bound: cut it there, and mark it."""
    kept: bool = False
    """The answer is not the newest one but the one before it, since the shorter one did not come."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Note: for OVERRAN `flush.interrupted_at`; for every other `why` the ladder's `why`, `reason` and `interrupted_at`."""

    why: Why
    reason: str


@dataclass(frozen=True, slots=True)
class EndSession:
    """Write the control request. Note: `ladder.ended_at`; and `why`, `reason` where the ladder has none."""

    why: Why
    reason: str


@dataclass(frozen=True, slots=True)
class CloseStdin:
    """Note: `ladder.closed_at`."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """SIGTERM to what runs in the sandbox. Note: `ladder.terminated_at`."""


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL to the sandbox's pid namespace. Note: `ladder.killed_at`."""


@dataclass(frozen=True, slots=True)
class Reopen:
    """The child went before it answered anything: start another, in a session of its own. Note: a new child, reopened, fed = 0.

    Every message already fed waits again, in its order.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Record:
    """End the run, once. The child is gone unless `stays`: then it is idle, and may linger for the next brief."""

    outcome: Outcome
    reason: str
    stays: bool


Action: TypeAlias = (
    Wait | Feed | WriteFlush | StoreHandoff | Interrupt | EndSession | CloseStdin | Terminate | Kill | Reopen | Record
)
