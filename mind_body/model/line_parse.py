"""Rule: one decoded line of the `claude` CLI as an event (wire.md §2). It is released about daily, and nothing it prints raises."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from mind_body.model.lines import (
    ApiRetry,
    Assistant,
    BackgroundTasks,
    CompactBoundary,
    ControlRequest,
    ControlResponse,
    ConversationReset,
    Event,
    Init,
    KeepAlive,
    Lifecycle,
    ModelUse,
    Partial,
    RateLimit,
    Result,
    Status,
    ToolProgress,
    Unknown,
    User,
)
from mind_body.model.session import Usage
from mind_body.model.usage import parse_usage


def parse_event(raw: dict[str, Any]) -> Event:
    """Total: what no reader knows is Unknown."""
    kind = _text(raw, "type")
    reader = _READERS.get(kind)
    if reader is not None:
        return reader(raw)
    subtype = _text(raw, "subtype")
    reader = _SYSTEM.get(subtype) if kind == "system" else None
    return reader(raw) if reader is not None else Unknown(kind, subtype, raw)


def _read_init(raw: dict[str, Any]) -> Event:
    return Init(_text(raw, "session_id"), _text(raw, "model"), _text(raw, "claude_code_version"))


def _read_retry(raw: dict[str, Any]) -> Event:
    return ApiRetry(_number(raw, "attempt") or 0, _number(raw, "error_status"))


def _read_status(raw: dict[str, Any]) -> Event:
    return Status(_text(raw, "status"))


def _read_compact(raw: dict[str, Any]) -> Event:
    told = _mapping(raw, "compact_metadata")
    return CompactBoundary(_text(told, "trigger"), _number(told, "pre_tokens") or 0, _number(told, "post_tokens"))


def _read_background(raw: dict[str, Any]) -> Event:
    tasks = [task for task in _objects(raw.get("tasks")) if task.get("ambient") is not True]
    return BackgroundTasks(tuple(_text(task, "task_id") for task in tasks))


def _read_reset(raw: dict[str, Any]) -> Event:
    return ConversationReset(_text(raw, "new_conversation_id"))


def _read_partial(raw: dict[str, Any]) -> Event:
    """Nine lines of ten are these, and nearly all of them the main thread's: one record serves."""
    return Partial(_parent(raw)) if raw.get("parent_tool_use_id") else _MAIN_PARTIAL


def _read_tool_progress(raw: dict[str, Any]) -> Event:
    return ToolProgress(_text(raw, "tool_use_id"), _text(raw, "tool_name"))


def _read_keep_alive(_raw: dict[str, Any]) -> Event:
    return KeepAlive()


def _read_user(raw: dict[str, Any]) -> Event:
    results = _objects(_mapping(raw, "message").get("content"))
    finished = tuple(_text(block, "tool_use_id") for block in results if block.get("type") == "tool_result")
    return User(_text(raw, "uuid"), _parent(raw), raw.get("isSynthetic") is True, finished)


def _read_rate_limit(raw: dict[str, Any]) -> Event:
    info = _mapping(raw, "rate_limit_info") or raw
    return RateLimit(_text(info, "status"), _number(info, "resetsAt"), _text(info, "rateLimitType"))


def _read_control(raw: dict[str, Any]) -> Event:
    response = _mapping(raw, "response")
    ok = response.get("subtype") == "success"
    return ControlResponse(_text(response, "request_id"), ok, _mapping(response, "response"), _text(response, "error"))


def _read_control_request(raw: dict[str, Any]) -> Event:
    return ControlRequest(_text(raw, "request_id"), _text(_mapping(raw, "request"), "subtype"))


def _read_lifecycle(raw: dict[str, Any]) -> Event:
    return Lifecycle(_text(raw, "command_uuid"), _text(raw, "state"))


def _read_assistant(raw: dict[str, Any]) -> Event:
    message = _mapping(raw, "message")
    return Assistant(
        uuid=_text(raw, "uuid"),
        message_id=_text(message, "id"),
        parent=_parent(raw),
        blocks=tuple(_objects(message.get("content"))),
        usage=parse_usage(message.get("usage")),
        stop_reason=_text(message, "stop_reason") or None,
        error=_text(raw, "error") or None,
    )


def _read_result(raw: dict[str, Any]) -> Event:
    used = _mapping(raw, "modelUsage")
    windows = [_number(one, "contextWindow") for one in used.values() if isinstance(one, dict)]
    since = raw.get("model_usage_since_last_result")
    return Result(
        subtype=_text(raw, "subtype"),
        is_error=raw.get("is_error") is not False,
        terminal_reason=_text(raw, "terminal_reason"),
        text=_text(raw, "result"),
        structured=raw.get("structured_output"),
        api_error_status=_number(raw, "api_error_status"),
        stop_reason=_text(raw, "stop_reason") or None,
        window_tokens=max((window for window in windows if window), default=None),
        user_uuids=_texts(raw.get("user_message_uuids")),
        uuid=_text(raw, "uuid"),
        errors=_texts(raw.get("errors")),
        output_tokens=parse_usage(raw.get("usage")).output,
        totals=_uses(used),
        since_last=_uses(since) if isinstance(since, dict) else None,
    )


def _uses(found: Mapping[str, Any]) -> dict[str, ModelUse]:
    return {model: _use(one) for model, one in found.items() if isinstance(one, dict)}


def _use(one: dict[str, Any]) -> ModelUse:
    written, hour = _count(one, "cacheCreationInputTokens"), _count(one, "cacheCreationEphemeral1hInputTokens")
    usage = Usage(
        uncached=_count(one, "inputTokens"),
        cache_read=_count(one, "cacheReadInputTokens"),
        cache_write_5m=max(written - hour, 0),
        cache_write_1h=hour,
        output=_count(one, "outputTokens"),
    )
    cost = one.get("costUSD")
    return ModelUse(usage, round(cost * 1_000_000) if isinstance(cost, int | float) and 0 <= cost < 2**33 else 0)


_READERS: Final[dict[str, Callable[[dict[str, Any]], Event]]] = {
    "assistant": _read_assistant,
    "user": _read_user,
    "result": _read_result,
    "stream_event": _read_partial,
    "tool_progress": _read_tool_progress,
    "keep_alive": _read_keep_alive,
    "conversation_reset": _read_reset,
    "rate_limit_event": _read_rate_limit,
    "control_response": _read_control,
    "control_request": _read_control_request,
    "command_lifecycle": _read_lifecycle,
}
_SYSTEM: Final[dict[str, Callable[[dict[str, Any]], Event]]] = {
    "init": _read_init,
    "api_retry": _read_retry,
    "status": _read_status,
    "compact_boundary": _read_compact,
    "background_tasks_changed": _read_background,
}


_MAIN_PARTIAL: Final = Partial(None)


def _parent(raw: dict[str, Any]) -> str | None:
    return _text(raw, "parent_tool_use_id") or None


def _text(raw: dict[str, Any], key: str) -> str:
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def _texts(found: Any) -> tuple[str, ...]:
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()


def _number(raw: dict[str, Any], key: str) -> int | None:
    value = raw.get(key)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53 else None


def _count(raw: dict[str, Any], key: str) -> int:
    return max(_number(raw, key) or 0, 0)


def _mapping(raw: dict[str, Any], key: str) -> dict[str, Any]:
    value = raw.get(key)
    return value if isinstance(value, dict) else {}


def _objects(found: Any) -> list[dict[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
