"""Door: turns, and the mail that they take and close (design §3, T3a and T3b).

1. Opening and closing a turn are compare-and-set on run and holder: no row, no effect, and whoever asked discards what it has.
2. T3a counts one more attempt on every row of the batch. Only a turn that the model has answered closes them.
3. A turn that was lost, or came to nothing by a fault, stays on record with its rows: from it theirs are counted, and which one is
   to blame.
"""

import json
from collections.abc import Sequence
from typing import Any

from mind_body.mind.places import admit_mail_places, newest_seq
from mind_body.mind.records import Heard, Room
from mind_body.mind.rows import heard_from_row, room_from_row
from mind_body.mind.runs import charge_run, holds_run
from mind_body.mind.store import Transaction
from mind_body.mind.turning import CLOSING, FAULT, Mail, NewTurn, Relation, TurnEnd
from mind_body.mind.wake_facts import WaitingMail

MAIL_READ_MAX = 1000
"""Pending rows looked at when a batch is chosen, oldest first; a batch takes at most 50."""


def read_typing(tx: Transaction) -> list[tuple[str, str]]:
    """Room and holder for every room whose mail a turn is answering now. Whether the holder lives is the asker's to see."""
    rows = tx.execute(
        "SELECT DISTINCT heard.room_id, run.holder FROM turn JOIN run ON run.id = turn.run_id "
        "JOIN turn_heard ON turn_heard.turn_id = turn.id JOIN heard ON heard.seq = turn_heard.seq "
        "WHERE turn.state = 'opened' AND turn_heard.role = 'mail' AND run.ended_at IS NULL AND run.holder IS NOT NULL "
        "ORDER BY heard.room_id"
    )
    return [(row["room_id"], row["holder"]) for row in rows]


def read_mail(tx: Transaction, conversations: Sequence[str], *, apart: Sequence[WaitingMail] = ()) -> list[Mail]:
    """Pending mail of these conversations, in order, where she can answer it: in rooms that she has joined. `apart` is left out:
    here and not later, so that however much of it waits, it hides nobody's.
    """
    left_out = [[one.room_id, one.thread, one.sender, int(one.person)] for one in apart]
    rows = tx.execute(
        "SELECT heard.*, room.conversation FROM heard JOIN room USING (room_id) "
        "WHERE heard.standing = 'mail' AND heard.state = 'pending' AND room.membership = 'joined' "
        "AND room.conversation IN (SELECT value FROM json_each(?)) "
        "AND (heard.room_id, coalesce(heard.thread, ''), heard.sender, heard.person) NOT IN (SELECT json_extract(value, '$[0]'), "
        "json_extract(value, '$[1]'), json_extract(value, '$[2]'), json_extract(value, '$[3]') FROM json_each(?)) "
        "ORDER BY heard.seq LIMIT ?",
        (json.dumps(list(conversations)), json.dumps(left_out), MAIL_READ_MAX),
    )
    return [_mail(tx, row) for row in rows.fetchall()]


def read_context(tx: Transaction, session_id: str | None, rooms: Sequence[str], before: int | None, most: int) -> list[Heard]:
    """The newest context rows of these rooms that this session has not been shown, oldest first."""
    rows = tx.execute(
        "SELECT * FROM heard WHERE room_id IN (SELECT value FROM json_each(?)) AND standing = 'context' "
        "AND state <> 'withdrawn' AND (? IS NULL OR seq < ?) AND seq NOT IN ("
        "SELECT turn_heard.seq FROM turn JOIN turn_heard ON turn_heard.turn_id = turn.id "
        "WHERE turn.session_id = ? AND turn.received <> '[]') "
        "ORDER BY seq DESC LIMIT ?",
        (json.dumps(list(rooms)), before, before, session_id or "", most),
    )
    return [heard_from_row(row) for row in rows][::-1]


def read_relations(tx: Transaction, event_ids: Sequence[str]) -> dict[str, Relation]:
    """For each event that the mind knows: the heard row that it is, or that it is hers."""
    wanted = json.dumps(sorted(set(event_ids)))
    theirs = tx.execute("SELECT event_id, seq, room_id FROM heard WHERE event_id IN (SELECT value FROM json_each(?))", (wanted,))
    found = {row["event_id"]: Relation(row["seq"], row["room_id"]) for row in theirs}
    hers = tx.execute("SELECT event_id, room_id FROM said WHERE event_id IN (SELECT value FROM json_each(?))", (wanted,))
    return found | {row["event_id"]: Relation(None, row["room_id"]) for row in hers}


def read_shown(tx: Transaction, conversation: str, seqs: Sequence[int]) -> dict[int, Heard]:
    """Those of these heard rows that a turn of this conversation has shown her."""
    rows = tx.execute(
        "SELECT * FROM heard WHERE seq IN (SELECT value FROM json_each(?)) AND EXISTS ("
        "SELECT 1 FROM turn_heard JOIN turn ON turn.id = turn_heard.turn_id "
        "WHERE turn_heard.seq = heard.seq AND turn.conversation = ?)",
        (json.dumps(list(seqs)), conversation),
    )
    return {row["seq"]: heard_from_row(row) for row in rows}


def read_conversation_rooms(tx: Transaction, conversation: str) -> list[Room]:
    """The rooms of a conversation that she has joined, in the order of their handles."""
    rows = tx.execute("SELECT * FROM room WHERE conversation = ? AND membership = 'joined' ORDER BY number", (conversation,))
    return [room_from_row(row) for row in rows]


def open_turn(tx: Transaction, turn: NewTurn, holder: str, now: int) -> bool:
    """T3a; its session is on record already. False, and no effect, for who does not hold the run."""
    if not holds_run(tx, turn.run_id, holder):
        return False
    tx.execute(
        "INSERT INTO turn (id, run_id, session_id, number, conversation, state, opened_at, input, after_seq) "
        "VALUES (?, ?, ?, ?, ?, 'opened', ?, ?, ?)",
        (turn.id, turn.run_id, turn.session_id, turn.number, turn.conversation, now, turn.input, newest_seq(tx)),
    )
    tx.executemany("INSERT INTO turn_heard VALUES (?, ?, 'mail')", [(turn.id, seq) for seq in turn.mail])
    tx.executemany("INSERT INTO turn_heard VALUES (?, ?, 'context')", [(turn.id, seq) for seq in turn.context])
    tx.executemany("INSERT INTO turn_room VALUES (?, ?, ?)", [(turn.id, *room) for room in turn.rooms])
    tx.executemany("INSERT INTO turn_run VALUES (?, ?, ?)", [(turn.id, *run) for run in turn.runs])
    tx.executemany("UPDATE heard SET attempts = attempts + 1 WHERE seq = ?", [(seq,) for seq in turn.mail])
    admit_mail_places(tx, turn.id)
    return True


def close_turn(tx: Transaction, turn_id: str, run_id: str, *, holder: str, end: TurnEnd, now: int) -> bool:
    """T3b but for the session and what is said. False, and no effect, when the run is not the holder's or the turn is over."""
    if not holds_run(tx, run_id, holder):
        return False
    changed = tx.execute(
        "UPDATE turn SET state = ?, ended_at = ?, why = ?, sent = ?, received = ?, cost_micro_usd = ?, uncached_tokens = ?, "
        "cache_read_tokens = ?, cache_write_5m_tokens = ?, cache_write_1h_tokens = ?, output_tokens = ?, model_ms = ? "
        "WHERE id = ? AND run_id = ? AND state = 'opened'",
        (end.state, now, end.why, json.dumps(end.sent), json.dumps(end.received), *_figures(end), turn_id, run_id),
    )
    if changed.rowcount != 1:
        return False
    charge_run(tx, run_id, holder, end.cost_micro_usd)
    if end.state in CLOSING:
        tx.execute(
            "UPDATE heard SET state = 'closed', closed_how = ?, turn_id = ? WHERE state = 'pending' "
            "AND seq IN (SELECT seq FROM turn_heard WHERE turn_id = ? AND role = 'mail')",
            (end.state, turn_id, turn_id),
        )
        tx.execute(
            "UPDATE run SET told_turn = ? WHERE id IN (SELECT run_id FROM turn_run WHERE turn_id = ? AND told = 'ended')",
            (turn_id, turn_id),
        )
    return True


def close_as_failed(tx: Transaction, seq: int, run_id: str, holder: str) -> bool:
    """Close the row that kills, for who holds the run."""
    if not holds_run(tx, run_id, holder):
        return False
    changed = tx.execute("UPDATE heard SET state = 'closed', closed_how = 'failed' WHERE seq = ? AND state = 'pending'", (seq,))
    return changed.rowcount == 1


def _mail(tx: Transaction, row: Any) -> Mail:
    if row["attempts"] == 0:
        return Mail(heard_from_row(row), row["conversation"])
    turns = tx.execute(
        "SELECT turn.rowid AS place, turn.state = 'lost' AS lost, ("
        "SELECT count(*) FROM turn_heard AS beside WHERE beside.turn_id = turn.id AND beside.role = 'mail') AS together "
        "FROM turn_heard JOIN turn ON turn.id = turn_heard.turn_id WHERE turn_heard.seq = ? AND turn_heard.role = 'mail' "
        "AND (turn.state = 'lost' OR (turn.state = 'failed' AND substr(turn.why, 1, ?) = ?)) ORDER BY turn.rowid",
        (row["seq"], len(FAULT), FAULT),
    ).fetchall()
    lost, faults = [turn for turn in turns if turn["lost"]], [turn for turn in turns if not turn["lost"]]
    return Mail(
        heard_from_row(row),
        row["conversation"],
        len(lost),
        killed_alone=bool(lost) and lost[-1]["together"] == 1,
        faults=len(faults),
        proven=bool(faults) and _answered_between(tx, faults[0]["place"], faults[-1]["place"]),
        faulted_alone=bool(faults) and faults[-1]["together"] == 1,
    )


def _answered_between(tx: Transaction, first: int, last: int) -> bool:
    found = tx.execute("SELECT 1 FROM turn WHERE rowid > ? AND rowid < ? AND state IN ('replied', 'unreadable')", (first, last))
    return found.fetchone() is not None


def _figures(end: TurnEnd) -> tuple[int, ...]:
    return (
        end.cost_micro_usd,
        end.uncached_tokens,
        end.cache_read_tokens,
        end.cache_write_5m_tokens,
        end.cache_write_1h_tokens,
        end.output_tokens,
        end.model_ms,
    )
