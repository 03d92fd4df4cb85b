"""Door: work as the breaker sees it: a follow-up with everything that it goes on from, or a campaign (design §9)."""

from mind_body.mind.campaigns import read_campaign
from mind_body.mind.records import Run
from mind_body.mind.runs import run_from_row
from mind_body.mind.store import Transaction
from mind_body.mind.work_records import FollowUp

PAST_MAX = 50
"""Ended runs of an item that are looked back on."""
CAMPAIGN, WORK = "campaign:", "work:"

_CHAIN = (
    "WITH RECURSIVE chain (id, continues, depth) AS (SELECT id, continues, 0 FROM follow_up WHERE id = ? UNION ALL "
    "SELECT before.id, before.continues, chain.depth + 1 FROM chain JOIN follow_up AS before ON before.id = chain.continues) "
)
"""A piece of work and all that it goes on from."""
_ITEM = (
    "WITH RECURSIVE item (id) AS (SELECT ? UNION ALL "
    "SELECT after.id FROM item JOIN follow_up AS after ON after.continues = item.id) "
)
"""A piece of work and all that goes on from it."""


def name_item(tx: Transaction, follow_up: FollowUp) -> str:
    """What the operators are asked about. A campaign that is not on record binds no work together: nobody could close it."""
    if follow_up.campaign and read_campaign(tx, follow_up.campaign) is not None:
        return f"{CAMPAIGN}{follow_up.campaign}"
    row = tx.execute(f"{_CHAIN} SELECT id FROM chain ORDER BY depth DESC LIMIT 1", (follow_up.id,)).fetchone()
    return f"{WORK}{row['id'] if row else follow_up.id}"


def read_work_past(tx: Transaction, follow_up: FollowUp) -> tuple[Run, ...]:
    """Ended runs of this work and of all that it goes on from, newest first."""
    rows = tx.execute(
        f"{_CHAIN} SELECT run.* FROM chain JOIN run ON run.follow_up_id = chain.id WHERE run.ended_at IS NOT NULL "
        "ORDER BY run.rowid DESC LIMIT ?",
        (follow_up.id, PAST_MAX),
    )
    return tuple(run_from_row(row) for row in rows)


def read_campaign_past(tx: Transaction, slug: str) -> tuple[Run, ...]:
    """Ended runs of all work of a campaign, newest first."""
    # The newest are found in indexes alone; whole rows are read of those.
    rows = tx.execute(
        "SELECT * FROM run WHERE rowid IN (SELECT run.rowid FROM follow_up JOIN run ON run.follow_up_id = follow_up.id "
        "WHERE follow_up.campaign = ? ORDER BY run.rowid DESC LIMIT ?) AND ended_at IS NOT NULL ORDER BY rowid DESC",
        (slug, PAST_MAX + 1),
    )
    return tuple(run_from_row(row) for row in rows)[:PAST_MAX]


def newest_run_about(tx: Transaction, about: str) -> str | None:
    """The newest ended run of what the operators are asked about."""
    if about.startswith(CAMPAIGN):
        runs = read_campaign_past(tx, about.removeprefix(CAMPAIGN))
        return runs[0].id if runs else None
    row = tx.execute(
        f"{_ITEM} SELECT run.id FROM item JOIN run ON run.follow_up_id = item.id WHERE run.ended_at IS NOT NULL "
        "ORDER BY run.rowid DESC LIMIT 1",
        (about.removeprefix(WORK),),
    ).fetchone()
    return str(row["id"]) if row else None
