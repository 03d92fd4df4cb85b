"""Door: what the heartbeat looks at before it claims work (design §9), and what it does about a run of a Self that died."""

from collections.abc import Iterable

from mind_body.mind.asking_records import Campaign
from mind_body.mind.campaigns import read_campaign
from mind_body.mind.follow_ups import read_open_follow_ups, read_proposals, reopen_follow_up
from mind_body.mind.handoffs import admit_handoff
from mind_body.mind.questions import has_open_question, read_newest_about, read_newest_reopened
from mind_body.mind.reactions import read_reactions
from mind_body.mind.records import Run, RunKind
from mind_body.mind.runs import close_dead_run
from mind_body.mind.steers import drop_stops
from mind_body.mind.store import Transaction
from mind_body.mind.wake_facts import Window
from mind_body.mind.wakes import read_standing
from mind_body.mind.work_items import name_item, read_campaign_past, read_work_past
from mind_body.mind.work_records import SELF_PAUSE, FollowUp, Handoff, OpenWork, WorkFacts


def is_without_work(tx: Transaction) -> bool:
    """No work waits or is being done, no question is open, and nothing of her Self is paused."""
    row = tx.execute(
        "SELECT EXISTS (SELECT 1 FROM follow_up WHERE state IN ('proposed', 'open', 'claimed')) "
        "OR EXISTS (SELECT 1 FROM run WHERE kind = ? AND ended_at IS NULL) "
        "OR EXISTS (SELECT 1 FROM question WHERE state = 'asked') "
        "OR EXISTS (SELECT 1 FROM pause WHERE cause LIKE ?)",
        (RunKind.SELF_RUN, f"{SELF_PAUSE}%"),
    ).fetchone()
    return not row[0]


def read_work_facts(tx: Transaction, window: Window) -> WorkFacts:
    """One snapshot; a dozen indexed look-ups for a Mind without work."""
    works = read_open_follow_ups(tx)
    campaigns = _read_campaigns(tx, {one.campaign for one in works if one.campaign})
    proposals = tuple(read_proposals(tx))
    asked = [one.event_id for one in proposals if one.event_id is not None]
    return WorkFacts(
        open=tuple(_open_work(tx, one, campaigns.get(one.campaign or "")) for one in works),
        proposals=proposals,
        reactions=tuple(read_reactions(tx, asked)) if asked else (),
        standing=read_standing(tx, RunKind.SELF_RUN, window),
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


def _read_campaigns(tx: Transaction, slugs: Iterable[str]) -> dict[str, tuple[Campaign, tuple[Run, ...]]]:
    """Those that are on record, with what came of all their work."""
    found = [one for one in (read_campaign(tx, slug) for slug in sorted(slugs)) if one is not None]
    return {one.slug: (one, read_campaign_past(tx, one.slug)) for one in found}


def _open_work(tx: Transaction, follow_up: FollowUp, belongs: tuple[Campaign, tuple[Run, ...]] | None) -> OpenWork:
    about = name_item(tx, follow_up)
    reopened = read_newest_reopened(tx, about)
    return OpenWork(
        follow_up=follow_up,
        past=read_work_past(tx, follow_up),
        about=about,
        campaign_past=belongs[1] if belongs else (),
        campaign_closed=belongs is not None and belongs[0].closed_at is not None,
        question_open=has_open_question(tx, about),
        answered=read_newest_about(tx, about, answered=True),
        reopened_after=reopened.after_run if reopened else None,
    )
