"""Shapes: what a Self run is decided by, and what may be decided (design §8). Who drives the child keeps to this:

1. Instants are whole monotonic milliseconds (`int(trio.current_time() * 1000)`). The wall clock is nowhere in here.
2. `Facts` are what has been seen and done in *this* run, built anew for every question. `decide(facts, constants)` answers one
   action; it is performed, noted here (each action says where), and the question is put again, at once. `Wait` is answered when
   nothing is to be done: ask again at its instant, or sooner when anything is seen.
3. A turn is told apart by the ids of our messages (wire.md §2). `busy` is true from the write of a message of ours until it is
   done, folded in or not, and while the child is in a turn of its own making.
4. A finished turn that held the newest flush message is `flush`'s and never `result`. Every other one replaces `result`.
5. An interrupt that was written clears nothing: `busy` falls when the turn's end is seen. Write it with `cancel_queued`.
6. After `Record` there is no run: facts of the next one begin empty, with the child that is there. `decide_leave` is for a child
   without a run.
7. A step that cannot be written (its pipe is broken) is noted as taken all the same: the ladder goes on by its bounds.
"""

from dataclasses import dataclass, field
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
    """The child would not start, or the provider would not have us."""
    HELD = "held"
    BUDGET = "budget"
    LIMITED = "limited"


class Standing(StrEnum):
    """Where the child is in its life."""

    STARTING = "starting"
    """Spawned, has not answered its first control request."""
    READY = "ready"
    DEAF = "deaf"
    """Its stdout or our stdin to it is closed, and it has not exited (most often it does so at once)."""
    GONE = "gone"
    """It has exited, or could not be spawned (then `words` says why)."""


class Why(StrEnum):
    """Why the run is being ended before it ended by itself."""

    STOPPED = "stopped"
    HELD = "held"
    SPENT = "spent"
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


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a finished turn says the work came to: see `outcome.judge_result`."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Child:
    """The process, as far as it has shown itself."""

    standing: Standing
    started_at: int
    """When it was spawned, or when this run took it over."""
    deaf_at: int | None = None
    gone_at: int | None = None
    drained: bool = False
    """Both its streams have come to their end."""
    exit_code: int | None = None
    words: str = ""
    """Its last words on stderr, or why it could not be spawned."""
    reopened: bool = False
    """It is this run's second one: `Reopen` was performed."""


@dataclass(frozen=True, slots=True)
class Flush:
    """The newest `WriteFlush`; each one replaces this record."""

    ask: "Ask"
    reason: str
    asked_at: int
    asked_prefix_tokens: int
    """The prefix when it was asked: what it grows by is counted from there, where that is beyond all bounds already."""
    started_at: int | None = None
    """When it was folded in, or its own turn began."""
    over: bool = False
    """The turn that held it has ended, or the child says that the message is done or cancelled."""
    answer_bytes: int | None = None
    """UTF-8 bytes of the answer that turn ended with, if it ended well and said anything."""
    kept_bytes: int | None = None
    """Those of the long answer before it, where `ask` is `shorter`; the driver keeps that text too."""
    interrupted_at: int | None = None
    """When `Interrupt(Why.OVERRAN)` was written for it."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """The steps already taken to end it. `why` and `reason` are those of its first step."""

    why: Why | None = None
    reason: str = ""
    interrupted_at: int | None = None
    ended_at: int | None = None
    """`EndSession` was written."""
    end_refused: bool = False
    """The CLI answered that it knows no such request."""
    closed_at: int | None = None
    terminated_at: int | None = None
    killed_at: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the next step depends on."""

    now: int
    began_at: int
    """When the run was adopted."""
    child: Child
    window_tokens: int | None = None
    """As get_context_usage or a result told it; None until then."""
    next_message: str | None = None
    """A name for the first message that waits to be fed: the start message, then steering, in order."""
    fed: int = 0
    busy: bool = False
    answered: bool = False
    """A turn of this run has shown a line of the model's, or a result with tokens."""
    background: int = 0
    """Background tasks that live."""
    last_line_at: int = 0
    """Its newest line that was no keep_alive; when it started, before there is one."""
    last_write_at: int = 0
    tool_limit_ms: int | None = None
    """The longest limit of the tools that run now (see `meter`); None where none runs and the API is waited for."""
    prefix_tokens: int = 0
    """Of the newest main-thread request; telemetry of this session, also from before this run."""
    result: Verdict | None = None
    flush: Flush | None = None
    handoff_stored: bool = False
    ladder: Ladder = field(default_factory=Ladder)
    held: str | None = None
    """Why brake and dial hold her now."""
    stopped: str | None = None
    """Who asked for a stop."""
    spent: str | None = None
    """Which cap is used up: the run's, or the lease's."""
    limited: str | None = None
    """The plan's limit, and until when, as the gateway or the CLI told it."""
    recorded: bool = False


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


@dataclass(frozen=True, slots=True)
class Constants:
    """The table of design §8, in milliseconds and tokens. `scaled` is for tests that cannot wait."""

    ceiling_tokens: int = 300_000
    flush_headroom_tokens: int = 60_000
    window_min_tokens: int = 128_000
    """Below this nothing useful fits between a hand-off and a flush; an unknown window counts as this."""
    handoff_max_bytes: int = 16 * 1024
    start_ms: int = 60_000
    """For a child to answer its first control request, and to tell its window."""
    flush_grace_ms: int = 900_000
    escalate_flush_ms: int = 120_000
    """After each step of the ladder, where a turn is cut short that nobody asked to stop: a flush that overran, a stall."""
    escalate_stop_ms: int = 10_000
    """The same, where somebody asked for the end or nothing runs."""
    stall_ms: int = 600_000
    """Without a line, while the API is waited for."""
    tool_limit_max_ms: int = 3_600_000
    """The most that is believed of a tool's own limit."""
    exit_drain_ms: int = 2_000
    """To read what is left after its exit; and for it to exit after its streams closed."""
    run_limit_ms: int = 86_400_000
    """A run is asked for its hand-off after a day, whatever it is at: the bound that every run has."""

    def ceiling(self, window_tokens: int | None) -> int:
        """The prefix at which the flush is asked for."""
        window = self.window_min_tokens if window_tokens is None else window_tokens
        return min(self.ceiling_tokens, window - self.flush_headroom_tokens)

    def scaled(self, divisor: int) -> "Constants":
        """The same with every span of time divided; never below a millisecond."""
        spans = {name: max(getattr(self, name) // divisor, 1) for name in self.__slots__ if name.endswith("_ms")}
        tokens = {name: getattr(self, name) for name in self.__slots__ if not name.endswith("_ms")}
        return Constants(**spans, **tokens)
