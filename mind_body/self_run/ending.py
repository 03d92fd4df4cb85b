"""Loop: the end of a run, in one transaction: its figures, its outcome, its work, its session, and what the room is told.

1. Compare-and-set on run and holder: a run that somebody else has ended is left as it is, and nothing is said.
2. Work that goes on has a hand-off: the run's own, else one put together from the record.
3. What no run of hers can get past is a pause of the Self's; a call that was answered ends all of them.
4. A session is kept at its cursor where its last turn was seen to end and it was not flushed; else it is over, with the reason.
"""

from dataclasses import dataclass, field

from mind_body.mind.handoffs import admit_handoff
from mind_body.mind.outbox import admit_said
from mind_body.mind.records import NewSaid, Run
from mind_body.mind.runs import clear_pause, read_pauses, set_pause
from mind_body.mind.self_runs import end_self_run, record_figures
from mind_body.mind.sessions import end_session, record_use
from mind_body.mind.store import Transaction
from mind_body.mind.turning import SessionUse
from mind_body.mind.work_records import FATES, SELF_PAUSE, Ended, Fate, Handoff, SelfRunEnd
from mind_body.model.pausing import PASSING, name_apart, plan_pause
from mind_body.model.session import Failed, Limited
from mind_body.self_run.actions import Outcome, Record, Why
from mind_body.self_run.figures import Totals


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
    trouble: Limited | Failed | None = None
    """Why no call could be made, or why the last one came to nothing: the Self's next runs wait for that."""
    answered: bool = False
    """The last call was answered: whatever was wrong is over."""


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
    _settle_pauses(tx, end, now)
    admit_said(tx, end.said, None, now)
    return ended


def _settle_pauses(tx: Transaction, end: End, now: int) -> None:
    conversation = next(iter(end.run.conversations), "")
    if end.answered and end.trouble is None:
        for cause in PASSING:
            clear_pause(tx, SELF_PAUSE + cause)
        clear_pause(tx, name_apart(f"{SELF_PAUSE}spend", conversation))
    pause = plan_pause(end.trouble, read_pauses(tx), now, SELF_PAUSE, conversation)
    if pause is not None:
        set_pause(tx, pause)


def decide_fate(outcome: Outcome, why: Why | None) -> Fate:
    """What a person stopped is over; what stalled is tried again."""
    if why is Why.STOPPED:
        return "done"
    if why is Why.STALLED and outcome is not Outcome.RESULT:
        return "again"
    return FATES[outcome]
