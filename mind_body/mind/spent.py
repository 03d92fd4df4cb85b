"""Door: what she has spent by her own record: turns that ended since an instant, and runs of her Self that did, or are live.

A run of a Self sets its cost when it ends; what is known of one that is live, or died, is the last that it told of itself.
"""

from mind_body.mind.store import Transaction

_SPENT = """
SELECT coalesce(sum(CASE WHEN at >= :day THEN cost END), 0) AS day, coalesce(sum(cost), 0) AS month FROM (
    SELECT ended_at AS at, cost_micro_usd AS cost FROM turn WHERE ended_at >= :month
    UNION ALL
    SELECT run.ended_at, max(run.cost_micro_usd, coalesce(self_progress.cost_micro_usd, 0))
    FROM run LEFT JOIN self_progress ON self_progress.run_id = run.id WHERE run.kind = 'self_run' AND run.ended_at >= :month
    UNION ALL
    SELECT :day, max(run.cost_micro_usd, coalesce(self_progress.cost_micro_usd, 0))
    FROM run LEFT JOIN self_progress ON self_progress.run_id = run.id WHERE run.kind = 'self_run' AND run.ended_at IS NULL
)"""


def read_spent(tx: Transaction, day_start: int, month_start: int) -> tuple[int, int]:
    """Micro-USD since each of the two; the month begins no later than the day."""
    row = tx.execute(_SPENT, {"day": day_start, "month": month_start}).fetchone()
    return int(row["day"]), int(row["month"])
