"""Door: model sessions as the mind records them (design §7). The cursor is a cache of the record, never the record.

1. One open session per conversation; opening another ends it, in the same transaction.
2. What a session holds are the calls that were answered, whatever came of their turn: those and no others are told again.
   Figures and cursor move with them.
3. What was said in earlier sessions is read here for rehydration: answered mail and her own words, never context.
"""

import json
from collections.abc import Sequence
from typing import Any

from mind_body.mind.records import Session, TurnState
from mind_body.mind.rows import heard_from_row, room_from_row
from mind_body.mind.store import Transaction
from mind_body.mind.turning import Dialogue, SessionUse

_ANSWERED = "('replied', 'unreadable', 'refused')"


def open_session(tx: Transaction, session: Session) -> None:
    """On record from T3a on; the caller has ended the one before."""
    columns = (
        session.id,
        session.conversation,
        session.provider,
        session.model,
        session.instructions,
        session.instructions_digest,
        session.schema_json,
        session.schema_digest,
        session.rehydration,
        session.opened_at,
        session.ceiling_tokens,
        session.window_tokens,
        session.rehydration_tokens,
        session.last_used_at,
    )
    tx.execute(
        "INSERT INTO session (id, conversation, provider, model, instructions, instructions_digest, schema_json, schema_digest, "
        "rehydration, opened_at, ceiling_tokens, window_tokens, rehydration_tokens, last_used_at) "
        f"VALUES ({', '.join('?' * len(columns))})",
        columns,
    )


def end_session(tx: Transaction, session_id: str, reason: str, now: int) -> bool:
    """False when it has ended already."""
    changed = tx.execute(
        "UPDATE session SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL", (now, reason, session_id)
    )
    return changed.rowcount == 1


def record_use(tx: Transaction, session_id: str, turn_id: str, use: SessionUse, now: int) -> None:
    """The session's figures after a turn in which a call was answered."""
    tx.execute(
        "UPDATE session SET cursor = ?, prefix_tokens = ?, window_tokens = ?, ceiling_tokens = ?, last_used_at = ?, "
        "last_turn_id = ?, turns = turns + 1 WHERE id = ?",
        (use.cursor, use.prefix_tokens, use.window_tokens, use.ceiling_tokens, now, turn_id, session_id),
    )


def read_open_session(tx: Transaction, conversation: str) -> Session | None:
    row = tx.execute("SELECT * FROM session WHERE conversation = ? AND ended_at IS NULL", (conversation,)).fetchone()
    return _session(row) if row else None


def read_open_sessions(tx: Transaction, prefix: str) -> list[Session]:
    """The open sessions of all conversations whose id begins so."""
    rows = tx.execute("SELECT * FROM session WHERE ended_at IS NULL AND substr(conversation, 1, ?) = ?", (len(prefix), prefix))
    return [_session(row) for row in rows]


def read_last_state(tx: Transaction, session_id: str) -> TurnState | None:
    """How the newest turn of a session ended; None before the first."""
    row = tx.execute("SELECT state FROM turn WHERE session_id = ? ORDER BY rowid DESC LIMIT 1", (session_id,)).fetchone()
    return TurnState(row["state"]) if row else None


def read_exchanges(tx: Transaction, session_id: str) -> list[tuple[str, str]]:
    """Every answered request of a session with its answer, in order, byte for byte."""
    rows = tx.execute(
        "SELECT input, sent, received FROM turn WHERE session_id = ? AND received <> '[]' ORDER BY rowid", (session_id,)
    )
    return [exchange for row in rows for exchange in _exchanges(row)]


def read_told_rooms(tx: Transaction, session_id: str) -> dict[str, str]:
    """Room id → the name under which this session was last told of it."""
    rows = tx.execute(
        "SELECT turn_room.room_id, turn_room.name FROM turn JOIN turn_room ON turn_room.turn_id = turn.id "
        "WHERE turn.session_id = ? AND turn.received <> '[]' ORDER BY turn.rowid",
        (session_id,),
    )
    return {row["room_id"]: row["name"] for row in rows}


def read_heard_senders(tx: Transaction, session_id: str, seqs: Sequence[int]) -> set[str | None]:
    """Whose words a session has been shown, also by the turn that is open; `seqs`: heard rows that it was opened with besides.

    None stands for a row that is not there any more: somebody wrote it.
    """
    rows = tx.execute(
        "SELECT DISTINCT heard.sender FROM (SELECT turn_heard.seq FROM turn JOIN turn_heard ON turn_heard.turn_id = turn.id "
        "WHERE turn.session_id = ? UNION SELECT value FROM json_each(?)) AS shown LEFT JOIN heard ON heard.seq = shown.seq "
        "WHERE heard.kind IS NULL OR heard.kind <> 'missed'",
        (session_id, json.dumps(list(seqs))),
    )
    return {row["sender"] for row in rows}


def read_rehydration(tx: Transaction, session_id: str) -> str:
    row = tx.execute("SELECT rehydration FROM session WHERE id = ?", (session_id,)).fetchone()
    return str(row["rehydration"]) if row else ""


def read_dialogue(tx: Transaction, conversation: str, most: int) -> list[Dialogue]:
    """The newest answered mail of a conversation and what she said to it, oldest first; about `most` messages."""
    turns = tx.execute(
        f"SELECT id FROM turn WHERE conversation = ? AND state IN {_ANSWERED} ORDER BY opened_at DESC, rowid DESC LIMIT ?",
        (conversation, most),
    ).fetchall()
    found: list[Dialogue] = []
    for turn in turns:
        found[:0] = [*_read_mail_of(tx, turn["id"]), *_read_said_of(tx, turn["id"])]
        if len(found) >= most:
            break
    return found


def count_dialogue(tx: Transaction, conversation: str) -> int:
    """How many messages of this conversation were answered in all, hers not counted."""
    row = tx.execute(
        "SELECT count(DISTINCT turn_heard.seq) FROM turn JOIN turn_heard ON turn_heard.turn_id = turn.id "
        f"WHERE turn.conversation = ? AND turn.state IN {_ANSWERED} AND turn_heard.role = 'mail'",
        (conversation,),
    ).fetchone()
    return int(row[0])


def admit_persona(tx: Transaction, name: str, text: str, digest: str, now: int) -> None:
    """The persona as its operator last wrote it; replaced whole when it changed."""
    tx.execute(
        "INSERT INTO persona (one, name, text, digest, at) VALUES (1, ?, ?, ?, ?) ON CONFLICT (one) DO UPDATE SET "
        "name = excluded.name, text = excluded.text, digest = excluded.digest, at = excluded.at "
        "WHERE persona.digest <> excluded.digest OR persona.name <> excluded.name",
        (name, text, digest, now),
    )


def _read_mail_of(tx: Transaction, turn_id: str) -> list[Dialogue]:
    rows = tx.execute(
        "SELECT heard.* FROM turn_heard JOIN heard ON heard.seq = turn_heard.seq "
        "WHERE turn_heard.turn_id = ? AND turn_heard.role = 'mail' ORDER BY heard.seq",
        (turn_id,),
    ).fetchall()
    rooms = _read_rooms(tx, [row["room_id"] for row in rows])
    return [Dialogue(rooms[row["room_id"]], row["heard_at"], heard_from_row(row), "") for row in rows if row["room_id"] in rooms]


def _read_said_of(tx: Transaction, turn_id: str) -> list[Dialogue]:
    rows = tx.execute(
        "SELECT room_id, queued_at, content FROM said WHERE turn_id = ? AND kind = 'say' ORDER BY place", (turn_id,)
    ).fetchall()
    rooms = _read_rooms(tx, [row["room_id"] for row in rows])
    texts = [(row, str(json.loads(row["content"]).get("body", ""))) for row in rows]
    return [Dialogue(rooms[row["room_id"]], row["queued_at"], None, text) for row, text in texts if row["room_id"] in rooms]


def _read_rooms(tx: Transaction, room_ids: Sequence[str]) -> dict[str, Any]:
    rows = tx.execute("SELECT * FROM room WHERE room_id IN (SELECT value FROM json_each(?))", (json.dumps(list(room_ids)),))
    return {row["room_id"]: room_from_row(row) for row in rows}


def _exchanges(row: Any) -> list[tuple[str, str]]:
    asked = {0: row["input"]} | {block["at"]: block["text"] for block in json.loads(row["sent"])}
    answered = {block["at"]: block["text"] for block in json.loads(row["received"])}
    return [(asked[at], answered[at]) for at in sorted(asked) if at in answered]


def _session(row: Any) -> Session:
    return Session(**{key: row[key] for key in row.keys()})  # noqa: SIM118 - a sqlite3.Row iterates over its values
