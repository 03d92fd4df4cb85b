"""Loop: what a run finds left of the ones before it, and what it leaves where it could not say anything itself.

A hand-off from the record says what is known and no more: what the work is, how the run ended, what it was last at. It is outside
text for the next session, like every other hand-off.
"""

from mind_body.mind.follow_ups import read_follow_up
from mind_body.mind.handoffs import newest_handoff
from mind_body.mind.self_runs import recent_self_runs
from mind_body.mind.store import Transaction
from mind_body.mind.work_records import Handoff
from mind_body.self_run.course import Course
from mind_body.self_run.place import Work

LOOKED_BACK = 20
"""Runs among which the last one with a result on this workspace is looked for."""

TOLD_MAX, TOLD_CHARS = 8, 1000
"""Steering messages that a hand-off from the record repeats, and characters of each."""


def read_left(tx: Transaction, workspace: str, conversation: str) -> Handoff | None:
    """The newest hand-off of a workspace for those of one conversation, or the newest result, if that came after it."""
    found = newest_handoff(tx, workspace, conversation)
    for run in recent_self_runs(tx, LOOKED_BACK):
        if found is not None and run.id <= found.run_id:
            return found
        work = read_follow_up(tx, run.follow_up_id) if run.result and run.follow_up_id else None
        if work is not None and (work.workspace, work.conversation) == (workspace, conversation):
            text = f"The last run here was asked: {work.brief}\nIt ended with this report, or its beginning:\n{run.result}"
            return Handoff(run.id, workspace, text, "record", cut=False, at=run.ended_at or 0)
    return found


def render_record(work: Work, course: Course, reason: str, now: int) -> Handoff:
    """What is known of a run that wrote no hand-off."""
    lines = [
        f"The last run on this work ended before it wrote a hand-off: {reason}.",
        f"It was last seen at: {course.doing}." if course.doing else "It had not used any tool yet.",
        "What it had begun may be half done: look at the state of the files before anything else.",
    ]
    if course.said:
        lines += ["The last thing that it said:", course.said]
    told = [one.text[:TOLD_CHARS] for one in course.given if one.steer_id is not None]
    if told:
        lines += ["What people added to the work while it ran, the last of it:", *told[-TOLD_MAX:]]
    return Handoff(work.run.id, work.asked.workspace, "\n".join(lines), "record", cut=False, at=now)
