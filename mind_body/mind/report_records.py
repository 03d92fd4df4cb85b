"""Shapes: what the operator is shown of a run's work."""

from dataclasses import dataclass

from mind_body.mind.records import Run
from mind_body.mind.work_records import Compaction, FollowUp, Handoff, Progress


@dataclass(frozen=True, slots=True)
class WorkReport:
    """One run, with what it works on, how far it is, and what it leaves."""

    run: Run
    follow_up: FollowUp | None
    progress: Progress | None
    handoff: Handoff | None
    steers: tuple[tuple[str, str, str], ...]
    """Kind, sender, state: in the order in which they came."""
    compactions: tuple[Compaction, ...] = ()
