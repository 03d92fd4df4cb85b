"""Shapes: what a turn is chosen from, and what T3a and T3b write (design §3)."""

from dataclasses import dataclass
from typing import Any

from mind_body.mind.records import Heard, Room, TurnState

CLOSING = frozenset({TurnState.REPLIED, TurnState.UNREADABLE, TurnState.REFUSED})
"""Turns that close their rows; after any other the rows stay pending."""


FAULT = "fault: "
"""How the reason of a turn begins that came to nothing by a fault of the model's side."""


@dataclass(frozen=True, slots=True)
class Mail:
    """A pending row of mail, with what happened to it so far."""

    heard: Heard
    conversation: str
    lost: int = 0
    """Lost turns that it was part of."""
    killed_alone: bool = False
    """The newest of those had no other mail: then it is this one that kills."""
    faults: int = 0
    """Turns that it was part of and that came to nothing by a fault of the model's side."""
    proven: bool = False
    """Between the first and the newest of those the model answered others: then it is not the model alone."""
    faulted_alone: bool = False
    """The newest of those had no other mail."""


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn about to be opened."""

    id: str
    run_id: str
    session_id: str
    number: int
    conversation: str
    input: str
    mail: tuple[int, ...] = ()
    context: tuple[int, ...] = ()
    rooms: tuple[tuple[str, str], ...] = ()
    """Room id and the name under which this turn introduces it."""
    runs: tuple[tuple[str, str], ...] = ()
    """Run id and what this turn tells of it: `started` or `ended`."""


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """What came of a turn."""

    state: TurnState
    why: str | None = None
    sent: tuple[dict[str, Any], ...] = ()
    """`{"at": call, "text": …}` for every call after the first."""
    received: tuple[dict[str, Any], ...] = ()
    """`{"at": call, "text": …, "blocks": […]}` for every call that was answered."""
    cost_micro_usd: int = 0
    uncached_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0
    output_tokens: int = 0
    model_ms: int = 0


@dataclass(frozen=True, slots=True)
class SessionUse:
    """The session's figures after a turn in which a call was answered."""

    cursor: str | None
    prefix_tokens: int
    window_tokens: int
    ceiling_tokens: int


@dataclass(frozen=True, slots=True)
class Relation:
    """What an event that a message answers, or whose thread it is in, is to her."""

    seq: int | None
    """Its heard row; None for one of her own."""
    room_id: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One message of an earlier session: theirs or her own."""

    room: Room
    at: int
    heard: Heard | None
    said: str
    """Her own text; empty where `heard` is set."""
