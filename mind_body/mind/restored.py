"""Door: what a mind that came back from a backup must not believe.

Its runs have no holder any more, its open turns no model call; and what a provider keeps of its sessions is ahead of this record,
so that none of them may be resumed (design §4: a cursor is a cache of the record, never the record). Work that was claimed is
open again.
"""

from mind_body.mind.store import Transaction

WHY = "restored from a backup"


def admit_restored(tx: Transaction, now: int) -> None:
    """End what was going on when the copy was made. Heard, said, and the sync position stay as they were."""
    tx.execute("UPDATE turn SET state = 'lost', ended_at = ?, why = ? WHERE state = 'opened'", (now, WHY))
    tx.execute("UPDATE run SET ended_at = ?, outcome = 'dead', end_reason = ? WHERE ended_at IS NULL", (now, WHY))
    tx.execute("UPDATE session SET ended_at = ?, end_reason = ? WHERE ended_at IS NULL", (now, WHY))
    tx.execute("UPDATE follow_up SET state = 'open' WHERE state = 'claimed'")
    tx.execute("UPDATE steer SET state = 'dropped' WHERE state = 'queued' AND kind = 'stop'")
    tx.execute("DELETE FROM ack")
