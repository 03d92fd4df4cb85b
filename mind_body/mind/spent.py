"""Door: what she has spent by her own record: turns that ended since an instant, and runs of her Self that began since.

1. A run of a Self sets its cost when it ends; what is known of one that is live, or died, is the last that it told of itself.
2. One that goes on over midnight counts where it began: nobody here knows how much of it was after that. The lease counts each call
   in its own day, and refuses by that. A day's cap that yesterday's work had filled here would hold her off all day for nothing.
"""

from mind_body.mind.store import Transaction
from mind_body.mind.wake_facts import FOREVER

_COST = "coalesce(sum(max(run.cost_micro_usd, coalesce(self_progress.cost_micro_usd, 0))), 0)"
_SELF = f"SELECT {_COST} FROM run LEFT JOIN self_progress ON self_progress.run_id = run.id WHERE run.kind = 'self_run'"
_SPENT = f"""
SELECT (SELECT coalesce(sum(cost_micro_usd), 0) FROM turn WHERE ended_at >= :since AND ended_at < :until)
     + ({_SELF} AND run.ended_at >= :since AND run.opened_at >= :since AND run.opened_at < :until)
     + ({_SELF} AND run.ended_at IS NULL AND run.opened_at >= :since AND run.opened_at < :until)"""


def read_spent(tx: Transaction, since: int, until: int = FOREVER) -> int:
    """Micro-USD. A sum over an index alone: some 100 µs for a thousand turns."""
    return int(tx.execute(_SPENT, {"since": since, "until": until}).fetchone()[0])
