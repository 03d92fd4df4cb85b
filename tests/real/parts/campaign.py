"""Loop: the crash campaign. Kill an organ, start again, and in the end read the rooms back through an independent account.

1. People send numbered questions; the scripted model answers each batch by repeating its numbers. So in every room the numbers in
   her answers must be the numbers asked, each once, in order.
2. A named round starts `mind up` armed for one crash point and sends until the process has died there. A random round kills organs
   (and `mind up` itself) with SIGKILL at random instants. In some of either the homeserver is down or restarted meanwhile.
3. After each round the household must come to rest by itself: everything heard, nothing pending, nothing unsent. Then it is ended,
   and no process may be left.
"""

import itertools
import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mind_body.crash import POINTS
from mind_body.matrix.filters import TIMELINE_LIMIT
from tests.real.parts.chat_api import ChatApi
from tests.real.parts.person import Person
from tests.real.parts.scene import Scene, Table, wait_until
from tests.real.parts.synapse import Homeserver

_NUMBER = re.compile(r"q(\d{5})")
SETTLE_S = 60.0
LEASING = tuple(name for name in POINTS if name.startswith("lease."))
ASKING = ("ear.question-room", "heartbeat.asked")
_WORKING = ("ear.steer", "heartbeat.before-claim", "heartbeat.claimed", *(name for name in POINTS if name.startswith("self.")))
TALK = tuple(sorted(POINTS.keys() - {*_WORKING, *ASKING}))
"""The boundaries of talking."""
AT_WORK = (*_WORKING, *LEASING)
"""Those of working (`campaign_work`)."""
WAKING = ("ear.question-room", *(name for name in POINTS if name.startswith("heartbeat.")))
"""Those of who is woken, and of what operators are asked (`campaign_house`)."""
RICH: Table = {"day_usd": 100_000.0, "month_usd": 1_000_000.0}
"""What died with a call that was made counts whole: the caps are not what a campaign is about, but where it says so."""


@dataclass
class Findings:
    """What the campaign saw."""

    kills: int = 0
    lost: int = 0
    twice: int = 0
    reordered: int = 0
    orphans: int = 0
    asked: int = 0
    model_calls: int = 0
    notices: int = 0
    homeserver_restarts: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """The numbers that were lost, twice or out of order, with their room."""

    def must_be_zero(self) -> tuple[int, ...]:
        return (self.lost, self.twice, self.reordered, self.orphans)

    def as_json(self) -> dict[str, Any]:
        return {**self.__dict__, "tried": dict(sorted(self.tried.items()))}


@dataclass(frozen=True)
class Room:
    """Where somebody asks a Mind."""

    person: Person
    room_id: str
    mind: str
    mention: bool


class Campaign:
    """One household, killed again and again."""

    points: tuple[str, ...] = TALK
    counted: tuple[str, ...] = LEASING
    """Reached several times in a round: any of these may be the one that is died at."""
    grace_s = 2.0

    def __init__(
        self,
        homeserver: Homeserver,
        api: ChatApi,
        directory: Path,
        seed: int = 1,
        tables: dict[str, Table] | None = None,
        *,
        scene: Callable[..., Scene] = Scene,
    ) -> None:
        self.random = random.Random(seed)
        self.homeserver = homeserver
        self.api = api
        self.found = Findings()
        self.most = 0
        """Kills that are asked for."""
        self.scene = scene(homeserver, directory, look_s=1.0, start_grace_s=self.grace_s, spend=RICH)
        self.settle_s = SETTLE_S * self.scene.patience
        self._numbers = itertools.count(1)
        self._asked: dict[str, list[str]] = {}
        self.bob, self.eve = self.scene.person("bob"), self.scene.person("eve")
        self.minds: dict[str, str] = {}
        """Name → user id."""
        self.her = self.add_mind("ada", tables or {})
        self._rooms: list[Room] = []

    def add_mind(self, name: str, tables: dict[str, Table]) -> str:
        """One more of the household, whom neither purse nor loop budget holds up."""
        persona = {"counterpart_turns": 100_000, **tables.get("persona", {})}
        everything: dict[str, Table] = {"spend": RICH, **tables, "persona": persona}
        self.minds[name] = self.scene.add_mind(name, base_url=self.api.base_url, tables=everything)
        return self.minds[name]

    def prepare(self) -> None:
        """She joins a DM, a closed room and a public one."""
        self.scene.up()
        direct = self.bob.create_room(invite=(self.her,), direct=True)
        closed = self.eve.create_room(invite=(self.her, self.bob.user_id))
        public = self.bob.create_room(public=True, invite=(self.her, self.eve.user_id))
        self._rooms = [
            Room(self.bob, direct, "ada", mention=False),
            Room(self.eve, closed, "ada", mention=True),
            Room(self.bob, public, "ada", mention=True),
        ]
        for room in self._rooms:
            self.scene.wait_joined("ada", room.room_id)
        self._end()

    def ask(self) -> None:
        """The next question, in the next room."""
        number = next(self._numbers)
        self.ask_in(self._rooms[number % len(self._rooms)], f"q{number:05d}")

    def ask_in(self, room: Room, text: str) -> None:
        if room.mention:
            room.person.say_to(room.room_id, self.minds[room.mind], text)
        else:
            room.person.send(room.room_id, text)
        self._asked.setdefault(room.room_id, []).append(text)

    def named_round(self, point: str) -> None:
        """Die at one crash point, once."""
        armed = self._arm(point)
        if point == "ear.gap-page":
            # More in one room than a sync brings: only then is there a gap to page back.
            for _ in range((TIMELINE_LIMIT + 5) * len(self._rooms)):
                self.ask()
        self.scene.up(**armed)
        end = time.monotonic() + 30 * self.scene.patience
        while not self.scene.died():
            self.ask()
            assert time.monotonic() < end, f"{point} was not reached; see {self.scene.log}"
            time.sleep(self.random.uniform(0.02, 0.3))
        self._count(point)
        self._finish_round()

    def random_round(self, kills: int) -> None:
        """Kill organs at random instants under one `mind up`, or that one too."""
        self.scene.up()
        for _ in range(kills):
            for _ in range(self.random.choice((1, 1, 2, 5))):
                self.ask()
            time.sleep(self.random.uniform(0.0, 0.6))
            self._kill(self.random.choice(self.scene.victims))
        self._finish_round()

    def homeserver_round(self, kills: int) -> None:
        """The same while the homeserver goes away, by SIGTERM or SIGKILL, and comes back."""
        self.scene.up()
        for _ in range(3):
            self.ask()
        time.sleep(self.random.uniform(0.0, 0.5))
        self.homeserver.stop(hard=self.random.random() < 0.5)
        for _ in range(kills):
            time.sleep(self.random.uniform(0.0, 0.5))
            self._kill(self.random.choice(("mouth", "persona", "heartbeat", "lease")))
        self.homeserver.start()
        self.found.homeserver_restarts += 1
        self.ask()
        self._finish_round()

    def run(self, kills: int) -> Findings:
        """So many kills in all, every crash point among them where there is room; then the verdict."""
        self.most = kills
        self.prepare()
        rounds = self._rounds()
        while self.found.kills < kills:
            left = kills - self.found.kills
            match next(rounds):
                case "random":
                    self.random_round(min(left, 6))
                case "homeserver":
                    self.homeserver_round(min(left, 2))
                case point:
                    self.named_round(point)
        return self.verdict()

    def verdict(self) -> Findings:
        """Read every room back through the account that asked there."""
        self._judge_talk()
        self.found.model_calls = len(self.api.requests)
        return self.found

    def _judge_talk(self) -> None:
        for one in self._rooms:
            person, room, her = one.person, one.room_id, self.minds[one.mind]
            asked = self._asked.get(room, [])
            answered = [f"q{n}" for text in person.texts(room, her) for n in _NUMBER.findall(text)]
            times = Counter(answered)
            first = list(dict.fromkeys(answered))
            lost = [q for q in asked if q not in times]
            twice = [q for q, count in times.items() if count > 1]
            reordered = [q for q, right in zip(first, [q for q in asked if q in times], strict=True) if q != right]
            self.found.lost += len(lost)
            self.found.twice += len(twice)
            self.found.reordered += len(reordered)
            self.found.asked += len(asked)
            self.found.wrong += [
                f"{kind} {q} in {room}" for kind, qs in (("lost", lost), ("twice", twice), ("reordered", reordered)) for q in qs
            ]
            self.found.notices += sum(m["content"]["msgtype"] == "m.notice" for m in person.messages(room, her))

    def _rounds(self) -> Any:
        for n in itertools.count():
            for at, point in enumerate(self.random.sample(self.points, len(self.points))):
                yield point
                if at % 4 == 3:
                    yield "homeserver" if (n + at // 4) % 2 else "random"

    def _arm(self, point: str) -> dict[str, str]:
        """Variables under which it is died there once."""
        nth = f"@{self.random.randint(1, 4)}" if point in self.counted else ""
        return self.scene.arm(point + nth)

    def _kill(self, organ: str) -> None:
        if organ == "up":
            self.scene.cut()
            self._count("random up")
            self._no_orphans()
            self.scene.up()
            return
        pids = [pid for pid, line in self.scene.organs().items() if f"organ {organ}" in line]
        if not pids:
            return  # a persona that is not there cannot be killed; the round goes on
        try:
            os.kill(self.random.choice(sorted(pids)), signal.SIGKILL)
        except ProcessLookupError:
            return
        self._count(f"random {organ}")

    def _count(self, what: str) -> None:
        self.found.kills += 1
        self.found.tried[what] += 1

    def _finish_round(self) -> None:
        self._rest()
        self._end()

    def _rest(self) -> None:
        heard = "SELECT count(*) AS n FROM heard WHERE standing = 'mail' AND body LIKE 'q%'"
        for mind in self.minds:
            asked = sum(len(self._asked.get(room.room_id, [])) for room in self._rooms if room.mind == mind)
            try:
                wait_until(
                    f"every question to be heard by {mind}",
                    lambda: self.scene.rows(mind, heard)[0]["n"] >= asked,  # noqa: B023 - asked in this round
                    self.settle_s,
                )
                self.scene.wait_idle(mind, self.settle_s)
            except AssertionError as error:
                # Told in the verdict (lost), with what the mind holds, instead of ending the campaign.
                self.found.wrong.append(f"after {self.found.kills} kills: {error}")

    def _end(self) -> None:
        self.scene.down()
        self._no_orphans()

    def _no_orphans(self) -> None:
        try:
            wait_until("organs to end", lambda: not self.scene.organs(), 5 * self.scene.patience)
        except AssertionError:
            left = self.scene.organs()
            self.found.orphans += len(left)
            for pid in left:
                os.kill(pid, signal.SIGKILL)
