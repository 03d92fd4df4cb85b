"""How far apart beats are, and when the next one is due (design §9)."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.heartbeat.tempo import DEFAULT_S, LEAST_S, MOST_S, next_beat, tempo
from tests.builders import NOW

votes = st.lists(st.none() | st.integers(-10, 200_000), max_size=30)
beats = st.lists(st.none() | st.integers(NOW - 10**9, NOW + 10**9), max_size=8)
spacings = st.integers(LEAST_S, MOST_S)


@pytest.mark.parametrize(
    ("given_votes", "seconds"),
    [
        ([], 600),
        ([None, None], 600),
        ([300], 300),
        ([300, 900], 300),
        ([300, 900, 1200], 900),
        ([60, 120, 3600, 3600], 120),
        ([None, 120, None, 3600, None], 120),
        ([1], 60),
        ([10**9], 86_400),
    ],
)
def test_it_is_the_lower_median_of_who_voted(given_votes: list[int | None], seconds: int) -> None:
    assert tempo(given_votes) == seconds


@given(votes)
def test_it_stays_in_its_bounds(given_votes: list[int | None]) -> None:
    assert LEAST_S <= tempo(given_votes) <= MOST_S
    if not [vote for vote in given_votes if vote is not None]:
        assert tempo(given_votes) == DEFAULT_S


@given(votes, st.randoms(use_true_random=False))
def test_nobodys_place_in_the_list_counts(given_votes: list[int | None], chance: random.Random) -> None:
    shuffled = given_votes[:]
    chance.shuffle(shuffled)
    assert tempo(shuffled) == tempo(given_votes)


@given(st.lists(spacings, min_size=1, max_size=30))
def test_it_is_slower_than_half_of_them_want_at_no_time(given_votes: list[int]) -> None:
    """At least half want it this slow or slower, and fewer than half faster."""
    seconds = tempo(given_votes)
    assert 2 * sum(vote >= seconds for vote in given_votes) >= len(given_votes)
    assert 2 * sum(vote < seconds for vote in given_votes) < len(given_votes)


@given(votes, st.integers(0, 29), st.integers(0, 200_000))
def test_who_votes_slower_never_makes_it_faster(given_votes: list[int | None], which: int, more: int) -> None:
    one = given_votes[which] if which < len(given_votes) else None
    if one is not None:
        slower = [*given_votes[:which], one + more, *given_votes[which + 1 :]]
        assert tempo(slower) >= tempo(given_votes)


def test_a_host_that_never_had_a_beat_may_have_one_now() -> None:
    assert next_beat([], 600, NOW) <= NOW
    assert next_beat([None, None], 600, NOW) <= NOW


@given(beats, spacings)
def test_beats_are_never_closer_than_their_spacing(lasts: list[int | None], beat_s: int) -> None:
    past = [at for at in lasts if at is not None and at <= NOW]
    if past and next_beat(past, beat_s, NOW) <= NOW:
        assert NOW - max(past) >= beat_s * 1000


@given(beats, spacings)
def test_a_clock_set_back_makes_nobody_wait_longer_than_twice_the_spacing(lasts: list[int | None], beat_s: int) -> None:
    assert next_beat(lasts, beat_s, NOW) <= NOW + 2 * beat_s * 1000


@given(st.integers(0, 10**9), spacings)
def test_after_a_long_sleep_there_is_one_beat_and_not_many(slept_ms: int, beat_s: int) -> None:
    last = NOW - slept_ms
    due = next_beat([last], beat_s, NOW)
    assert due == last + beat_s * 1000
    if due <= NOW:  # it is had now, and the next is a whole spacing away
        assert next_beat([last, NOW], beat_s, NOW) == NOW + beat_s * 1000
