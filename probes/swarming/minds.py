"""Shapes: one Mind of a simulated population: what her mind would hold, in memory, with every count kept as it changes.

Facts are made of it as the doors make them of the record (mind/wakes.py, mind/places.py); what they come to is the rules' alone.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from mind_body.control.effective import Control
from mind_body.control.govern import House
from mind_body.control.loops import Budget, Sifted, sift_mail
from mind_body.heartbeat.pick import Contender
from mind_body.mind.records import Pause, Run
from mind_body.mind.wake_facts import Place, Standing, WaitingMail, WakeFacts, Window
from mind_body.mind.work_records import OpenWork

HISTORY = 16
"""Ended runs that are looked back on, as in mind/wakes.py."""
NOTHING = Sifted((), ())


class Key(NamedTuple):
    """Whose mail, and where."""

    room: str
    thread: str
    sender: str
    person: bool


@dataclass(slots=True)
class Box:
    """Mail that no turn has closed, of one account in one place."""

    mail: WaitingMail
    spoken: list[int]
    """When each of its messages came, where a person wrote them."""

    def join(self, other: "Box") -> None:
        a, b = self.mail, other.mail
        oldest, newest = min(a.oldest_at, b.oldest_at), max(a.newest_at, b.newest_at)
        count = a.count + b.count
        self.mail = WaitingMail(a.conversation, a.room_id, a.thread, a.sender, a.person, count, oldest, newest, a.oldest_event)
        self.spoken = sorted((*self.spoken, *other.spoken))


@dataclass(slots=True, eq=False)
class SimMind:
    name: str
    house: House
    control: Control
    credential: int
    home: str | None
    """The conversation of her home room; None where she has no scheduled wakes."""
    boxes: dict[Key, Box] = field(default_factory=dict)
    here: dict[tuple[str, str], int] = field(default_factory=dict)
    """Her turns by room and thread since a person spoke there."""
    whole: dict[str, int] = field(default_factory=dict)
    """Her turns by room since a person spoke anywhere in it."""
    spoke: dict[tuple[str, str], int] = field(default_factory=dict)
    spoke_room: dict[str, int] = field(default_factory=dict)
    today: dict[str, int] = field(default_factory=dict)
    day: str = ""
    month: str = ""
    spent_day: int = 0
    spent_month: int = 0
    extensions_day: int = 0
    live: Run | None = None
    """Her run as it was opened."""
    turns: int = 0
    """Of the live run, and its cost."""
    cost: int = 0
    under_way: int = 0
    """Words of people in the turn that she is taking."""
    recent: tuple[Run, ...] = ()
    pauses: dict[str, Pause] = field(default_factory=dict)
    silent: int = 0
    """Scheduled wakes since a person last spoke anywhere."""
    in_silence: list[int] = field(default_factory=list)
    """When they were."""
    last_act: int | None = None
    awaited: tuple[str, ...] = ()
    urgency: int = 0
    vote: int | None = None
    works: list[OpenWork] = field(default_factory=list)
    working: Run | None = None
    due: int = 0
    """The next look that was asked for; one that is heaped for another instant is stale."""
    contender: Contender | None = None
    passes: int = 0
    """How often she was passed over on a beat since she last acted."""
    first_wait: int = 0
    in_a_row: int = 0
    """On so many even beats in a row she might have spoken and was passed over."""
    held_back_at: int = -1
    """When she last was kept from answering who waited: those before it were told so, or will be."""

    def roll(self, window: Window) -> None:
        """A day or a month has begun."""
        if self.day != window.day:
            self.day, self.today, self.spent_day, self.extensions_day = window.day, {}, 0, 0
        if self.month != window.month:
            self.month, self.spent_month = window.month, 0

    def note_spoken(self, room: str, thread: str, seq: int) -> None:
        """A person spoke here."""
        self.here[room, thread] = self.whole[room] = 0
        self.spoke[room, thread] = self.spoke_room[room] = seq
        self.silent = 0
        self.in_silence.clear()

    def count_turn(self, keys: tuple[Key, ...], by: int) -> None:
        """A turn counts once in each place of its mail, and once for each account."""
        for place in {(key.room, key.thread) for key in keys}:
            self.here[place] = self.here.get(place, 0) + by
        for room in {key.room for key in keys}:
            self.whole[room] = self.whole.get(room, 0) + by
        for sender in {key.sender for key in keys}:
            self.today[sender] = self.today.get(sender, 0) + by

    def place(self, room: str, thread: str) -> Place:
        at = (room, thread)
        return Place(
            room, thread, self.here.get(at, 0), self.whole.get(room, 0), self.spoke.get(at, 0), self.spoke_room.get(room, 0)
        )

    def budget(self) -> Budget:
        places = {(key.room, key.thread): self.place(key.room, key.thread) for key in self.boxes}
        return Budget(places, self.today, self.house.config)

    def standing(self) -> Standing:
        return Standing(
            live=self.live,
            pauses=tuple(self.pauses.values()),
            recent=self.recent,
            spent_day=self.spent_day,
            spent_month=self.spent_month,
            extensions_day=self.extensions_day,
            silent_beats=self.silent,
            last_act_at=self.last_act,
        )

    def facts(self, sifted: Sifted) -> WakeFacts:
        return WakeFacts(sifted.pending, self.standing(), self.awaited, home=self.home, urgency=self.urgency, tempo_s=self.vote)

    def sift(self, budget: Budget) -> Sifted:
        return sift_mail([box.mail for box in self.boxes.values()], budget) if self.boxes else NOTHING

    def put(self, key: Key, box: Box) -> None:
        if key in self.boxes:
            self.boxes[key].join(box)
        else:
            self.boxes[key] = box

    def end(self, outcome: str, now: int) -> None:
        """Her run is over."""
        run = self.live
        assert run is not None
        about = (run.id, run.kind, run.conversations, run.cause, run.reason, run.opened_at)
        over = Run(*about, None, None, now, outcome, None, self.turns, self.cost)
        self.live, self.recent, self.last_act = None, (over, *self.recent[: HISTORY - 1]), now
        self.passes = self.first_wait = self.in_a_row = 0
