"""Shapes: what a wake depends on, as the mind holds it."""

from dataclasses import dataclass, field

from mind_body.mind.records import Pause, Run

FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class WaitingMail:
    """Mail that no turn has closed: what one account wrote in one place."""

    conversation: str
    room_id: str
    thread: str
    """Event id of its root; empty for what is outside threads."""
    sender: str
    person: bool
    count: int
    oldest_at: int
    newest_at: int
    oldest_event: str
    """Event id; what a notice about it is told by."""
    newest_event: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A room, or a thread in it, as the loop budget counts it."""

    room_id: str
    thread: str
    turns_here: int
    """Her turns here since a person last spoke here."""
    turns_room: int
    """Her turns in all of the room since a person last spoke anywhere in it."""
    spoke_seq: int = 0
    """The heard row of that person's word here: names this stretch without one. 0 for never."""
    spoke_room_seq: int = 0
    """The same of the whole room."""


@dataclass(frozen=True, slots=True)
class PendingMail:
    """The mail of one conversation that may wake her."""

    conversation: str
    count: int
    oldest_at: int
    newest_at: int
    senders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """The operator's day and month, as they are now."""

    day: str
    """Like 2026-11-30."""
    day_start: int
    month: str
    month_start: int
    day_end: int = FOREVER
    """What bears a later instant was written by a clock that has been set back since: it is of no day that was."""
    month_end: int = FOREVER


@dataclass(frozen=True, slots=True)
class Standing:
    """What the governor asks of one half of a Mind."""

    live: Run | None = None
    pauses: tuple[Pause, ...] = ()
    """Of this half alone."""
    apart: tuple[tuple[str, Pause], ...] = ()
    """Those that hold up one conversation and no other, by that."""
    recent: tuple[Run, ...] = ()
    """Ended runs, newest first."""
    spent_day: int = 0
    """Micro-USD since the operator's day began, both halves, by the mind's own sums."""
    spent_month: int = 0
    extensions_day: int = 0
    """How often an operator has allowed the day's cap once more, for this day."""
    extensions_month: int = 0
    silent_beats: int = 0
    """Scheduled wakes since a person last spoke anywhere."""
    last_act_at: int | None = None
    """When her last run of this kind ended, else when she first heard anything; None where she has done and heard nothing."""


@dataclass(frozen=True, slots=True)
class WakeFacts:
    """Everything in the mind that a wake depends on."""

    pending: tuple[PendingMail, ...]
    """Oldest mail first; what is turned away is not among it."""
    standing: Standing = field(default_factory=Standing)
    awaited: tuple[str, ...] = ()
    """Conversations whose work is over, and that no turn has told of it."""
    home: str | None = None
    """The conversation of her home room, where she has joined it and may speak there."""
    urgency: int = 0
    """0 to 1000, by her newest pulse."""
    tempo_s: int | None = None
    """Her newest vote."""
    home_fault: str = ""
    """Why there is no home, where she has joined it."""
