"""How the CLI is started, what may pass to it, and what a turn of it came to: the rules, without a CLI."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.host.sandbox import Sandbox, render_bwrap
from mind_body.model.claude_launch import Launch, render_argv, render_env, render_user
from mind_body.model.claude_outcome import PLAN, Shown, decide_outcome
from mind_body.model.limits import LIMIT_WAIT_MS
from mind_body.model.lines import Result
from mind_body.model.meter import Metered
from mind_body.model.passage import (
    GIVEN_UP,
    Passed,
    count_ceiling,
    headers_to_child,
    headers_to_server,
    read_key,
    same_key,
)
from mind_body.model.prefix import canonical_blocks, find_break_from, fingerprint
from mind_body.model.session import FAULT_WAIT_MS, OVERLOAD_WAIT_MS, Failed, Limited, Refused, Reply, Unreadable
from mind_body.model.spend import Declined
from mind_body.model.stream import parse_line

NOW = 1_800_000_000_000
WHOLE = Metered(stop_reason="tool_use", complete=True)


def launch(**changes: Any) -> Launch:
    fields: dict[str, Any] = {
        "binary": "/x/claude",
        "config_dir": "/state/ada/claude",
        "work_dir": "/state/ada/quiet",
        "model": "m",
        "session_id": "s",
        "resume": False,
        "prompt_file": "prompts/s.md",
        "output_cap": 8192,
        "gateway_url": "http://127.0.0.1:1",
        "key_kind": "api-key",
        "key": "the-key",
    }
    return Launch(**{**fields, **changes})


def result(**changes: Any) -> Result:
    fields = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "terminal_reason": "completed",
        "structured_output": {"say": []},
    }
    parsed = parse_line(json.dumps({**fields, **changes}).encode())
    assert isinstance(parsed, Result)
    return parsed


@pytest.mark.parametrize("sandboxed", [True, False])
def test_no_key_is_in_a_command_line_or_a_repr(sandboxed: bool) -> None:
    found = launch(sandboxed=sandboxed)
    assert "the-key" not in " ".join(render_argv(found)) + repr(found)


@pytest.mark.parametrize(
    ("kind", "name"), [("api-key", "ANTHROPIC_API_KEY"), ("oauth-token", "CLAUDE_CODE_OAUTH_TOKEN"), ("none", "ANTHROPIC_API_KEY")]
)
def test_the_child_gets_a_key_of_the_real_ones_kind(kind: str, name: str) -> None:
    env = render_env(launch(key_kind=kind))
    assert [key for key, value in env.items() if value == "the-key"] == [name]


def test_the_environment_holds_nothing_of_ours_and_no_marker_of_a_session_above() -> None:
    env = render_env(launch())
    assert "CLAUDECODE" not in env
    assert "CLAUDE_CODE_ENTRYPOINT" not in env
    assert (env["HOME"], env["CLAUDE_CONFIG_DIR"]) == ("/home/persona", "/home/persona/.claude")
    assert env["MAX_STRUCTURED_OUTPUT_RETRIES"] == "1"


def test_a_session_is_opened_or_resumed_by_name() -> None:
    assert "--session-id=s" in render_argv(launch())
    argv = render_argv(launch(resume=True))
    assert "--resume=s" in argv
    assert not [word for word in argv if word.startswith("--session-id")]


def test_she_has_no_tools_and_no_commands() -> None:
    argv = render_argv(launch())
    assert {
        "--tools=",
        "--strict-mcp-config",
        "--setting-sources=",
        "--disable-slash-commands",
        "--permission-prompts=none",
    } <= set(argv)
    assert render_user("/clear", "u")["client_composed"] is True


def test_outside_a_sandbox_the_kernel_still_ends_the_child_with_us() -> None:
    assert render_argv(launch(sandboxed=False))[:3] == ["setpriv", "--pdeathsig=KILL", "--"]


def test_a_sandbox_shows_only_what_is_named() -> None:
    argv = render_bwrap(Sandbox("/home/x", "/home/x/w", {"/a": "/b"}, {"/c": "/d"}), ["run", "it"])
    assert argv[argv.index("--") + 1 :] == ["run", "it"]
    assert {"--die-with-parent", "--new-session", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"} <= set(argv)
    assert "--unshare-net" not in argv
    writable = [argv[i + 1 : i + 3] for i, word in enumerate(argv) if word == "--bind"]
    assert writable == [["/c", "/d"]]
    bound = {argv[i + 1] for i, word in enumerate(argv) if word in {"--ro-bind", "--ro-bind-try", "--bind"}}
    assert not {
        one for one in bound if one.startswith(("/home", "/root", "/var", "/run", "/etc/mind", "/etc/passwd", "/etc/shadow"))
    }
    assert "/" not in bound


def test_what_the_gateway_saw_outranks_what_the_cli_says() -> None:
    lie = result(structured_output=None, subtype="success")
    assert decide_outcome([Passed("c", 529)], Shown(lie), NOW) == Failed(
        "overloaded", NOW + OVERLOAD_WAIT_MS, "the Messages API answered 529"
    )
    assert decide_outcome([Passed("c", 429, again_at=NOW + 5)], Shown(lie), NOW) == Limited(
        NOW + 5, "the Messages API answered 429"
    )
    held = Passed("c", declined=Declined("held", "enough"), sent=False)
    assert decide_outcome([Passed("c", 529), held], Shown(lie), NOW) == Failed("held", None, "enough")
    assert isinstance(
        decide_outcome([Passed("c", 200, metered=Metered(stop_reason="refusal", complete=True))], Shown(lie), NOW), Refused
    )


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "authentication"),
        (403, "authentication"),
        (402, "payment"),
        (503, "overloaded"),
        (500, "fault"),
        (400, "fault"),
        (413, "fault"),
    ],
)
def test_each_status_is_its_own_failure(status: int, kind: str) -> None:
    outcome = decide_outcome([Passed("c", status)], Shown(result(is_error=True)), NOW)
    assert isinstance(outcome, Failed)
    assert outcome.kind == kind
    assert (outcome.retry_at is None) == (kind in {"authentication", "payment"})


def test_an_error_in_the_middle_of_a_stream_is_what_it_says() -> None:
    passed = Passed("c", 200, metered=Metered(error="overloaded_error"))
    outcome = decide_outcome([passed], Shown(result(is_error=True)), NOW)
    assert isinstance(outcome, Failed)
    assert outcome.kind == "overloaded"


def test_a_reply_after_a_broken_try_is_a_reply() -> None:
    assert decide_outcome([Passed("c", 200, broken="half"), Passed("c.2", 200, metered=WHOLE)], Shown(result()), NOW) == Reply(
        '{"say": []}'
    )


def test_an_answer_without_the_structure_is_unreadable_and_kept() -> None:
    passed = [Passed("c", 200, metered=WHOLE)]
    assert decide_outcome(passed, Shown(result(structured_output=None), "prose"), NOW) == Unreadable(
        "no structured output that fits the schema", "prose"
    )
    cut = [Passed("c", 200, metered=Metered(stop_reason="max_tokens", complete=True))]
    assert decide_outcome(cut, Shown(result(is_error=True), '{"a'), NOW) == Unreadable("length", '{"a')


def test_of_a_limit_the_later_end_counts_whoever_told_it() -> None:
    late = result(is_error=True, structured_output=None)
    passed = [Passed("c", 429, again_at=NOW + 60_000)]
    assert decide_outcome(passed, Shown(late, limit_until=NOW + 3_600_000), NOW) == Limited(
        NOW + 3_600_000, "the Messages API answered 429"
    )
    assert decide_outcome(passed, Shown(late, limit_until=NOW + 5), NOW) == Limited(NOW + 60_000, "the Messages API answered 429")


def test_a_limit_that_the_cli_knows_of_without_asking_is_a_limit() -> None:
    told = result(is_error=True, structured_output=None, api_error_status=429)
    assert decide_outcome([], Shown(told, limit_until=NOW + 9), NOW) == Limited(NOW + 9, PLAN)
    assert decide_outcome([], Shown(told), NOW) == Limited(NOW + LIMIT_WAIT_MS, PLAN)
    answered = [Passed("c", 200, metered=WHOLE)]
    assert decide_outcome(answered, Shown(result(), limit_until=NOW + 9), NOW) == Reply('{"say": []}'), "an answer is an answer"


def test_a_child_that_ended_is_a_fault_with_its_reason() -> None:
    for passed in ([], [Passed("c", broken=GIVEN_UP)], [Passed("c", 200, metered=WHOLE)]):
        outcome = decide_outcome(passed, Shown(None, ended="claude ended (exit 1): no such model"), NOW)
        assert outcome == Failed("fault", NOW + FAULT_WAIT_MS, "claude ended (exit 1): no such model")


@given(
    st.sampled_from([None, 200, 401, 429, 500, 529]),
    st.booleans(),
    st.none() | st.text(max_size=3),
    st.sampled_from(["completed", "api_error", ""]),
)
def test_every_turn_comes_to_something(status: int | None, error: bool, ended: str | None, reason: str) -> None:
    found = None if ended else result(is_error=error, terminal_reason=reason)
    decide_outcome([Passed("c", status, broken=None if status else "x")], Shown(found, ended=ended), NOW)
    decide_outcome([], Shown(found, ended=ended), NOW)


def test_only_the_one_header_changes() -> None:
    child = {
        "authorization": "Bearer k",
        "x-api-key": "k",
        "anthropic-version": "1",
        "host": "h",
        "connection": "close",
        "accept-encoding": "br",
    }
    assert headers_to_server(child, "api-key", "real") == {
        "anthropic-version": "1",
        "accept-encoding": "identity",
        "x-api-key": "real",
    }
    assert headers_to_server(child, "oauth-token", "real")["authorization"] == "Bearer real"
    assert "x-api-key" not in headers_to_server(child, "none", None)
    assert dict(headers_to_child(200, {"transfer-encoding": "chunked", "request-id": "r", "content-length": "5"})) == {
        "request-id": "r",
        "content-length": "5",
    }


def test_a_key_is_read_from_either_header() -> None:
    assert read_key({"authorization": "Bearer abc"}) == "abc"
    assert read_key({"x-api-key": "abc"}) == "abc"
    assert read_key({"authorization": "Basic abc", "x-api-key": "d"}) == "d"
    assert read_key({}) is None
    assert same_key("abc", "abc")
    assert not same_key("äbc", "abc")


def test_what_was_sent_a_minute_ago_counts_as_read_and_an_hour_ago_as_written() -> None:
    body = {"max_tokens": 10, "messages": [{"role": "user", "content": "x" * 30_000}]}
    longer = {**body, "messages": [*body["messages"], {"role": "user", "content": "y"}]}  # type: ignore[misc]
    raw, before, after = json.dumps(longer).encode(), canonical_blocks(body), canonical_blocks(longer)
    warm = count_ceiling(longer, raw, before, after, 60_000)
    cold = count_ceiling(longer, raw, before, after, 3_600_000)
    assert warm.cache_read > 9_000 > warm.cache_write_5m
    assert (cold.cache_read, cold.output) == (0, 10)
    assert cold.cache_write_5m > 10_000
    assert count_ceiling(longer, raw, ["other"], after, 60_000).cache_read == 0


def test_a_fingerprint_finds_a_break_after_a_restart() -> None:
    before = ["a", "b"]
    assert find_break_from(fingerprint(before), ["a", "b", "c"]) is None
    assert find_break_from(fingerprint(before), ["a", "x", "c"]) is not None
    assert find_break_from(fingerprint(before), ["a"]) is not None
