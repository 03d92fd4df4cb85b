"""When a server says that it may be asked again, and what of that holds for every call with a credential."""

import datetime as dt
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.model.limits import WAIT_MAX_MS, read_again_at
from mind_body.model.passage import Passed, spell_refusal
from mind_body.model.session import FAULT_WAIT_MS, Failed, Limited
from mind_body.model.spend import Declined, Trouble
from mind_body.model.trouble import find_trouble, judge_declined, judge_passed

NOW = 1_800_000_000_000
PLAN = "anthropic-ratelimit-unified-reset"


def iso(at: int) -> str:
    return dt.datetime.fromtimestamp(at / 1000, dt.UTC).isoformat().replace("+00:00", "Z")


@pytest.mark.parametrize(
    ("headers", "after_ms"),
    [
        ({"retry-after": "1.5"}, 1_500),
        ({"retry-after-ms": "250", "retry-after": "9"}, 250),
        ({"retry-after": formatdate(NOW / 1000 + 60, usegmt=True)}, 60_000),
        ({"retry-after": "-5"}, 0),
        ({PLAN: str(NOW // 1000 + 60), "retry-after": "5"}, 60_000),
        ({PLAN: str(NOW // 1000 + 60), "anthropic-ratelimit-unified-status": "rejected"}, 60_000),
        ({PLAN: "9e99"}, WAIT_MAX_MS),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-requests": "0"}, 1_000),
        ({"x-ratelimit-reset-tokens": "6m0s"}, 360_000),
        ({"x-ratelimit-reset-tokens": "1h2m3.5s"}, 3_723_500),
        ({"x-ratelimit-reset-tokens": "20ms"}, 20),
        ({"x-ratelimit-reset": str(NOW + 7_000)}, 7_000),
        ({"x-ratelimit-reset": str(NOW // 1000 + 7)}, 7_000),
        ({"ratelimit-reset": "7"}, 7_000),
        ({"anthropic-ratelimit-requests-reset": iso(NOW + 9_000)}, 9_000),
    ],
)
def test_each_way_of_saying_it_is_read(headers: dict[str, str], after_ms: int) -> None:
    assert read_again_at(headers, NOW) == NOW + after_ms


@pytest.mark.parametrize("headers", [{}, {"retry-after": "soon"}, {"x-ratelimit-reset": ""}, {"x-ratelimit-limit": "5"}])
def test_who_does_not_say_says_nothing(headers: dict[str, str]) -> None:
    assert read_again_at(headers, NOW) is None


def test_a_plan_that_allows_the_call_is_not_what_refused_it() -> None:
    far = {PLAN: str(NOW // 1000 + 18_000), "anthropic-ratelimit-unified-status": "allowed_warning"}
    assert read_again_at({**far, "retry-after": "3"}, NOW) == NOW + 3_000
    assert read_again_at(far, NOW) is None


def test_of_several_buckets_the_empty_ones_count_and_of_them_the_last_to_fill() -> None:
    told = {
        "x-ratelimit-reset-requests": "2s",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-tokens": "1m0s",
        "x-ratelimit-remaining-tokens": "4000",
    }
    assert read_again_at(told, NOW) == NOW + 2_000
    assert read_again_at({**told, "x-ratelimit-remaining-tokens": "0"}, NOW) == NOW + 60_000
    assert read_again_at({**told, "x-ratelimit-remaining-requests": "1"}, NOW) == NOW + 2_000


HEADERS = st.sampled_from(
    ["retry-after", "retry-after-ms", PLAN, "x-ratelimit-reset", "x-ratelimit-reset-tokens", "ratelimit-reset"]
)
VALUES = (
    st.text(max_size=20) | st.floats().map(str) | st.integers().map(str) | st.from_regex(r"(\d+h)?(\d+m)?(\d+s)?", fullmatch=True)
)


@given(st.dictionaries(HEADERS, VALUES))
def test_no_header_makes_a_limit_that_is_past_or_never_ends(headers: dict[str, str]) -> None:
    found = read_again_at(headers, NOW)
    assert found is None or NOW <= found <= NOW + WAIT_MAX_MS


@pytest.mark.parametrize(
    ("status", "outcome", "trouble"),
    [
        (200, None, None),
        (400, Failed("fault", NOW + FAULT_WAIT_MS, "the Messages API answered 400"), None),
        (
            401,
            Failed("authentication", None, "the Messages API answered 401"),
            Trouble("authentication", None, "the Messages API answered 401"),
        ),
        (402, Failed("payment", None, "the Messages API answered 402"), Trouble("payment", None, "the Messages API answered 402")),
        (403, Failed("authentication", None, "the Messages API answered 403"), None),
        (429, Limited(NOW + 9, "the Messages API answered 429"), Trouble("limited", NOW + 9, "the Messages API answered 429")),
        (500, Failed("fault", NOW + FAULT_WAIT_MS, "the Messages API answered 500"), None),
        (
            529,
            Failed("overloaded", NOW + 9, "the Messages API answered 529"),
            Trouble("overloaded", NOW + 9, "the Messages API answered 529"),
        ),
    ],
)
def test_what_a_status_comes_to_and_what_of_it_is_the_credentials(
    status: int, outcome: Limited | Failed | None, trouble: Trouble | None
) -> None:
    found = judge_passed(Passed("c", status, again_at=NOW + 9), NOW)
    assert found == outcome
    assert find_trouble(found, status) == trouble


@pytest.mark.parametrize("kind", ["held", "budget", "spend", "overloaded", "authentication", "payment", "fault"])
@pytest.mark.parametrize("until", [None, NOW + 9])
def test_what_the_lease_declines_is_the_outcome_of_that_name(kind: str, until: int | None) -> None:
    declined = Declined(kind, "because", until)  # type: ignore[arg-type]
    assert judge_declined(declined, NOW) == Failed(kind, until, "because")  # type: ignore[arg-type]


def test_a_limit_of_the_leases_is_a_limit_and_ends() -> None:
    assert judge_declined(Declined("limited", "because", NOW + 9), NOW) == Limited(NOW + 9, "because")
    assert isinstance(found := judge_declined(Declined("limited", "because"), NOW), Limited)
    assert found.until > NOW


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("held", 403),
        ("budget", 403),
        ("spend", 403),
        ("limited", 429),
        ("overloaded", 529),
        ("authentication", 401),
        ("payment", 402),
        ("fault", 500),
    ],
)
def test_what_is_declined_is_told_to_the_child_as_the_api_would_say_it(kind: str, status: int) -> None:
    declined = Declined(kind, "her day is spent: $10 of $10", NOW + 4_200)  # type: ignore[arg-type]
    told = spell_refusal(declined, NOW, whole_run=True)
    assert told.status == status
    assert "$" not in told.sentence, "why is nothing for what a child writes into a room"
    assert told.retry_after_s == (5 if kind in {"overloaded", "fault"} else None)
    assert spell_refusal(declined, NOW, whole_run=False).retry_after_s is None, "a turn is given up at once"


def test_a_child_is_not_kept_waiting_for_long() -> None:
    assert spell_refusal(Declined("overloaded", "x", NOW + 3_600_000), NOW, whole_run=True).retry_after_s is None
    assert spell_refusal(Declined("fault", "x", None), NOW, whole_run=True).retry_after_s is None
    assert spell_refusal(Declined("fault", "x", NOW - 5), NOW, whole_run=True).retry_after_s == 1
