"""The codec of the CLI's lines: whole, one byte at a time, with a trailing remainder, and split anywhere."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from mind_body.model.stream import NEED_DATA, StreamCodec, parse_line, render_line

RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "terminal_reason": "completed",
    "result": '{"say":[]}',
    "structured_output": {"say": []},
    "api_error_status": None,
    "stop_reason": "tool_use",
    "modelUsage": {
        "claude-sonnet-4-5": {
            "inputTokens": 4,
            "outputTokens": 80,
            "cacheReadInputTokens": 69_361,
            "cacheCreationInputTokens": 36_521,
            "cacheCreationEphemeral1hInputTokens": 21,
            "costUSD": 0.15897405,
            "contextWindow": 200_000,
        }
    },
    "model_usage_since_last_result": {"claude-sonnet-4-5": {"inputTokens": None, "costUSD": None}},
    "usage": {"output_tokens": 80},
    "uuid": "r1",
    "user_message_uuids": ["u1"],
}
USAGE = {"input_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 3, "output_tokens": 4}
COMPACTED = {"trigger": "auto", "pre_tokens": 9, "post_tokens": 3}
# Each as the real CLI (2.1.332) printed it, cut to what is read.
SEEN: list[tuple[dict[str, Any], Event]] = [
    (
        {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "claude_code_version": "2.1.332"},
        Init("s", "m", "2.1.332"),
    ),
    (
        {
            "type": "assistant",
            "uuid": "a",
            "parent_tool_use_id": None,
            "message": {"id": "msg", "content": [{"type": "text", "text": "x\u2028y"}], "stop_reason": None, "usage": USAGE},
        },
        Assistant("a", "msg", None, ({"type": "text", "text": "x\u2028y"},), Usage(1, 2, 3, 0, 4), None, None),
    ),
    ({"type": "user", "uuid": "b", "parent_tool_use_id": "t", "isSynthetic": True}, User("b", "t", synthetic=True)),
    (
        {"type": "user", "uuid": "c", "message": {"content": [{"type": "tool_result", "tool_use_id": "t"}, "x"]}},
        User("c", None, synthetic=False, finished=("t",)),
    ),
    (
        RESULT,
        Result(
            subtype="success",
            is_error=False,
            terminal_reason="completed",
            text='{"say":[]}',
            structured={"say": []},
            api_error_status=None,
            stop_reason="tool_use",
            window_tokens=200_000,
            user_uuids=("u1",),
            uuid="r1",
            output_tokens=80,
            totals={"claude-sonnet-4-5": ModelUse(Usage(4, 69_361, 36_500, 21, 80), 158_974)},
            since_last={"claude-sonnet-4-5": ModelUse(Usage(), 0)},
        ),
    ),
    ({"type": "stream_event", "event": {"type": "ping"}, "parent_tool_use_id": "t"}, Partial("t")),
    ({"type": "tool_progress", "tool_use_id": "t", "tool_name": "Bash", "elapsed_time_seconds": 3}, ToolProgress("t", "Bash")),
    ({"type": "keep_alive"}, KeepAlive()),
    ({"type": "conversation_reset", "new_conversation_id": "n"}, ConversationReset("n")),
    ({"type": "control_request", "request_id": "q", "request": {"subtype": "can_use_tool"}}, ControlRequest("q", "can_use_tool")),
    ({"type": "system", "subtype": "status", "status": "requesting"}, Status("requesting")),
    (
        {
            "type": "system",
            "subtype": "compact_boundary",
            "compact_metadata": {"trigger": "auto", "pre_tokens": 9, "post_tokens": 3},
        },
        CompactBoundary("auto", 9, 3),
    ),
    (
        {"type": "system", "subtype": "background_tasks_changed", "tasks": [{"task_id": "a"}, {"task_id": "b", "ambient": True}]},
        BackgroundTasks(("a",)),
    ),
    (
        {
            "type": "rate_limit_event",
            "rate_limit_info": {"status": "rejected", "resetsAt": 1_800_000_000, "rateLimitType": "five_hour"},
        },
        RateLimit("rejected", 1_800_000_000, "five_hour"),
    ),
    ({"type": "system", "subtype": "api_retry", "attempt": 2, "error_status": 529}, ApiRetry(2, 529)),
    (
        {"type": "control_response", "response": {"subtype": "success", "request_id": "r", "response": {"commands": []}}},
        ControlResponse("r", ok=True, response={"commands": []}, error=""),
    ),
    ({"type": "command_lifecycle", "command_uuid": "u", "state": "completed"}, Lifecycle("u", "completed")),
    ({"type": "system", "subtype": "new", "x": 1}, Unknown("system", "new", {"type": "system", "subtype": "new", "x": 1})),
    ({"type": "tomorrow"}, Unknown("tomorrow", "", {"type": "tomorrow"})),
    ({}, Unknown("", "", {})),
]
# U+2028 raw, as older versions print it.
WHOLE = b"".join(json.dumps(raw, ensure_ascii=False).encode() + b"\n" for raw, _ in SEEN)
EVENTS = [event for _, event in SEEN]


def drain(codec: StreamCodec) -> list[Event]:
    events = []
    while (event := codec.next_event()) is not NEED_DATA:
        events.append(event)
    return events


def feed_all(codec: StreamCodec, chunks: list[bytes]) -> list[Event]:
    events = []
    for chunk in chunks:
        codec.feed(chunk)
        events += drain(codec)
    return events


def test_a_stream_is_read_whole() -> None:
    assert feed_all(StreamCodec(), [WHOLE]) == EVENTS


def test_a_stream_is_read_one_byte_at_a_time() -> None:
    assert feed_all(StreamCodec(), [WHOLE[i : i + 1] for i in range(len(WHOLE))]) == EVENTS


def test_a_trailing_remainder_is_kept_for_later() -> None:
    codec = StreamCodec()
    assert feed_all(codec, [WHOLE + b'{"type":']) == EVENTS
    assert codec.remainder == b'{"type":'
    assert feed_all(codec, [b'"x"}\n']) == [Unknown("x", "", {"type": "x"})]
    assert codec.remainder == b""


@given(st.lists(st.integers(0, len(WHOLE)), max_size=12))
def test_a_stream_may_be_split_anywhere(cuts: list[int]) -> None:
    edges = sorted({0, len(WHOLE), *cuts})
    assert feed_all(StreamCodec(), [WHOLE[a:b] for a, b in itertools.pairwise(edges)]) == EVENTS


@pytest.mark.parametrize(
    "junk", [b"Warning: something\n", b"{broken\n", b'{"a":1} {"b":2}\n', b"[1]\n", b"\xff\xfe\n", b"null\n", b"[" * 9999 + b"\n"]
)
def test_a_broken_line_costs_only_itself(junk: bytes) -> None:
    codec = StreamCodec()
    assert feed_all(codec, [WHOLE + junk + WHOLE]) == EVENTS * 2
    assert codec.skipped == 1


def test_a_deeply_nested_object_is_skipped_like_any_broken_line() -> None:
    assert parse_line(b'{"a":' * 100_000) is None


def test_an_empty_line_is_nothing() -> None:
    codec = StreamCodec()
    assert feed_all(codec, [b"\n \r\n"]) == []
    assert codec.skipped == 0


def test_a_line_of_50_megabytes_is_read() -> None:
    text = "x" * 50_000_000
    line = render_line({**RESULT, "result": text})
    codec = StreamCodec()
    (event,) = feed_all(codec, [line[i : i + 65_536] for i in range(0, len(line), 65_536)])
    assert isinstance(event, Result)
    assert event.text == text


@given(st.integers(1, 40))
def test_a_line_over_the_cap_is_skipped_to_its_newline(size: int) -> None:
    codec = StreamCodec(cap=10)
    long = b"y" * 30 + b"\n"
    stream = long + b'{"a":1}\n' + long + b"{}\n"
    chunks = [stream[i : i + size] for i in range(0, len(stream), size)]
    assert feed_all(codec, chunks) == [Unknown("", "", {"a": 1}), Unknown("", "", {})]
    assert codec.skipped == 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from(
    [
        *["type", "subtype", "message", "usage", "response", "request", "modelUsage", "model_usage_since_last_result", "errors"],
        *["rate_limit_info", "user_message_uuids", "uuid", "compact_metadata", "tasks", "status", "parent_tool_use_id"],
    ]
)
KINDS = ["assistant", "user", "result", "rate_limit_event", "control_response", "control_request", "command_lifecycle", "system"]
kinds = st.sampled_from([*KINDS, "stream_event", "tool_progress", "keep_alive", "conversation_reset"])
subtypes = st.sampled_from(["init", "api_retry", "status", "compact_boundary", "background_tasks_changed", "else"])


@given(st.dictionaries(names, json_values, max_size=9), kinds, subtypes)
def test_no_object_that_it_prints_raises(fields: dict[str, Any], kind: str, subtype: str) -> None:
    assert parse_line(json.dumps({**fields, "type": kind, "subtype": subtype}).encode()) is not None


@given(st.binary())
def test_no_bytes_raise(junk: bytes) -> None:
    feed_all(StreamCodec(), [junk, b"\n"])


@given(st.dictionaries(st.text(), st.text(alphabet=st.characters()), max_size=3))
def test_a_rendered_line_is_one_line_of_valid_utf_8(value: dict[str, str]) -> None:
    line = render_line(value)
    assert line.count(b"\n") == 1
    assert json.loads(line.decode("utf-8")).keys().__len__() <= len(value)


def test_a_lone_surrogate_never_reaches_the_cli() -> None:
    assert json.loads(render_line({"text": "a\ud800b"})) == {"text": "a?b"}


@pytest.mark.parametrize(
    "change",
    [
        {"is_error": True},
        {"terminal_reason": "aborted"},
        {"structured_output": None},
        {"is_error": None},
        {"terminal_reason": None},
    ],
)
def test_a_success_is_good_only_with_no_error_a_completed_end_and_the_structured_output(change: dict[str, Any]) -> None:
    good, bad = parse_line(json.dumps(RESULT).encode()), parse_line(json.dumps({**RESULT, **change}).encode())
    assert isinstance(good, Result)
    assert isinstance(bad, Result)
    assert good.good
    assert not bad.good


def test_what_the_real_cli_printed_in_a_session_of_a_self_is_known_line_by_line() -> None:
    recorded = (Path(__file__).parents[2] / "probes" / "recorded" / "self-stream.jsonl").read_bytes()
    codec = StreamCodec()
    events = feed_all(codec, [recorded[i : i + 65_536] for i in range(0, len(recorded), 65_536)])
    assert (len(events), codec.skipped, codec.remainder) == (recorded.count(b"\n"), 0, b"")
    assert {event.subtype for event in events if isinstance(event, Unknown)} == {
        "task_started",
        "task_updated",
        "task_notification",
    }
    assert [event.well for event in events if isinstance(event, Result)] == [True, False, True]
