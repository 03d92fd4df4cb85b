"""Shapes: who there is on a simulated host, drawn from a seed: Minds of many settings, people with days and nights, bots, and rings
of Minds that always answer each other with a mention.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mind_body.clock import offset_ms
from mind_body.control.effective import Dial, Held, Released
from mind_body.control.govern import House
from mind_body.heartbeat.house import chance_of
from mind_body.settings import HostConfig, HostSpendConfig, MindConfig
from probes.swarming.minds import SimMind
from probes.swarming.world import Room, Weather, World

DAY, HOUR = 86_400_000, 3_600_000
HOPS_MS = (0, 1_000, 20_000, 300_000)
"""How long a bot, or the way from one Mind to the next, takes."""
RINGS = (2, 3, 5)
QUIET: tuple[tuple[tuple[str, ...], str], ...] = (
    ((), "unprompted"),
    ((), "unprompted"),
    (("22:00-07:00",), "unprompted"),
    (("23:30-06:30", "13:00-14:00"), "everyone"),
)
HEATS = (0.05, 0.5, 1.0, 1.0, 2.0)
COOLDOWNS_S = (1.0, 600.0, 14_400.0, 14_400.0, 86_400.0)
CREDENTIALS = 20
WORDS_A_DAY, BUSY_DAY, BUSIER = 1.0, 3, 1.7
"""Of a person, on average; on one day so much more."""


@dataclass(frozen=True, slots=True)
class Plan:
    minds: int
    days: float
    people: int
    bots: int
    seed: int
    zone: str
    start: int
    """ms since the epoch."""


def make_world(plan: Plan) -> World:
    chance = random.Random(plan.seed)
    day_usd = 1 + 0.035 * plan.minds  # on the busy day it is not enough for the evening
    host = HostConfig(time_zone=plan.zone, spend=HostSpendConfig(day_usd=round(day_usd, 2), month_usd=round(20 * day_usd, 2)))
    limits = tuple(
        (credential, since, since + chance.randint(1, 5) * HOUR)
        for credential in range(CREDENTIALS)
        for since in [plan.start + round(chance.random() * plan.days * DAY)]
    )
    world = World(host, plan.start, chance, Weather(faults=0.002, limits=limits, work=0.01, generous=0.3))
    configs = [
        _make_config(quiet, for_whom, beat=beat, cap=cap)
        for quiet, for_whom in QUIET
        for beat in (True, False, False)
        for cap in (0.1, 10)
    ]
    minds = [_add_mind(world, number, chance.choice(configs)) for number in range(plan.minds)]
    rings = _add_rings(world, minds)
    _add_people(world, plan, minds, rings)
    _add_bots(world, plan, minds)
    _add_holds(world, plan, minds)
    return world


def _make_config(quiet: tuple[str, ...], quiet_for: str, *, beat: bool, cap: float) -> MindConfig:
    persona = {"beat": beat, "home_room": "!home:sim", "quiet_hours": quiet, "quiet_for": quiet_for, "counterpart_turns": 20}
    return MindConfig.model_validate(
        {
            "matrix": {"homeserver": "http://127.0.0.1:1", "user": "@her:sim"},
            "people": {"operators": ("@op*:sim",), "bots": ("@bot*:sim",)},
            "persona": persona,
            "self": {"enabled": cap > 1},
            "spend": {"day_usd": cap, "month_usd": 20 * cap},
        }
    )


def _add_mind(world: World, number: int, config: MindConfig) -> SimMind:
    name = f"m{number}"
    dial = Dial(world.chance.choice(HEATS), world.chance.choice(COOLDOWNS_S), 1.0)
    house = House(config, world.host, chance=chance_of(name))
    home = f"room:!home-{name}:sim" if config.persona.beat else None
    return world.add(SimMind(name, house, Released(dial), number % CREDENTIALS, home))


def make_ring(world: World, minds: Sequence[SimMind], room_id: str, hop_ms: int, *, threads: bool = False) -> Room:
    """A room in which each of these Minds answers whoever addressed her by mentioning the next one."""
    places = {mind.name: place for place, mind in enumerate(minds)}
    numbers = iter(range(1, 10**9))

    def echo(world: World, room: Room, mind: SimMind, thread: str) -> None:
        then = minds[(places[mind.name] + 1) % len(minds)]
        if then is not mind:
            where = f"$t{next(numbers)}" if threads else thread
            world.at(world.now + hop_ms, lambda: world.say(then, room, f"@{mind.name}:sim", person=False, thread=where))

    return _add_room(world, Room(room_id, f"room:{room_id}", minds, echo))


def _add_room(world: World, room: Room) -> Room:
    world.rooms[room.id] = room
    return room


def _add_rings(world: World, minds: Sequence[SimMind]) -> list[tuple[Room, list[SimMind]]]:
    """About a tenth of all Minds, and one of each size where there are enough."""
    found, begin, number = [], 0, 0
    while begin + RINGS[number % 3] <= max(len(minds) // 10, min(len(minds), sum(RINGS))):
        members = list(minds[begin : begin + RINGS[number % 3]])
        found.append((make_ring(world, members, f"!ring{number}:sim", HOPS_MS[number % 4], threads=number % 5 == 0), members))
        begin, number = begin + RINGS[number % 3], number + 1
    return found


def _add_people(world: World, plan: Plan, minds: Sequence[SimMind], rings: Sequence[tuple[Room, list[SimMind]]]) -> None:
    """Each has a Mind to talk to alone, one in twenty also a ring to talk into. One in twenty is an operator."""
    chance = world.chance
    for number in range(plan.people):
        mind = minds[number % len(minds)]
        who = f"@op{number}:sim" if number % 20 == 0 else f"@p{number}:sim"
        alone = _add_room(world, Room(f"!d{number}:sim", f"direct:!d{number}:sim"))
        places: list[tuple[Room, list[SimMind]]] = [(alone, [mind])] * 4
        if rings and number % 20 == 1:
            places.append(chance.choice(rings))

        def speak(who: str = who, places: list[tuple[Room, list[SimMind]]] = places) -> None:
            room, members = chance.choice(places)
            world.say(chance.choice(members), room, who, person=True)

        _keep(world, speak, DAY / WORDS_A_DAY, plan.zone)


def _add_bots(world: World, plan: Plan, minds: Sequence[SimMind]) -> None:
    """Each lives with a Mind and a person in a room, begins by itself, and always answers."""
    for number in range(plan.bots):
        mind, who, hop_ms = world.chance.choice(minds), f"@bot{number}:sim", HOPS_MS[1 + number % 3]

        def answer(world: World, room: Room, mind: SimMind, thread: str, who: str = who, hop_ms: int = hop_ms) -> None:
            world.at(world.now + hop_ms, lambda: world.say(mind, room, who, person=False, thread=thread))

        room = _add_room(world, Room(f"!b{number}:sim", f"room:!b{number}:sim", (mind,), answer))

        def begin(room: Room = room, mind: SimMind = mind, who: str = who) -> None:
            world.say(mind, room, who, person=False)

        def speak(room: Room = room, mind: SimMind = mind, number: int = number) -> None:
            world.say(mind, room, f"@q{number}:sim", person=True)

        _keep(world, begin, DAY / 2, None)
        _keep(world, speak, DAY, plan.zone)


def _add_holds(world: World, plan: Plan, minds: Sequence[SimMind]) -> None:
    """One Mind in twenty is held for some hours."""
    chance = world.chance
    for mind in minds[::20]:
        since = plan.start + round(chance.random() * plan.days * DAY)
        released = mind.control

        def turn(mind: SimMind, control: Held | Released) -> None:
            mind.control = control
            if mind.live is None:
                world.look(mind)

        world.at(since, lambda mind=mind: turn(mind, Held("held by the operator")))  # type: ignore[misc]
        world.at(since + 6 * HOUR, lambda mind=mind, released=released: turn(mind, released))  # type: ignore[misc]


def _keep(world: World, step: Callable[[], None], mean_ms: float, zone: str | None) -> None:
    """Again and again, at random; where there is a zone, people sleep from 23 to 7."""

    def again() -> None:
        step()
        _next()

    def _next() -> None:
        busier = BUSIER if zone is not None and (world.now - world.start) // DAY == BUSY_DAY else 1.0
        when = world.now + round(world.chance.expovariate(busier / mean_ms))
        if zone is not None:
            hour = (when + offset_ms(when, zone)) // HOUR % 24
            if hour < 7 or hour >= 23:
                when += 8 * HOUR
        world.at(when, again)

    _next()
