"""Shapes: what the `claude` CLI prints, one frozen record per kind of line, cut to what anybody reads (wire.md §2).

A field that the CLI left out, or gave in another type, is its empty value here. What is not known is `Unknown`, kept whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mind_body.model.session import Usage


@dataclass(frozen=True, slots=True)
class Init:
    """At the start of every turn."""

    session_id: str
    model: str
    version: str


@dataclass(frozen=True, slots=True)
class Assistant:
    """One finished content block. All lines of one API response share `message_id` and repeat its usage."""

    uuid: str
    message_id: str
    parent: str | None
    """Set for a subagent's."""
    blocks: tuple[dict[str, Any], ...]
    usage: Usage
    stop_reason: str | None
    error: str | None
    """Set for a synthetic line of the CLI's own, which has no usage."""


@dataclass(frozen=True, slots=True)
class User:
    """A tool result, or a message that the CLI put in itself."""

    uuid: str
    parent: str | None
    synthetic: bool
    finished: tuple[str, ...] = ()
    """Ids of the tool uses whose results it carries."""


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What one model was used for, as a result tells it."""

    usage: Usage
    cost_micro_usd: int
    """The CLI's own estimate; the gateway knows better."""


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a turn. `success` in `subtype` does not mean success; `good` and `well` do."""

    subtype: str
    is_error: bool
    terminal_reason: str
    text: str
    structured: Any
    """None where the model gave none."""
    api_error_status: int | None
    stop_reason: str | None
    window_tokens: int | None
    user_uuids: tuple[str, ...]
    uuid: str = ""
    errors: tuple[str, ...] = ()
    output_tokens: int = 0
    """Of this turn's main loop."""
    totals: Mapping[str, ModelUse] = field(default_factory=dict)
    """Per model, running totals of the process, and of the session before it where it was resumed."""
    since_last: Mapping[str, ModelUse] | None = None
    """Per model, what came on top since the result before; None from a CLI that does not tell."""

    @property
    def well(self) -> bool:
        """The turn ended as it should."""
        return not self.is_error and self.terminal_reason == "completed"

    @property
    def good(self) -> bool:
        """And gave the structured output that a Persona's turn is for."""
        return self.well and self.structured is not None


@dataclass(frozen=True, slots=True)
class Partial:
    """A piece of an answer on its way: a sign of life, and nothing else is read of it."""

    parent: str | None


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A tool runs still. No sign of life of the tool itself."""

    tool_use_id: str
    name: str


@dataclass(frozen=True, slots=True)
class Status:
    """`requesting`, `compacting`, or empty."""

    status: str


@dataclass(frozen=True, slots=True)
class CompactBoundary:
    """The CLI compacted the session by itself: provenance, never memory (design §7)."""

    trigger: str
    before_tokens: int
    after_tokens: int | None


@dataclass(frozen=True, slots=True)
class ConversationReset:
    """The conversation was discarded, as by a clear."""

    session_id: str


@dataclass(frozen=True, slots=True)
class BackgroundTasks:
    """The whole live set, each time that it changes; housekeeping left out."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A subscription's limit, told."""

    status: str
    resets_at: int | None
    """Seconds since the epoch."""
    kind: str


@dataclass(frozen=True, slots=True)
class ApiRetry:
    attempt: int
    status: int | None


@dataclass(frozen=True, slots=True)
class ControlResponse:
    request_id: str
    ok: bool
    response: dict[str, Any]
    error: str


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """The CLI asks us something. Left without an answer it waits."""

    request_id: str
    subtype: str


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """What became of a message of ours: queued, started, then completed or cancelled."""

    user_uuid: str
    state: str


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """The process is there; of the work it says nothing."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Kept whole, so that nothing of it is lost on us."""

    type: str
    subtype: str
    raw: dict[str, Any] = field(repr=False)


Event: TypeAlias = (
    Init
    | Assistant
    | User
    | Result
    | Partial
    | ToolProgress
    | Status
    | CompactBoundary
    | ConversationReset
    | BackgroundTasks
    | RateLimit
    | ApiRetry
    | ControlResponse
    | ControlRequest
    | Lifecycle
    | KeepAlive
    | Unknown
)
