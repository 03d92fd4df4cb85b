"""Door: rooms and who is in them, as the mouth knows them (design §4, §5).

1. A room is known from its invite or its first sync on, and keeps its number (`r1`, `r2`, …) for ever.
2. `save_room` writes what a rule has decided. A room that changes its conversation ends the session of the one it leaves, unless
   other rooms share it: sessions of different conversations never share text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mind_body.mind.records import Identity, Membership, Room
from mind_body.mind.rows import room_from_row
from mind_body.mind.store import Transaction


def read_rooms(tx: Transaction, membership: Membership | None = None) -> list[Room]:
    """All rooms, or those of one membership, by number."""
    rows = tx.execute("SELECT * FROM room WHERE ? IS NULL OR membership = ? ORDER BY number", (membership, membership))
    return [room_from_row(row) for row in rows]


def read_room(tx: Transaction, room_id: str) -> Room | None:
    row = tx.execute("SELECT * FROM room WHERE room_id = ?", (room_id,)).fetchone()
    return room_from_row(row) if row else None


def read_predecessor(tx: Transaction, room_id: str) -> Room | None:
    """The room that was upgraded to this one."""
    row = tx.execute("SELECT * FROM room WHERE upgraded_to = ? ORDER BY number DESC LIMIT 1", (room_id,)).fetchone()
    return room_from_row(row) if row else None


def next_number(tx: Transaction) -> int:
    """The number of the next new room."""
    return int(tx.execute("SELECT coalesce(max(number), 0) + 1 FROM room").fetchone()[0])


def save_room(tx: Transaction, room: Room, now: int) -> None:
    """Insert or replace all but the receipt, which moves by itself."""
    before = read_room(tx, room.room_id)
    if before == replace(room, receipt_seq=before.receipt_seq if before else 0):
        return
    tx.execute(
        "INSERT INTO room (room_id, number, membership, join_rule, direct, encrypted, name, conversation, invited_by, all_mail, "
        "upgraded_to, joined_members, invited_members, widened) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (room_id) DO UPDATE SET membership = excluded.membership, join_rule = excluded.join_rule, "
        "direct = excluded.direct, encrypted = excluded.encrypted, name = excluded.name, conversation = excluded.conversation, "
        "invited_by = excluded.invited_by, all_mail = excluded.all_mail, upgraded_to = excluded.upgraded_to, "
        "joined_members = excluded.joined_members, invited_members = excluded.invited_members, widened = excluded.widened",
        (
            room.room_id,
            room.number,
            room.membership,
            room.join_rule,
            room.direct,
            room.encrypted,
            room.name,
            room.conversation,
            room.invited_by,
            room.all_mail,
            room.upgraded_to,
            room.joined_members,
            room.invited_members,
            room.widened,
        ),
    )
    if before and before.conversation not in {room.conversation, "open"}:
        tx.execute(
            "UPDATE session SET ended_at = ?, end_reason = 'the room became another conversation' "
            "WHERE conversation = ? AND ended_at IS NULL",
            (now, before.conversation),
        )


def set_membership(tx: Transaction, room_id: str, membership: Membership) -> None:
    tx.execute("UPDATE room SET membership = ? WHERE room_id = ?", (membership, room_id))


def save_members(tx: Transaction, room_id: str, members: Iterable[tuple[str, str, str]]) -> None:
    """(user id, display name, membership) of everybody whom this sync spoke of."""
    tx.executemany(
        "INSERT INTO member (room_id, user_id, name, membership) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (room_id, user_id) DO UPDATE SET name = excluded.name, membership = excluded.membership "
        "WHERE name <> excluded.name OR membership <> excluded.membership",
        [(room_id, *member) for member in members],
    )


def read_names(tx: Transaction, room_id: str, user_ids: Sequence[str]) -> dict[str, str]:
    """User id → display name, of those who have one."""
    found = {}
    for user_id in set(user_ids):
        row = tx.execute("SELECT name FROM member WHERE room_id = ? AND user_id = ?", (room_id, user_id)).fetchone()
        if row and row["name"]:
            found[user_id] = row["name"]
    return found


def read_members(tx: Transaction, room_id: str) -> list[tuple[str, str]]:
    """(user id, membership) of those whom we have seen; members are lazy-loaded, so silent ones may be missing."""
    rows = tx.execute("SELECT user_id, membership FROM member WHERE room_id = ? ORDER BY user_id", (room_id,))
    return [(row["user_id"], row["membership"]) for row in rows]


def read_identity(tx: Transaction) -> Identity | None:
    row = tx.execute("SELECT user_id, device_id FROM identity").fetchone()
    return Identity(row["user_id"], row["device_id"]) if row else None


def save_identity(tx: Transaction, identity: Identity) -> None:
    """Before the first login: the device id is chosen first and kept for ever."""
    tx.execute("INSERT OR REPLACE INTO identity (one, user_id, device_id) VALUES (1, ?, ?)", (identity.user_id, identity.device_id))


def read_position(tx: Transaction) -> str | None:
    """The sync position: what she has heard everything before."""
    row = tx.execute("SELECT next_batch FROM position").fetchone()
    return row["next_batch"] if row else None


def save_position(tx: Transaction, next_batch: str, now: int) -> None:
    tx.execute("INSERT OR REPLACE INTO position (one, next_batch, at) VALUES (1, ?, ?)", (next_batch, now))
