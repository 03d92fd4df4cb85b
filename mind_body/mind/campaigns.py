"""Door: campaigns, what the operator has her work towards (design §4): open → closed. A slug is used once."""

from collections.abc import Iterable
from typing import Any

from mind_body.mind.asking_records import Campaign
from mind_body.mind.store import Transaction


def open_campaign(tx: Transaction, campaign: Campaign) -> bool:
    """False, and no effect, where one of this slug is open, or was."""
    done = tx.execute(
        "INSERT INTO campaign (slug, text, opened_by, opened_at) VALUES (?, ?, ?, ?) ON CONFLICT (slug) DO NOTHING",
        (campaign.slug, campaign.text, campaign.opened_by, campaign.opened_at),
    )
    return done.rowcount == 1


def close_campaign(tx: Transaction, slug: str, now: int) -> bool:
    """False where none of this slug is open."""
    return tx.execute("UPDATE campaign SET closed_at = ? WHERE slug = ? AND closed_at IS NULL", (now, slug)).rowcount == 1


def read_campaigns(tx: Transaction, *, open_only: bool = False) -> list[Campaign]:
    """In the order in which they were opened."""
    rows = tx.execute("SELECT * FROM campaign WHERE closed_at IS NULL OR NOT ? ORDER BY rowid", (open_only,))
    return [_campaign(row) for row in rows]


def read_campaign(tx: Transaction, slug: str) -> Campaign | None:
    row = tx.execute("SELECT * FROM campaign WHERE slug = ?", (slug,)).fetchone()
    return _campaign(row) if row else None


def admit_told_campaigns(tx: Transaction, turn_id: str, told: Iterable[tuple[str, bool]]) -> None:
    """What a turn, or the system part of the session that it begins, tells of them: slug, and whether it is open."""
    tx.executemany("INSERT INTO turn_campaign VALUES (?, ?, ?)", [(turn_id, *one) for one in told])


def read_told_campaigns(tx: Transaction, session_id: str) -> dict[str, bool]:
    """By slug, whether this session was last told that it is open."""
    rows = tx.execute(
        "SELECT turn_campaign.slug, turn_campaign.open FROM turn JOIN turn_campaign ON turn_campaign.turn_id = turn.id "
        "WHERE turn.session_id = ? AND turn.received <> '[]' ORDER BY turn.rowid",
        (session_id,),
    )
    return {row["slug"]: bool(row["open"]) for row in rows}


def _campaign(row: Any) -> Campaign:
    return Campaign(**{name: row[name] for name in Campaign.__slots__})
