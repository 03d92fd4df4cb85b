"""Shapes: rows as records, for kinds that more than one door reads."""

from typing import Any

from mind_body.mind.records import Heard, HeardState, Membership, Room, Standing


def heard_from_row(row: Any) -> Heard:
    """A heard row as it was read."""
    return Heard(
        seq=row["seq"],
        event_id=row["event_id"],
        room_id=row["room_id"],
        sender=row["sender"],
        sender_name=row["sender_name"],
        kind=row["kind"],
        body=row["body"],
        sent_at=row["sent_at"],
        heard_at=row["heard_at"],
        reply_to=row["reply_to"],
        thread=row["thread"],
        standing=Standing(row["standing"]),
        reason=row["reason"],
        state=HeardState(row["state"]),
        attempts=row["attempts"],
        turn_id=row["turn_id"],
        edited=bool(row["edited"]),
        person=bool(row["person"]),
    )


def room_from_row(row: Any) -> Room:
    """A room row as it was read."""
    return Room(
        room_id=row["room_id"],
        number=row["number"],
        membership=Membership(row["membership"]),
        join_rule=row["join_rule"],
        direct=bool(row["direct"]),
        encrypted=bool(row["encrypted"]),
        name=row["name"],
        conversation=row["conversation"],
        invited_by=row["invited_by"],
        all_mail=bool(row["all_mail"]),
        upgraded_to=row["upgraded_to"],
        receipt_seq=row["receipt_seq"],
        joined_members=row["joined_members"],
        invited_members=row["invited_members"],
        widened=bool(row["widened"]),
    )
