"""Door: what a run of her Self writes about itself while it works, and its end (design §8).

1. Everything is compare-and-set on run and holder: no row, no effect.
2. Cost, turns and usage are set, never added: the gateway's totals so far are the truth, and telling them twice changes nothing.
3. A run and what it worked on end together. Nobody but the run's holder does either, or the heartbeat, once that is gone.
4. Progress is telemetry: the newest alone is kept, and it outlives its run, because a hand-off may have to be made from it.
"""

import json
from collections.abc import Mapping
from typing import Any

from mind_body.mind.follow_ups import (
    continue_follow_up,
    finish_follow_up,
    first_bytes,
    read_follow_up_of_run,
    reopen_follow_up,
)
from mind_body.mind.records import Run, RunKind
from mind_body.mind.runs import end_run, recent_runs
from mind_body.mind.steers import drop_steers, drop_stops, read_stopper
from mind_body.mind.store import Transaction
from mind_body.mind.work_records import Compaction, Ended, Progress, SelfRunEnd


def record_figures(  # noqa: PLR0917 - a record's columns, in their order
    tx: Transaction, run_id: str, holder: str, turns: int, cost_micro_usd: int, model_usage: Mapping[str, Mapping[str, int]]
) -> bool:
    """Totals of the run so far; False, and no effect, for who does not hold it."""
    changed = tx.execute(
        "UPDATE run SET turns = ?, cost_micro_usd = ?, model_usage = ? WHERE id = ? AND holder = ? AND ended_at IS NULL",
        (turns, cost_micro_usd, json.dumps(model_usage), run_id, holder),
    )
    return changed.rowcount == 1


def end_self_run(tx: Transaction, run: Run, holder: str, end: SelfRunEnd, now: int) -> Ended | None:
    """End it, and with it what it worked on: done, open again, or going on as new work. None when it is not ours any more.

    What a person asked to stop does not go on, whatever it ended of.
    """
    if not end_run(tx, run.id, holder, end.outcome, end.reason, now):
        return None
    if end.result is not None:
        tx.execute("UPDATE run SET result = ? WHERE id = ?", (first_bytes(end.result), run.id))
    fate = "done" if read_stopper(tx, run.id) else end.fate
    drop_stops(tx, run.id)
    follow_up = read_follow_up_of_run(tx, run.id)
    after = None
    if follow_up is not None and fate == "again":
        after = reopen_follow_up(tx, run.id)
    elif follow_up is not None and fate == "continue":
        after = continue_follow_up(tx, follow_up, run.id, end.reason, now)
    elif follow_up is not None:
        finish_follow_up(tx, follow_up.id, run.id, end.result, now)
    return Ended(after, drop_steers(tx, run.id) if after is None else 0)


def recent_self_runs(tx: Transaction, most: int) -> list[Run]:
    """The newest ended ones, newest first."""
    return recent_runs(tx, RunKind.SELF_RUN, most)


def admit_compaction(tx: Transaction, compaction: Compaction) -> None:
    names = Compaction.__slots__
    tx.execute(
        f"INSERT OR IGNORE INTO compaction ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
        tuple(getattr(compaction, name) for name in names),
    )


def read_compactions(tx: Transaction, run_id: str) -> tuple[Compaction, ...]:
    """Those of one run, in order."""
    rows = tx.execute("SELECT * FROM compaction WHERE run_id = ? ORDER BY at", (run_id,))
    return tuple(Compaction(**{name: row[name] for name in Compaction.__slots__}) for row in rows)


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
