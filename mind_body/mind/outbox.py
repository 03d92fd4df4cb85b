"""Door: the outbox. What is to be said, and what came of it: T4a, T4b and what stands between them (design §3).

1. A row's id is its Matrix transaction id. Admitting the same id again changes nothing, by whichever organ: it is said once.
2. queued → attempted → sent or refused. A row that is sent or refused is never touched again.
3. `attempted_at` and `device_id` are the *first* attempt's, since that is what the homeserver's memory of a transaction id counts
   from; they move only when the room's history has shown that nothing arrived (`mark_attempted(renewed=True)`). A login takes the
   device away (`forget_devices`): whoever was logged out has a device of the same name that remembers nothing.
4. A room's rows go out in the order they were queued, replies and reactions before notices and those before edits; in a room that
   she is only invited to they wait, since the homeserver would refuse them for ever.
5. An edit takes the place of every older one of the same row that nobody has tried to send: only the newest is worth an event.
"""

import json
from collections.abc import Sequence
from typing import Any

from mind_body.mind.records import NewSaid, Said, SaidKind, SaidState
from mind_body.mind.store import Transaction

_ORDER = "kind = 'edit', kind = 'notice', place"
_FIRST_OF_EACH_ROOM = f"""
SELECT * FROM (
    SELECT said.*, row_number() OVER (PARTITION BY room_id ORDER BY {_ORDER}) AS rank
    FROM said WHERE state IN ('queued', 'attempted')
    AND room_id NOT IN (SELECT room_id FROM room WHERE membership = 'invited')
) WHERE rank = 1 ORDER BY {_ORDER}
"""


def admit_said(tx: Transaction, rows: Sequence[NewSaid], turn_id: str | None, now: int) -> int:
    """Queue what is not queued yet, in the order given; how many were new."""
    return sum(_admit(tx, row, turn_id, now) for row in rows)


def _admit(tx: Transaction, row: NewSaid, turn_id: str | None, now: int) -> bool:
    new = tx.execute(
        "INSERT INTO said"
        " (id, kind, room_id, event_type, content, thread, reply_to, after_said, thread_said, edits, turn_id, queued_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        (
            row.id,
            row.kind,
            row.room_id,
            row.event_type,
            json.dumps(row.content),
            row.thread,
            row.reply_to,
            row.after_said,
            row.thread_said,
            row.edits,
            turn_id,
            now,
        ),
    )
    if new.rowcount and row.edits:
        tx.execute(
            "UPDATE said SET state = 'superseded' WHERE edits = ? AND state = 'queued' AND place < ?", (row.edits, new.lastrowid)
        )
    return bool(new.rowcount)


def next_said(tx: Transaction) -> list[Said]:
    """For every room that has something unsent, the row that is its turn; replies before notices."""
    return [_said(row) for row in tx.execute(_FIRST_OF_EACH_ROOM)]


def next_said_in(tx: Transaction, room_id: str) -> Said | None:
    """The row whose turn it is in one room."""
    row = tx.execute(
        f"SELECT * FROM said WHERE room_id = ? AND state IN ('queued', 'attempted') ORDER BY {_ORDER} LIMIT 1",
        (room_id,),
    ).fetchone()
    return _said(row) if row else None


def count_unsent(tx: Transaction) -> int:
    return int(tx.execute("SELECT count(*) FROM said WHERE state IN ('queued', 'attempted')").fetchone()[0])


def read_said(tx: Transaction, said_id: str) -> Said | None:
    row = tx.execute("SELECT * FROM said WHERE id = ?", (said_id,)).fetchone()
    return _said(row) if row else None


def read_last_event(tx: Transaction, room_id: str) -> str | None:
    """The event of the newest words of hers in a room, notices included."""
    row = tx.execute(
        "SELECT event_id FROM said WHERE room_id = ? AND state = 'sent' AND kind IN ('say', 'notice') ORDER BY place DESC LIMIT 1",
        (room_id,),
    ).fetchone()
    return row["event_id"] if row else None


def read_related(tx: Transaction, said: Said) -> dict[str, str]:
    """Said id → event id of those said rows that a row relates to, where they have been sent."""
    found = {}
    for said_id in {said.after_said, said.thread_said, said.edits} - {None}:
        row = tx.execute("SELECT event_id FROM said WHERE id = ? AND event_id IS NOT NULL", (said_id,)).fetchone()
        if row and said_id:
            found[said_id] = str(row["event_id"])
    return found


def count_edits(tx: Transaction, said_id: str) -> int:
    """How many edits of a row were ever queued, those included that a newer one replaced."""
    return int(tx.execute("SELECT count(*) FROM said WHERE edits = ?", (said_id,)).fetchone()[0])


def mark_attempted(tx: Transaction, said_id: str, device_id: str, now: int, *, renewed: bool = False) -> None:
    """T4a. `renewed`: the room's history was read and it is not there, so the homeserver's memory begins anew."""
    tx.execute(
        "UPDATE said SET state = 'attempted',"
        " attempted_at = CASE WHEN :renewed OR attempted_at IS NULL THEN :now ELSE attempted_at END,"
        " device_id = CASE WHEN :renewed OR device_id IS NULL THEN :device ELSE device_id END"
        " WHERE id = :id AND state IN ('queued', 'attempted')",
        {"id": said_id, "device": device_id, "now": now, "renewed": renewed},
    )


def forget_devices(tx: Transaction) -> None:
    """She logs in anew: whether the homeserver still knows what was attempted before, nobody can tell."""
    tx.execute("UPDATE said SET device_id = NULL WHERE state = 'attempted'")


def mark_sent(tx: Transaction, said_id: str, event_id: str) -> None:
    """T4b."""
    tx.execute(
        "UPDATE said SET state = 'sent', event_id = ?, not_before = 0, reason = NULL"
        " WHERE id = ? AND state IN ('queued', 'attempted')",
        (event_id, said_id),
    )


def mark_refused(tx: Transaction, said_id: str, reason: str) -> None:
    """The homeserver will never take it."""
    tx.execute(
        "UPDATE said SET state = 'refused', not_before = 0, reason = ? WHERE id = ? AND state IN ('queued', 'attempted')",
        (reason, said_id),
    )


def mark_wait(tx: Transaction, said_id: str, not_before: int, reason: str) -> None:
    """One more try came to nothing; the next is not made before an instant, whoever restarts in between."""
    tx.execute(
        "UPDATE said SET not_before = ?, tries = tries + 1, reason = ? WHERE id = ? AND state IN ('queued', 'attempted')",
        (not_before, reason, said_id),
    )


def _said(row: Any) -> Said:
    return Said(
        id=row["id"],
        place=row["place"],
        kind=SaidKind(row["kind"]),
        room_id=row["room_id"],
        event_type=row["event_type"],
        content=json.loads(row["content"]),
        thread=row["thread"],
        reply_to=row["reply_to"],
        after_said=row["after_said"],
        turn_id=row["turn_id"],
        state=SaidState(row["state"]),
        queued_at=row["queued_at"],
        attempted_at=row["attempted_at"],
        device_id=row["device_id"],
        event_id=row["event_id"],
        not_before=row["not_before"],
        tries=row["tries"],
        reason=row["reason"],
        thread_said=row["thread_said"],
        edits=row["edits"],
    )
