"""Door: reactions to her messages, which are how a brief is confirmed (design §6). Heard once; gone when redacted."""

import json
from collections.abc import Sequence

from mind_body.mind.store import Transaction
from mind_body.mind.work_records import Reaction


def admit_reaction(tx: Transaction, reaction: Reaction) -> bool:
    """False where it is known already."""
    done = tx.execute(
        "INSERT INTO reaction (event_id, room_id, target, sender, key, at) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (event_id) DO NOTHING",
        (reaction.event_id, reaction.room_id, reaction.target, reaction.sender, reaction.key, reaction.at),
    )
    return done.rowcount == 1


def withdraw_reaction(tx: Transaction, event_id: str) -> bool:
    """Its sender has taken it back."""
    return tx.execute("DELETE FROM reaction WHERE event_id = ?", (event_id,)).rowcount == 1


def read_reactions(tx: Transaction, targets: Sequence[str]) -> list[Reaction]:
    """The reactions to these events."""
    rows = tx.execute(
        "SELECT * FROM reaction WHERE target IN (SELECT value FROM json_each(?)) ORDER BY at, event_id",
        (json.dumps(list(targets)),),
    )
    return [Reaction(**{name: row[name] for name in Reaction.__slots__}) for row in rows]


def expire_reactions(tx: Transaction, before: int) -> int:
    """Those heard before an instant: no question waits that long for its answer."""
    return tx.execute("DELETE FROM reaction WHERE at < ?", (before,)).rowcount
