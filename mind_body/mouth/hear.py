"""Rule: what is heard of a room's events, and whether it is mail or context (T1, design §3).

1. Events are taken in order; her own membership among them tells how what follows is heard (`Era`).
2. Her own messages are not heard, by exact comparison of user ids: also those that another device of hers has sent.
3. Mail is what asks for an answer: from somebody on `may_address` (an operator always is), in a room on `rooms`, and in a DM, or
   between her invite and her join, or addressed to her. All else is context. A notice (`m.notice`) is never mail.
4. Every verdict has its reason. Strangers' words are context at most: what is not mail never wakes her.
5. An edit is judged like a message, so that a mention that is edited in reaches her; what was mail stays mail.
6. An encrypted event cannot be heard. It is counted, so that somebody says so.
7. What is written in the thread of a Self run that is live belongs to that run alone: it is context to her, whoever writes it, and
   reaches the Self where its sender may steer. A notice there is what it is everywhere.
8. What answers a question to the operators is context: it wakes nobody (`asked.py`).
9. Every message says whether a person wrote it. Our Minds are known by the mark in what they send, other bots by configuration and
   by `m.notice`. Whether a bot's mail may still bring a turn is weighed when it is admitted (`take_in.py`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mind_body.control.loops import is_person
from mind_body.control.people import listed, may_address
from mind_body.matrix.addressed import judge_address
from mind_body.matrix.events import Edit, Encrypted, Event, Member, Message, Reaction, Redaction
from mind_body.mind import work_records
from mind_body.mind.changes import (
    MISSED,
    Answered,
    EditedHeard,
    ForSelf,
    HeardChange,
    KnownPeople,
    NewHeard,
    NewReaction,
    Withdrawn,
)
from mind_body.mind.records import Room, Standing
from mind_body.mouth.asked import NOTHING_ASKED, Asked, judge_sign, judge_word
from mind_body.mouth.room import Era
from mind_body.mouth.steering import judge_steer
from mind_body.settings import PeopleConfig


@dataclass(frozen=True, slots=True)
class Hearing:
    """What came of a room's events."""

    changes: tuple[HeardChange, ...]
    unreadable: int
    """Encrypted events by others, outside history."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears, and what she knows of those who speak."""

    user_id: str
    people: PeopleConfig
    known: KnownPeople
    at_work: work_records.LiveThread | None = None
    """The thread of the Self run that is live."""
    in_thread: frozenset[str] = frozenset()
    """Those messages in it that these events edit."""
    asked: Asked = NOTHING_ASKED
    """What is open in the room."""
    now: int = 0


def speakers(events: Iterable[Event]) -> list[str]:
    """Whose names are needed to hear these events."""
    return sorted({event.sender for event in events if isinstance(event, (Message, Edit))})


def answered(events: Iterable[Event]) -> list[str]:
    """The events that these relate to: whether one is hers decides who is meant."""
    messages = [event for event in events if isinstance(event, Message)]
    return sorted({target for event in messages for target in (event.reply_to, event.thread) if target})


def edited(events: Iterable[Event]) -> list[str]:
    """The events that these replace."""
    return sorted({event.target for event in events if isinstance(event, Edit)})


def worth_keeping(event: Event, user_id: str) -> bool:
    """Whether an event must wait behind a gap to be heard in its turn."""
    if isinstance(event, Member):
        return event.user_id == user_id
    kinds = (Message, Edit, Redaction, Encrypted, Reaction)
    return isinstance(event, kinds) and (event.sender != user_id or isinstance(event, Redaction))


def hear_events(events: Sequence[Event], room: Room, listener: Listener, *, era: Era, baseline: bool = False) -> Hearing:
    """Everything of one room, oldest first. In a baseline all is history, whatever her membership does in it."""
    changes: list[HeardChange] = []
    unreadable = 0
    user_id = listener.user_id
    listener = _informed(listener, events)
    for event in events:
        match event:
            case Member() if event.user_id == user_id:
                era = era if baseline else _next_era(era, event.membership)
            case Redaction():
                changes.append(Withdrawn(event.target, room.room_id))
            case Message() if event.sender == user_id:
                listener = replace(listener, asked=listener.asked.heard_her(event))
            case Reaction() if event.sender != user_id and era is not Era.HISTORY:
                changes.append(_reacted(event, room, listener))
            case Encrypted() if event.sender != user_id and era is not Era.HISTORY:
                unreadable += 1
            case Message() | Edit() if event.sender != user_id:
                changes += _heard(event, room, listener, era)
            case _:
                pass
        if changes and isinstance(changes[-1], Answered):
            listener = replace(listener, asked=listener.asked.without(changes[-1].question_id))
    return Hearing(tuple(changes), unreadable)


def missed_row(room: Room, base: int, count: int, *, more: bool, sent_at: int) -> NewHeard:
    """The one row that says what a gap left out. In a DM it is mail: somebody there waits for an answer that she cannot give."""
    number = "Some" if not count else f"More than {count}" if more else str(count)
    return NewHeard(
        event_id=f"missed:{room.room_id}:{base}",
        room_id=room.room_id,
        sender="",
        sender_name="",
        kind=MISSED,
        body=f"{number} messages before the next one could not be read: too many came, or too long ago, while she was away.",
        sent_at=sent_at,
        reply_to=None,
        thread=None,
        standing=Standing.MAIL if room.direct else Standing.CONTEXT,
        reason="a gap in the room's history was longer than is read back",
        person=False,
    )


def _informed(listener: Listener, events: Sequence[Event]) -> Listener:
    """What these events themselves tell about each other."""
    messages = [event for event in events if isinstance(event, Message)]
    hers = {event.event_id for event in messages if event.sender == listener.user_id}
    root = listener.at_work.root if listener.at_work else None
    inside = {event.event_id for event in messages if root and event.thread == root}
    known = replace(listener.known, hers=listener.known.hers | hers)
    return replace(listener, known=known, in_thread=listener.in_thread | inside)


def _reacted(event: Reaction, room: Room, listener: Listener) -> HeardChange:
    answer = judge_sign(event, listener.asked, listener.people)
    if answer is not None:
        return Answered(*answer, event.sender)
    return NewReaction(work_records.Reaction(event.event_id, room.room_id, event.target, event.sender, event.key, listener.now))


def _heard(event: Message | Edit, room: Room, listener: Listener, era: Era) -> list[HeardChange]:
    """What one message comes to: its row, and with it what it answers."""
    for_self = _for_self(event, room, listener, era)
    if for_self is not None:
        verdict = Standing.CONTEXT, "it is for the running Self" if for_self.kind else "its sender may not steer"
        return [_change(event, room, listener, era, verdict, for_self=for_self)]
    answer = None if isinstance(event, Edit) or era is Era.HISTORY else _answer(event, listener)
    if answer is not None:
        return [_change(event, room, listener, era, (Standing.CONTEXT, "it answers a question")), answer]
    return [_change(event, room, listener, era, _judge(event, room, listener, era))]


def _answer(event: Message, listener: Listener) -> Answered | None:
    user_id, name = listener.user_id, listener.known.names.get(listener.user_id, "")
    found = judge_word(event, listener.asked, user_id=user_id, name=name, people=listener.people)
    return Answered(*found, event.sender) if found else None


_Verdict = tuple[Standing, str]


def _judge(event: Message | Edit, room: Room, listener: Listener, era: Era) -> _Verdict:
    people = listener.people
    barred = _barred(event, room, era, people)
    if barred:
        return Standing.CONTEXT, barred
    if room.direct:
        return Standing.MAIL, "it is a direct message"
    name = listener.known.names.get(listener.user_id, "")
    replies = isinstance(event, Message) and bool({event.reply_to, event.thread} & listener.known.hers)
    verdict = judge_address(event, user_id=listener.user_id, name=name, replies_to_her=replies)
    if verdict.addressed:
        return Standing.MAIL, verdict.reason
    if era is Era.INVITED and not listed(event.sender, people.bots):
        return Standing.MAIL, str(era.value)
    return Standing.CONTEXT, verdict.reason


def _for_self(event: Message | Edit, room: Room, listener: Listener, era: Era) -> ForSelf | None:
    at_work, user_id = listener.at_work, listener.user_id
    if at_work is None or at_work.room_id != room.room_id or era is Era.HISTORY or event.msgtype == "m.notice":
        return None
    inside = event.target in listener.in_thread if isinstance(event, Edit) else event.thread == at_work.root
    if not inside:
        return None
    kind, text = judge_steer(event, user_id=user_id, name=listener.known.names.get(user_id, ""), people=listener.people)
    return ForSelf(at_work.run_id, kind, event.event_id, text)


def _barred(event: Message | Edit, room: Room, era: Era, people: PeopleConfig) -> str | None:
    """Why it cannot be mail, whatever it says."""
    if era is Era.HISTORY:
        return str(era.value)
    if event.msgtype == "m.notice":
        return "a notice is never mail"
    if not may_address(event.sender, people):
        return "its sender is not on may_address"
    if not listed(room.room_id, people.rooms):
        return "the room is not on rooms"
    return None


def _next_era(era: Era, membership: str) -> Era:
    if membership == "join":
        return Era.LIVE
    if membership == "invite":
        return Era.INVITED
    return Era.HISTORY if membership in {"leave", "ban"} else era


def _change(
    event: Message | Edit, room: Room, listener: Listener, era: Era, verdict: _Verdict, *, for_self: ForSelf | None = None
) -> HeardChange:
    standing, reason = verdict
    person = is_person(event.sender, listener.people, marked=bool(event.said_id) or event.msgtype == "m.notice")
    if isinstance(event, Edit):
        return EditedHeard(
            target=event.target,
            room_id=room.room_id,
            sender=event.sender,
            body=event.body,
            standing=standing,
            reason=reason,
            for_self=for_self,
            person=person,
        )
    return NewHeard(
        event_id=event.event_id,
        room_id=room.room_id,
        sender=event.sender,
        sender_name=listener.known.names.get(event.sender, ""),
        kind=event.msgtype,
        body=event.body,
        sent_at=event.sent_at,
        reply_to=event.reply_to,
        thread=event.thread,
        standing=standing,
        reason=reason,
        for_self=for_self,
        person=person,
        history=era is Era.HISTORY,
    )
