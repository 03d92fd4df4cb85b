"""A whole population over a simulated clock, by the real rules (probes/swarm.py; design §9, §10)."""

import datetime as dt
import random
import zoneinfo
from dataclasses import replace
from typing import Any

import pytest

from mind_body.control.effective import Dial, Released
from mind_body.control.govern import House
from mind_body.heartbeat.house import chance_of
from mind_body.heartbeat.pick import most_beats
from mind_body.model.lease_lines import Granted
from mind_body.settings import HostConfig
from probes.swarm import simulate
from probes.swarming.minds import SimMind
from probes.swarming.population import DAY, Plan
from probes.swarming.tally import LAWS
from probes.swarming.world import Room, Weather, World
from tests.builders import NOW, make_config

BERLIN = "Europe/Berlin"
HOUR = 3_600_000
DIALS = [Dial(heat, cooldown, 1.0) for heat in (0.05, 0.5, 2.0) for cooldown in (1.0, 100.0, 14_400.0, 604_800.0)]


def make_plan(**columns: Any) -> Plan:
    start = dt.datetime(2026, 10, 24, tzinfo=zoneinfo.ZoneInfo(BERLIN))  # the clock is set back the night after
    values: dict[str, Any] = {
        "minds": 200,
        "days": 2.0,
        "people": 300,
        "bots": 10,
        "seed": 1,
        "zone": BERLIN,
        "start": round(start.timestamp() * 1000),
    }
    return Plan(**(values | columns))


def add_mind(world: World, name: str, dial: Dial, **persona: Any) -> SimMind:
    config = make_config(persona={"beat": True, "home_room": "!home:x"} | persona)
    return world.add(SimMind(name, House(config, world.host, chance=chance_of(name)), Released(dial), 0, f"room:!home-{name}:x"))


@pytest.mark.parametrize("seed", [1, 2])
def test_in_a_population_no_law_is_broken(seed: int) -> None:
    found = simulate(make_plan(seed=seed))
    assert {law: found[law] for law in LAWS} == dict.fromkeys(LAWS, 0)
    assert found["fairness"] == 1
    assert found["minds"] == 200
    assert set(found["wakes"]) >= {"beat", "direct", "mention", "operator", "work"}
    assert found["skips"].keys() >= {"breath", "cadence", "paused", "quiet"}
    assert found["refused"].keys() >= {"spend", "limited"}, "caps were hit, and a plan's limit"
    assert found["loops_stopped"] > 10
    assert found["words"] > 400
    assert found["answered"] > 0.9 * found["words"]
    assert 5 < found["wait_s"]["p50"] < 20
    assert found["wait_s"]["p99"] < 60
    assert 0 < found["beats_per_day"] <= 288
    assert found["decision_us_median"] > 0


def test_the_same_seed_is_the_same_population() -> None:
    told = ("wakes", "wait_s", "words", "turns", "loops_stopped", "skips", "refused", "beats_per_day")
    once, again = (simulate(make_plan(minds=50, people=50, days=1.0)) for _ in range(2))
    assert [once[key] for key in told] == [again[key] for key in told]


def test_two_weeks_without_a_person_are_at_most_24_scheduled_wakes_each_and_nothing_else() -> None:
    world = World(HostConfig(time_zone=BERLIN), NOW, random.Random(1), Weather(votes=(60,)))
    minds = [add_mind(world, f"m{number}", dial) for number, dial in enumerate(DIALS)]
    world.run(NOW + 14 * DAY)
    assert set(world.tally.wakes) == {"beat"}
    for mind, dial in zip(minds, DIALS, strict=True):
        assert mind.silent <= 24, dial
        assert mind.silent >= min(14 * 86_400 // dial.cadence_s, 12) - 1, dial


def test_one_word_after_two_weeks_is_answered_as_soon_as_in_a_first_hour() -> None:
    waits: list[int] = []
    for silence in (HOUR, 14 * DAY):
        world = World(HostConfig(time_zone=BERLIN), NOW, random.Random(1), Weather(turn_s=(5.0, 0.0)))
        mind = add_mind(world, "ada", Dial(2.0, 1.0, 1.0))
        world.run(NOW + silence)
        world.run(world.now + (0 if mind.live is None else HOUR))
        before = mind.silent
        world.say(mind, Room("!d:x", "direct:!d:x"), "@bob:x", person=True)
        world.run(world.now + HOUR)
        assert before > 3
        assert mind.silent <= 6, "and scheduled wakes begin anew"
        waits += world.tally.waits_ms
    assert waits == [1_500 + 1_000 + 5_000] * 2


def test_beats_are_one_minds_each_and_nobody_starves_who_wants_it_a_hundred_times_less() -> None:
    """Seven want it as much as can be and she does not; people talk about something else, so that nobody's cadence grows."""
    world = World(HostConfig(), NOW, random.Random(1), Weather(votes=(60,), urgencies=(1000,), turn_s=(1.0, 0.0), cost=(0, 0)))
    her, *others = (add_mind(world, f"m{number}", Dial(2.0, 1.0, 1.0)) for number in range(8))
    room = Room("!a:x", "room:!a:x", (her, *others))

    def talk() -> None:
        her.urgency = 0
        world.overhear(room)
        world.at(world.now + 300_000, talk)

    for other in others:
        other.urgency = 1000
    world.at(NOW + 1, talk)
    world.run(NOW + 3 * DAY)
    assert set(world.tally.wakes) == {"beat"}
    assert world.tally.beats > 4000
    assert world.tally.together == world.tally.starved == world.tally.silence_passed == 0
    assert 4000 // most_beats(8) <= len(her.recent) <= 8


def test_a_starving_mind_would_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count sees what a rule that goes by urgency alone would do."""

    def by_urgency(contenders: Any, beat_ms: int, now: int) -> Any:
        return max(contenders, key=lambda one: (one.urgency, one.name), default=None)

    monkeypatch.setattr("probes.swarming.beats.pick", by_urgency)
    assert simulate(make_plan(minds=40, people=40, days=1.0))["starved"] > 0


def test_a_purse_that_is_not_asked_would_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probes.swarming.purse.decide_grant", lambda *_: Granted())
    monkeypatch.setattr("mind_body.control.govern._spent", lambda *_: [])
    assert simulate(make_plan(minds=40, people=80, days=1.0))["caps_passed"] > 0


def test_after_a_plans_reset_those_who_waited_are_answered_in_their_order_and_spread() -> None:
    reset = NOW + 3 * HOUR
    weather = Weather(turn_s=(5.0, 0.0), limits=((0, NOW, reset),), cost=(0, 0))
    world = World(HostConfig(), NOW, random.Random(1), weather)
    minds = [add_mind(world, f"m{number}", DIALS[0], beat=False) for number in range(50)]
    answered: list[tuple[int, str]] = []
    for number, mind in enumerate(minds):
        for place in ("a", "b"):
            room = Room(
                f"!{place}{number}:x",
                f"room:!{place}{number}:x",
                (mind,),
                lambda world, room, *_: answered.append((world.now, room.id)),
            )
            world.rooms[room.id] = room
            when = NOW + number * 1000 + (0 if place == "a" else 600_000)
            world.at(when, lambda mind=mind, room=room: world.say(mind, room, "@bob:x", person=True))  # type: ignore[misc]
    world.run(reset + HOUR)
    assert len(answered) == 100
    assert min(answered)[0] >= reset
    for number in range(50):
        first, second = (next(at for at, room in answered if room == f"!{place}{number}:x") for place in "ab")
        assert first < second
    begun = sorted({at for at, room in answered if room[1] == "a"})
    assert len(begun) == 50, "nobody at the same instant"
    assert begun[-1] - begun[0] <= 30_000
    assert world.tally.wakes["mention"] <= 50 * 3, "and nobody tried again and again before it"


def test_a_cap_of_a_day_opens_at_midnight_there_and_who_waited_is_answered() -> None:
    """The night in which clocks are set back: the day has 25 hours."""
    zone = zoneinfo.ZoneInfo(BERLIN)
    start, midnight = (round(dt.datetime(2026, 10, day, tzinfo=zone).timestamp() * 1000) for day in (25, 26))
    world = World(HostConfig(time_zone=BERLIN), start, random.Random(1), Weather(turn_s=(5.0, 0.0), cost=(20_000, 20_000)))
    config = make_config(spend={"day_usd": 0.05})
    mind = world.add(SimMind("ada", House(config, world.host), Released(DIALS[0]), 0, None))
    room = Room("!d:x", "direct:!d:x")
    for minute in (0, 10, 20, 30):
        world.at(start + minute * 60_000, lambda: world.say(mind, room, "@bob:x", person=True))
    world.run(midnight - 1)
    assert len(world.tally.waits_ms) == 2
    assert world.purse.refused == {"spend": 1}, "refused once, and not asked again and again"
    world.run(midnight + HOUR)
    assert world.tally.held_back == 2
    assert midnight - start == 25 * HOUR
    assert mind.spent_day == 20_000


def test_whoever_is_held_does_nothing_until_released() -> None:
    found = simulate(replace(make_plan(), minds=40, people=120, days=3.0))
    assert found["while_held"] == 0
    assert found["held_back"] > 0
