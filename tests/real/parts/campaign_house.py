"""Loop: the crash campaign for a house of three: who is woken, when, and at whose cost. Its heartbeat or its lease dies most.

1. ada talks and works, bea's plan has limits and her purse may be empty, cal has no direct conversation with her operator.
   All three have one home room, where each speaks unprompted. Their models cost money (`campaign_bills`).
2. Every round is a day later than the one before. So a scheduled wake is due in it: one of them is left alone, and it must come,
   and it must be one. Beside it there is talk, and in turn a limit, work, and a purse that is empty until an operator answers.
3. In the end: what the other campaigns read back in the rooms, `campaign_wakes`, and the bills against the ledger.
"""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from mind_body.clock import now_ms
from mind_body.crash import POINTS
from tests.real.parts.campaign import LEASING, WAKING, Room
from tests.real.parts.campaign_bills import MODEL, Models, judge_books
from tests.real.parts.campaign_operator import Operator
from tests.real.parts.campaign_wakes import count_beats, judge_wakes
from tests.real.parts.campaign_work import WorkCampaign, WorkFindings
from tests.real.parts.chat_api import ChatApi
from tests.real.parts.messages_api import MessagesApi
from tests.real.parts.person import SAID_KEY
from tests.real.parts.scene import Scene, Table, wait_until
from tests.real.parts.synapse import Homeserver

Plot: TypeAlias = Literal["talk", "limit", "work", "purse", "room"]
PLOTS: tuple[Plot, ...] = ("limit", "work", "purse", "talk")
NEEDS: dict[str, Plot] = {
    "heartbeat.before-claim": "work",
    "heartbeat.claimed": "work",
    "heartbeat.asked": "purse",
    "ear.question-room": "room",
}
WHOSE: dict[Plot, str] = {"limit": "bea", "work": "ada", "purse": "bea", "room": "cal"}
"""Who is busy, and not left alone."""
ORGANS = {
    "heartbeat": ("heartbeat", "heartbeat", "heartbeat", "up", "persona", "self", "lease", "mouth"),
    "lease": ("lease", "lease", "lease", "up", "persona", "persona", "self", "heartbeat"),
}

DEADLY = ("up", "persona", "self")
"""Whoever answers or works dies with these."""


@dataclass
class HouseFindings(WorkFindings):
    """The same, and what is said of wakes and of money."""

    run_twice: int = 0
    wake_lost: int = 0
    ledger_difference: int = 0
    """Micro-USD."""
    beats: int = 0
    days: int = 0
    limits: int = 0
    questions: int = 0
    billed: int = 0
    committed: int = 0
    unsettled: int = 0

    def must_be_zero(self) -> tuple[int, ...]:
        return (*super().must_be_zero(), self.run_twice, self.wake_lost, self.ledger_difference)


@dataclass
class Day:
    """One round."""

    plot: Plot
    alone: str
    """Who hears nothing addressed to her."""
    since: int
    work: str | None = None
    questions: int = 0
    """That operators had been asked before."""


class HouseCampaign(WorkCampaign):
    """Three Minds in one house."""

    found: HouseFindings

    def __init__(
        self,
        homeserver: Homeserver,
        api: ChatApi,
        works: MessagesApi,
        models: Models,
        directory: Path,
        organ: Literal["heartbeat", "lease"],
        seed: int = 1,
        *,
        scene: Callable[..., Scene] = Scene,
    ) -> None:
        persona: Table = {"beat": True}
        model: Table = {"model": MODEL, "max_output_tokens": 1024}
        super().__init__(homeserver, api, works, directory, seed, {"persona": persona, "model": model}, scene=scene)
        people: Table = {"operators": [self.bob.user_id]}
        self.scene.put_key("bea", "sk-of-bea")
        self.add_mind("bea", {"persona": persona, "people": people, "model": {**model, "credential": "api-key"}})
        self.add_mind("cal", {"persona": persona, "people": people, "model": model})
        self.operator = Operator(self.scene, self.bob, self.minds)
        self.points = WAKING if organ == "heartbeat" else LEASING
        self.counted = (*LEASING, "heartbeat.before-T2", "heartbeat.T2")
        self.organs = ORGANS[organ]
        self.found = HouseFindings()
        self.models = models
        self.home = ""
        self._plots = itertools.cycle(PLOTS)

    def prepare(self) -> None:
        """Everybody is where they should be, and has acted once."""
        self.scene.up()
        self.room = self.bob.create_room(invite=(self.her,), direct=True)
        self.scene.wait_joined("ada", self.room)
        self._rooms = [
            Room(self.eve, self.eve.create_room(invite=(self.minds["ada"],)), "ada", mention=True),
            Room(self.bob, self.bob.create_room(invite=(self.minds["bea"],), direct=True), "bea", mention=False),
            Room(self.eve, self.eve.create_room(invite=(self.minds["cal"],)), "cal", mention=True),
        ]
        self.home = self.eve.create_room(invite=(*self.minds.values(), self.bob.user_id))
        self.bob.join(self.home)
        for room in self._rooms:
            self.scene.wait_joined(room.mind, room.room_id)
            self.scene.wait_joined(room.mind, self.home)
        self._end()
        for name in self.minds:
            self.scene.configure(name, {"persona": {"home_room": self.home}})
            (row,) = self.scene.rows(name, "SELECT number FROM room WHERE room_id = ?", self.home)
            self.models.home_room = {**self.models.home_room, name: f"r{row['number']}"}
        self.scene.up()
        for _ in self._rooms:
            self.ask()
        self._rest()
        self._end()

    def named_round(self, point: str) -> None:
        with self._day(NEEDS.get(point), self._arm(point)) as day:
            deadline = time.monotonic() + self.settle_s
            while not self.scene.died():
                assert time.monotonic() < deadline, f"{point} was not reached; see {self.scene.log}"
                self._ask_somebody(day)
                self.operator.answer_questions()
                time.sleep(self.random.uniform(0.1, 0.5))
            self._count(point)
            if self.found.kills < self.most:
                time.sleep(self.random.uniform(0.0, 1.5))
                self._kill_somebody(self.organs)
        if point == "ear.question-room":  # it is made once
            self.points = tuple(one for one in self.points if one != point)

    def random_round(self, kills: int) -> None:
        """At most two that end a half in the middle of the same message or work: what ends it three times is given up."""
        with self._day() as day:
            organs: Sequence[str] = self.organs
            deadly = 0
            for _ in range(kills):
                if self.random.random() < 0.5:
                    self._ask_somebody(day)
                time.sleep(self.random.uniform(0.0, 1.0))
                deadly += self._kill_somebody(organs) in DEADLY
                if deadly == 2:
                    organs = tuple(one for one in organs if one not in DEADLY)

    def homeserver_round(self, kills: int) -> None:
        """The same while the homeserver is away."""
        with self._day("talk"):
            self.homeserver.stop(hard=self.random.random() < 0.5)
            for _ in range(kills):
                time.sleep(self.random.uniform(0.0, 0.5))
                self._kill_somebody(("heartbeat", "lease"))
            self.homeserver.start()
            self.found.homeserver_restarts += 1

    def verdict(self) -> HouseFindings:
        found = self.found
        self._judge_talk()
        self._judge_work()
        self._judge_events()
        wakes = judge_wakes(
            self.scene, self.minds, (text for her in self.minds.values() for text in self.eve.texts(self.home, her))
        )
        books = judge_books(self.scene, self.minds, self.models.bills)
        found.run_twice += wakes.run_twice
        found.wake_lost += wakes.wake_lost
        found.ledger_difference, found.billed, found.committed = books.difference, books.billed, books.committed
        found.unsettled, found.limits = books.unsettled, self.models.limits
        found.questions = self.operator.count_questions()
        found.wrong += [*wakes.wrong, *books.wrong]
        found.model_calls = len(self.api.requests) + len(self.works.requests)
        return found

    @contextlib.contextmanager
    def _day(self, needed: Plot | None = None, armed: dict[str, str] | None = None) -> Iterator[Day]:
        """A round: up, something happens, rest, down."""
        plot = next(self._plots) if needed is None else needed
        alone = self.random.choice([name for name in self.minds if name != WHOSE.get(plot)])
        self.operator.let_a_day_pass()
        day = Day(plot, alone, now_ms(), questions=self.operator.count_questions())
        if plot in {"purse", "room"}:
            self.operator.empty_purse(WHOSE[plot])
        if plot == "limit":
            self.models.limited.add(WHOSE[plot])
        self.scene.up(**(armed or {}))
        self.bob.send(self.home, "good morning")
        if plot == "work":
            day.work = self.ask_work(self.random.choice(("work", "slow")))
        self._ask_somebody(day, WHOSE.get(plot))
        yield day
        self._finish(day)

    def _finish(self, day: Day) -> None:
        self._ask_somebody(day)
        self._wait("a scheduled wake", lambda: count_beats(self.scene, self.minds, day.since))
        self._wait("a limit to be met", lambda: not self.models.limited)
        if day.plot in {"purse", "room"}:
            self._wait("an operator to be asked", lambda: self.operator.count_questions() > day.questions)
        if day.work is not None:
            self._wait(f"{day.work} to be told", lambda: f"told {day.work}" in self.bob.texts(self.room, self.her))
        self._rest()
        self._end()
        self.found.wrong += self.operator.fill_purses()
        self._judge_beats(day)

    def _judge_beats(self, day: Day) -> None:
        beats = count_beats(self.scene, self.minds, day.since)
        self.found.days += 1
        self.found.beats += beats
        self.found.run_twice += max(beats - 1, 0)
        self.found.wake_lost += beats == 0
        if beats != 1:
            self.found.wrong.append(f"{beats} scheduled wakes on day {self.found.days} ({day.plot})")

    def _rest(self) -> None:
        for name in self.minds:
            self._wait(f"{name} to have heard and to be idle", lambda: self._is_idle(name))  # noqa: B023 - waited for at once

    def _is_idle(self, name: str) -> bool:
        asked = sum(len(self._asked.get(room.room_id, [])) for room in self._rooms if room.mind == name)
        heard = "SELECT count(*) AS n FROM heard WHERE standing = 'mail' AND body LIKE 'q%'"
        left = """SELECT (SELECT count(*) FROM heard WHERE standing = 'mail' AND state = 'pending')
            + (SELECT count(*) FROM run WHERE ended_at IS NULL) + (SELECT count(*) FROM gap)
            + (SELECT count(*) FROM said WHERE state IN ('queued', 'attempted'))
            + (SELECT count(*) FROM question WHERE state = 'asked') AS n"""
        return bool(self.scene.rows(name, heard)[0]["n"] >= asked and self.scene.rows(name, left)[0]["n"] == 0)

    def _wait(self, what: str, check: Callable[[], Any]) -> None:
        """With an operator who answers meanwhile. What does not come is told in the verdict, instead of ending the campaign."""

        def look() -> Any:
            self.operator.answer_questions()
            return check()

        try:
            wait_until(what, look, self.settle_s)
        except AssertionError as error:
            self.found.wrong.append(f"after {self.found.kills} kills: {error}")

    def _kill_somebody(self, organs: Sequence[str]) -> str:
        """One that is there; which, or none."""
        running = " ".join(self.scene.organs().values())
        there = [one for one in organs if one == "up" or f"organ {one}" in running]
        organ = self.random.choice(there) if there else ""
        if organ:
            self._kill(organ)
        return organ

    def _ask_somebody(self, day: Day, whom: str | None = None) -> None:
        room = self.random.choice([one for one in self._rooms if one.mind != day.alone and whom in {None, one.mind}])
        self.ask_in(room, f"q{next(self._numbers):05d}")

    def _judge_events(self) -> None:
        """Whatever was sent was sent once, notices and questions too."""
        people = dict.fromkeys((self.room, self.home, *self.operator.list_rooms()), self.bob)
        for room_id, person in ({room.room_id: room.person for room in self._rooms} | people).items():
            sent = [event["content"].get(SAID_KEY) for event in person.messages(room_id) if event["sender"] in self.minds.values()]
            for said in {one for one in sent if one is not None and sent.count(one) > 1}:
                self.found.twice += 1
                self.found.wrong.append(f"twice {said} in {room_id}")

    def _rounds(self) -> Any:
        """Each point, then at random, then each point in another order, then with the homeserver."""
        for between in itertools.cycle(("random", "homeserver")):
            yield from self.random.sample(self.points, len(self.points))
            yield between


assert set(NEEDS) <= set(POINTS)
