"""Door: runs, the grant under which a half of the Mind acts (design §2), and the pauses that hold them off.

1. Only the heartbeat opens runs; a partial unique index allows one live run per kind.
2. Adopting and ending are compare-and-set on run and holder: no row, no effect. A run ends exactly once.
3. A dead run is closed together with its open turns, in the transaction of whoever found it dead.
"""

import json
from collections.abc import Sequence
from typing import Any

from mind_body.ids import new_id
from mind_body.mind.places import newest_seq
from mind_body.mind.records import Pause, Run, RunKind
from mind_body.mind.store import Transaction

DEAD = "dead"
"""The outcome of a run whose holder is gone, or whom nobody ever held."""


def open_run(  # noqa: PLR0917 - a record's columns, in their order
    tx: Transaction, kind: RunKind, conversations: Sequence[str], cause: str, reason: str, now: int
) -> Run:
    """T2: a live run that nobody holds. IntegrityError where one of this kind is live: the caller looks first."""
    run_id, after_seq = new_id(), newest_seq(tx)
    tx.execute(
        "INSERT INTO run (id, kind, conversations, cause, reason, opened_at, after_seq) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (run_id, kind, json.dumps(list(conversations)), cause, reason, now, after_seq),
    )
    return Run(run_id, kind, tuple(conversations), cause, reason, now, None, None, None, None, None, 0, 0, after_seq=after_seq)


def live_run(tx: Transaction, kind: RunKind) -> Run | None:
    """The one run of this kind that has not ended."""
    row = tx.execute("SELECT * FROM run WHERE kind = ? AND ended_at IS NULL", (kind,)).fetchone()
    return run_from_row(row) if row else None


def read_run(tx: Transaction, run_id: str) -> Run | None:
    row = tx.execute("SELECT * FROM run WHERE id = ?", (run_id,)).fetchone()
    return run_from_row(row) if row else None


def recent_runs(tx: Transaction, kind: RunKind, most: int) -> list[Run]:
    """The newest ended runs of this kind, newest first."""
    rows = tx.execute("SELECT * FROM run WHERE kind = ? AND ended_at IS NOT NULL ORDER BY rowid DESC LIMIT ?", (kind, most))
    return [run_from_row(row) for row in rows]


def adopt_run(tx: Transaction, run_id: str, holder: str, now: int) -> bool:
    """Become its holder; False when somebody holds it or it has ended. The caller holds the lock already."""
    changed = tx.execute(
        "UPDATE run SET holder = ?, held_at = ? WHERE id = ? AND holder IS NULL AND ended_at IS NULL", (holder, now, run_id)
    )
    return changed.rowcount == 1


def holds_run(tx: Transaction, run_id: str, holder: str) -> bool:
    """Whether `holder` still holds this run: the guard of T3a and T3b."""
    return tx.execute("SELECT 1 FROM run WHERE id = ? AND holder = ? AND ended_at IS NULL", (run_id, holder)).fetchone() is not None


def charge_run(tx: Transaction, run_id: str, holder: str, cost_micro_usd: int) -> bool:
    """One more turn and its cost on the run; False, and no effect, for who does not hold it."""
    changed = tx.execute(
        "UPDATE run SET turns = turns + 1, cost_micro_usd = cost_micro_usd + ? WHERE id = ? AND holder = ? AND ended_at IS NULL",
        (cost_micro_usd, run_id, holder),
    )
    return changed.rowcount == 1


def end_run(  # noqa: PLR0917 - a record's columns, in their order
    tx: Transaction, run_id: str, holder: str | None, outcome: str, reason: str, now: int
) -> bool:
    """End it, if it is still held by `holder` (None: by nobody); False when it is not, or has ended already."""
    changed = tx.execute(
        "UPDATE run SET ended_at = ?, outcome = ?, end_reason = ? WHERE id = ? AND holder IS ? AND ended_at IS NULL",
        (now, outcome, reason, run_id, holder),
    )
    return changed.rowcount == 1


def close_dead_run(tx: Transaction, run: Run, reason: str, now: int, outcome: str = DEAD) -> bool:
    """End `run`, if it is still as it was found, and mark its open turns lost; their rows stay pending."""
    if not end_run(tx, run.id, run.holder, outcome, reason, now):
        return False
    tx.execute("UPDATE turn SET state = 'lost', ended_at = ?, why = ? WHERE run_id = ? AND state = 'opened'", (now, reason, run.id))
    return True


def set_pause(tx: Transaction, pause: Pause) -> None:
    """Replace the pause of this cause."""
    tx.execute(
        "INSERT OR REPLACE INTO pause (cause, until, reason, strikes, since) VALUES (?, ?, ?, ?, ?)",
        (pause.cause, pause.until, pause.reason, pause.strikes, pause.since),
    )


def clear_pause(tx: Transaction, cause: str | None = None) -> bool:
    """Forget one pause, or all; whether there was one."""
    if cause is None:
        return tx.execute("DELETE FROM pause").rowcount > 0
    return tx.execute("DELETE FROM pause WHERE cause = ?", (cause,)).rowcount > 0


def clear_apart(tx: Transaction, cause: str) -> None:
    """Forget the pauses of this cause that hold up one conversation alone, whichever that is."""
    tx.execute("DELETE FROM pause WHERE substr(cause, 1, ?) = ?", (len(cause) + 1, f"{cause}:"))


def read_pauses(tx: Transaction) -> tuple[Pause, ...]:
    """Every pause on record, also those that are over: their strikes count on."""
    return tuple(
        Pause(row["cause"], row["until"], row["reason"], row["strikes"], row["since"])
        for row in tx.execute("SELECT * FROM pause ORDER BY cause")
    )


def run_from_row(row: Any) -> Run:
    return Run(
        id=row["id"],
        kind=RunKind(row["kind"]),
        conversations=tuple(json.loads(row["conversations"])),
        cause=row["cause"],
        reason=row["reason"],
        opened_at=row["opened_at"],
        holder=row["holder"],
        held_at=row["held_at"],
        ended_at=row["ended_at"],
        outcome=row["outcome"],
        end_reason=row["end_reason"],
        turns=row["turns"],
        cost_micro_usd=row["cost_micro_usd"],
        follow_up_id=row["follow_up_id"],
        thread_said=row["thread_said"],
        model_usage=json.loads(row["model_usage"]),
        result=row["result"],
        told_turn=row["told_turn"],
        after_seq=row["after_seq"],
    )
