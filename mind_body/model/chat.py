"""Rule: OpenAI's chat completions as bytes: a session's request from its exchanges, an outcome from what came back.

1. A request's messages stand last in its body, so that request N+1 begins with request N byte for byte, up to the closing
   brackets, as long as the exchanges before it are the same.
2. Rehydration stands before the first input, in the same message, for the life of the session.
3. An answer is one JSON object in one message, or it is `Unreadable`. Nothing is scanned for a better reading.
4. A limit, an overload, a refused credential, an unpaid bill and a fault are different answers (cases.md M3).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from mind_body.model.ceiling import count_tokens
from mind_body.model.limits import LIMIT_WAIT_MS, read_again_at
from mind_body.model.session import (
    FAULT_WAIT_MS,
    OVERLOAD_WAIT_MS,
    Exchange,
    Failed,
    Limited,
    Outcome,
    Refused,
    Reply,
    SessionPlan,
    Unreadable,
    Usage,
)
from mind_body.model.spend import Trouble
from mind_body.model.trouble import find_trouble

TOKENS_MAX = 1_000_000_000
"""A figure beyond this is nonsense and counts as none."""
_TOO_LONG = ("context_length_exceeded", "exceed_context_size_error", "maximum context length", "context size")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What one HTTP answer came to."""

    outcome: Outcome
    usage: Usage | None
    """None where an answer came without figures."""
    model: str = ""
    received: tuple[dict[str, Any], ...] = ()
    text: str | None = None
    """What the session goes on with as the assistant's message; None where no answer came and nothing is to be kept."""
    trouble: Trouble | None = None
    """What it says of the credential."""


def render_request(plan: SessionPlan, past: Sequence[Exchange], text: str, options: Mapping[str, Any]) -> bytes:
    """The body of the request that asks for the answer to `text`. `options` are the fields that never change in a session.

    A `grammar` among them stands instead of the schema; llama.cpp refuses both.
    """
    schema = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": plan.schema}}
    form = {} if "grammar" in options else {"response_format": schema}
    body = {**options, "stream": False, **form, "messages": _messages(plan, past, text)}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def count_ceiling(request: bytes, output_cap: int) -> Usage:
    """The most that a request may come to, for its reservation."""
    return Usage(uncached=count_tokens([request]) + 1, output=output_cap)


def parse_answer(status: int, headers: Mapping[str, str], raw: bytes, now: int) -> Parsed:
    """The outcome of one HTTP answer. Header names in small letters; `now` in ms."""
    body = _parse_object(raw)
    if status == 200 and body is not None and isinstance(body.get("choices"), list) and body["choices"]:
        return _parse_completion(body)
    said = body.get("error") if body else None
    error: dict[str, Any] = said if isinstance(said, dict) else {"message": said if isinstance(said, str) else ""}
    # Nothing is charged for a refusal. What a server counted is on its bill, also where there is nothing to read.
    usage = (_parse_usage(body) if status == 200 and body and not said else None) or Usage()
    if status == 200:
        # Some proxies answer 200 and put the real status into the body.
        status = error["code"] if isinstance(error.get("code"), int) else 500
    outcome = _parse_error(status, headers, error, now)
    return Parsed(outcome, usage, trouble=find_trouble(outcome, status))


def _messages(plan: SessionPlan, past: Sequence[Exchange], text: str) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": plan.instructions}] if plan.instructions else []
    for exchange in past:
        messages += [{"role": "user", "content": exchange.input}, {"role": "assistant", "content": exchange.output}]
    messages.append({"role": "user", "content": text})
    if plan.rehydration:
        first = messages[1 if plan.instructions else 0]
        first["content"] = f"{plan.rehydration}\n\n{first['content']}"
    return messages


def _parse_completion(body: dict[str, Any]) -> Parsed:
    choice = _table(body["choices"][0])
    message = _table(choice.get("message"))
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    model = body.get("model")
    return Parsed(
        _read_outcome(text, message.get("refusal"), choice.get("finish_reason")),
        _parse_usage(body),
        model if isinstance(model, str) else "",
        ({**message, "finish_reason": choice.get("finish_reason")},),
        text,
    )


def _read_outcome(text: str, refusal: Any, finish: Any) -> Outcome:
    if refusal:
        return Refused("the model declined to answer")  # its words are kept with what was received; they go into no journal
    if finish == "content_filter":
        return Refused("the provider's filter declined it")
    if finish == "length":
        return Unreadable("length", text)
    if not text.strip():
        return Unreadable("empty", text)
    if _parse_object(text) is None:
        return Unreadable(_why_not(text), text)
    return Reply(text)


def _why_not(text: str) -> str:
    try:
        value, end = json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return "not JSON"
    more = text.lstrip()[end:].strip()
    if not isinstance(value, dict):
        return "not a JSON object"
    return "more than one JSON document" if more.startswith("{") else "text after the JSON document"


def _parse_usage(body: dict[str, Any]) -> Usage | None:
    usage, timings = _table(body.get("usage")), _table(body.get("timings"))
    if "prompt_tokens" in usage:
        prompt = _count(usage["prompt_tokens"])
        details = _table(usage.get("prompt_tokens_details"))
        # llama.cpp and OpenAI; DeepSeek; older llama.cpp.
        said = (details.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), timings.get("cache_n"))
        cached = min(next((_count(figure) for figure in said if figure is not None), 0), prompt)
        return Usage(uncached=prompt - cached, cache_read=cached, output=_count(usage.get("completion_tokens")))
    if "prompt_n" in timings:
        return Usage(
            uncached=_count(timings["prompt_n"]),
            cache_read=_count(timings.get("cache_n")),
            output=_count(timings.get("predicted_n")),
        )
    return None


def _parse_error(status: int, headers: Mapping[str, str], error: Mapping[str, Any], now: int) -> Outcome:
    code, said = str(error.get("code") or error.get("type") or ""), str(error.get("message") or "")
    reason, again_at = _word_error(status, code, said), read_again_at(headers, now)
    match _class_of(status, code, said):
        case "limited":
            return Limited(now + LIMIT_WAIT_MS if again_at is None else again_at, reason)
        case "overloaded":
            return Failed("overloaded", now + OVERLOAD_WAIT_MS if again_at is None else again_at, reason)
        case "refused":
            return Refused(f"the request is longer than the model's window ({reason})")
        case "again":
            return Failed("fault", now + FAULT_WAIT_MS if again_at is None else again_at, reason)
        case ("authentication" | "payment" | "fault") as kind:
            return Failed(kind, None, reason)


_Class: TypeAlias = Literal["limited", "overloaded", "refused", "again", "authentication", "payment", "fault"]


def _class_of(status: int, code: str, said: str) -> _Class:
    too_long = status == 413 or (status == 400 and any(mark in f"{code} {said}" for mark in _TOO_LONG))
    rows: tuple[tuple[bool, _Class], ...] = (
        (status in {401, 403}, "authentication"),
        (status == 402 or code == "insufficient_quota", "payment"),
        (status == 429, "limited"),
        (status in {502, 503, 504, 529}, "overloaded"),
        (too_long, "refused"),
        # It may be this one request that the server cannot take: others are tried, and it again.
        (status in {400, 422}, "again"),
        (300 <= status < 500, "fault"),
    )
    return next((kind for holds, kind in rows if holds), "again")


def _word_error(status: int, code: str, said: str) -> str:
    """What may be quoted: a complaint about the request's content may quote it, one about a key may quote that."""
    quoted = " ".join(said.split())[:200] if status in {402, 404, 429} or status >= 500 else code
    return f"HTTP {status}" + (f": {quoted}" if quoted else "")


def _parse_object(raw: bytes | str) -> dict[str, Any] | None:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and 0 <= value <= TOKENS_MAX else 0
