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

from mind_body.self_run.actions import Ask, Outcome, Why


class Standing(StrEnum):
    """Where the child is in its life."""

    STARTING = "starting"
    """Spawned, has not answered its first control request."""
    READY = "ready"
    DEAF = "deaf"
    """Its stdout or our stdin to it is closed, and it has not exited (most often it does so at once)."""
    GONE = "gone"
    """It has exited, or could not be spawned (then `words` says why)."""


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

    ask: Ask
    reason: str
    asked_at: int
    asked_prefix_tokens: int
    """The prefix when it was asked: what it grows by is counted from there, where that is beyond all bounds already."""
    started_at: int | None = None
    """When it was folded in, or its own turn began: its `started` in command_lifecycle."""
    over: bool = False
    """The result that lists it was seen, or it was cancelled. Not at its `completed`: folded in, that comes before the result."""
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
    """How the run's cap is used up."""
    capped: str | None = None
    """The same for a cap of the day's or the month's."""
    limited: str | None = None
    """The plan's limit, and until when, as the gateway or the CLI told it."""
    recorded: bool = False
