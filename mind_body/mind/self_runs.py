"""Door: what a run of her Self writes about itself while it works, and its end (design §8).

1. Everything is compare-and-set on run and holder: no row, no effect.
2. Cost, turns and usage are set, never added: the gateway's totals so far are the truth, and telling them twice changes nothing.
3. Progress is telemetry: the newest alone is kept, and it outlives its run, because a hand-off may have to be made from it.
"""

import json
from collections.abc import Mapping
from typing import Any

from mind_body.mind.follow_ups import first_bytes
from mind_body.mind.records import Run, RunKind
from mind_body.mind.runs import end_run, recent_runs
from mind_body.mind.steers import drop_steers
from mind_body.mind.store import Transaction
from mind_body.mind.work_records import Progress


def record_figures(  # noqa: PLR0917 - a record's columns, in their order
    tx: Transaction, run_id: str, holder: str, turns: int, cost_micro_usd: int, model_usage: Mapping[str, Mapping[str, int]]
) -> bool:
    """Totals of the run so far; False, and no effect, for who does not hold it."""
    changed = tx.execute(
        "UPDATE run SET turns = ?, cost_micro_usd = ?, model_usage = ? WHERE id = ? AND holder = ? AND ended_at IS NULL",
        (turns, cost_micro_usd, json.dumps(model_usage), run_id, holder),
    )
    return changed.rowcount == 1


def end_self_run(  # noqa: PLR0917 - a record's columns, in their order
    tx: Transaction, run_id: str, holder: str, outcome: str, reason: str, result: str | None, now: int
) -> bool:
    """End it, with the first bytes of its result, and drop what it was not given; False when it is not ours or has ended."""
    if not end_run(tx, run_id, holder, outcome, reason, now):
        return False
    if result is not None:
        tx.execute("UPDATE run SET result = ? WHERE id = ?", (first_bytes(result), run_id))
    drop_steers(tx, run_id)
    return True


def recent_self_runs(tx: Transaction, most: int) -> list[Run]:
    """The newest ended ones, newest first."""
    return recent_runs(tx, RunKind.SELF_RUN, most)


def write_progress(tx: Transaction, progress: Progress) -> None:
    """Replace what was known of this run."""
    names = Progress.__slots__
    tx.execute(
        f"INSERT OR REPLACE INTO self_progress ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
        tuple(getattr(progress, name) for name in names),
    )


def read_progress(tx: Transaction, run_id: str) -> Progress | None:
    row: Any = tx.execute("SELECT * FROM self_progress WHERE run_id = ?", (run_id,)).fetchone()
    return Progress(**{name: row[name] for name in Progress.__slots__}) if row else None
