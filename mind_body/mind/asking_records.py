"""Shapes: what the operators are asked, what they run as campaigns, and how she feels about speaking (design §4)."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Answer: TypeAlias = Literal["reopen", "retire"]


@dataclass(frozen=True, slots=True)
class Question:
    """Something that only an operator can decide: asked → answered."""

    id: str
    """Made from its cause: the same thing is asked once."""
    kind: Literal["breaker", "purse"]
    about: str
    """`work:<follow-up>` or `campaign:<slug>` of the breaker; `day:<date>` or `month:<month>` of the purse."""
    text: str
    """What happened, for the operators; none of a room's words."""
    asked_at: int
    room_id: str | None
    """Where it was asked; None while there is no direct conversation with an operator."""
    said_id: str | None
    """The said row that asks it; its event can be answered and reacted to."""
    answer: Answer | None = None
    answered_by: str | None = None
    answered_at: int | None = None
    after_run: str | None = None
    """The newest run of the item when it was answered."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """Something that the operator has her work towards: open → closed."""

    slug: str
    text: str
    opened_by: str
    opened_at: int
    closed_at: int | None


@dataclass(frozen=True, slots=True)
class Pulse:
    """How much she wants to speak, and how often she would be asked; the newest counts."""

    turn_id: str
    urgency: int
    """0 to 1000."""
    tempo_s: int | None
    at: int
