"""Door: what was heard, and what must be heard before it (T1 and the pages of a gap, design §3).

1. An event is heard once: its id is unique, and hearing it again changes nothing.
2. An edit replaces the text of a row that nobody has read, and may make context mail; a redaction withdraws such a row.
   What is written in the thread of a running Self is closed at once, and is a steer of that run; its edit is one more.
3. A room with a gap is held up: its events wait in `arrival`, in order, until the gap before them is filled. A page is taken in
   together with the cursor of the next one.
4. Order is place (arrival) and seq (heard). A gap's pages get places below its base, downwards; the next gap's base is far above.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mind_body.mind.changes import (
    MISSED,
    Admitted,
    Answered,
    EditedHeard,
    ForSelf,
    HeardChange,
    KnownPeople,
    NewHeard,
    NewReaction,
    Withdrawn,
)
from mind_body.mind.places import note_spoken
from mind_body.mind.questions import answer_question
from mind_body.mind.reactions import admit_reaction, withdraw_reaction
from mind_body.mind.records import Arrival, Gap, HeardState, Standing
from mind_body.mind.rooms import read_names
from mind_body.mind.steers import admit_steer, revise_steer, withdraw_steer
from mind_body.mind.store import Transaction

GAP_SPAN = 1 << 40
"""Places between two gaps of a room: more than a gap can ever need."""


def admit_heard(tx: Transaction, changes: Sequence[HeardChange], now: int) -> list[Admitted]:
    """Apply in order; what each came to."""
    return [_admit(tx, change, now) for change in changes]


def read_known(tx: Transaction, room_id: str, user_ids: Sequence[str], event_ids: Sequence[str]) -> KnownPeople:
    """Names of the people who speak in some events, and which of the events they answer are hers."""
    hers = {
        event_id
        for event_id in set(event_ids)
        if tx.execute("SELECT 1 FROM said WHERE event_id = ? AND kind <> 'reaction'", (event_id,)).fetchone()
    }
    return KnownPeople(read_names(tx, room_id, user_ids), frozenset(hers))


def read_in_thread(tx: Transaction, root: str, event_ids: Sequence[str]) -> frozenset[str]:
    """Those of these events that were heard in a thread."""
    rows = tx.execute(
        "SELECT event_id FROM heard WHERE thread = ? AND event_id IN (SELECT value FROM json_each(?))",
        (root, json.dumps(list(event_ids))),
    )
    return frozenset(row["event_id"] for row in rows)


def is_known(tx: Transaction, event_id: str) -> bool:
    """Heard, said, or waiting to be heard."""
    return (
        tx.execute(
            "SELECT 1 FROM heard WHERE event_id = :id UNION ALL SELECT 1 FROM said WHERE event_id = :id "
            "UNION ALL SELECT 1 FROM arrival WHERE event_id = :id",
            {"id": event_id},
        ).fetchone()
        is not None
    )


def is_known_before(tx: Transaction, gap: Gap, event_id: str) -> bool:
    """Whether it is from before the gap: heard, said, or waiting since before it. What waits behind the gap is not its end."""
    return (
        tx.execute(
            "SELECT 1 FROM heard WHERE event_id = :id UNION ALL SELECT 1 FROM said WHERE event_id = :id "
            "UNION ALL SELECT 1 FROM arrival WHERE event_id = :id AND room_id = :room AND place < :below",
            {"id": event_id, "room": gap.room_id, "below": gap.base - GAP_SPAN},
        ).fetchone()
        is not None
    )


def expire_context(tx: Transaction, before: int) -> int:
    """Delete context that was heard before an instant, and withdrawn rows with it; how many. Turns keep their own text."""
    # Two statements, each with an index of its own: one over both would read the whole history every hour.
    withdrawn = tx.execute("DELETE FROM heard WHERE state = 'withdrawn' AND heard_at < ?", (before,)).rowcount
    return withdrawn + tx.execute("DELETE FROM heard WHERE standing = 'context' AND heard_at < ?", (before,)).rowcount


def read_receipts_due(tx: Transaction) -> list[tuple[str, int, str, str | None]]:
    """(room id, seq, event id, thread) of the newest row that a turn has closed, where no receipt has said so yet."""
    rows = tx.execute(
        "SELECT room.room_id, heard.seq, heard.event_id, heard.thread FROM room JOIN heard ON heard.seq = ("
        "SELECT max(seq) FROM heard WHERE room_id = room.room_id AND state = 'closed' AND kind <> 'missed' AND standing = 'mail') "
        "WHERE room.membership = 'joined' AND heard.seq > room.receipt_seq ORDER BY heard.seq"
    )
    return [(row["room_id"], row["seq"], row["event_id"], row["thread"]) for row in rows]


def mark_receipt(tx: Transaction, room_id: str, seq: int) -> None:
    """The homeserver has taken the read receipt."""
    tx.execute("UPDATE room SET receipt_seq = ? WHERE room_id = ? AND receipt_seq < ?", (seq, room_id, seq))


# Gaps and what waits behind them.


def open_gap(tx: Transaction, room_id: str, cursor: str, now: int, *, until: str | None, fresh: bool) -> Gap:
    """A hole after everything that this room has so far; arrivals after it are to be added next."""
    base = _free_place(tx, room_id) + GAP_SPAN
    tx.execute(
        "INSERT INTO gap (room_id, base, cursor, opened_at, until, fresh) VALUES (?, ?, ?, ?, ?, ?)",
        (room_id, base, cursor, now, until, fresh),
    )
    return Gap(room_id, base, cursor, 0, now, 0, 0, until, fresh, 0)


def read_gaps(tx: Transaction) -> list[Gap]:
    """The lowest gap of each room: the one to be filled now."""
    rows = tx.execute("SELECT *, min(base) FROM gap GROUP BY room_id ORDER BY room_id")
    return [_gap(row) for row in rows]


def read_gap(tx: Transaction, room_id: str) -> Gap | None:
    row = tx.execute("SELECT * FROM gap WHERE room_id = ? ORDER BY base LIMIT 1", (room_id,)).fetchone()
    return _gap(row) if row else None


def is_held_up(tx: Transaction, room_id: str) -> bool:
    """Whether this room's events must wait."""
    return tx.execute("SELECT 1 FROM gap WHERE room_id = ?", (room_id,)).fetchone() is not None


def add_arrivals(tx: Transaction, room_id: str, events: Sequence[Mapping[str, Any]]) -> None:
    """Behind everything that waits; oldest first. Known ones are left out. After `open_gap`, from its base upwards."""
    place = _free_place(tx, room_id)
    for event in events:
        if not is_known(tx, event["event_id"]):
            _insert_arrival(tx, room_id, place, event)
            place += 1


def take_page(tx: Transaction, gap: Gap, events: Sequence[Mapping[str, Any]], *, cursor: str, missed: int) -> None:
    """One page, newest first, below what is there, and the cursor of the next page with it."""
    place = gap.base - 1 - gap.filled
    for event in events:
        _insert_arrival(tx, gap.room_id, place, event)
        place -= 1
    tx.execute(
        "UPDATE gap SET cursor = ?, filled = filled + ?, missed = missed + ?, tries = 0, not_before = 0 "
        "WHERE room_id = ? AND base = ?",
        (cursor, len(events), missed, gap.room_id, gap.base),
    )


def delay_gap(tx: Transaction, gap: Gap, not_before: int) -> None:
    tx.execute(
        "UPDATE gap SET not_before = ?, tries = tries + 1 WHERE room_id = ? AND base = ?", (not_before, gap.room_id, gap.base)
    )


def close_gap(tx: Transaction, gap: Gap) -> list[Arrival]:
    """The gap is filled: everything that waited for it and for nothing else, in order, is taken out."""
    tx.execute("DELETE FROM gap WHERE room_id = ? AND base = ?", (gap.room_id, gap.base))
    further = tx.execute("SELECT min(base) FROM gap WHERE room_id = ?", (gap.room_id,)).fetchone()[0]
    below = (1 << 62) if further is None else further - GAP_SPAN
    rows = tx.execute("SELECT * FROM arrival WHERE room_id = ? AND place < ? ORDER BY place", (gap.room_id, below)).fetchall()
    tx.execute("DELETE FROM arrival WHERE room_id = ? AND place < ?", (gap.room_id, below))
    return [Arrival(row["room_id"], row["place"], row["event_id"], json.loads(row["event"])) for row in rows]


def _admit(tx: Transaction, change: HeardChange, now: int) -> Admitted:
    match change:
        case NewHeard():
            return _admit_new(tx, change, now)
        case EditedHeard():
            return _admit_edit(tx, change, now)
        case Withdrawn():
            return _admit_withdrawal(tx, change)
        case NewReaction():
            return _admit_reaction(tx, change)
        case Answered():
            new = answer_question(tx, change.question_id, change.answer, change.by, now)
            return Admitted(change, None, "answered" if new else "known")


def _admit_new(tx: Transaction, change: NewHeard, now: int) -> Admitted:
    for_self = change.for_self
    done = tx.execute(
        "INSERT INTO heard (event_id, room_id, sender, sender_name, kind, body, sent_at, heard_at, reply_to, thread, standing, "
        "reason, state, closed_how, person) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (event_id) DO NOTHING",
        (
            change.event_id,
            change.room_id,
            change.sender,
            change.sender_name,
            change.kind,
            change.body,
            change.sent_at,
            now,
            change.reply_to,
            change.thread,
            change.standing,
            change.reason,
            HeardState.CLOSED if for_self else HeardState.PENDING,
            "self" if for_self else None,
            change.person,
        ),
    )
    if done.rowcount == 0 or done.lastrowid is None:
        return Admitted(change, None, "known")
    if change.person and not change.history and change.kind != MISSED:
        note_spoken(tx, change.room_id, change.thread, done.lastrowid, now)
    how = _admit_for_self(tx, for_self, change.sender, now) if for_self else change.standing.value
    return Admitted(change, done.lastrowid, how)


def _admit_for_self(tx: Transaction, for_self: ForSelf, sender: str, now: int) -> str:
    if for_self.kind is None:
        return "barred"
    admit_steer(tx, for_self.run_id, for_self.event_id, for_self.kind, sender, for_self.text, now)
    return for_self.kind


def _admit_edit(tx: Transaction, change: EditedHeard, now: int) -> Admitted:
    row = tx.execute("SELECT * FROM heard WHERE event_id = ?", (change.target,)).fetchone()
    if row is None or (row["room_id"], row["sender"]) != (change.room_id, change.sender):
        return Admitted(change, None, "unknown")
    if change.for_self is not None and row["closed_how"] == "self":
        for_self = change.for_self
        if for_self.kind and revise_steer(tx, change.target, for_self.kind, for_self.text):
            return Admitted(change, row["seq"], "edited")
        return Admitted(change, row["seq"], _admit_for_self(tx, for_self, change.sender, now))
    if row["state"] != HeardState.PENDING:
        return Admitted(change, row["seq"], "closed")
    rises = row["standing"] == Standing.CONTEXT and change.standing is Standing.MAIL
    tx.execute(
        "UPDATE heard SET body = ?, edited = 1, standing = ?, reason = ? WHERE seq = ?",
        (change.body, *((Standing.MAIL, change.reason) if rises else (row["standing"], row["reason"])), row["seq"]),
    )
    return Admitted(change, row["seq"], "mail" if rises else "edited")


def _admit_withdrawal(tx: Transaction, change: Withdrawn) -> Admitted:
    withdraw_reaction(tx, change.target)
    row = tx.execute("SELECT seq, state FROM heard WHERE event_id = ? AND room_id = ?", (change.target, change.room_id)).fetchone()
    if row is None:
        return Admitted(change, None, "unknown")
    if row["state"] != HeardState.PENDING and not withdraw_steer(tx, change.target):
        return Admitted(change, row["seq"], "closed")
    tx.execute("UPDATE heard SET state = 'withdrawn', body = '' WHERE seq = ?", (row["seq"],))
    return Admitted(change, row["seq"], "withdrawn")


def _admit_reaction(tx: Transaction, change: NewReaction) -> Admitted:
    one = change.reaction
    hers = tx.execute("SELECT 1 FROM said WHERE event_id = ? AND room_id = ?", (one.target, one.room_id)).fetchone()
    if hers is None:
        return Admitted(change, None, "unknown")
    return Admitted(change, None, "reacted" if admit_reaction(tx, one) else "known")


def _insert_arrival(tx: Transaction, room_id: str, place: int, event: Mapping[str, Any]) -> None:
    tx.execute(
        "INSERT INTO arrival (room_id, place, event_id, event) VALUES (?, ?, ?, ?) ON CONFLICT (event_id) DO NOTHING",
        (room_id, place, event["event_id"], json.dumps(event)),
    )


def _free_place(tx: Transaction, room_id: str) -> int:
    """Above everything that waits in this room, gaps included: a gap may have nothing behind it yet."""
    row = tx.execute(
        "SELECT max(coalesce((SELECT max(place) + 1 FROM arrival WHERE room_id = :room), 0), "
        "coalesce((SELECT max(base) FROM gap WHERE room_id = :room), 0))",
        {"room": room_id},
    ).fetchone()
    return int(row[0])


def _gap(row: Any) -> Gap:
    return Gap(
        row["room_id"],
        row["base"],
        row["cursor"],
        row["filled"],
        row["opened_at"],
        row["not_before"],
        row["tries"],
        row["until"],
        bool(row["fresh"]),
        row["missed"],
    )
