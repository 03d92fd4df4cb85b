"""Who may speak unprompted on a beat: one Mind, and none starves (design §9)."""

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mind_body.heartbeat.pick import RATIO, Contender, most_beats, most_passes, pick, score, weigh

BEAT = 600_000
urgencies = st.integers(0, 1000)
contenders = st.lists(
    st.builds(Contender, st.text("abc", min_size=1, max_size=2), st.integers(0, 10**9), st.integers(-5, 1005)),
    max_size=12,
    unique_by=lambda one: one.name,
)


@given(contenders, st.integers(1, 10**9), st.integers(0, 2 * 10**9))
def test_one_mind_a_beat_and_nobody_scored_higher(some: list[Contender], beat_ms: int, now: int) -> None:
    picked = pick(some, beat_ms, now)
    if not some:
        assert picked is None
        return
    assert picked in some
    best = max(score(one, beat_ms, now) for one in some)
    assert score(picked, beat_ms, now) == best
    ties = [one for one in some if score(one, beat_ms, now) == best]
    assert picked.since == min(one.since for one in ties)


@given(contenders, st.integers(1, 10**9), st.integers(0, 2 * 10**9), st.randoms(use_true_random=False))
def test_every_process_picks_the_same_in_whatever_order_it_knows_them(
    some: list[Contender], beat_ms: int, now: int, chance: random.Random
) -> None:
    shuffled = some[:]
    chance.shuffle(shuffled)
    assert pick(shuffled, beat_ms, now) == pick(some, beat_ms, now)


@pytest.mark.parametrize(
    ("some", "name"),
    [
        ([("ada", 0, 0), ("bob", 1, 0)], "ada"),  # who waited longest
        ([("ada", 0, 0), ("bob", 0, 1)], "bob"),  # who wants it more
        ([("ada", 100, 1000), ("bob", 0, 0)], "ada"),  # a hundred times as much
        ([("ada", 991, 1000), ("bob", 0, 0)], "bob"),  # but not more than that
        ([("ada", 990, 1000), ("bob", 0, 0)], "bob"),  # a tie: who waited longest
        ([("bob", 0, 5), ("ada", 0, 5)], "ada"),  # a tie: the name
        ([("bob", 2000, 0), ("ada", 3000, 1000)], "bob"),  # a clock set back: nobody has waited
    ],
)
def test_waiting_and_wanting_weigh_as_designed(some: list[tuple[str, int, int]], name: str) -> None:
    picked = pick([Contender(*one) for one in some], 10, 1000)
    assert picked is not None
    assert picked.name == name


def test_wanting_weighs_from_one_to_a_hundred() -> None:
    assert [weigh(urgency) for urgency in (-1, 0, 500, 1000, 1001)] == [1, 1, 10, RATIO, RATIO]


@given(urgencies, urgencies, st.integers(1, 10**9), st.integers(1, 10**9), st.integers(1, 10**9), st.integers(1, 10**9))
def test_how_far_apart_beats_are_changes_nobodys_rank(a: int, b: int, since_a: int, since_b: int, beat: int, other: int) -> None:
    some = [Contender("a", since_a, a), Contender("b", since_b, b)]
    assert pick(some, beat, 10**10) == pick(some, other, 10**10)


# Nobody starves, whoever comes and goes, and whatever anybody wants. She is "her"; who plays against her chooses all else.


@dataclass(frozen=True)
class Move:
    """One beat of who plays against her."""

    wants: tuple[int, ...]
    """Urgencies, hers the first."""
    there: tuple[bool, ...]
    """Who may speak, hers the first."""
    gap_ms: int


Adversary = Callable[[], Iterator[Move]]


@dataclass
class Game:
    """She has just acted; then beat after beat."""

    passes: int = 0
    """How often she might have spoken and was passed over."""
    first_wait: int = 0
    """How long she had waited when she first was."""
    wait: int = 0
    """And when she last was, or was picked."""
    picked: bool = False


def play(minds: int, moves: Iterator[Move], most: int) -> Game:
    """Until she is picked, or has been passed over `most` times."""
    game, now = Game(), 0
    last = [0] * minds
    for move in moves:
        now += move.gap_ms
        some = [Contender(f"m{n}", last[n], move.wants[n]) for n in range(minds) if move.there[n]]
        picked = pick(some, BEAT, now)
        if picked is None:
            continue
        number = int(picked.name[1:])
        if move.there[0]:
            game.wait = now - last[0]
            game.first_wait = game.first_wait or game.wait
            if number == 0:
                game.picked = True
                return game
            game.passes += 1
            if game.passes >= most:
                return game
        last[number] = now
    return game


@st.composite
def rounds(draw: st.DrawFn, *, hers: bool, even: bool) -> tuple[int, list[Move]]:
    """How many Minds, and moves that are played round and round. `hers`: she may speak on every beat."""
    minds = draw(st.integers(2, 8))
    wants = st.tuples(*[st.sampled_from([0, 1, 500, 999, 1000]) | urgencies] * minds)
    there = st.tuples(st.just(True) if hers else st.booleans(), *[st.booleans()] * (minds - 1))
    gaps = st.just(BEAT) if even else st.sampled_from([60_000, BEAT, 86_400_000]) | st.integers(1, 86_400_000)
    return minds, draw(st.lists(st.builds(Move, wants, there, gaps), min_size=1, max_size=12))


def worst(minds: int) -> Iterator[Move]:
    """All others want it as much as can be, always; she does not."""
    return itertools.repeat(Move((0, *[1000] * (minds - 1)), (True,) * minds, BEAT))


@given(rounds(hers=True, even=True))
@example((8, [Move((0, *[1000] * 7), (True,) * 8, BEAT)]))
def test_on_even_beats_she_is_picked_within_the_bound(game: tuple[int, list[Move]]) -> None:
    minds, moves = game
    played = play(minds, itertools.cycle(moves), most_beats(minds) + 1)
    assert played.picked
    assert played.passes + 1 <= most_beats(minds)


@given(st.integers(2, 8), st.integers(0, 10**6))
def test_nor_does_one_who_changes_everything_on_every_beat_starve_her(minds: int, seed: int) -> None:
    chance = random.Random(seed)

    def moves() -> Iterator[Move]:
        while True:
            wants = (
                chance.choice([0, 0, chance.randint(0, 1000)]),
                *(chance.choice([1000, chance.randint(0, 1000)]) for _ in range(minds - 1)),
            )
            yield Move(wants, (True, *(chance.random() < 0.9 for _ in range(minds - 1))), BEAT)

    assert play(minds, moves(), most_beats(minds) + 1).picked


@pytest.mark.parametrize("minds", range(2, 9))
def test_the_bound_is_no_larger_than_it_must_be(minds: int) -> None:
    """Who wants it a hundred times as much goes before her for a hundred beats each: one in a hundred of the bound is slack."""
    played = play(minds, worst(minds), most_beats(minds) + 1)
    assert RATIO * (minds - 1) <= played.passes + 1 <= most_beats(minds)


@given(rounds(hers=False, even=False))
def test_where_her_chances_come_and_go_she_is_passed_over_no_more_often_than_her_wait_allows(game: tuple[int, list[Move]]) -> None:
    """Any beats at all: each of the others goes before her once, and again only when her wait has grown by a hundredth."""
    minds, moves = game
    if not any(move.there[0] for move in moves):
        return
    played = play(minds, itertools.islice(itertools.cycle(moves), 3000), 10**9)
    assert played.passes <= most_passes(minds, played.first_wait, played.wait)


def test_chances_that_grow_ever_rarer_are_why_beats_alone_bound_nothing() -> None:
    """Her chances come just as her wait has grown by a hundredth and a little more: the other then has waited long enough."""

    def moves() -> Iterator[Move]:
        wait = gap = BEAT
        while True:
            yield Move((0, 1000), (True, True), gap)
            gap = wait // (RATIO - 1) + 1000
            wait += gap

    played = play(2, moves(), 5 * most_beats(2))
    assert not played.picked
    assert played.passes == 5 * most_beats(2) <= most_passes(2, played.first_wait, played.wait)


@given(st.integers(1, 50), st.integers(1, 10**9), st.integers(1, 10**9))
def test_who_is_alone_is_passed_over_by_nobody(contending: int, first: int, wait: int) -> None:
    assert most_beats(1) == 1
    assert most_passes(1, first, wait) == 0
    assert most_passes(contending, first, first) == contending - 1


def test_ten_thousand_are_picked_from_in_one_pass() -> None:
    asked = 0

    def many() -> Iterator[Contender]:
        nonlocal asked
        for number in range(10_000):
            asked += 1
            yield Contender(f"m{number}", number, 0)

    picked = pick(many(), BEAT, 10**6)
    assert picked is not None
    assert (picked.name, asked) == ("m0", 10_000)
