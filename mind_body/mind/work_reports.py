"""Door: what `mind runs` and `mind run` show of the work of a Self. Reads only, one snapshot each; nothing here decides."""

from mind_body.mind.follow_ups import read_follow_up
from mind_body.mind.handoffs import read_handoff
from mind_body.mind.records import Run, RunKind
from mind_body.mind.report_records import WorkReport
from mind_body.mind.runs import run_from_row
from mind_body.mind.self_runs import read_compactions, read_progress
from mind_body.mind.store import Transaction


def read_work(tx: Transaction, most: int) -> list[WorkReport]:
    """The newest runs, live or past, newest first."""
    rows = tx.execute("SELECT * FROM run WHERE kind = ? ORDER BY opened_at DESC, id DESC LIMIT ?", (RunKind.SELF_RUN, most))
    return [read_report(tx, run_from_row(row)) for row in rows.fetchall()]


def find_work(tx: Transaction, name: str) -> list[Run]:
    """The runs whose id is `name`, or begins or ends with it. (Ids of one day begin alike, their ends differ.)"""
    rows = tx.execute(
        "SELECT * FROM run WHERE kind = ? AND (substr(id, 1, length(?)) = ? OR substr(id, -length(?)) = ?) ORDER BY id DESC",
        (RunKind.SELF_RUN, name, name, name, name),
    )
    return [run_from_row(row) for row in rows]


def read_report(tx: Transaction, run: Run) -> WorkReport:
    rows = tx.execute("SELECT kind, sender, state FROM steer WHERE run_id = ? ORDER BY rowid", (run.id,))
    return WorkReport(
        run=run,
        follow_up=read_follow_up(tx, run.follow_up_id) if run.follow_up_id else None,
        progress=read_progress(tx, run.id),
        handoff=read_handoff(tx, run.id),
        steers=tuple((row["kind"], row["sender"], row["state"]) for row in rows),
        compactions=read_compactions(tx, run.id),
    )
