import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.model.ceiling import count_tokens
from mind_body.model.chat import parse_answer, render_request
from mind_body.model.grammar import SENTENCES, render_say_grammar
from mind_body.model.local import OUTPUT_CAP, _count_threads
from mind_body.model.session import FAULT_WAIT_MS, Exchange, Failed, Limited, Refused, Reply, SessionPlan, Unreadable, Usage

NOW = 1_700_000_000_000
SCHEMA = {"type": "object", "properties": {"say": {"type": "string", "maxLength": 300}}, "required": ["say"]}


def plan(instructions: str = "You are Ada.", rehydration: str = "") -> SessionPlan:
    return SessionPlan("s1", instructions, SCHEMA, rehydration)


def answer(content: object, *, finish: str = "stop", **more: object) -> bytes:
    message = {"role": "assistant", "content": content, **more}
    return json.dumps({"choices": [{"message": message, "finish_reason": finish}], "model": "m"}).encode()


def outcome_of(content: object, *, finish: str = "stop", **more: object) -> object:
    return parse_answer(200, {}, answer(content, finish=finish, **more), NOW).outcome


texts = st.text(max_size=40)


@given(texts, texts, st.lists(st.builds(Exchange, texts, texts), max_size=5), texts, texts, texts)
def test_a_request_begins_with_the_one_before_byte_for_byte(
    instructions: str, rehydration: str, past: list[Exchange], text: str, said: str, more: str
) -> None:
    made = plan(instructions, rehydration)
    before = render_request(made, past, text, {"model": "m", "max_tokens": 7})
    after = render_request(made, [*past, Exchange(text, said)], more, {"model": "m", "max_tokens": 7})
    assert after.startswith(before.removesuffix(b"]}"))


@given(texts, st.lists(st.builds(Exchange, texts, texts), min_size=1, max_size=5), texts)
def test_the_past_is_sent_exactly_as_it_was(rehydration: str, past: list[Exchange], text: str) -> None:
    messages = json.loads(render_request(plan("", rehydration), past, text, {}))["messages"]
    lead = f"{rehydration}\n\n" if rehydration else ""
    assert messages[0] == {"role": "user", "content": lead + past[0].input}
    assert [m["content"] for m in messages if m["role"] == "assistant"] == [exchange.output for exchange in past]
    assert messages[-1] == {"role": "user", "content": text}


def test_rehydration_stands_before_the_first_input_in_the_same_message() -> None:
    messages = json.loads(render_request(plan(rehydration="Yesterday: hello."), (), "Ada?", {}))["messages"]
    assert messages == [
        {"role": "system", "content": "You are Ada."},
        {"role": "user", "content": "Yesterday: hello.\n\nAda?"},
    ]


def test_a_lone_surrogate_does_not_stop_a_request() -> None:
    assert b"?" in render_request(plan(), (), "\ud800", {})


def test_one_json_object_is_a_reply_and_is_kept_as_it_came() -> None:
    text = ' {"say": "h\\u00e9"} '
    assert outcome_of(text) == Reply(text)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("I think not.", "not JSON"),
        ("", "empty"),
        (None, "empty"),
        ('{"say": "a"}\n{"say": "b"}', "more than one JSON document"),
        ('{"say": "a"} and that is all', "text after the JSON document"),
        ('["say"]', "not a JSON object"),
        ('```json\n{"say": "a"}\n```', "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_not_one_json_object_is_unreadable_and_says_why(content: object, why: str) -> None:
    assert outcome_of(content) == Unreadable(why, content or "")  # type: ignore[arg-type]


def test_a_cut_off_answer_is_unreadable_even_when_it_parses() -> None:
    assert outcome_of('{"say": "a"}', finish="length") == Unreadable("length", '{"say": "a"}')


def test_a_refusal_is_a_refusal_whoever_declined() -> None:
    assert outcome_of("", refusal="I will not say that.") == Refused("the model declined to answer"), "its words may quote a body"
    assert isinstance(outcome_of("", finish="content_filter"), Refused)


@pytest.mark.parametrize(
    ("usage", "timings", "expected"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 60}}, {}, (40, 60, 9)),
        ({"prompt_tokens": 100, "completion_tokens": 9}, {"cache_n": 70}, (30, 70, 9)),
        ({"prompt_tokens": 100, "completion_tokens": 9, "prompt_cache_hit_tokens": 10}, {}, (90, 10, 9)),
        ({"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 11}}, {}, (0, 10, 1)),
        ({"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": None}, {}, (10, 0, 1)),
        (None, {"prompt_n": 5, "cache_n": 6, "predicted_n": 7}, (5, 6, 7)),
    ],
)
def test_cached_tokens_are_read_from_whoever_reports_them(
    usage: object, timings: dict[str, int], expected: tuple[int, int, int]
) -> None:
    body = {**json.loads(answer('{"say": "a"}')), "usage": usage, "timings": timings}
    parsed = parse_answer(200, {}, json.dumps(body).encode(), NOW)
    assert parsed.usage == Usage(uncached=expected[0], cache_read=expected[1], output=expected[2])


def test_an_answer_without_figures_says_that_it_has_none() -> None:
    assert parse_answer(200, {}, answer('{"say": "a"}'), NOW).usage is None


def test_every_kind_of_no_is_its_own_answer() -> None:
    def no(status: int, headers: dict[str, str] | None = None, **error: object) -> object:
        return parse_answer(status, headers or {}, json.dumps({"error": error}).encode(), NOW).outcome

    assert no(401, message="Incorrect API key: sk-1234") == Failed("authentication", None, "HTTP 401")
    assert no(402, message="pay") == Failed("payment", None, "HTTP 402: pay")
    assert no(429, {"retry-after": "30"}) == Limited(NOW + 30_000, "HTTP 429")
    assert no(429, code="insufficient_quota") == Failed("payment", None, "HTTP 429")
    assert no(500) == Failed("fault", NOW + FAULT_WAIT_MS, "HTTP 500")
    assert no(529, {"retry-after": "2"}) == Failed("overloaded", NOW + 2_000, "HTTP 529")
    assert no(404, message="no such model") == Failed("fault", None, "HTTP 404: no such model")
    assert isinstance(no(400, type="exceed_context_size_error"), Refused)
    assert no(400, message="your text 'private words' is bad") == Failed("fault", NOW + FAULT_WAIT_MS, "HTTP 400")
    assert no(405) == Failed("fault", None, "HTTP 405")


def test_an_error_inside_a_200_is_an_error() -> None:
    body = json.dumps({"error": {"code": 429, "message": "slow down"}}).encode()
    assert isinstance(parse_answer(200, {}, body, NOW).outcome, Limited)
    assert isinstance(parse_answer(200, {}, b"<html>", NOW).outcome, Failed)
    assert parse_answer(200, {}, b"<html>", NOW).usage == Usage(), "no model's server"


def test_what_was_counted_for_an_answer_without_a_choice_is_paid() -> None:
    body = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}
    counted = parse_answer(200, {}, json.dumps(body).encode(), NOW)
    assert isinstance(counted.outcome, Failed)
    assert counted.usage == Usage(uncached=9, output=4)


@given(st.integers(100, 599), st.binary(max_size=60), st.dictionaries(st.just("retry-after"), texts))
def test_no_answer_whatever_breaks_the_reading(status: int, raw: bytes, headers: dict[str, str]) -> None:
    parsed = parse_answer(status, headers, raw, NOW)
    assert not isinstance(parsed.outcome, Reply)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, json_values, json_values, json_values)
def test_no_shape_of_a_completion_breaks_the_reading(message: object, finish: object, usage: object, error: object) -> None:
    for choice in (message, {"message": message, "finish_reason": finish}, {"message": {"content": message, "refusal": finish}}):
        body = {"choices": [choice], "usage": usage, "error": error, "model": finish}
        parse_answer(200, {}, json.dumps(body).encode(), NOW)
        parse_answer(429, {}, json.dumps(body).encode(), NOW)


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), -1, None, "7", [], True, 10**400])
def test_no_figure_of_a_servers_breaks_the_reading(figure: object) -> None:
    usage = {"prompt_tokens": figure, "completion_tokens": figure, "prompt_tokens_details": {"cached_tokens": figure}}
    body = json.dumps({**json.loads(answer('{"say": "a"}')), "usage": usage}).encode()
    read = parse_answer(200, {}, body, NOW).usage
    assert read is not None
    assert min(read.uncached, read.cache_read, read.output) >= 0


def test_only_a_single_bounded_string_is_made_into_a_grammar() -> None:
    assert render_say_grammar(SCHEMA) is not None
    assert render_say_grammar({"type": "object", "properties": {"say": {"type": "string"}}}) is None
    assert render_say_grammar({"type": "object", "properties": {"say": {"type": "array"}}}) is None
    assert render_say_grammar({"properties": {"a": {"type": "string", "maxLength": 9}, "b": {}}}) is None


@given(st.integers(5, 1000))
def test_two_sentences_of_the_grammar_fit_the_schema_and_the_output_cap(longest: int) -> None:
    grammar = render_say_grammar({"properties": {"say": {"type": "string", "maxLength": longest}}})
    assert grammar is not None
    (middle,) = re.findall(r"^sentence ::= first rest\{0,(\d+)\}", grammar, re.MULTILINE)
    sentences = SENTENCES * (1 + int(middle) + 1) + SENTENCES - 1
    assert sentences <= longest
    assert sentences + len('{"say": ""}') <= OUTPUT_CAP, "even at one token for each character"


def test_the_local_model_leaves_a_core_to_the_others() -> None:
    assert [_count_threads(cores) for cores in (1, 2, 3, 64)] == [1, 1, 2, 4]


def test_a_model_spoken_to_by_grammar_is_not_given_the_schema_too() -> None:
    body = json.loads(render_request(plan(), (), "hi", {"grammar": "root ::= .."}))
    assert "response_format" not in body
    assert "response_format" in json.loads(render_request(plan(), (), "hi", {}))


def test_what_is_not_ascii_is_reserved_as_a_token_for_each_byte() -> None:
    plain, faces = count_tokens([b"word " * 60]), count_tokens(["\N{GRINNING FACE}".encode() * 75])
    assert plain == 100
    assert faces == 300
    assert count_tokens([b"abc", "\N{GRINNING FACE}".encode()]) == 5
