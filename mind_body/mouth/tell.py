"""Loop: what a transaction of the ear came to, told in the journal once it is durable. Never a body.

For every message there is one line: mail, context or skipped, and why (design §11). A baseline is told in one line.
"""

from typing import Any

from mind_body.log import Level
from mind_body.mind.changes import Admitted, Answered, EditedHeard, NewHeard, NewReaction
from mind_body.mind.records import Room
from mind_body.mouth.seat import Seat
from mind_body.mouth.take_in import Taken


def tell_taken(seat: Seat, taken: Taken) -> None:
    """Every line that belongs to a T1 or to a filled gap."""
    _tell_rooms(seat, taken)
    if taken.baseline:
        seat.journal.note(
            "ear.baseline",
            f"First sync: {len(taken.heard)} messages in {len(taken.joined)} rooms are history; nothing of it is mail.",
            ROOMS=len(taken.joined),
            INVITES=len(taken.invites),
        )
        return
    for room, admitted in taken.heard:
        _tell_heard(seat, room, admitted)
    for room, place, away in taken.spent:
        seat.journal.note(
            "loop.spent",
            f"She is silent in {room.handle} until a person speaks there: {away.reason}.",
            level="warning",
            ROOM=room.room_id,
            THREAD=place.thread or None,
            REASON=away.reason,
            TURNS=max(place.turns_here, place.turns_room),
        )


def _tell_rooms(seat: Seat, taken: Taken) -> None:
    note = seat.journal.note
    for room in taken.invites:
        note("room.invited", f"Invited to {room.handle} by {room.invited_by}.", ROOM=room.room_id, DIRECT=room.direct)
    for room in taken.joined if not taken.baseline else ():
        note("room.joined", f"In {room.handle} now.", ROOM=room.room_id, CONVERSATION=room.conversation)
    for room in taken.left:
        note("room.left", f"No longer in {room.handle}.", ROOM=room.room_id)
    for room in taken.widened:
        note(
            "room.widened", f"{room.handle} is no DM any more: others are there.", ROOM=room.room_id, CONVERSATION=room.conversation
        )
    for room in taken.upgraded:
        note("room.upgraded", f"{room.handle} goes on as {room.upgraded_to}.", ROOM=room.room_id)
    for room in taken.gaps:
        note("ear.gap", f"{room.handle} has a gap; it is filled before anything newer is heard there.", ROOM=room.room_id)
    for room in taken.encrypted:
        note(
            "room.encrypted",
            f"{room.handle} is encrypted, and she cannot read it; she says so there once.",
            level="warning",
            ROOM=room.room_id,
        )


def _tell_heard(seat: Seat, room: Room, admitted: Admitted) -> None:
    change, seq = admitted.change, admitted.seq
    if isinstance(change, NewReaction):
        _tell_reaction(seat, room, change, admitted.how)
        return
    if isinstance(change, Answered):
        _tell_answer(seat, room, change, admitted.how)
        return
    sender = change.sender if isinstance(change, NewHeard | EditedHeard) else None
    reason = change.reason if isinstance(change, NewHeard | EditedHeard) else None
    event = change.event_id if isinstance(change, NewHeard) else change.target
    sentence = {
        "mail": f"Queued: message m{seq} in {room.handle} is mail, because {reason}.",
        "context": f"Skipped: message m{seq} in {room.handle} is context, because {reason}.",
        "steer": f"Queued: message m{seq} in {room.handle} goes to the running Self.",
        "stop": f"Queued: message m{seq} in {room.handle} stops the running Self.",
        "barred": f"Skipped: message m{seq} in {room.handle} is for the running Self, and its sender may not steer.",
        "edited": f"Message m{seq} in {room.handle} was edited before it was read.",
        "withdrawn": f"Message m{seq} in {room.handle} was redacted before it was read.",
        "closed": f"Skipped: message m{seq} in {room.handle} changed after it had been read.",
        "known": f"Skipped: a message in {room.handle} came again.",
        "unknown": f"Skipped: a change in {room.handle} to a message that she never heard.",
    }[admitted.how]
    level: Level = "debug" if admitted.how in {"known", "unknown"} else "info"
    seat.journal.note(
        f"heard.{admitted.how}",
        sentence,
        level=level,
        ROOM=room.room_id,
        EVENT=event,
        SENDER=sender,
        REASON=reason,
    )


def _tell_reaction(seat: Seat, room: Room, change: NewReaction, how: str) -> None:
    one = change.reaction
    sentence = {
        "reacted": f"A reaction to a message of hers in {room.handle} was kept.",
        "known": f"Skipped: a reaction in {room.handle} came again.",
        "unknown": f"Skipped: a reaction in {room.handle} to a message that is not hers.",
    }[how]
    level: Level = "info" if how == "reacted" else "debug"
    seat.journal.note(f"heard.{how}", sentence, level=level, ROOM=room.room_id, EVENT=one.event_id, SENDER=one.sender)


def _tell_answer(seat: Seat, room: Room, change: Answered, how: str) -> None:
    fields: dict[str, Any] = {"ROOM": room.room_id, "QUESTION": change.question_id, "ANSWER": change.answer, "SENDER": change.by}
    if how == "answered":
        seat.journal.note("question.answered", f"An operator has answered a question in {room.handle}: {change.answer}.", **fields)
    else:
        seat.journal.note("question.known", f"Skipped: a question in {room.handle} had been answered before.", **fields)
