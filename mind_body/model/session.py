"""Shapes: the port between a Persona and whoever answers for her.

1. A `Provider` opens a `ModelSession` from a `SessionPlan`; a session takes a turn's input and gives back one typed outcome.
2. Sessions are append-only: what request N sent is the beginning of request N+1 (design §6). A provider that keeps a transcript
   of its own is handed its cursor; one that keeps nothing is handed the past exchanges and sends them again, byte for byte.
3. An outcome is a value with its reason. Exceptions are for programming errors; a dead child or a lost connection is `Failed`.
4. A provider never decides what is said: `Reply.text` is the JSON that the model gave, unread.
"""

from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

NETWORK_WAIT_MS = 2_000
OVERLOAD_WAIT_MS = 5_000
FAULT_WAIT_MS = 5_000
"""How long until a call that came to nothing is made again, where the server does not say. Somebody is waiting in a room for the
first retry; who calls again doubles them, up to ten minutes."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one turn, summed over its API calls. The prefix of a request is uncached + cache_read + both cache_writes."""

    uncached: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0

    @property
    def prefix(self) -> int:
        return self.uncached + self.cache_read + self.cache_write_5m + self.cache_write_1h

    def plus(self, other: "Usage") -> "Usage":
        return Usage(
            self.uncached + other.uncached,
            self.cache_read + other.cache_read,
            self.cache_write_5m + other.cache_write_5m,
            self.cache_write_1h + other.cache_write_1h,
            self.output + other.output,
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """The model answered. `text` is one JSON document as text, exactly as received; nobody has read it yet."""

    text: str


@dataclass(frozen=True, slots=True)
class Limited:
    """A plan or rate limit: nothing helps before `until` (ms since the epoch), and trying again makes it worse."""

    until: int
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The model, or its provider's policy, declined this input. Trying the same again changes nothing."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The call came to nothing. `retry_at` is the earliest sensible instant, or None: only the operator can mend it."""

    kind: Literal["overloaded", "authentication", "payment", "fault", "network", "held", "budget", "spend"]
    retry_at: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An answer came, and it is not a JSON document that fits: cut off, prose, two objects. It is never scanned for text."""

    why: str
    text: str


Outcome: TypeAlias = Reply | Limited | Refused | Failed | Unreadable


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What one `send` came to."""

    outcome: Outcome
    usage: Usage
    """The whole turn's, for money."""
    last_request: Usage
    """The newest request's own, for the prefix gauge: `last_request.prefix + output` is where the next one begins."""
    cost_micro_usd: int
    cursor: str | None
    """Opaque; to be stored together with the session's binding. None where the turn left nothing to come back to."""
    api_calls: int
    received: tuple[dict[str, Any], ...] = ()
    """Every block received, as the provider gave it."""
    model: str = ""
    """The model that really answered."""
    window_tokens: int | None = None
    """The context window, where this call told it."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One recorded request and answer of a session, to be sent again unchanged by providers that keep nothing."""

    input: str
    output: str
    """Exactly the text that came back; empty where nothing did."""


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """Everything a session is made from. Frozen when it opens: a changed prompt or schema is a new session."""

    session_id: str
    """A UUID; the `claude` CLI's own session id."""
    instructions: str
    """The frozen system part."""
    schema: dict[str, Any]
    """JSON schema (draft-07, an object at the root) that every answer must fit."""
    rehydration: str
    """Goes before the first input, in the same message; empty for none."""
    cursor: str | None = None
    """Where to resume; None opens afresh."""
    past: tuple[Exchange, ...] = ()
    """The session's recorded exchanges in order, for providers that keep nothing."""


class ModelSession(Protocol):
    """One conversation with one model."""

    async def send(self, text: str, call_id: str) -> TurnResult:
        """One turn: append `text` as the user's, wait for the answer. Cancellable; a cancelled turn is Failed for the record.

        `call_id` names the reservation at the lease; repeating one never pays twice.
        """
        ...

    async def aclose(self) -> None:
        """Let the process behind it go. The session itself lives on at its cursor."""
        ...


class Provider(Protocol):
    """One way to reach a model, configured once."""

    @property
    def instance(self) -> str:
        """Kind and server, without secrets: part of a cursor's binding."""
        ...

    @property
    def model(self) -> str: ...

    @property
    def keeps_transcript(self) -> bool:
        """True where a turn that we lost may be ahead of our record: such a session is not resumed (design §3)."""
        ...

    @property
    def window_tokens(self) -> int:
        """The context window; 128,000 where unknown (design §7)."""
        ...

    @property
    def output_cap(self) -> int:
        """Most tokens that one answer may take."""
        ...

    @property
    def small(self) -> bool:
        """A model that cannot carry the full reply: it is asked for one short `say` (the embedded default)."""
        ...

    async def open(self, plan: SessionPlan) -> ModelSession: ...

    async def aclose(self) -> None: ...
