"""Door: what a run of her Self leaves for the next session of its work: one hand-off per run, written once (design §8)."""

from typing import Any

from mind_body.mind.store import Transaction
from mind_body.mind.work_records import Handoff


def admit_handoff(tx: Transaction, handoff: Handoff) -> bool:
    """False, and no effect, where this run has left one already."""
    done = tx.execute(
        "INSERT INTO handoff (run_id, workspace, text, origin, cut, at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO NOTHING",
        (handoff.run_id, handoff.workspace, handoff.text, handoff.origin, handoff.cut, handoff.at),
    )
    return done.rowcount == 1


def read_handoff(tx: Transaction, run_id: str) -> Handoff | None:
    row = tx.execute("SELECT * FROM handoff WHERE run_id = ?", (run_id,)).fetchone()
    return _handoff(row) if row else None


def newest_handoff(tx: Transaction, workspace: str, conversation: str) -> Handoff | None:
    """What the last run on a workspace for this conversation left; the order is the runs' own."""
    row = tx.execute(
        "SELECT handoff.* FROM handoff JOIN run ON run.id = handoff.run_id JOIN follow_up ON follow_up.id = run.follow_up_id "
        "WHERE handoff.workspace = ? AND follow_up.conversation = ? ORDER BY run.rowid DESC LIMIT 1",
        (workspace, conversation),
    ).fetchone()
    return _handoff(row) if row else None


def _handoff(row: Any) -> Handoff:
    return Handoff(row["run_id"], row["workspace"], row["text"], row["origin"], bool(row["cut"]), row["at"])
