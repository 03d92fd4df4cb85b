"""Door: what the heartbeat looks at before it claims work (design §9), and what it does about a run of a Self that died."""

from mind_body.mind.follow_ups import read_open_follow_ups, read_proposals, reopen_follow_up
from mind_body.mind.handoffs import admit_handoff
from mind_body.mind.reactions import read_reactions
from mind_body.mind.records import Run, RunKind
from mind_body.mind.runs import close_dead_run, live_run, read_pauses, run_from_row
from mind_body.mind.steers import drop_stops
from mind_body.mind.store import Transaction
from mind_body.mind.work_records import SELF_PAUSE, FollowUp, Handoff, OpenWork, WorkFacts

PAST_MAX = 50
"""Ended runs of a piece of work that are looked back on."""


def read_work_facts(tx: Transaction) -> WorkFacts:
    """One snapshot; five indexed look-ups for a Mind without work."""
    proposals = tuple(read_proposals(tx))
    asked = [one.event_id for one in proposals if one.event_id is not None]
    return WorkFacts(
        live=live_run(tx, RunKind.SELF_RUN),
        open=tuple(OpenWork(one, _past_of(tx, one)) for one in read_open_follow_ups(tx)),
        proposals=proposals,
        reactions=tuple(read_reactions(tx, asked)) if asked else (),
        pauses=tuple(pause for pause in read_pauses(tx) if pause.cause.startswith(SELF_PAUSE)),
    )


def bury_self_run(tx: Transaction, run: Run, outcome: str, reason: str, now: int, *, handoff: Handoff | None) -> FollowUp | None:
    """Close a dead run; its work is open again, with the hand-off that could be made for it, if it left none itself.
    What it was not told waits for the next one.

    None, and no effect, when it is not as it was found.
    """
    if not close_dead_run(tx, run, reason, now, outcome):
        return None
    drop_stops(tx, run.id)
    if handoff is not None:
        admit_handoff(tx, handoff)
    return reopen_follow_up(tx, run.id)


def _past_of(tx: Transaction, follow_up: FollowUp) -> tuple[Run, ...]:
    rows = tx.execute(
        "SELECT * FROM run WHERE follow_up_id IN (?, ?) AND ended_at IS NOT NULL ORDER BY rowid DESC LIMIT ?",
        (follow_up.id, follow_up.continues, PAST_MAX),
    )
    return tuple(run_from_row(row) for row in rows)
