"""Shapes: what one answer of /sync, or one page of history, changes in the mind (T1, design §3)."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from mind_body.mind.asking_records import Answer
from mind_body.mind.records import Standing
from mind_body.mind.work_records import Reaction

MISSED = "missed"
"""The kind of the one heard row that says what a gap left out."""


@dataclass(frozen=True, slots=True)
class ForSelf:
    """What is written in the thread of the live Self run: it belongs to that run alone."""

    run_id: str
    kind: Literal["steer", "stop"] | None
    """None where the sender may not steer."""
    event_id: str
    """Of the message itself, or of the edit."""
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class NewHeard:
    """A message that was heard, with the verdict on it."""

    event_id: str
    room_id: str
    sender: str
    sender_name: str
    kind: str
    body: str = field(repr=False)
    sent_at: int
    reply_to: str | None
    thread: str | None
    standing: Standing
    reason: str
    for_self: ForSelf | None = None
    person: bool = True
    """Whether a person wrote it."""
    history: bool = False
    """It is from before her time in the room: nobody has said it to her, so it begins no count anew."""


@dataclass(frozen=True, slots=True)
class EditedHeard:
    """The new text of a message, by its own sender. It takes effect while the row is pending; it never makes mail context."""

    target: str
    room_id: str
    sender: str
    body: str = field(repr=False)
    standing: Standing
    reason: str
    for_self: ForSelf | None = None
    person: bool = True
    """Whether a person edited it."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A message or a reaction was redacted."""

    target: str
    room_id: str


@dataclass(frozen=True, slots=True)
class NewReaction:
    """Somebody reacted to something; kept where that is a message of hers."""

    reaction: Reaction


@dataclass(frozen=True, slots=True)
class Answered:
    """An operator has answered a question, in words or by a reaction."""

    question_id: str
    answer: Answer
    by: str


HeardChange: TypeAlias = NewHeard | EditedHeard | Withdrawn | NewReaction | Answered


@dataclass(frozen=True, slots=True)
class Admitted:
    """What a change came to, for the journal. `seq` is None where nothing came of it."""

    change: HeardChange
    seq: int | None
    how: str
    """`mail`, `context`, `edited`, `withdrawn`, `known`, `unknown` (its target was never heard) or `closed` (she has read it);
    in the thread of a running Self `steer`, `stop` or `barred`; `reacted`; `answered`, and `known` where somebody was quicker."""


@dataclass(frozen=True, slots=True)
class KnownPeople:
    """What the mind knows about those who speak in some events."""

    names: dict[str, str]
    """User id → display name in the room."""
    hers: frozenset[str]
    """Those of the events answered or threaded on that are her own."""
