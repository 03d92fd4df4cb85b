"""Rule: the codec of the `claude` CLI's stream-json lines (wire.md §2). Three verbs and a sentinel, as in h11.

    codec.feed(bytes)          any split of the stream
    codec.next_event()         an event, or NEED_DATA
    render_line(...)           an object as one line for its stdin

1. Raw bytes are framed on 0x0A alone: older CLIs print U+2028 inside a line. Each line is decoded with replacement.
2. A line longer than the cap (at least 64 MiB) is skipped to its newline; what follows is read as if nothing had happened.
3. A line that is not a JSON object is counted and skipped. A type, a subtype or a field that is not known here is kept as `Unknown`
   or left alone: the CLI is released about daily. Nothing that it prints raises.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

from mind_body.model.session import Usage
from mind_body.model.usage import parse_usage

CAP: Final = 64 * 1024 * 1024


class _Sentinel(Enum):
    NEED_DATA = "NEED_DATA"


NEED_DATA: Final = _Sentinel.NEED_DATA


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


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a turn. `success` in `subtype` does not mean success; `good` does."""

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

    @property
    def good(self) -> bool:
        return not self.is_error and self.terminal_reason == "completed" and self.structured is not None


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
class Lifecycle:
    """What became of a message of ours."""

    user_uuid: str
    state: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Kept whole, so that nothing of it is lost on us."""

    type: str
    subtype: str
    raw: dict[str, Any] = field(repr=False)


Event: TypeAlias = Init | Assistant | User | Result | RateLimit | ApiRetry | ControlResponse | Lifecycle | Unknown


class StreamCodec:
    """One stream's state."""

    def __init__(self, cap: int = CAP) -> None:
        self._buffer = bytearray()
        self._scanned = 0
        self._skipping = False
        self._cap = cap
        self.skipped = 0
        """Lines that were no JSON object, or over the cap."""

    @property
    def remainder(self) -> bytes:
        """What was fed and is not yet a line."""
        return bytes(self._buffer)

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next_event(self) -> Event | Literal[_Sentinel.NEED_DATA]:
        while (line := self._next_line()) is not None:
            event = parse_line(line)
            if event is not None:
                return event
            self.skipped += bool(line.strip())
        return NEED_DATA

    def _next_line(self) -> bytes | None:
        while True:
            end = self._buffer.find(b"\n", self._scanned)
            if end < 0:
                self._scanned = len(self._buffer)
                if self._scanned > self._cap:
                    self._skipping = True
                    self._buffer.clear()
                    self._scanned = 0
                return None
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._scanned = 0
            if not self._skipping and len(line) <= self._cap:
                return line
            self._skipping = False
            self.skipped += 1


def render_line(value: dict[str, Any]) -> bytes:
    """One line for the CLI's stdin. A lone surrogate is fatal to it, so each is replaced; a newline inside is escaped by JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def parse_line(line: bytes) -> Event | None:
    """The event in one line; None for what is no JSON object."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return _read_event(found)


def _read_event(raw: dict[str, Any]) -> Event:
    kind, subtype = _text(raw, "type"), _text(raw, "subtype")
    reader = _READERS.get(kind) or _READERS.get(f"{kind}/{subtype}")
    return reader(raw) if reader else Unknown(kind, subtype, raw)


def _read_init(raw: dict[str, Any]) -> Event:
    return Init(_text(raw, "session_id"), _text(raw, "model"), _text(raw, "claude_code_version"))


def _read_retry(raw: dict[str, Any]) -> Event:
    return ApiRetry(_number(raw, "attempt") or 0, _number(raw, "error_status"))


def _read_user(raw: dict[str, Any]) -> Event:
    return User(_text(raw, "uuid"), _parent(raw), raw.get("isSynthetic") is True)


def _read_rate_limit(raw: dict[str, Any]) -> Event:
    info = _mapping(raw, "rate_limit_info") or raw
    return RateLimit(_text(info, "status"), _number(info, "resetsAt"), _text(info, "rateLimitType"))


def _read_control(raw: dict[str, Any]) -> Event:
    response = _mapping(raw, "response")
    ok = response.get("subtype") == "success"
    return ControlResponse(_text(response, "request_id"), ok, _mapping(response, "response"), _text(response, "error"))


def _read_lifecycle(raw: dict[str, Any]) -> Event:
    return Lifecycle(_text(raw, "command_uuid"), _text(raw, "state"))


def _read_assistant(raw: dict[str, Any]) -> Event:
    message = _mapping(raw, "message")
    content = message.get("content")
    blocks = tuple(block for block in content if isinstance(block, dict)) if isinstance(content, list) else ()
    return Assistant(
        uuid=_text(raw, "uuid"),
        message_id=_text(message, "id"),
        parent=_parent(raw),
        blocks=blocks,
        usage=parse_usage(message.get("usage")),
        stop_reason=_text(message, "stop_reason") or None,
        error=_text(raw, "error") or None,
    )


def _read_result(raw: dict[str, Any]) -> Event:
    windows = [_number(used, "contextWindow") for used in _mapping(raw, "modelUsage").values() if isinstance(used, dict)]
    uuids = raw.get("user_message_uuids")
    return Result(
        subtype=_text(raw, "subtype"),
        is_error=raw.get("is_error") is not False,
        terminal_reason=_text(raw, "terminal_reason"),
        text=_text(raw, "result"),
        structured=raw.get("structured_output"),
        api_error_status=_number(raw, "api_error_status"),
        stop_reason=_text(raw, "stop_reason") or None,
        window_tokens=max((window for window in windows if window), default=None),
        user_uuids=tuple(one for one in uuids if isinstance(one, str)) if isinstance(uuids, list) else (),
    )


_READERS: dict[str, Callable[[dict[str, Any]], Event]] = {
    "system/init": _read_init,
    "system/api_retry": _read_retry,
    "assistant": _read_assistant,
    "user": _read_user,
    "result": _read_result,
    "rate_limit_event": _read_rate_limit,
    "control_response": _read_control,
    "command_lifecycle": _read_lifecycle,
}


def _parent(raw: dict[str, Any]) -> str | None:
    return _text(raw, "parent_tool_use_id") or None


def _text(raw: dict[str, Any], key: str) -> str:
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def _number(raw: dict[str, Any], key: str) -> int | None:
    value = raw.get(key)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53 else None


def _mapping(raw: dict[str, Any], key: str) -> dict[str, Any]:
    value = raw.get(key)
    return value if isinstance(value, dict) else {}
