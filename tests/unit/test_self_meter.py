"""The meter of a Self: prefix, tools, totals. And what a finished turn says the work came to."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.model.lines import Assistant, CompactBoundary, ConversationReset, Event, ModelUse, Result, User
from mind_body.model.meter import Metered
from mind_body.model.passage import Passed
from mind_body.model.session import Usage
from mind_body.model.told import Told, compare_costs
from mind_body.self_run.actions import Outcome
from mind_body.self_run.facts import Verdict
from mind_body.self_run.meter import Meter, compare, limit_of, total_usage
from mind_body.self_run.outcome import judge_result

MODEL = "claude-sonnet-4-5"


def answer(message_id: str, prefix: int, *blocks: dict[str, Any], parent: str | None = None, error: str | None = None) -> Assistant:
    return Assistant("u", message_id, parent, blocks, Usage(uncached=1, cache_read=prefix - 1) if prefix else Usage(), None, error)


def tool(use_id: str, name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": use_id, "name": name, "input": given}


def finished(*ids: str) -> User:
    return User("u", None, synthetic=False, finished=ids)


def result(uuid: str = "r", **changes: Any) -> Result:
    whole = Result(
        subtype="success",
        is_error=False,
        terminal_reason="completed",
        text="done",
        structured=None,
        api_error_status=None,
        stop_reason="end_turn",
        window_tokens=200_000,
        user_uuids=(),
        uuid=uuid,
    )
    return replace(whole, **changes)


def uses(output: int, cost: int = 0) -> dict[str, ModelUse]:
    return {MODEL: ModelUse(Usage(output=output), cost)}


def metered(*events: Event, resumed: bool = False) -> Meter:
    meter = Meter(Told(resumed))
    for event in events:
        meter.see(event)
    return meter


# The prefix.


def test_the_prefix_is_that_of_the_newest_main_thread_request() -> None:
    assert metered(answer("m1", 20_000), answer("m2", 31_000)).prefix_tokens == 31_000


def test_a_subagents_request_does_not_count() -> None:
    meter = metered(answer("m1", 20_000), answer("s1", 90_000, parent="toolu"))
    assert (meter.prefix_tokens, meter.requests) == (20_000, 1)


def test_a_synthetic_line_does_not_count() -> None:
    assert metered(answer("m1", 20_000), answer("m2", 7, error="rate_limit")).prefix_tokens == 20_000


def test_the_lines_of_one_answer_count_once() -> None:
    meter = metered(answer("m1", 20_000), answer("m1", 20_000), answer("m2", 30_000), answer("m1", 20_000))
    assert (meter.prefix_tokens, meter.requests) == (30_000, 2)


def test_usage_that_is_zero_or_null_changes_nothing() -> None:
    meter = metered(answer("m1", 20_000), answer("m2", 0))
    assert (meter.prefix_tokens, meter.requests) == (20_000, 1)
    meter.see(answer("m2", 25_000))
    assert (meter.prefix_tokens, meter.requests) == (25_000, 2)


def test_a_compaction_and_a_reset_are_seen_at_once() -> None:
    meter = metered(answer("m1", 150_000), CompactBoundary("auto", 150_000, 30_000))
    assert meter.prefix_tokens == 30_000
    meter.see(CompactBoundary("auto", 30_000, None))
    assert meter.prefix_tokens == 30_000
    meter.see(ConversationReset("new"))
    assert meter.prefix_tokens == 0


# Tools.


def test_without_a_tool_the_api_is_waited_for() -> None:
    assert metered(answer("m1", 9)).tool_limit_ms is None


@pytest.mark.parametrize(
    ("block", "limit"),
    [
        (tool("t"), 150_000),
        (tool("t", timeout=300_000), 330_000),
        (tool("t", timeout=9_000_000), 630_000),
        (tool("t", timeout="soon"), 150_000),
        (tool("t", "Task", prompt="x"), 600_000),
        ({"type": "tool_use", "name": "Bash"}, 600_000),
    ],
)
def test_a_tool_is_given_its_own_limit(block: dict[str, Any], limit: int) -> None:
    assert limit_of(block) == limit


def test_of_several_tools_the_most_patient_counts_until_it_has_ended() -> None:
    meter = metered(answer("m1", 9, tool("a"), tool("b", timeout=400_000)))
    assert meter.tool_limit_ms == 430_000
    meter.see(finished("b"))
    assert meter.tool_limit_ms == 150_000
    meter.see(finished("a", "unknown"))
    assert meter.tool_limit_ms is None


def test_a_turns_end_ends_its_tools() -> None:
    assert metered(answer("m1", 9, tool("a")), result()).tool_limit_ms is None


# Totals.


def test_what_is_new_since_the_result_before_is_added() -> None:
    meter = metered(result("r1", since_last=uses(5, 10)), result("r2", since_last=uses(7, 20), totals=uses(12, 30)))
    assert meter.told.totals == uses(12, 30)


def test_without_it_running_totals_are_never_added_twice() -> None:
    assert metered(result("r1", totals=uses(5, 10)), result("r2", totals=uses(12, 30))).told.totals == uses(12, 30)


def test_the_first_result_of_a_resumed_process_is_only_the_base() -> None:
    meter = metered(result("r1", totals=uses(500, 900)), result("r2", totals=uses(512, 930)), resumed=True)
    assert meter.told.totals == uses(12, 30)


def test_a_result_that_is_told_twice_counts_once() -> None:
    assert metered(result("r1", since_last=uses(5)), result("r1", since_last=uses(5))).told.totals == uses(5)


def test_totals_that_began_anew_count_whole() -> None:
    assert metered(result("r1", totals=uses(50, 90)), result("r2", totals=uses(7, 8))).told.totals == uses(57, 98)


def test_another_run_in_the_same_child_has_totals_of_its_own() -> None:
    meter = metered(answer("m1", 20_000), result("r1", totals=uses(50, 90)))
    meter.begin_run()
    assert (meter.told.totals, meter.requests, meter.prefix_tokens) == ({}, 0, 20_000)
    meter.see(result("r2", totals=uses(60, 95)))
    assert meter.told.totals == uses(10, 5)


@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=8), st.lists(st.booleans(), min_size=8, max_size=8))
def test_totals_are_the_same_however_they_are_told(turns: list[int], told: list[bool]) -> None:
    meter, whole = Meter(), 0
    for place, output in enumerate(turns):
        whole += output
        meter.see(result(str(place), totals=uses(whole), since_last=uses(output) if told[place] else None))
    assert total_usage(meter.told.totals).output == sum(turns)


def told(cost_micro_usd: int, *, resumed: bool = False, model: str = MODEL) -> Told:
    found = Told(resumed)
    found.add(result("r1", totals={model: ModelUse(Usage(output=5), cost_micro_usd)}))
    return found


def cost(micro_usd: int, model: str = MODEL, *, complete: bool = True, broken: str | None = None) -> Passed:
    return Passed("c", 200, metered=Metered(model=model, complete=complete), cost_micro_usd=micro_usd, broken=broken)


def test_costs_are_compared_for_the_same_calls() -> None:
    passed = [cost(100, f"{MODEL}-20250929"), cost(50), cost(7, "claude-haiku-4-5"), cost(900, broken="it broke off")]
    assert compare_costs(passed, told(160)) == (150, 160), "helpers and what broke off are left out, as the CLI leaves them out"


def test_where_only_a_base_is_known_nothing_is_compared() -> None:
    assert compare_costs([cost(100)], told(4_000, resumed=True)) is None
    later = told(4_000, resumed=True)
    later.begin()
    later.add(result("r2", totals={MODEL: ModelUse(Usage(output=9), 4_110)}))
    assert compare_costs([cost(100)], later) == (100, 110)
    assert compare_costs([], Told()) is None


def test_the_stream_may_tell_of_less_than_the_gateway_saw_and_never_of_more() -> None:
    passed = Usage(cache_read=1_000, output=100)
    assert compare(Usage(cache_read=900, output=90), passed) is None
    assert compare(Usage(cache_read=1_010, output=100), passed) is None
    assert compare(Usage(cache_read=1_100, output=90), passed) == (
        "the CLI tells of more tokens than passed the gateway: input 1100 of 1000"
    )


# What a result says.


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (result(), Verdict(Outcome.RESULT, "done")),
        (result(text=" \n"), Verdict(Outcome.NO_RESULT, "it ended without a word")),
        (result(subtype="error_max_turns", is_error=True), Verdict(Outcome.NO_RESULT, "it used up its turns")),
        (result(subtype="error_max_budget_usd", is_error=True), Verdict(Outcome.BUDGET, "it used up the CLI's own budget")),
        (result(subtype="error_during_execution", is_error=True), Verdict(Outcome.NO_RESULT, "the turn was broken off")),
        (result(is_error=True, api_error_status=401), Verdict(Outcome.AUTHENTICATION, "the credential was refused")),
        (result(is_error=True, api_error_status=402), Verdict(Outcome.PAYMENT, "the bill is not paid")),
        (result(is_error=True, api_error_status=429), Verdict(Outcome.LIMITED, "the plan's limit is reached")),
        (result(is_error=True, api_error_status=529), Verdict(Outcome.OVERLOADED, "the provider is overloaded")),
        (result(is_error=True, api_error_status=500), Verdict(Outcome.NO_RESULT, "the API answered 500 (completed)")),
        (result(is_error=True), Verdict(Outcome.NO_RESULT, "claude said success (completed)")),
        (result(terminal_reason="", subtype=""), Verdict(Outcome.NO_RESULT, "claude said nothing (no reason)")),
    ],
)
def test_success_is_not_believed_and_every_end_has_its_name(found: Result, verdict: Verdict) -> None:
    assert judge_result(found) == verdict


def test_an_error_that_only_the_synthetic_line_names_is_named() -> None:
    assert judge_result(result(is_error=True), "authentication_failed").outcome is Outcome.AUTHENTICATION
    assert judge_result(result(is_error=True), "something new").outcome is Outcome.NO_RESULT
