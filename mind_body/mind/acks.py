"""Door: acknowledgements: which brake and dial each organ has acted on, so that `mind brake hold` can wait for all of them."""

from mind_body.ids import digest
from mind_body.mind.store import Transaction


def _digest(control: object) -> str:
    """Names a `control.effective.Control` by its value; this room knows no more of it."""
    return digest(repr(control))


def admit_ack(tx: Transaction, organ: str, control: object, now: int) -> bool:
    """Record that `organ` acts by `control` from now on; False where that was on record already."""
    changed = tx.execute(
        "INSERT INTO ack (organ, control, at) VALUES (?, ?, ?) "
        "ON CONFLICT (organ) DO UPDATE SET control = excluded.control, at = excluded.at WHERE ack.control <> excluded.control",
        (organ, _digest(control), now),
    )
    return changed.rowcount == 1


def is_acked(tx: Transaction, organ: str, control: object) -> bool:
    """Whether that is on record, so that nobody takes the write lock for nothing."""
    found = tx.execute("SELECT 1 FROM ack WHERE organ = ? AND control = ?", (organ, _digest(control))).fetchone()
    return found is not None
