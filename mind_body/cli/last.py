"""Rule: why a Mind does nothing just now, or else how it last ended what it did: one sentence for `mind status`.

In this order: what she is doing; the brake; what holds up the mail, the news or the work that waits; mail that brings no turn; the
end of her newest run; why nothing waits. Nothing is decided here: it is what the heartbeat's rules come to (see `reasons`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mind_body.cli.reasons import Known, explain
from mind_body.control.effective import Held
from mind_body.heartbeat.claim import Claim
from mind_body.heartbeat.wake import Dead, Open
from mind_body.mind.records import Run, RunKind


@dataclass(frozen=True, slots=True)
class Last:
    """`at` is when a run ended (ms); None for what is so now."""

    reason: str
    at: int | None = None


def find_last(known: Known, ended: Sequence[Run]) -> Last:
    """`ended`: the newest ended run of each of her halves."""
    for live, verdict in ((known.wake.standing.live, known.live), (known.work.live, known.work_live)):
        if live is not None and not isinstance(verdict, Dead):
            return Last(f"acting: {live.reason}")
    if isinstance(known.control, Held):
        return Last(f"held: {known.control.reason}")
    waiting = _find_waiting(known)
    if waiting:
        return Last(waiting)
    newest = max((run for run in ended if run.ended_at is not None), key=lambda run: run.ended_at or 0, default=None)
    if newest is not None:
        whose = "self: " if newest.kind is RunKind.SELF_RUN else ""
        return Last(f"{whose}{newest.outcome}: {newest.end_reason}", newest.ended_at)
    return Last(explain(known).decided.reason)


def _find_waiting(known: Known) -> str:
    """What is next done, or why it is not; empty where nothing waits for her."""
    found = explain(known)
    if known.wake.pending or known.wake.awaited:
        return _next(found.decided.reason) if isinstance(found.decided, Open) else found.decided.reason
    if known.turned_away:
        return known.turned_away[0].reason
    if known.work.open and known.house.config.self.enabled:
        return f"work: {_next(found.claimed.reason) if isinstance(found.claimed, Claim) else found.claimed.reason}"
    return ""


def _next(reason: str) -> str:
    return f"begins when the heartbeat looks: {reason}"
