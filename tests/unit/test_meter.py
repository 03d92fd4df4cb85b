"""Usage as it is told, whole and streamed, and the canonical prefix."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.model.meter import Meter, Metered
from mind_body.model.prefix import canonical_blocks, find_break
from mind_body.model.session import Usage
from mind_body.model.usage import parse_usage

START: dict[str, Any] = {
    "type": "message_start",
    "message": {
        "model": "claude-sonnet-4-5",
        "usage": {
            "input_tokens": 3,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 30,
            "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
            "output_tokens": 1,
        },
    },
}
DELTA = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 42, "input_tokens": None}}
EVENTS: list[dict[str, Any]] = [
    START,
    {"type": "ping"},
    {"type": "content_block_delta", "delta": {"text": "data: x"}},
    DELTA,
    {"type": "message_stop"},
]
STREAM = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in EVENTS)
WHAT = Metered(Usage(3, 100, 10, 20, 42), "claude-sonnet-4-5", "tool_use", None, complete=True)


def meter(chunks: list[bytes], content_type: str = "text/event-stream; charset=utf-8") -> Metered:
    found = Meter(content_type)
    for chunk in chunks:
        found.feed(chunk)
    return found.read()


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_a_stream_is_metered_however_it_is_split(cuts: list[int]) -> None:
    edges = sorted({0, len(STREAM), *cuts})
    assert meter([STREAM[a:b] for a, b in itertools.pairwise(edges)]) == WHAT


def test_a_stream_with_carriage_returns_is_metered_too() -> None:
    assert meter([STREAM.replace(b"\n", b"\r\n")]) == WHAT


def test_half_a_stream_is_not_complete_but_tells_what_it_told() -> None:
    assert meter([STREAM[: len(STREAM) // 2]]) == Metered(Usage(3, 100, 10, 20, 1), "claude-sonnet-4-5", None, None, complete=False)


def test_a_plain_answer_is_metered() -> None:
    answer = {**START["message"], "type": "message", "stop_reason": "refusal"}
    assert meter([json.dumps(answer).encode()], "application/json") == Metered(
        Usage(3, 100, 10, 20, 1), "claude-sonnet-4-5", "refusal", None, complete=True
    )


def test_an_error_is_named_by_its_kind_plain_or_in_the_middle_of_a_stream() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "private"}}
    assert meter([json.dumps(error).encode()], "application/json").error == "overloaded_error"
    assert meter([b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n"]).error == "overloaded_error"


@given(st.binary(), st.sampled_from(["text/event-stream", "application/json", ""]))
def test_no_answer_raises(junk: bytes, content_type: str) -> None:
    meter([b"data: " + junk, b"\n\n"], content_type)
    meter([junk], content_type)


def test_an_answer_over_the_cap_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mind_body.model.meter.LINE_CAP", 1000)
    assert meter([b"data: ", b"x" * 600, b"x" * 600, b"\n", STREAM]) == WHAT


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none()) | st.none() | st.lists(st.integers()))
def test_no_usage_raises_and_none_is_negative(found: Any) -> None:
    usage = parse_usage(found)
    assert min(usage.uncached, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h, usage.output) >= 0


def test_a_write_whose_ttl_is_not_told_is_a_five_minute_one() -> None:
    assert parse_usage({"cache_creation_input_tokens": 7}) == Usage(cache_write_5m=7)


texts = st.text(max_size=5)
blocks = st.fixed_dictionaries({"type": st.just("text"), "text": texts})
messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": st.lists(blocks, max_size=3) | texts}),
    max_size=4,
)


@given(messages, messages)
def test_a_conversation_that_only_grew_has_no_break(first: list[Any], more: list[Any]) -> None:
    before, after = {"system": "s", "messages": first}, {"system": "s", "messages": first + more}
    assert find_break(canonical_blocks(before), canonical_blocks(after)) is None


def test_cache_marks_and_the_form_of_a_string_are_no_break() -> None:
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "ok"}]}
    marked = {**result, "content": [{"type": "text", "text": "ok", **mark}]}
    before = {
        "tools": [{"name": "a", **mark}],
        "messages": [{"role": "user", "content": [{"text": "hi", "type": "text", **mark}, marked]}],
    }
    after = {"messages": [{"content": [{"type": "text", "text": "hi"}, result], "role": "user"}], "tools": [{"name": "a"}]}
    assert find_break(canonical_blocks(before), canonical_blocks(after)) is None
    assert canonical_blocks({"messages": [{"role": "user", "content": "hi"}]}) == canonical_blocks(before)[1:2]


def test_a_break_says_where_and_never_what() -> None:
    before = canonical_blocks({"system": "you are secret", "messages": []})
    why = find_break(before, canonical_blocks({"system": "you are hidden!", "messages": []}))
    assert why is not None
    assert "block 0 of 1 (system) changed" in why
    assert "secret" not in why
    assert find_break(before, []) == "1 of 1 blocks are missing at the end"


def test_a_role_is_part_of_a_block() -> None:
    assert canonical_blocks({"messages": [{"role": "user", "content": "x"}]}) != canonical_blocks(
        {"messages": [{"role": "assistant", "content": "x"}]}
    )


def test_a_key_that_only_looks_like_a_mark_is_content() -> None:
    one, two = (
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": {"cache_control": x}}]}]} for x in (1, 2)
    )
    assert canonical_blocks(one) != canonical_blocks(two)
