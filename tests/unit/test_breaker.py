"""When work launches no more by itself, and its operators are asked (design §9, cases M4)."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.heartbeat.breaker import NOTHING, PASSED_OVER, count_fruitless, find_trip
from mind_body.mind.records import Run, RunKind
from tests.builders import make_run

OUTCOMES = ("done", "flushed", *sorted(NOTHING), *sorted(PASSED_OVER))


def runs(*outcomes: str) -> list[Run]:
    """Ended runs, the newest first."""
    return [make_run(kind=RunKind.SELF_RUN, ended_at=1, outcome=outcome) for outcome in outcomes]


pasts = st.lists(st.sampled_from(OUTCOMES), max_size=70).map(lambda outcomes: runs(*outcomes))
weary = st.lists(st.sampled_from(["done", "failed", "flushed", "held"]), max_size=70).map(lambda outcomes: runs(*outcomes))


@pytest.mark.parametrize(
    ("outcomes", "why"),
    [
        ([], None),
        (["failed"] * 2, None),
        (["failed"] * 3, "its last 3 runs came to nothing"),
        (["failed", "dead", "no-result", "killed"], "its last 4 runs came to nothing"),
        (["failed", "failed", "done", "failed"], None),
        (["failed", "held", "failed", "limited", "budget", "failed"], "its last 3 runs came to nothing"),
        (["held", "limited", "budget"] * 9, None),
        (["done", "failed", "failed"] * 4, None),
        (["done", "failed", "failed"] * 5, "10 of its last 15 runs came to nothing"),
        ((["done"] * 4 + ["failed"]) * 10, "10 of its last 50 runs came to nothing"),
        ((["done"] * 5 + ["failed"]) * 10, None),
        (["flushed"] * 19, None),
        (["flushed"] * 20, "its last 20 runs only handed off and came to no end"),
        (["flushed", "held"] * 20, "its last 20 runs only handed off and came to no end"),
        (["flushed"] * 10 + ["done"] + ["flushed"] * 10, None),
    ],
)
def test_an_item_trips_after_three_in_a_row_ten_of_fifty_or_twenty_flushes(outcomes: list[str], why: str | None) -> None:
    assert find_trip(runs(*outcomes)) == why


@given(pasts | weary)
def test_it_trips_exactly_when_one_of_the_three_is_so(past: list[Run]) -> None:
    newest = [run.outcome for run in past[:50]]
    said = [outcome for outcome in newest if outcome not in PASSED_OVER]
    three = len(said) >= 3 and all(outcome in NOTHING for outcome in said[:3])
    ten = sum(outcome in NOTHING for outcome in newest) >= 10
    twenty = len(said) >= 20 and set(said[:20]) == {"flushed"}
    assert (find_trip(past) is not None) == (three or ten or twenty)


@given(pasts | weary, st.integers(0, 69))
def test_what_was_before_a_reopen_counts_no_more(past: list[Run], where: int) -> None:
    if where < len(past):
        assert find_trip(past, past[where].id) == find_trip(past[:where])


@given(pasts)
def test_reopened_it_may_try_three_times_again(past: list[Run]) -> None:
    if not past:
        return
    newest = past[0].id
    assert find_trip(past, newest) is None
    tried: Sequence[Run] = past
    for _ in range(2):
        tried = [*runs("failed"), *tried]
        assert find_trip(tried, newest) is None
    assert find_trip([*runs("failed"), *tried], newest) == "its last 3 runs came to nothing"


def test_a_clock_set_back_does_not_hide_what_came_after_a_reopen() -> None:
    """Ids are made from a clock, too: newest is what the list says."""
    before, *after = [make_run(id=id_, ended_at=1, outcome="failed") for id_ in ("9", "3", "2", "1")]
    assert find_trip([*reversed(after), before], before.id) == "its last 3 runs came to nothing"


@given(pasts)
def test_who_did_something_begins_the_row_anew(past: list[Run]) -> None:
    assert count_fruitless([*runs("done"), *past]) == 0
    assert count_fruitless([*runs("flushed"), *past]) == 0
    assert count_fruitless([*runs("failed"), *past]) == count_fruitless(past) + 1
    assert count_fruitless([*runs("held"), *past]) == count_fruitless(past)
