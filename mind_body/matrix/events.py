"""Shapes: the events of a room, as `parse.py` makes them once (Matrix client-server API v1.11 and later).

1. Events are frozen and valid from birth; nothing downstream checks again. An event is written by a stranger: what is malformed is
   `Unknown` with the reason and never raises. An event without a usable id or sender is not an event and is left out.
2. Texts carry no lone surrogates (SQLite could not store them), counts and instants fit 53 bits.
3. A state event has a state key, a message has none: `m.room.name` sent as a message renames nothing and is Unknown.
4. A reply's fallback quote (`> <@user> …`, `<mx-reply>`) is not what its sender said and is cut off here.
5. `raw` is the event as it came, to be kept where it must be read again later (an arrival behind a gap).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SAID_KEY = "io.mind-body.said"
"""Every event of ours carries its said id in its content under this key: how history tells what has been sent (design §3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event has. `event_id` is empty in the stripped state of an invite."""

    event_id: str
    sender: str
    sent_at: int
    """origin_server_ts, ms: its server's clock, for display only."""
    transaction_id: str | None = None
    """Given back to the device that sent it."""
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mentions:
    """`m.mentions`, where the sender's client wrote it."""

    user_ids: frozenset[str]
    room: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Event):
    """`m.room.message` (or a sticker), new."""

    msgtype: str
    body: str = field(repr=False)
    formatted_body: str | None = field(repr=False, default=None)
    mentions: Mentions | None = None
    reply_to: str | None = None
    """A true reply; the fallback that a thread carries for old clients is none."""
    thread: str | None = None
    """The event id of the thread's root."""
    said_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit(Event):
    """`m.replace`: the new content of `target`. Relations are the target's own."""

    target: str
    msgtype: str
    body: str = field(repr=False)
    formatted_body: str | None = field(repr=False, default=None)
    mentions: Mentions | None = None
    said_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Encrypted(Event):
    """`m.room.encrypted`: somebody said something that we cannot read."""

    reply_to: str | None = None
    thread: str | None = None
    edits: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction(Event):
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction(Event):
    target: str
    key: str
    said_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(Event):
    """`m.room.member`: whose membership it is, and what it is now."""

    user_id: str
    membership: str
    """`invite`, `join`, `knock`, `leave`, `ban`."""
    name: str
    """Display name, empty for none. Outside text."""
    direct: bool
    """`is_direct` of an invite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRules(Event):
    join_rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Name(Event):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Encryption(Event):
    """`m.room.encryption`: from here on the room is encrypted, for ever."""

    algorithm: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone(Event):
    """The room goes on as another one."""

    replacement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Event):
    """A kind that we do not use, or one that we could not read."""

    type: str
    why: str
