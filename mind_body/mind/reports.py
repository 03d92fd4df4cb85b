"""Door: what `mind status` and `mind history` show. Reads only, one snapshot each; nothing here decides.

History is for the operator: it holds what was written in the rooms. Its entries are ordered by instant, which is for display;
what came first in a room is told by each kind's own row order.
"""

import json
from dataclasses import dataclass
from typing import Any

from mind_body.mind.outbox import count_unsent
from mind_body.mind.records import Pause, Run, RunKind
from mind_body.mind.runs import live_run, read_pauses
from mind_body.mind.spent import read_spent
from mind_body.mind.store import Transaction


@dataclass(frozen=True, slots=True)
class Figures:
    """One Mind at one instant."""

    live_run: Run | None
    self_run: Run | None
    waiting_work: int
    """Work that waits for a run, or for a confirmation."""
    pending: int
    """Mail that no turn has closed."""
    unsent: int
    """Said rows without a receipt."""
    prefix_tokens: int
    """The newest usable figure of her Persona's session used last: telemetry, never a sum."""
    ceiling_tokens: int
    spent_micro_usd: int
    """By turns since the instant that was asked for, and by the runs of her Self that have begun since."""
    pauses: tuple[Pause, ...]
    encrypted_rooms: tuple[str, ...]
    """Rooms she is in and cannot read."""
    heard_until: int | None
    """When the homeserver's newest answer was stored (empty ones every ten minutes); None before the first."""


def read_figures(tx: Transaction, since: int) -> Figures:
    """`since` is where "spent today" begins."""
    session = tx.execute(_NEWEST_SESSION).fetchone()
    return Figures(
        live_run=live_run(tx, RunKind.PERSONA_TURN),
        self_run=live_run(tx, RunKind.SELF_RUN),
        waiting_work=_number(tx, "SELECT count(*) FROM follow_up WHERE state IN ('proposed', 'open')"),
        pending=_number(tx, "SELECT count(*) FROM heard WHERE standing = 'mail' AND state = 'pending'"),
        unsent=count_unsent(tx),
        prefix_tokens=session["prefix_tokens"] if session else 0,
        ceiling_tokens=session["ceiling_tokens"] if session else 0,
        spent_micro_usd=read_spent(tx, since),
        pauses=read_pauses(tx),
        encrypted_rooms=tuple(
            row["name"] or row["room_id"]
            for row in tx.execute("SELECT name, room_id FROM room WHERE encrypted = 1 AND membership = 'joined' ORDER BY number")
        ),
        heard_until=_number(tx, "SELECT max(at) FROM position") or None,
    )


def read_newest_instant(tx: Transaction) -> int:
    """When this mind last learned or did anything; 0 for a mind that has only been made."""
    return _number(
        tx,
        "SELECT max(at) FROM (SELECT max(at) AS at FROM position UNION ALL SELECT max(heard_at) FROM heard "
        "UNION ALL SELECT max(queued_at) FROM said UNION ALL SELECT max(opened_at) FROM run)",
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of history. `what` names the kind of the rest: heard, said, turn, run."""

    at: int
    what: str
    conversation: str
    fields: dict[str, Any]


def read_history(tx: Transaction, limit: int, conversation: str | None = None) -> list[Entry]:
    """The newest `limit` entries, oldest first; of one conversation, or of all."""
    entries = [
        *(_heard(row) for row in tx.execute(_HEARD, {"of": conversation, "most": limit})),
        *(_said(row) for row in tx.execute(_SAID, {"of": conversation, "most": limit})),
        *(_turn(row) for row in tx.execute(_TURN, {"of": conversation, "most": limit})),
        *(entry for entry in (_run(row) for row in tx.execute(_RUN, {"most": limit})) if conversation is None),
    ]
    return sorted(entries, key=lambda entry: entry.at)[-limit:]


@dataclass(frozen=True, slots=True)
class TurnFigures:
    """What the turn behind one sent event took."""

    session: str
    model_ms: int
    cached_tokens: int
    uncached_tokens: int
    output_tokens: int
    cost_micro_usd: int


def read_turn_of_event(tx: Transaction, event_id: str) -> TurnFigures | None:
    """The turn that said this event; None for notices, and for events that are not hers."""
    row = tx.execute("SELECT turn.* FROM said JOIN turn ON turn.id = said.turn_id WHERE said.event_id = ?", (event_id,)).fetchone()
    if row is None:
        return None
    uncached = row["uncached_tokens"] + row["cache_write_5m_tokens"] + row["cache_write_1h_tokens"]
    return TurnFigures(
        row["session_id"], row["model_ms"], row["cache_read_tokens"], uncached, row["output_tokens"], row["cost_micro_usd"]
    )


_NEWEST_SESSION = """
SELECT prefix_tokens, ceiling_tokens FROM session WHERE conversation NOT LIKE 'work:%'
ORDER BY last_used_at DESC, id DESC LIMIT 1"""
_HEARD = """
SELECT heard.*, room.number AS number, room.conversation AS conversation FROM heard LEFT JOIN room USING (room_id)
WHERE :of IS NULL OR room.conversation = :of ORDER BY seq DESC LIMIT :most"""
_SAID = """
SELECT said.*, room.number AS number, room.conversation AS conversation FROM said LEFT JOIN room USING (room_id)
WHERE :of IS NULL OR room.conversation = :of ORDER BY place DESC LIMIT :most"""
_TURN = "SELECT * FROM turn WHERE :of IS NULL OR conversation = :of ORDER BY opened_at DESC, id DESC LIMIT :most"
_RUN = "SELECT * FROM run ORDER BY opened_at DESC, id DESC LIMIT :most"


def _heard(row: Any) -> Entry:
    return Entry(
        row["heard_at"],
        "heard",
        row["conversation"] or "",
        {
            "room": f"r{row['number']}" if row["number"] else row["room_id"],
            "who": row["sender"],
            "text": row["body"],
            "standing": row["standing"],
            "state": row["state"],
            "reason": row["reason"],
            "event_id": row["event_id"],
            "turn": row["turn_id"],
        },
    )


def _said(row: Any) -> Entry:
    content = json.loads(row["content"])
    return Entry(
        row["queued_at"],
        "said",
        row["conversation"] or "",
        {
            "room": f"r{row['number']}" if row["number"] else row["room_id"],
            "kind": row["kind"],
            "text": str(content.get("body") or content.get("key") or ""),
            "state": row["state"],
            "reason": row["reason"],
            "event_id": row["event_id"],
            "turn": row["turn_id"],
        },
    )


def _turn(row: Any) -> Entry:
    written = row["cache_write_5m_tokens"] + row["cache_write_1h_tokens"]
    return Entry(
        row["opened_at"],
        "turn",
        row["conversation"],
        {
            "turn": row["id"],
            "run": row["run_id"],
            "session": row["session_id"],
            "state": row["state"],
            "why": row["why"],
            "prefix_tokens": row["uncached_tokens"] + row["cache_read_tokens"] + written,
            "cached_tokens": row["cache_read_tokens"],
            "output_tokens": row["output_tokens"],
            "cost_micro_usd": row["cost_micro_usd"],
            "model_ms": row["model_ms"],
        },
    )


def _run(row: Any) -> Entry:
    return Entry(
        row["opened_at"],
        "run",
        ", ".join(json.loads(row["conversations"])),
        {
            "run": row["id"],
            "cause": row["cause"],
            "reason": row["reason"],
            "outcome": row["outcome"],
            "end_reason": row["end_reason"],
            "turns": row["turns"],
            "cost_micro_usd": row["cost_micro_usd"],
        },
    )


def _number(tx: Transaction, sql: str) -> int:
    found: int | None = tx.execute(sql).fetchone()[0]
    return found or 0
