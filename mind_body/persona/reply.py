"""Rule: what an answer comes to. Decoded, never scanned: of a model's output only an admitted `say` can reach a room (design §6).

1. The answer is one JSON document and nothing beside it. pydantic checks it again, whatever the provider promised.
2. Each field, and each act in it, is admitted on its own: a bad one is dropped with its reason and costs no other.
3. `say` that cannot be read, or of which nothing is left, is `Unread(why)`: one repair is worth asking for.
4. Handles are resolved to rooms of this conversation and to messages that she was shown. A relation that cannot be is dropped, the
   words are kept: who waits for an answer gets it.
5. Where no thread is named: that of the message answered, else the one that all of the batch's mail in that room is in.
6. What may not be said where she wants it is kept back with its reason, and nobody asks her again: it was not her mistake.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from mind_body.matrix.outside import clean
from mind_body.mind.changes import MISSED
from mind_body.mind.records import Heard, Room
from mind_body.persona.acts import MESSAGE_PATTERN, NULLABLE_MESSAGE, A, Act, checked, message_number
from mind_body.persona.pulse_acts import NO_WISH, PULSE_SCHEMAS, Wish, read_wish
from mind_body.persona.work_acts import WORK_SCHEMAS, Start, Tell, read_work

SAY_MAX = 8
REACT_MAX = 4
SMALL_SAY_CHARACTERS = 300
TEXT_MAX = 200_000
"""Characters of one `say`: far beyond any output cap; a bound for what is not a model."""
_ROOM = r"^r[1-9][0-9]{0,8}$"

_ACT_SCHEMAS: dict[str, dict[str, Any]] = {
    "say": {
        "type": "array",
        "maxItems": SAY_MAX,
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["room", "text", "reply_to", "thread"],
            "properties": {
                "room": {"type": "string", "pattern": _ROOM},
                "text": {"type": "string"},
                "reply_to": NULLABLE_MESSAGE,
                "thread": NULLABLE_MESSAGE,
            },
        },
    },
    "react": {
        "type": "array",
        "maxItems": REACT_MAX,
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["message", "key"],
            "properties": {"message": {"type": "string", "pattern": MESSAGE_PATTERN}, "key": {"type": "string", "maxLength": 16}},
        },
    },
    **WORK_SCHEMAS,
    **PULSE_SCHEMAS,
}
_SMALL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["say"],
    "properties": {"say": {"type": "string", "minLength": 1, "maxLength": SMALL_SAY_CHARACTERS}},
}


class _Say(Act):
    room: Annotated[str, Field(pattern=_ROOM)]
    text: Annotated[str, Field(max_length=TEXT_MAX)]
    reply_to: str | None = None
    thread: str | None = None


class _React(Act):
    message: Annotated[str, Field(pattern=MESSAGE_PATTERN)]
    key: Annotated[str, Field(min_length=1, max_length=16)]


class _SmallReply(Act):
    say: Annotated[str, Field(max_length=SMALL_SAY_CHARACTERS)]


@dataclass(frozen=True, slots=True)
class Say:
    """Words for a room; relations are event ids."""

    room_id: str
    text: str
    thread: str | None
    reply_to: str | None


@dataclass(frozen=True, slots=True)
class React:
    """A reaction to a message that she was shown."""

    room_id: str
    event_id: str
    key: str


@dataclass(frozen=True, slots=True)
class Read:
    """What is admitted, and what was dropped with its reason (which never quotes the answer)."""

    say: tuple[Say, ...]
    react: tuple[React, ...] = ()
    start: Start | None = None
    tell: Tell | None = None
    wish: Wish = NO_WISH
    dropped: tuple[str, ...] = ()
    kept_back: bool = False
    """Something was rightly worded and may not be said; its reason is in `dropped`."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Nothing of it can be said."""

    why: str


@dataclass(frozen=True, slots=True)
class Shown:
    """What handles may stand for in this turn."""

    rooms: Sequence[Room]
    """Of this conversation, joined; for a scheduled wake, her home room alone."""
    messages: Mapping[int, Heard]
    """By seq: whatever she was shown that the answer names."""
    mail: Sequence[Heard] = field(default=())
    """The batch."""
    scheduled: bool = False
    """Nobody called her."""


def reply_schema(acts: Sequence[str], *, small: bool) -> dict[str, Any]:
    """One constant per acts and size: rooms are handles by pattern, never an enum, so that it never changes in a session."""
    if small:
        return _SMALL_SCHEMA
    chosen = {act: _ACT_SCHEMAS[act] for act in _ACT_SCHEMAS if act in acts}
    return {"type": "object", "additionalProperties": False, "required": list(chosen), "properties": chosen}


def named_messages(text: str) -> tuple[int, ...]:
    """The message numbers that an answer names, so that a door can look them up before it is decoded."""
    answer = _parse(text)
    if not isinstance(answer, dict):
        return ()
    acts = [act for name in ("say", "react") for act in _listed(answer.get(name)) if isinstance(act, dict)]
    named = [act.get(key) for act in acts for key in ("reply_to", "thread", "message")]
    return tuple(sorted({number for handle in named if (number := message_number(handle)) is not None}))


def read_reply(text: str, acts: Sequence[str], shown: Shown, *, small: bool) -> Read | Unread:
    """An answer against what she was shown."""
    answer = _parse(text)
    if isinstance(answer, str):
        return Unread(answer)
    if not isinstance(answer, dict):
        return Unread("the answer is JSON, but not an object")
    return _read_small(answer, shown) if small else _read_full(answer, acts, shown)


def _read_small(answer: dict[str, Any], shown: Shown) -> Read | Unread:
    reply = checked(_SmallReply, answer)
    if isinstance(reply, str):
        return Unread(reply)
    if not clean(reply.say).strip():
        return Unread("`say` is empty")
    if not shown.mail:
        return Read((Say(shown.rooms[0].room_id, clean(reply.say).strip(), None, None),)) if shown.rooms else Read(())
    newest = shown.mail[-1]
    return Read((Say(newest.room_id, clean(reply.say).strip(), newest.thread, None),))


def _read_full(answer: dict[str, Any], acts: Sequence[str], shown: Shown) -> Read | Unread:
    says, said_faults = _admit(_Say, "say", answer, acts, SAY_MAX)
    if says is None:
        return Unread(said_faults[0])
    resolved: list[Say] = []
    notes = list(said_faults)
    says, elsewhere = _at_home(says, shown) if shown.scheduled else (says, [])
    for one in says:
        act, faults = _resolve_say(one, shown)
        notes += faults
        resolved += [act] if act else []
    if notes and not resolved and answer.get("say"):
        return Unread("; ".join(notes))
    reacts, react_faults = _admit(_React, "react", answer, acts, REACT_MAX)
    reactions = [_resolve_react(one, shown) for one in reacts or ()]
    notes += [*react_faults, *(one for one in reactions if isinstance(one, str))]
    start, tell, work_faults = read_work(answer, acts, shown.mail)
    wish, wish_faults = read_wish(answer, acts)
    reacted = tuple(one for one in reactions if not isinstance(one, str))
    dropped = (*elsewhere, *notes, *work_faults, *wish_faults)
    return Read(tuple(resolved), reacted, start, tell, wish, dropped, kept_back=bool(elsewhere))


def _at_home(says: list[_Say], shown: Shown) -> tuple[list[_Say], list[str]]:
    """What a scheduled wake may say, and why not the rest."""
    handles = {room.handle for room in shown.rooms}
    away = [
        f"`say` names the room {one.room}; a scheduled wake speaks into her home room alone"
        for one in says
        if one.room not in handles
    ]
    return [one for one in says if one.room in handles], away


def _admit(shape: type[A], name: str, answer: dict[str, Any], acts: Sequence[str], most: int) -> tuple[list[A] | None, list[str]]:
    """The acts of one field that fit; None where the field cannot be read at all."""
    if name not in acts:
        return [], [f"`{name}` is not among her acts"] if answer.get(name) else []
    value = answer.get(name)
    if not isinstance(value, list):
        return None, [f"`{name}` is missing" if value is None else f"`{name}` is not a list"]
    read = [(number, checked(shape, one)) for number, one in enumerate(value[:most])]
    faults = [f"`{name}[{number}]` {fault}" for number, fault in read if isinstance(fault, str)]
    more = [f"`{name}` has {len(value)} entries, {most} is the most"] if len(value) > most else []
    return [one for _, one in read if not isinstance(one, str)], faults + more


def _resolve_say(say: _Say, shown: Shown) -> tuple[Say | None, list[str]]:
    text = clean(say.text).strip("\n")
    if not text.strip():
        return None, []
    room = next((room for room in shown.rooms if room.handle == say.room), None)
    if room is None:
        return None, [f"`say` names the room {say.room}, which is not one of this conversation"]
    answered, faults = _resolve_message("reply_to", say.reply_to, room, shown)
    threaded, more = _resolve_message("thread", say.thread, room, shown)
    if threaded is not None:
        thread: str | None = threaded.thread or threaded.event_id
    elif answered is not None:
        thread = answered.thread
    else:
        thread = _common_thread(room.room_id, shown.mail)
    return Say(room.room_id, text, thread, answered.event_id if answered else None), faults + more


def _resolve_message(field_name: str, handle: str | None, room: Room, shown: Shown) -> tuple[Heard | None, list[str]]:
    if handle is None:
        return None, []
    number = message_number(handle)
    heard = shown.messages.get(number) if number is not None else None
    if heard is None or heard.room_id != room.room_id or heard.kind == MISSED:
        return None, [f"`{field_name}` names no message that she was shown in {room.handle}"]
    return heard, []


def _resolve_react(react: _React, shown: Shown) -> React | str:
    number = message_number(react.message)
    heard = shown.messages.get(number) if number is not None else None
    if heard is None or heard.kind == MISSED or heard.room_id not in {room.room_id for room in shown.rooms}:
        return "`react` names no message that she was shown"
    key = react.key.strip()
    # A reaction is a sign, not a second way to say something.
    if not key or clean(key) != key or any(one.isspace() or one.isalpha() for one in key):
        return "`react` has a key that is not one emoji"
    return React(heard.room_id, heard.event_id, key)


def _common_thread(room_id: str, mail: Sequence[Heard]) -> str | None:
    threads = {heard.thread for heard in mail if heard.room_id == room_id}
    return threads.pop() if len(threads) == 1 else None


def _parse(text: str) -> Any:
    """The document, or a sentence (a `str`) that says why it is none."""
    try:
        answer = json.loads(text)
    except RecursionError:
        return "the answer is nested too deeply"
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "a number is too long"
        return f"the answer is not one JSON document ({reason})"
    return "the answer is JSON, but not an object" if isinstance(answer, str) else answer


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
