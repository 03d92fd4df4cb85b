"""Door: the ledger's rows: calls, what is committed, what is wrong with a credential, what the CLI said.

1. A call is of the day and month in which it was reserved, also when it is settled later.
2. `total` moves with the rows, in the same transaction.
3. A call belongs to its Mind: no other Mind can settle it, whatever id it names.
4. Months that no cap asks for are forgotten whole, calls and sums together: never one of the newest, whatever a clock says.
"""

from dataclasses import dataclass
from typing import Any

from mind_body.lease.grant import Asked, Standing, Stop
from mind_body.lease.ledger_file import Transaction
from mind_body.model.lease_lines import Report, Settle, Tokens

OPEN_MS = 3_600_000
"""A call that was reserved longer ago than this is not being made any more: its answer was lost."""

KEPT_MONTHS = 13
"""A year, and the month that is compared with the one a year before."""


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call about to be reserved."""

    mind: str
    id: str
    half: str
    run: str
    conversation: str
    credential: str
    model: str
    ceiling: int
    day: str
    month: str
    at: int


@dataclass(frozen=True, slots=True)
class KnownCall:
    """What a settlement needs to know of its call."""

    settled: bool
    credential: str
    run: str
    reserved: int
    at: int


def read_key(tx: Transaction) -> str:
    """What credentials are digested with."""
    return str(tx.execute("SELECT key FROM digest_key").fetchone()["key"])


def read_asked(tx: Transaction, call: NewCall) -> Asked:
    """A call as the rule sees it: whether it is known."""
    row = tx.execute("SELECT state, reserved FROM call WHERE mind = ? AND id = ?", (call.mind, call.id)).fetchone()
    return Asked(call.ceiling) if row is None else Asked(call.ceiling, row["state"], row["reserved"])


def read_standing(tx: Transaction, call: NewCall) -> Standing:
    """What is committed where this call would be counted, and what is wrong with its credential."""

    def total(scope: str, mind: str, conversation: str, window: str) -> int:
        row = tx.execute(
            "SELECT committed FROM total WHERE scope = ? AND mind = ? AND conversation = ? AND window = ?",
            (scope, mind, conversation, window),
        ).fetchone()
        return row["committed"] if row else 0

    run = tx.execute(
        "SELECT coalesce(sum(CASE state WHEN 'reserved' THEN reserved ELSE cost END), 0) FROM call WHERE mind = ? AND run = ?",
        (call.mind, call.run),
    ).fetchone()
    return Standing(
        stops=read_stops(tx, call.credential),
        run=run[0],
        mind_day=total("mind", call.mind, "", call.day),
        mind_month=total("mind", call.mind, "", call.month),
        conversation_day=total("conversation", call.mind, call.conversation, call.day),
        conversation_month=total("conversation", call.mind, call.conversation, call.month),
        host_day=total("host", "", "", call.day),
        host_month=total("host", "", "", call.month),
    )


def admit_call(tx: Transaction, call: NewCall) -> None:
    """Reserved."""
    tx.execute(
        "INSERT INTO call (mind, id, half, run, conversation, credential, model, day, month, reserved, at) "
        "VALUES (:mind, :id, :half, :run, :conversation, :credential, :model, :day, :month, :ceiling, :at)",
        {name: getattr(call, name) for name in NewCall.__slots__},
    )
    _commit(tx, {name: getattr(call, name) for name in ("mind", "conversation", "day", "month")}, call.ceiling)


def raise_call(tx: Transaction, call: NewCall) -> None:
    """One that is reserved may now cost more. It stays in the day that it was in."""
    row = _find_reserved(tx, call.mind, call.id)
    if row is not None:
        tx.execute("UPDATE call SET reserved = ? WHERE mind = ? AND id = ?", (call.ceiling, call.mind, call.id))
        _commit(tx, row, call.ceiling - row["reserved"])


def read_call(tx: Transaction, mind: str, call_id: str) -> KnownCall | None:
    row = tx.execute("SELECT * FROM call WHERE mind = ? AND id = ?", (mind, call_id)).fetchone()
    return KnownCall(row["state"] == "settled", row["credential"], row["run"], row["reserved"], row["at"]) if row else None


def settle_call(tx: Transaction, mind: str, settle: Settle, now: int) -> bool:
    """What it came to; False, and no effect, where it is not reserved (any more)."""
    row = _find_reserved(tx, mind, settle.call)
    if row is None:
        return False
    usage = settle.usage
    answered = max(usage, key=lambda model: (_count(usage[model]), model), default=None)
    tx.execute(
        "UPDATE call SET state = 'settled', cost = ?, tokens = ?, answered = ?, settled_at = ? WHERE mind = ? AND id = ?",
        (settle.cost_micro_usd, sum(map(_count, usage.values())), answered, now, mind, settle.call),
    )
    tx.executemany(
        "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (mind, settle.call, model, one.uncached, one.cache_read, one.cache_write_5m, one.cache_write_1h, one.output)
            for model, one in usage.items()
        ],
    )
    _commit(tx, row, settle.cost_micro_usd - row["reserved"])
    return True


def read_stops(tx: Transaction, credential: str) -> tuple[Stop, ...]:
    rows = tx.execute("SELECT kind, until, reason, since FROM pause WHERE credential = ? ORDER BY kind", (credential,))
    return tuple(Stop(row["kind"], row["until"], row["reason"], row["since"]) for row in rows)


def save_stop(tx: Transaction, credential: str, stop: Stop) -> None:
    """In place of what held for the same reason."""
    tx.execute(
        "INSERT OR REPLACE INTO pause (credential, kind, until, reason, since) VALUES (?, ?, ?, ?, ?)",
        (credential, stop.kind, stop.until, stop.reason, stop.since),
    )


def clear_stop(tx: Transaction, credential: str, kind: str) -> None:
    tx.execute("DELETE FROM pause WHERE credential = ? AND kind = ?", (credential, kind))


def read_report(tx: Transaction, mind: str, run: str) -> tuple[int, int] | None:
    """What was said of a run so far: ours, and theirs."""
    row = tx.execute("SELECT ours, theirs FROM report WHERE mind = ? AND run = ?", (mind, run)).fetchone()
    return (row["ours"], row["theirs"]) if row else None


def admit_report(tx: Transaction, mind: str, report: Report, now: int) -> None:
    """In place of what was said before: the figures grow with the run."""
    tx.execute(
        "INSERT OR REPLACE INTO report (mind, run, ours, theirs, at) VALUES (?, ?, ?, ?, ?)",
        (mind, report.run, report.ours_micro_usd, report.theirs_micro_usd, now),
    )


def read_figures(tx: Transaction, day: str, now: int) -> tuple[int, int]:
    """What all Minds have committed in this day, and how many calls are being made."""
    spent = tx.execute("SELECT committed FROM total WHERE scope = 'host' AND window = ?", (day,)).fetchone()
    open_calls = tx.execute("SELECT count(*) FROM call WHERE state = 'reserved' AND at > ?", (now - OPEN_MS,)).fetchone()
    return (spent["committed"] if spent else 0, open_calls[0])


def prune(tx: Transaction, before: str, at: int) -> int:
    """Forget the months before one (like 2026-11), but for the newest KEPT_MONTHS that have calls; how many calls that were.

    What was said of runs until an instant goes, too, and what was wrong with credentials that nobody has called with since.
    """
    kept = tx.execute("SELECT DISTINCT month FROM call ORDER BY month DESC LIMIT 1 OFFSET ?", (KEPT_MONTHS - 1,)).fetchone()
    if kept is None:
        return 0
    before = min(before, kept["month"])
    tx.execute("DELETE FROM usage WHERE (mind, call) IN (SELECT mind, id FROM call WHERE month < ?)", (before,))
    gone = tx.execute("DELETE FROM call WHERE month < ?", (before,)).rowcount
    tx.execute("DELETE FROM total WHERE substr(window, 1, 7) < ?", (before,))
    tx.execute("DELETE FROM report WHERE at < ?", (at,))
    tx.execute("DELETE FROM pause WHERE credential NOT IN (SELECT credential FROM call)")
    return gone


def _find_reserved(tx: Transaction, mind: str, call_id: str) -> Any:
    return tx.execute("SELECT * FROM call WHERE mind = ? AND id = ? AND state = 'reserved'", (mind, call_id)).fetchone()


def _commit(tx: Transaction, call: Any, amount: int) -> None:
    """What a call is counted as has changed by so much."""
    mind, conversation = call["mind"], call["conversation"]
    tx.executemany(
        "INSERT INTO total (scope, mind, conversation, window, committed) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (scope, mind, conversation, window) DO UPDATE SET committed = committed + excluded.committed",
        [
            (*scope, call[window], amount)
            for scope in (("host", "", ""), ("mind", mind, ""), ("conversation", mind, conversation))
            for window in ("day", "month")
        ],
    )


def _count(tokens: Tokens) -> int:
    return tokens.uncached + tokens.cache_read + tokens.cache_write_5m + tokens.cache_write_1h + tokens.output
