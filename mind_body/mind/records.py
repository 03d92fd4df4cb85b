"""Shapes: what a Mind remembers, one frozen record per kind (design §4).

1. Each kind has an identity, a life and one authority that writes it. A record is a row as it was read; it is never mutated.
2. Instants are milliseconds since the epoch, for display and for waiting. Order is `seq` (heard), `place` (said): row order.
3. A body is what a person wrote. It is in the mind and nowhere else: not in the journal, not in an error.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Membership(StrEnum):
    INVITED = "invited"
    JOINED = "joined"
    DECLINED = "declined"
    LEFT = "left"


class Standing(StrEnum):
    """What a heard row is from T1 on."""

    MAIL = "mail"
    CONTEXT = "context"


class HeardState(StrEnum):
    PENDING = "pending"
    CLOSED = "closed"
    WITHDRAWN = "withdrawn"
    """Redacted before it was used."""


class SaidState(StrEnum):
    QUEUED = "queued"
    ATTEMPTED = "attempted"
    SENT = "sent"
    REFUSED = "refused"
    SUPERSEDED = "superseded"
    """An edit that was never attempted, replaced by a newer one."""


class SaidKind(StrEnum):
    SAY = "say"
    NOTICE = "notice"
    REACTION = "reaction"
    EDIT = "edit"
    """New content for an event that was said before."""


class RunKind(StrEnum):
    PERSONA_TURN = "persona_turn"
    TOUCH = "touch"
    SELF_RUN = "self_run"


class TurnState(StrEnum):
    OPENED = "opened"
    REPLIED = "replied"
    UNREADABLE = "unreadable"
    REFUSED = "refused"
    LIMITED = "limited"
    FAILED = "failed"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Room:
    """A Matrix room as the mouth knows it."""

    room_id: str
    number: int
    """Its handle is `r<number>`; given once, never reused."""
    membership: Membership
    join_rule: str
    """As in m.room.join_rules; "invite" until told otherwise, which is the safe side."""
    direct: bool
    encrypted: bool
    name: str
    conversation: str
    """`open`, `direct:<room id>`, `room:<room id>` (design §5)."""
    invited_by: str | None
    all_mail: bool
    """She was invited here and has not joined yet: everything from the invite to her join is mail (design §3)."""
    upgraded_to: str | None
    receipt_seq: int
    """The heard row that the last read receipt named; 0 for none."""
    joined_members: int = 0
    invited_members: int = 0
    """As the homeserver last counted them; 0 until it did."""
    widened: bool = False
    """It was a DM until somebody else came in; it is a room from then on (design §5)."""

    @property
    def handle(self) -> str:
        return f"r{self.number}"


@dataclass(frozen=True, slots=True)
class Heard:
    """One message of a room, by somebody else."""

    seq: int
    event_id: str
    room_id: str
    sender: str
    sender_name: str
    """Display name at the time; outside text."""
    kind: str
    """`m.text`, `m.emote`, `m.image`, …, or `missed` for the one row that counts what a gap left out."""
    body: str
    sent_at: int
    """The homeserver's origin_server_ts: for display only."""
    heard_at: int
    reply_to: str | None
    thread: str | None
    """Event id of the thread's root."""
    standing: Standing
    reason: str
    """Why it is mail or context, in words, as the journal has it."""
    state: HeardState
    attempts: int
    turn_id: str | None
    edited: bool = False
    person: bool = True
    """Whether a person wrote it, as it was judged when it was heard."""

    @property
    def handle(self) -> str:
        return f"m{self.seq}"


@dataclass(frozen=True, slots=True)
class Said:
    """One Matrix event to be sent: its id is the transaction id, its content is final."""

    id: str
    place: int
    kind: SaidKind
    room_id: str
    event_type: str
    content: dict[str, Any]
    """Final but for relations to said rows, which are resolved from receipts when it is sent."""
    thread: str | None
    """Event id of a thread's root, where known when it was queued."""
    reply_to: str | None
    """Event id it answers."""
    after_said: str | None
    """The said row whose event it relates to (a later part replies to nothing, a reaction to a said row does)."""
    turn_id: str | None
    state: SaidState
    queued_at: int
    attempted_at: int | None
    device_id: str | None
    event_id: str | None
    not_before: int
    """A 429 or a lost connection is remembered here across restarts; 0 for at once."""
    tries: int
    reason: str | None
    thread_said: str | None = None
    """The said row whose event is the thread's root, where that is one of our own."""
    edits: str | None = None
    """The said row whose event this one replaces."""


@dataclass(frozen=True, slots=True)
class NewSaid:
    """A said row about to be admitted; `place`, state and instants are given by the mind."""

    id: str
    kind: SaidKind
    room_id: str
    event_type: str
    content: dict[str, Any]
    thread: str | None = None
    reply_to: str | None = None
    after_said: str | None = None
    thread_said: str | None = None
    edits: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """The grant under which a half of the Mind acts."""

    id: str
    kind: RunKind
    conversations: tuple[str, ...]
    cause: str
    """`mail`, `mention`, `operator`, `direct`, `self_run`, `beat`; of a Self run: `request`, `again`."""
    reason: str
    opened_at: int
    holder: str | None
    held_at: int | None
    ended_at: int | None
    outcome: str | None
    end_reason: str | None
    turns: int
    cost_micro_usd: int
    follow_up_id: str | None = None
    """A Self run's: what it works on."""
    thread_said: str | None = None
    """The said row that is the root of its thread."""
    model_usage: dict[str, dict[str, int]] = field(default_factory=dict)
    """Totals per model: tokens by kind, and `cost_micro_usd`."""
    result: str | None = None
    """Its first 800 bytes."""
    told_turn: str | None = None
    """The turn in which her Persona was told of its end."""
    after_seq: int = 0
    """The newest heard row when it was opened."""


@dataclass(frozen=True, slots=True)
class Session:
    """One model session of one conversation; the cursor is a cache of the record, never the record."""

    id: str
    conversation: str
    provider: str
    """Provider instance: kind and server, without secrets."""
    model: str
    instructions: str
    instructions_digest: str
    schema_json: str
    schema_digest: str
    rehydration: str
    cursor: str | None
    opened_at: int
    ended_at: int | None
    end_reason: str | None
    prefix_tokens: int
    ceiling_tokens: int
    window_tokens: int
    rehydration_tokens: int
    last_used_at: int
    last_turn_id: str | None
    turns: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Why she does not act before an instant, kept in the mind so that a restart changes nothing."""

    cause: str
    """`limited`, `overloaded`, `authentication`, `fault`, `budget`, `died`; `spend:CONVERSATION` holds up that one alone."""
    until: int
    reason: str
    strikes: int = 0
    """How many in a row, for a back-off that doubles."""
    since: int = 0
    """When it was last set: a file that was changed after it may have mended its cause. 0 for a pause that no file mends."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who she is on the homeserver. The device id is chosen before the first login and kept for ever (design §3)."""

    user_id: str
    device_id: str


@dataclass(frozen=True, slots=True)
class Gap:
    """A hole in a room's timeline that is being paged back."""

    room_id: str
    base: int
    """Pages get places below this one, downwards."""
    cursor: str
    """The token that the next page starts from."""
    filled: int
    """Events that were taken in so far."""
    opened_at: int
    not_before: int
    tries: int
    until: str | None = None
    """The sync position before the hole: nothing older belongs to it."""
    fresh: bool = False
    """She has only just joined: paged back to her invite, or to her join if there was none; what is older is history."""
    missed: int = 0
    """Messages beyond the cap: counted, not taken in."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event that waits, in order, until the gap before it is filled."""

    room_id: str
    place: int
    event_id: str
    event: dict[str, Any] = field(repr=False)
