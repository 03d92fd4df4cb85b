"""Loop: the end of a run, in one transaction: its figures, its outcome, its work, its session, and what the room is told.

1. Compare-and-set on run and holder: a run that somebody else has ended is left as it is, and nothing is said.
2. Work that goes on has a hand-off: the run's own, else one put together from the record.
3. A session is kept at its cursor where its last turn was seen to end and it was not flushed; else it is over, with the reason.
"""

from dataclasses import dataclass, field

from mind_body.clock import render_utc
from mind_body.mind.handoffs import admit_handoff
from mind_body.mind.outbox import admit_said
from mind_body.mind.records import NewSaid, Pause, Run
from mind_body.mind.runs import set_pause
from mind_body.mind.self_runs import end_self_run, record_figures
from mind_body.mind.sessions import end_session, record_use
from mind_body.mind.store import Transaction
from mind_body.mind.turning import SessionUse
from mind_body.mind.work_records import FATES, SELF_PAUSE, Ended, Fate, Handoff, SelfRunEnd
from mind_body.self_run.actions import Outcome, Record, Why
from mind_body.self_run.figures import Totals

LIMITED = f"{SELF_PAUSE}limited"


@dataclass(frozen=True, slots=True)
class End:
    """Everything that the end of a run writes."""

    run: Run
    record: Record
    why: Why | None
    """Why it was ended, where it did not end by itself."""
    totals: Totals
    result: str | None = field(repr=False)
    session_id: str
    use: SessionUse | None
    """None where the session cannot be gone on with."""
    handoff: Handoff
    """From the record, for work that goes on and has none."""
    said: tuple[NewSaid, ...] = field(repr=False)
    limit_until: int | None = None
    """ms since the epoch."""


def write_end(tx: Transaction, end: End, holder: str, now: int) -> Ended | None:
    """None, and no effect, when the run is not ours any more."""
    run, record, totals = end.run, end.record, end.totals
    record_figures(tx, run.id, holder, totals.requests, totals.cost_micro_usd, totals.per_model)
    how = SelfRunEnd(record.outcome, record.reason, end.result, decide_fate(record.outcome, end.why))
    ended = end_self_run(tx, run, holder, how, now)
    if ended is None:
        return None
    if ended.follow_up is not None:
        admit_handoff(tx, end.handoff)
    if end.use is None:
        end_session(tx, end.session_id, f"the run ended: {record.outcome}", now)
    else:
        record_use(tx, end.session_id, run.id, end.use, now)
    if record.outcome is Outcome.LIMITED and end.limit_until is not None:
        set_pause(tx, Pause(LIMITED, end.limit_until, f"a limit of the plan, until {render_utc(end.limit_until)}"))
    admit_said(tx, end.said, None, now)
    return ended


def decide_fate(outcome: Outcome, why: Why | None) -> Fate:
    """What a person stopped is over; what stalled is tried again."""
    if why is Why.STOPPED:
        return "done"
    if why is Why.STALLED and outcome is not Outcome.RESULT:
        return "again"
    return FATES[outcome]
