"""How a Self is started, which child a run begins with, what its lines have shown, and what it came to."""

from dataclasses import replace
from typing import Any

import pytest

from mind_body.mind.records import Session
from mind_body.model.lines import (
    Assistant,
    BackgroundTasks,
    ControlResponse,
    Event,
    Init,
    KeepAlive,
    Lifecycle,
    Partial,
    RateLimit,
    Result,
    User,
)
from mind_body.model.meter import Metered
from mind_body.model.passage import GIVEN_UP, TTL_1H_MS, TTL_5M_MS, Passed
from mind_body.model.session import FAULT_WAIT_MS, NETWORK_WAIT_MS, OVERLOAD_WAIT_MS, Failed, Limited, Usage
from mind_body.model.spend import Declined
from mind_body.self_run.actions import EndSession, Interrupt, Outcome, Why, WriteFlush
from mind_body.self_run.course import ChildNow, Course, Message, describe_tool
from mind_body.self_run.ending import decide_fate
from mind_body.self_run.facts import Standing
from mind_body.self_run.figures import add_up, find_declined, find_limit, find_trouble
from mind_body.self_run.launch import SelfLaunch, parse_binds, render_argv, render_env
from mind_body.self_run.meter import Meter
from mind_body.self_run.reuse import Binding, Bounds, Fresh, Idle, Keep, Opening, Resume, linger_ms, plan_opening
from mind_body.self_run.seen import Seen
from tests.builders import NOW

KEY = "the-gateways-key"


def launch(**changes: Any) -> SelfLaunch:
    whole = SelfLaunch(
        binary="/opt/x/claude",
        config_dir="/state/ada/self/s1",
        work_dir="/state/ada/work/site",
        workspace="site",
        model="claude-sonnet-4-5",
        session_id="s1",
        resume=False,
        max_turns=500,
        run_cap_usd=2.5,
        gateway_url="http://127.0.0.1:1",
        key_kind="api-key",
        key=KEY,
    )
    return replace(whole, **changes)


# Starting it.


def test_a_self_has_its_tools_and_asks_nobody_and_its_bounds_are_told() -> None:
    argv = render_argv(launch())
    assert {
        "--permission-mode=bypassPermissions",
        "--permission-prompts=none",
        "--setting-sources=user",
        "--strict-mcp-config",
        "--include-partial-messages",
        "--max-turns=500",
        "--max-budget-usd=2.500000",
        "--session-id=s1",
    } <= set(argv)
    assert not [word for word in argv if word.startswith("--tools")]
    assert "--resume=s1" in render_argv(launch(resume=True))
    assert not [word for word in render_argv(launch(model="")) if word.startswith("--model")]


def test_no_secret_is_on_its_command_line_and_the_key_in_its_environment_is_of_the_real_ones_kind() -> None:
    assert KEY not in "".join(render_argv(launch()))
    assert KEY not in repr(launch())
    assert render_env(launch())["ANTHROPIC_API_KEY"] == KEY
    bearer = render_env(launch(key_kind="oauth-token"))
    assert bearer["CLAUDE_CODE_OAUTH_TOKEN"] == KEY
    assert "ANTHROPIC_API_KEY" not in bearer


def test_its_workspace_is_writable_and_what_the_operator_bound_so_and_nothing_else() -> None:
    argv = render_argv(launch(readable=parse_binds(["/srv/docs"]), writable=parse_binds(["/srv/cache:/cache"])))
    pairs = {flag: [tuple(argv[i + 1 : i + 3]) for i, word in enumerate(argv) if word == flag] for flag in ("--bind", "--ro-bind")}
    assert pairs["--bind"] == [
        ("/state/ada/self/s1", "/home/self/.claude"),
        ("/state/ada/work/site", "/work/site"),
        ("/srv/cache", "/cache"),
    ]
    assert ("/srv/docs", "/srv/docs") in pairs["--ro-bind"]
    assert argv[argv.index("--chdir") + 1] == "/work/site"


def test_without_a_sandbox_the_kernel_still_ends_it_with_us() -> None:
    assert render_argv(launch(sandboxed=False))[:3] == ["setpriv", "--pdeathsig=KILL", "--"]
    assert render_env(launch(sandboxed=False))["HOME"] == "/state/ada/work/site"


# Which child a run begins with.

SITE = Binding("site", "room:!r", "self:api.example.org", "claude-sonnet-4-5")
BOUNDS = Bounds(300_000, 1_000_000, TTL_5M_MS)


def session(**changes: Any) -> Session:
    values: dict[str, Any] = dict.fromkeys(Session.__slots__, 0) | {
        "id": "s1",
        "conversation": "work:site",
        "provider": SITE.provider,
        "model": SITE.model,
        "cursor": '{"leaf": "l", "sent": null}',
        "prefix_tokens": 50_000,
        "ended_at": None,
    }
    return Session(**(values | changes))


def idle(**changes: Any) -> Idle:
    return replace(Idle(SITE, "s1", True, 50_000, 100_000, NOW - 60_000), **changes)


def plan(there: Idle | None = None, known: Session | None = None, binding: Binding = SITE) -> Opening:
    return plan_opening(binding, there, known, BOUNDS, NOW)


def test_the_child_that_is_there_is_kept_while_it_is_worth_it() -> None:
    assert plan(idle(), session()) == Keep()


@pytest.mark.parametrize(
    "changes",
    [
        {"fit": False},
        {"prefix_tokens": 300_000},
        {"spent_micro_usd": 500_001},
        {"used_at": NOW - TTL_5M_MS},
        {"used_at": NOW + 1},
        {"session_id": "s0"},
        {"binding": replace(SITE, model="another")},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_child_that_is_not_is_left_and_its_session_resumed(changes: dict[str, Any]) -> None:
    assert plan(idle(**changes), session()) == Resume(session())


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (None, "nothing is open"),
        (session(cursor=None), "nothing to resume"),
        (session(prefix_tokens=300_000), "at its ceiling"),
        (session(model="another"), "has changed"),
        (session(provider="self:elsewhere"), "has changed"),
    ],
)
def test_a_session_that_cannot_be_gone_on_with_is_begun_anew_with_the_reason(known: Session | None, why: str) -> None:
    found = plan(None, known)
    assert isinstance(found, Fresh)
    assert why in found.reason


def test_a_child_is_kept_until_its_cache_is_cold_and_no_longer_than_configured() -> None:
    assert linger_ms("api-key", 900) == TTL_5M_MS
    assert linger_ms("oauth-token", 900) == 900_000
    assert linger_ms("oauth-token", 3600) == TTL_1H_MS
    assert linger_ms("api-key", 0) == 0


# What its lines have shown.


def seen(*events: Event, wrote: tuple[str, ...] = ()) -> Seen:
    one = Seen("s1", 0)
    for uuid in wrote:
        one.wrote(uuid)
    for at, event in enumerate(events, 1):
        one.see(event, at)
    return one


def result(*uuids: str, **changes: Any) -> Result:
    whole = Result("success", False, "completed", "done", None, None, None, None, uuids)
    return replace(whole, **changes)


INIT = Init("s1", "m", "2.1.332")


def test_a_message_is_open_from_its_write_until_its_turn_ends() -> None:
    assert not seen().busy
    assert seen(wrote=("a",)).busy
    assert seen(Lifecycle("a", "started"), INIT, wrote=("a",)).busy
    assert not seen(Lifecycle("a", "started"), INIT, result("a"), wrote=("a",)).busy
    assert not seen(Lifecycle("a", "started"), INIT, result("a"), Lifecycle("a", "completed"), wrote=("a",)).busy
    assert not seen(INIT, result(), wrote=("a",)).busy, "a result that names nobody ends them all"


def test_a_folded_message_is_done_before_its_turn_is() -> None:
    folded = (Lifecycle("a", "started"), INIT, Lifecycle("b", "started"), Lifecycle("b", "completed"))
    assert seen(*folded, wrote=("a", "b")).busy
    assert not seen(*folded, result("a", "b"), wrote=("a", "b")).busy


def test_a_message_that_is_done_without_a_result_ends_its_turn() -> None:
    assert not seen(Lifecycle("a", "started"), INIT, Lifecycle("a", "cancelled"), wrote=("a",)).busy


def test_a_message_that_still_waits_keeps_it_busy_over_the_result_of_another() -> None:
    assert seen(Lifecycle("a", "started"), INIT, result("a"), wrote=("a", "b")).busy


def test_a_turn_of_its_own_making_is_one() -> None:
    assert seen(INIT).busy
    assert not seen(INIT, result()).busy


def test_the_window_is_taken_from_what_it_answers_and_from_its_results() -> None:
    told = ControlResponse("window", True, {"rawMaxTokens": 200_000, "maxTokens": 1}, "")
    assert seen(told).window_tokens == 200_000
    assert seen(told, result(window_tokens=1_000_000)).window_tokens == 1_000_000
    assert seen(told, result()).window_tokens == 200_000
    assert seen(ControlResponse("window", False, {}, "no such request")).window_tokens is None


def test_it_is_ready_once_it_has_answered_and_not_where_it_refused() -> None:
    assert seen(ControlResponse("initialize", True, {}, "")).ready
    refused = seen(ControlResponse("initialize", False, {}, "bad schema"))
    assert (refused.ready, refused.refused) == (False, "bad schema")


def test_a_sign_of_life_of_the_process_alone_is_none_of_the_work() -> None:
    assert seen(INIT, KeepAlive()).last_line_at == 1
    assert seen(INIT, Partial(None)).last_line_at == 2


def test_the_transcript_ends_with_the_newest_message_of_the_main_thread() -> None:
    mine = Assistant("a1", "m1", None, (), Usage(), None, None)
    subs, synthetic = replace(mine, uuid="a2", parent="toolu_1"), replace(mine, uuid="a3", error="rate_limit")
    assert seen(mine, subs, synthetic).leaf == "a1"
    assert seen(mine, User("u1", None, synthetic=False)).leaf == "u1"


def test_background_work_and_a_limit_are_what_was_told_last() -> None:
    assert seen(BackgroundTasks(("a", "b")), BackgroundTasks(("b",))).background == 1
    limit = RateLimit("rejected", 1_900_000_000, "five_hour")
    assert seen(limit).limit_until == 1_900_000_000_000
    assert seen(limit, result()).limit_until is None
    assert seen(RateLimit("allowed_warning", 1_900_000_000, "five_hour")).limit_until is None


# One run.


def course(*events: Event) -> Course:
    one = Course(0, Seen("s1", 0), Meter(), ChildNow(0))
    for at, event in enumerate(events, 1):
        one.see(event, at)
    return one


def text(words: str) -> Assistant:
    return Assistant("a", "m", None, ({"type": "text", "text": words},), Usage(uncached=5), None, None)


def test_messages_are_fed_in_order_and_a_reopened_child_is_told_them_all_again() -> None:
    one = course()
    start, steer = Message("start", "do", "u1"), Message("st1", "and this", "u2", "st1")
    one.waiting.append(start)
    one.set_steers([steer])
    assert one.facts(1).next_message == "start"
    one.note_fed(start, 1)
    assert (one.facts(2).next_message, one.facts(2).fed, one.facts(2).busy) == ("st1", 1, True)
    one.note_fed(steer, 2)
    one.note_reopened(Seen("s2", 3), Meter(), ChildNow(3))
    assert [message.name for message in one.waiting] == ["start", "st1"]
    assert (one.facts(4).fed, one.facts(4).busy, one.facts(4).child.reopened) == (0, False, True)
    one.set_steers([])
    assert [message.name for message in one.waiting] == ["start", "st1"], "it is on record as given, and waits again"


def test_what_was_taken_back_or_edited_waits_as_it_reads_now() -> None:
    one = course()
    one.set_steers([Message("st1", "one", "u1", "st1"), Message("st2", "two", "u2", "st2")])
    one.set_steers([Message("st2", "two, please", "u3", "st2")])
    assert [message.text for message in one.waiting] == ["two, please"]


def test_the_turn_that_held_the_flush_is_the_flushs_and_no_result() -> None:
    one = course()
    one.seen.wrote("u1")
    one.note_flush(WriteFlush("flush", "full"), "f1", 5)
    folded = (Lifecycle("u1", "started"), INIT, Lifecycle("f1", "started"), Lifecycle("f1", "completed"))
    for event in folded:
        one.see(event, 6)
    assert one.flush is not None
    assert (one.flush.started_at, one.flush.over) == (6, False)
    one.see(result("u1", "f1", text="Grüße"), 7)
    assert (one.flush.over, one.flush.answer_bytes, one.answer) == (True, 7, "Grüße")
    assert one.result is None


def test_a_turn_that_ended_before_the_flush_was_folded_in_is_the_works_own() -> None:
    one = course()
    one.seen.wrote("u1")
    one.note_flush(WriteFlush("flush", "full"), "f1", 5)
    one.see(result("u1", text="the work"), 6)
    assert one.flush is not None
    assert not one.flush.over
    assert one.result is not None
    assert one.result_text == "the work"
    one.see(Lifecycle("f1", "cancelled"), 7)
    assert one.flush.over


def test_a_long_answer_is_kept_beside_the_shorter_one_that_is_asked_for() -> None:
    one = course()
    one.note_flush(WriteFlush("flush", "full"), "f1", 1)
    one.see(result("f1", text="long"), 2)
    one.note_flush(WriteFlush("shorter", "full"), "f2", 3)
    assert one.flush is not None
    assert (one.kept_answer, one.flush.kept_bytes, one.flush.answer_bytes) == ("long", 4, None)
    one.see(result("f2", text="", is_error=True), 4)
    assert (one.answer, one.kept_answer, one.flush.over) == ("", "long", True)


def test_the_ladder_keeps_the_reason_of_its_first_step() -> None:
    one = course()
    one.note_interrupt(Interrupt(Why.STOPPED, "stopped by @op:x"), 1)
    one.note_end_session(EndSession(Why.LINGERED, "nothing more"), 2)
    assert (one.ladder.why, one.ladder.reason, one.ladder.ended_at) == (Why.STOPPED, "stopped by @op:x", 2)
    one.note_flush(WriteFlush("flush", "full"), "f1", 3)
    one.note_interrupt(Interrupt(Why.OVERRAN, "too long"), 4)
    assert one.ladder.interrupted_at == 1
    assert one.flush is not None
    assert one.flush.interrupted_at == 4


def test_how_the_child_stands() -> None:
    one = course()
    assert one.facts(1).child.standing is Standing.STARTING
    one.see(ControlResponse("initialize", True, {}, ""), 1)
    assert one.facts(1).child.standing is Standing.READY
    one.child.deaf = True
    assert (one.facts(2).child.standing, one.facts(3).child.deaf_at) == (Standing.DEAF, 2)
    one.child.gone = True
    assert (one.facts(4).child.standing, one.facts(5).child.gone_at) == (Standing.GONE, 4)


def test_what_it_does_is_its_newest_tool_in_one_line() -> None:
    block = {"type": "tool_use", "name": "Bash", "input": {"command": "make\n  test", "description": "run"}}
    assert describe_tool(block) == "Bash: make test"
    assert describe_tool({"type": "tool_use", "name": "TaskList", "input": {}}) == "TaskList"
    assert describe_tool({"type": "text", "text": "hm"}) == ""
    assert len(describe_tool({"type": "tool_use", "name": "Write", "input": {"file_path": "x" * 500}})) == 120
    assert course(replace(text("I look."), blocks=(block,)), text("Nothing.")).doing == "Bash: make test"


# What it came to.


def passed(cost: int, model: str = "m", **changes: Any) -> Passed:
    return Passed("c", 200, metered=Metered(Usage(uncached=10, output=5), model, complete=True), cost_micro_usd=cost, **changes)


def test_figures_are_added_up_per_model_and_what_did_not_leave_is_no_request() -> None:
    declined = Passed("c", declined=Declined("budget", "too much"), sent=False)
    totals = add_up([passed(100), passed(50, "small"), passed(1), declined])
    assert (totals.requests, totals.cost_micro_usd, totals.usage) == (3, 151, Usage(uncached=30, output=15))
    assert totals.per_model["m"]["cost_micro_usd"] == 101
    assert totals.per_model["small"] == {
        "uncached_tokens": 10,
        "cache_read_tokens": 0,
        "cache_write_5m_tokens": 0,
        "cache_write_1h_tokens": 0,
        "output_tokens": 5,
        "cost_micro_usd": 50,
        "requests": 1,
    }


def declined(kind: str, reason: str = "too much", until: int | None = None) -> Passed:
    return Passed("c", declined=Declined(kind, reason, until), sent=False)  # type: ignore[arg-type]


def test_a_bound_that_was_met_is_one_while_nothing_passed_after_it() -> None:
    limited = Passed("c", 429, again_at=NOW)
    assert find_declined([passed(1), declined("budget")], "budget") == "too much"
    assert find_declined([declined("budget"), passed(1)], "budget") is None
    assert find_declined([declined("held")], "budget") is None
    assert find_declined([declined("spend")], "spend") == "too much"
    assert find_limit([passed(1), limited], NOW) == NOW
    assert find_limit([passed(1), declined("limited", until=NOW + 9)], NOW) == NOW + 9
    assert find_limit([limited, passed(1)], NOW) is None
    assert (find_declined([], "held"), find_limit([], NOW)) == (None, None)


@pytest.mark.parametrize(
    ("outcome", "newest", "kind", "until"),
    [
        (Outcome.LIMITED, Passed("c", 429, again_at=NOW + 9), "limited", NOW + 9),
        (Outcome.LIMITED, declined("limited", until=NOW + 9), "limited", NOW + 9),
        (Outcome.SPEND, declined("spend", until=NOW + 9), "spend", NOW + 9),
        (Outcome.OVERLOADED, Passed("c", 529), "overloaded", NOW + OVERLOAD_WAIT_MS),
        (Outcome.AUTHENTICATION, Passed("c", 401), "authentication", None),
        (Outcome.AUTHENTICATION, declined("authentication"), "authentication", None),
        (Outcome.PAYMENT, Passed("c", 402), "payment", None),
        (Outcome.NO_RESULT, Passed("c", 500), "fault", NOW + FAULT_WAIT_MS),
        (Outcome.NO_RESULT, declined("fault", until=NOW + 9), "fault", NOW + 9),
        (Outcome.NO_RESULT, Passed("c", broken="no connection", sent=False), "network", NOW + NETWORK_WAIT_MS),
        (Outcome.NO_RESULT, passed(1), None, None),
        (Outcome.BUDGET, declined("budget"), None, None),
        (Outcome.HELD, declined("held"), None, None),
        (Outcome.RESULT, passed(1), None, None),
        (Outcome.INTERRUPTED, Passed("c", 529), None, None),
    ],
)
def test_what_a_run_ended_of_holds_up_the_next_one_where_that_would_meet_it_too(
    outcome: Outcome, newest: Passed, kind: str | None, until: int | None
) -> None:
    found = find_trouble(outcome, [passed(1), newest, Passed("c", broken=GIVEN_UP)], None, NOW)
    match found:
        case None:
            assert kind is None
        case Limited():
            assert (kind, until) == ("limited", found.until)
        case Failed():
            assert (found.kind, found.retry_at) == (kind, until)


def test_a_limit_ends_when_the_cli_says_where_no_request_met_it() -> None:
    words = "a limit of the plan, until 2027-01-15T08:00:09Z"
    assert find_trouble(Outcome.LIMITED, [passed(1)], NOW + 9_000, NOW) == Limited(NOW + 9_000, words)
    later = find_trouble(Outcome.LIMITED, [Passed("c", 429, again_at=NOW + 5)], NOW + 9_000, NOW)
    assert later == Limited(NOW + 9_000, words)


def test_work_that_a_person_stopped_is_over_and_work_that_stalled_is_tried_again() -> None:
    assert decide_fate(Outcome.KILLED, Why.STOPPED) == "done"
    assert decide_fate(Outcome.INTERRUPTED, Why.STALLED) == "again"
    assert decide_fate(Outcome.RESULT, Why.LEFTOVER) == "done"
    assert decide_fate(Outcome.FLUSHED, Why.FLUSHED) == "continue"
    assert decide_fate(Outcome.DIED, None) == "again"
    assert {decide_fate(outcome, None) for outcome in Outcome} == {"done", "continue", "again"}
