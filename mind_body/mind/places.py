"""Door: rooms and threads as the loop budget counts them: where a person spoke last, and her turns since (design §9, cases W2).

1. "Since" is by row order. A turn counts where it was opened after the person's word was heard (`after_seq`), never by a clock.
2. A turn counts in every place that its mail came from, once in each, and once in the room. One under way counts; one that was
   lost, failed or met a limit does not: nobody was answered.
3. Where a person spoke is kept apart from what was said: words expire, and the count must not begin anew because of it.
"""

from collections.abc import Iterable
from typing import Any

from mind_body.mind.store import Transaction
from mind_body.mind.wake_facts import Place, Window

_COUNTED = "turn.state IN ('opened', 'replied', 'unreadable', 'refused')"


def newest_seq(tx: Transaction) -> int:
    """The newest heard row that there ever was. Not the newest that is there: context expires, and order must not go back."""
    row = tx.execute("SELECT seq FROM sqlite_sequence WHERE name = 'heard'").fetchone()
    return int(row["seq"]) if row else 0


def note_spoken(tx: Transaction, room_id: str, thread: str | None, seq: int, now: int) -> None:
    """A person spoke here."""
    tx.execute(
        "INSERT INTO spoke (room_id, thread, seq, at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (room_id, thread) DO UPDATE SET seq = excluded.seq, at = excluded.at WHERE excluded.seq > seq",
        (room_id, thread or "", seq, now),
    )


def read_spoke_at(tx: Transaction, room_id: str) -> int | None:
    """When a person last spoke anywhere in this room: for display."""
    row = tx.execute("SELECT at FROM spoke WHERE room_id = ? ORDER BY seq DESC LIMIT 1", (room_id,)).fetchone()
    return int(row["at"]) if row else None


def read_place(tx: Transaction, room_id: str, thread: str) -> Place:
    """One room's thread, or what is outside its threads ('')."""
    return _read(tx, room_id, thread, _spoke_in_room(tx, room_id))


def read_places(tx: Transaction, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Place]:
    """By room id and thread."""
    return {(room_id, thread): read_place(tx, room_id, thread) for room_id, thread in sorted(set(pairs))}


def read_thread(tx: Transaction, event_id: str) -> str:
    """The thread that an event was heard in; '' outside threads, and where it was never heard."""
    row = tx.execute("SELECT thread FROM heard WHERE event_id = ?", (event_id,)).fetchone()
    return str(row["thread"] or "") if row else ""


def admit_turn_places(tx: Transaction, turn_id: str, pairs: Iterable[tuple[str, str]]) -> None:
    """A turn counts here, too: where she speaks without having been asked there. Again changes nothing."""
    tx.executemany(
        "INSERT OR IGNORE INTO turn_place (room_id, thread, after_seq, turn_id) SELECT ?, ?, after_seq, id FROM turn WHERE id = ?",
        [(room_id, thread, turn_id) for room_id, thread in pairs],
    )


def admit_mail_places(tx: Transaction, turn_id: str) -> None:
    """A turn counts where its mail came from."""
    rows = tx.execute(
        "SELECT DISTINCT heard.room_id, coalesce(heard.thread, '') AS thread FROM turn_heard "
        "JOIN heard ON heard.seq = turn_heard.seq WHERE turn_heard.turn_id = ? AND turn_heard.role = 'mail'",
        (turn_id,),
    )
    admit_turn_places(tx, turn_id, [(row["room_id"], row["thread"]) for row in rows.fetchall()])


def read_turns_today(tx: Transaction, window: Window) -> dict[str, int]:
    """Her turns of the day for what an account wrote."""
    # CROSS JOIN keeps this order: the planner would begin with all that was ever heard in a turn.
    rows = tx.execute(
        "SELECT heard.sender, count(DISTINCT turn.id) AS turns FROM turn CROSS JOIN turn_heard ON turn_heard.turn_id = turn.id "
        "CROSS JOIN heard ON heard.seq = turn_heard.seq "
        f"WHERE turn.opened_at >= ? AND turn.opened_at < ? AND {_COUNTED} AND turn_heard.role = 'mail' GROUP BY heard.sender",
        (window.day_start, window.day_end),
    )
    return {row["sender"]: row["turns"] for row in rows}


def _read(tx: Transaction, room_id: str, thread: str, spoke_in_room: int) -> Place:
    spoke = tx.execute("SELECT seq FROM spoke WHERE room_id = ? AND thread = ?", (room_id, thread)).fetchone()
    spoke_here = int(spoke["seq"]) if spoke else 0
    here = _count(
        tx,
        "SELECT count(*) FROM turn_place JOIN turn ON turn.id = turn_place.turn_id "
        f"WHERE turn_place.room_id = ? AND turn_place.thread = ? AND turn_place.after_seq >= ? AND {_COUNTED}",
        (room_id, thread, spoke_here),
    )
    in_room = _count(
        tx,
        "SELECT count(DISTINCT turn.id) FROM turn_place JOIN turn ON turn.id = turn_place.turn_id "
        f"WHERE turn_place.room_id = ? AND turn_place.after_seq >= ? AND {_COUNTED}",
        (room_id, spoke_in_room),
    )
    return Place(room_id, thread, here, in_room, spoke_here, spoke_in_room)


def _spoke_in_room(tx: Transaction, room_id: str) -> int:
    return _count(tx, "SELECT max(seq) FROM spoke WHERE room_id = ?", (room_id,))


def _count(tx: Transaction, sql: str, values: tuple[Any, ...]) -> int:
    return int(tx.execute(sql, values).fetchone()[0] or 0)
