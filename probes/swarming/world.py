"""Loop: a simulated host: a clock, a heap of what is due, and the real rules at every step.

1. T1: what a bot writes where her turns are spent is not mail; a person's word begins the count anew (control/loops.py).
2. A look: what waits is sifted, and it is decided whether she is woken (heartbeat/wake.py, which asks control/govern.py). Each is
   timed. A scheduled wake waits for a beat of the host (beats.py).
3. A turn: what the loop budget turns away stays out, the lease is asked before the call (lease/grant.py), and what it came to may
   pause her (model/pausing.py).
4. Work that a turn began is done beside it (bench.py).

What a person would see, and what the laws forbid, is counted beside the rules and without them (tally.py).
"""

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter_ns
from typing import TypeAlias

from mind_body.clock import next_day
from mind_body.control.effective import Held
from mind_body.control.govern import window_of
from mind_body.control.loops import Budget, is_spent, judge_mail, name_stretch
from mind_body.heartbeat.wake import Open, Rest, Wait, decide_wake
from mind_body.lease.grant import Caps, make_stop
from mind_body.mind.records import Run, RunKind
from mind_body.mind.wake_facts import WaitingMail, Window
from mind_body.model.lease_lines import Refused
from mind_body.model.pausing import PASSING, plan_pause
from mind_body.model.session import Failed, Limited, Outcome, Reply
from mind_body.settings import HostConfig
from probes.swarming.beats import Beats
from probes.swarming.bench import Bench
from probes.swarming.minds import Box, Key, SimMind
from probes.swarming.purse import Purse, Reservation
from probes.swarming.tally import Tally

HELD_BACK = ("held", "paused", "spend", "quiet")
"""What people are told of, or find their Mind kept from: no wait of the machinery's."""
CEILING = 20_000
"""Micro-USD that a turn reserves."""


@dataclass(slots=True, eq=False)
class Room:
    """Where people, Minds and bots talk. Whoever is answered there and always answers says so by `echo`."""

    id: str
    conversation: str
    members: Sequence[SimMind] = ()
    """Minds that hear what is said here, also where it is said to another."""
    echo: Callable[["World", "Room", SimMind, str], None] | None = None


@dataclass(frozen=True, slots=True)
class Weather:
    """What the calls of a turn come to, and how long they take."""

    turn_s: tuple[float, float] = (3.0, 6.0)
    """At least, and beyond it on average."""
    start_s: float = 1.0
    """Until a run is adopted."""
    cost: tuple[int, int] = (1_000, CEILING)
    """Micro-USD."""
    faults: float = 0.0
    """How often a call meets an overloaded provider."""
    limits: tuple[tuple[int, int, int], ...] = ()
    """Credential, and from when to when its plan's limit is reached."""
    work: float = 0.0
    """How often an answer starts work."""
    generous: float = 0.0
    """How often an operator allows a day's cap once more."""
    urgencies: tuple[int, ...] = (0, 0, 100, 300, 500, 1000)
    votes: tuple[int, ...] = (300, 600, 600, 900, 1800)


Step: TypeAlias = Callable[[], None]


@dataclass(slots=True, eq=False)
class World:
    host: HostConfig
    start: int
    chance: random.Random
    weather: Weather = Weather()
    now: int = 0
    tally: Tally = field(default_factory=Tally)
    minds: dict[str, SimMind] = field(default_factory=dict)
    rooms: dict[str, Room] = field(default_factory=dict)
    extensions: dict[tuple[str, str], int] = field(default_factory=dict)
    purse: Purse = field(init=False)
    beats: Beats = field(init=False)
    bench: Bench = field(init=False)
    _heap: list[tuple[int, int, Step]] = field(default_factory=list)
    _serial: "count[int]" = field(default_factory=count)
    _window: Window = field(init=False)
    _window_ends: int = 0
    _caps: dict[tuple[int, int], Caps] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.now = self.start
        self.purse = Purse(self.host)
        self.beats = Beats(self)
        self.bench = Bench(self)
        self._window = window_of(self.host, self.start)

    # The clock.

    def at(self, when: int, step: Step) -> None:
        heapq.heappush(self._heap, (when, next(self._serial), step))

    def run(self, until: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, step = heapq.heappop(heap)
            step()
        self.now = until

    def window(self) -> Window:
        if self.now >= self._window_ends:
            self._window, self._window_ends = window_of(self.host, self.now), next_day(self.now, self.host.time_zone)
        return self._window

    # Who there is.

    def add(self, mind: SimMind, *, heard: bool = True) -> SimMind:
        """`heard`: somebody has invited her, so that she may have scheduled wakes."""
        self.minds[mind.name] = mind
        if heard:
            mind.last_act = self.now
        self.at(self.now, lambda: self.look(mind))
        return mind

    # Words.

    def say(self, mind: SimMind, room: Room, sender: str, *, person: bool, thread: str = "") -> None:
        """T1: somebody says something to her."""
        now = self.now
        mind.roll(self.window())
        if mind.last_act is None:
            mind.last_act = now
        if person:
            self.tally.words += 1
            mind.note_spoken(room.id, thread, next(self._serial))
            self.overhear(room, thread, apart_from=mind)
        elif is_spent(mind.place(room.id, thread), mind.house.config):
            self._note_stopped(mind, room.id, thread)
            return
        key = Key(room.id, thread, sender, person)
        mail = WaitingMail(room.conversation, room.id, thread, sender, person, 1, now, now, "$e")
        mind.put(key, Box(mail, [now] if person else []))
        self.look(mind)

    def overhear(self, room: Room, thread: str = "", *, apart_from: SimMind | None = None) -> None:
        """A person's word begins the count anew for everybody who hears it, though it is said to none of them."""
        for other in room.members:
            if other is not apart_from:
                other.note_spoken(room.id, thread, next(self._serial))
                self.look(other)

    def _note_stopped(self, mind: SimMind, room: str, thread: str) -> None:
        self.tally.stopped.add((mind.name, room, *map(str, name_stretch(mind.place(room, thread), mind.house.config))))

    # Wakes.

    def look(self, mind: SimMind) -> None:
        now = self.now
        mind.roll(self.window())
        budget = mind.budget()
        began = perf_counter_ns()
        sifted = mind.sift(budget)
        sifting = perf_counter_ns() - began
        facts = mind.facts(sifted)
        began = perf_counter_ns()
        decision = decide_wake(facts, mind.control, mind.house, now)
        self.tally.deciding_ns.append(perf_counter_ns() - began + sifting)
        for away in sifted.turned_away:
            if away.kind == "loop":
                self._note_stopped(mind, away.mail.room_id, away.mail.thread)
        if any(away.kind == "ceiling" for away in sifted.turned_away):
            self._look_at(mind, self._window_ends)
        if isinstance(decision, Open) and decision.cause == "beat":
            self.beats.offer(mind)
            return
        self.beats.withdraw(mind)
        match decision:
            case Open():
                self.open(mind, decision)
            case Wait():
                self._note_skip(mind, decision)
                self._look_at(mind, decision.until)
            case Rest():
                if isinstance(mind.control, Held):
                    mind.held_back_at = now

    def _note_skip(self, mind: SimMind, wait: Wait) -> None:
        assert wait.skip is not None
        self.tally.skips[wait.skip.kind] += 1
        if wait.skip.kind in HELD_BACK:
            mind.held_back_at = self.now

    def _look_at(self, mind: SimMind, when: int) -> None:
        """One look is due at most; a look that was asked for earlier finds what is to be asked for next."""
        if mind.due <= self.now or when < mind.due:
            mind.due = when
            self.at(when, lambda: self._due(mind, when))

    def _due(self, mind: SimMind, when: int) -> None:
        if mind.due == when and mind.live is None:
            self.look(mind)

    def open(self, mind: SimMind, decision: Open) -> None:
        """T2."""
        now, tally = self.now, self.tally
        tally.wakes[decision.cause] += 1
        tally.while_held += isinstance(mind.control, Held)
        number = str(next(self._serial))
        kind = RunKind.PERSONA_TURN
        mind.turns = mind.cost = 0
        mind.live = Run(
            number, kind, decision.conversations, decision.cause, decision.reason, now, None, None, None, None, None, 0, 0
        )
        self.at(now + round(self.weather.start_s * 1000), lambda: self._begin_turn(mind))

    # Turns.

    def _begin_turn(self, mind: SimMind) -> None:
        run, now = mind.live, self.now
        assert run is not None
        if isinstance(mind.control, Held):
            self._end_run(mind, "held")
            return
        mind.roll(self.window())
        budget = mind.budget()
        keys = self._next_batch(mind, run, budget)
        if not keys and not (mind.turns == 0 and run.cause in {"beat", "self_run"}):
            self._end_run(mind, "done")
            return
        told, mind.awaited = mind.awaited, tuple(one for one in mind.awaited if one not in run.conversations)
        batch = {key: mind.boxes.pop(key) for key in keys}
        mind.under_way = sum(len(box.spoken) for box in batch.values())
        for key in keys:
            place = budget.places.get((key.room, key.thread))
            self.tally.loops_passed += (
                not key.person and place is not None and place.turns_here >= mind.house.config.persona.loop_turns
            )
        mind.count_turn(keys, 1)
        mind.turns += 1
        least, mean = self.weather.turn_s
        reserved = self.purse.reserve(
            mind.name, mind.credential, CEILING, mind.control, self.caps_of(mind), self._window, now, run=mind.cost
        )
        outcome = self._outcome(mind, reserved)
        took = 0.0 if isinstance(reserved, Refused) else least + (self.chance.expovariate(1 / mean) if mean else 0.0)
        self.at(now + round(took * 1000), lambda: self._end_turn(mind, batch, told, reserved, outcome))

    def _next_batch(self, mind: SimMind, run: Run, budget: Budget) -> tuple[Key, ...]:
        """Of the granted conversations the one whose oldest mail is oldest; all of its mail that is not turned away."""
        may = [(box.mail, key) for key, box in mind.boxes.items() if box.mail.conversation in run.conversations]
        may = [(mail, key) for mail, key in may if judge_mail(mail, budget) is None]
        if not may:
            return ()
        first = min(may, key=lambda one: one[0].oldest_at)[0].conversation
        return tuple(key for mail, key in may if mail.conversation == first)

    def caps_of(self, mind: SimMind) -> Caps:
        which = (id(mind.house.config), mind.extensions_day)
        if which not in self._caps:
            spend = mind.house.config.spend
            self._caps[which] = Caps(spend, self.host.spend, self.host.time_zone, extensions_day=mind.extensions_day)
        return self._caps[which]

    def _outcome(self, mind: SimMind, reserved: Reservation | Refused) -> Outcome:
        if isinstance(reserved, Refused):
            until = reserved.until if reserved.until is not None else self.now + 3_600_000
            if reserved.kind in {"limited", "overloaded"}:
                return Limited(until, reserved.reason)
            return Failed("spend" if reserved.kind == "spend" else "budget", until, reserved.reason)
        for credential, since, until in self.weather.limits:
            if credential == mind.credential and since <= self.now < until:
                return Limited(until, "the plan's limit")
        if self.weather.faults and self.chance.random() < self.weather.faults:
            return Failed("overloaded", self.now + 2_000, "HTTP 529")
        return Reply("{}")

    def _end_turn(
        self, mind: SimMind, batch: dict[Key, Box], told: tuple[str, ...], reserved: Reservation | Refused, outcome: Outcome
    ) -> None:
        run, now = mind.live, self.now
        assert run is not None
        mind.roll(self.window())
        answered = isinstance(outcome, Reply)
        if isinstance(reserved, Reservation):
            cost = self.chance.randint(*self.weather.cost) if answered else 0
            self.purse.settle(reserved, cost)
            mind.spent_day, mind.spent_month = mind.spent_day + cost, mind.spent_month + cost
            mind.cost += cost
            if isinstance(outcome, Limited):
                self.purse.stops[mind.credential] = make_stop("limited", outcome.until, outcome.reason, now, now)
        mind.under_way = 0
        if not answered:
            self._fail(mind, batch, told, outcome)
            return
        self.tally.turns += 1
        for cause in PASSING:
            mind.pauses.pop(cause, None)
        self._count_answers(mind, batch)
        self._feel(mind, run)
        for room, thread in dict.fromkeys((key.room, key.thread) for key in batch):
            self._answer(mind, room, thread)
        if batch and self.weather.work and self.chance.random() < self.weather.work:
            self.bench.open(mind, next(iter(batch.values())).mail.conversation)
        if mind.turns < mind.house.config.persona.max_turns:
            self._begin_turn(mind)
        else:
            self._end_run(mind, "done")

    def _fail(self, mind: SimMind, batch: dict[Key, Box], told: tuple[str, ...], outcome: Outcome) -> None:
        """Nobody was answered: everything waits on, and what it came to may pause her."""
        mind.count_turn(tuple(batch), -1)
        mind.awaited = told
        for key, box in batch.items():
            mind.put(key, box)
        pause = plan_pause(outcome, tuple(mind.pauses.values()), self.now)
        if pause is not None:
            mind.pauses[pause.cause] = pause
            if pause.cause == "spend":
                self._ask_operators(mind)
        self._end_run(mind, "limited" if isinstance(outcome, Limited) else "failed")

    def _ask_operators(self, mind: SimMind) -> None:
        """Her cap once more for this day: some say yes within the hour."""
        if self.chance.random() >= self.weather.generous:
            return
        day = mind.day

        def reopen() -> None:
            mind.roll(self.window())
            if mind.day == day and mind.pauses.pop("spend", None) is not None:
                mind.extensions_day += 1
                self.extensions[mind.name, day] = mind.extensions_day
                self.look(mind)

        self.at(self.now + self.chance.randrange(3_600_000), reopen)

    def _count_answers(self, mind: SimMind, batch: dict[Key, Box]) -> None:
        for box in batch.values():
            for spoken in box.spoken:
                if spoken <= mind.held_back_at:
                    self.tally.held_back += 1
                else:
                    self.tally.waits_ms.append(self.now - spoken)

    def _feel(self, mind: SimMind, run: Run) -> None:
        """Her reply's urgency and tempo, of a Mind that has scheduled wakes."""
        if mind.home is None:
            return
        mind.urgency = self.chance.choice(self.weather.urgencies)
        if run.cause == "beat":
            self.beats.vote(mind, self.chance.choice((None, *self.weather.votes)))

    def _answer(self, mind: SimMind, room_id: str, thread: str) -> None:
        room = self.rooms.get(room_id)
        if room is not None and room.echo is not None:
            room.echo(self, room, mind, thread)

    def _end_run(self, mind: SimMind, outcome: str) -> None:
        mind.end(outcome, self.now)
        self.look(mind)
