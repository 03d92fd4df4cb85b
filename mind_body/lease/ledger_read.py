"""Door: the ledger for readers: what was spent, on what, and what is held back (`mind spend`).

Opened read-only, also while the organ writes. Each function is one snapshot. Raises LedgerError or StorageError.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from mind_body.lease.ledger_file import open_reader

By: TypeAlias = Literal["day", "mind", "model", "conversation"]
_COLUMNS: Mapping[By, str] = {
    "day": "day AS what, '' AS whose",
    "mind": "mind AS what, mind AS whose",
    "model": "coalesce(answered, model) AS what, '' AS whose",
    "conversation": "conversation AS what, mind AS whose",
}
_OF_CALL = "coalesce((SELECT sum({}) FROM usage WHERE usage.mind = call.mind AND usage.call = call.id), 0)"

_COUNTED = (
    "WITH counted AS (SELECT mind, conversation, day, month, "
    "CASE state WHEN 'reserved' THEN reserved ELSE cost END AS amount FROM call), "
)
_CELLS = "cell AS (SELECT scope, mind, conversation, window, -committed AS amount FROM total {})".format(
    " ".join(
        f"UNION ALL SELECT {scope}, {window}, amount FROM counted"
        for scope in ("'host', '', ''", "'mind', mind, ''", "'conversation', mind, conversation")
        for window in ("day", "month")
    )
)


@dataclass(frozen=True, slots=True)
class SpendRow:
    """What a day, a Mind, a model or a conversation came to."""

    what: str
    """The day (like 2026-11-30), the Mind, the model or the conversation."""
    mind: str
    """Whose conversation, or the Mind itself; empty where a row is of all that were asked for."""
    calls: int
    """Settled ones."""
    tokens: int
    """All of them, whatever they were priced as."""
    cost_micro_usd: int
    """Of what is settled."""
    open_calls: int
    """Reserved and not settled: being made, or their answer was lost."""
    reserved_micro_usd: int
    """What those may come to. A cap counts it whole, beside the cost."""
    cached_tokens: int = 0
    """Of all tokens those that were read from a cache."""
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """What is committed in micro-USD: settled, and reserved whole. What the caps are held against."""

    day: int = 0
    month: int = 0


@dataclass(frozen=True, slots=True)
class HostTotals:
    """Of all Minds together, and of each that has any."""

    host: Totals = Totals()
    minds: Mapping[str, Totals] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CredentialPause:
    """Why no call is made with a credential."""

    kind: Literal["limited", "overloaded", "authentication", "payment"]
    until: int | None
    """ms; None until an operator has mended it."""
    since: int
    reason: str
    minds: tuple[str, ...]
    """Who has called with it."""


@dataclass(frozen=True, slots=True)
class LedgerCall:
    """One row, as it stands."""

    mind: str
    id: str
    half: Literal["persona", "self"]
    run: str
    conversation: str
    state: Literal["reserved", "settled"]
    reserved_micro_usd: int
    cost_micro_usd: int
    at: int
    settled_at: int | None


def read_spend(
    path: Path, *, since_day: str = "", until_day: str = "9999", mind: str | None = None, by: By = "day"
) -> list[SpendRow]:
    """One row per `by`, of the days (of the host's `time_zone`) from one to another, both counted; of one Mind, or of all.

    Sorted by what they are called, so that the newest day is last.
    """
    with open_reader(path) as tx:
        rows = tx.execute(
            f"SELECT {_COLUMNS[by]}, sum(state = 'settled') AS calls, sum(tokens) AS tokens, sum(cost) AS cost, "
            "sum(state = 'reserved') AS open, sum(CASE state WHEN 'reserved' THEN reserved ELSE 0 END) AS reserved, "
            f"sum({_OF_CALL.format('cache_read')}) AS cached, sum({_OF_CALL.format('output')}) AS output "
            "FROM call WHERE day >= :since AND day <= :until AND (:mind IS NULL OR mind = :mind) GROUP BY 1, 2 ORDER BY 1, 2",
            {"since": since_day, "until": until_day, "mind": mind},
        )
        return [
            SpendRow(
                what=row["what"],
                mind=row["whose"],
                calls=row["calls"],
                tokens=row["tokens"],
                cost_micro_usd=row["cost"],
                open_calls=row["open"],
                reserved_micro_usd=row["reserved"],
                cached_tokens=row["cached"],
                output_tokens=row["output"],
            )
            for row in rows
        ]


def read_totals(path: Path, day: str, month: str) -> HostTotals:
    """What the caps of this day (like 2026-11-30) and month (like 2026-11) are held against."""
    found: dict[str, dict[str, int]] = {}
    with open_reader(path) as tx:
        for row in tx.execute(
            "SELECT mind, window, committed FROM total WHERE scope IN ('host', 'mind') AND window IN (?, ?)", (day, month)
        ):
            found.setdefault(row["mind"], {})[row["window"]] = row["committed"]
    totals = {name: Totals(one.get(day, 0), one.get(month, 0)) for name, one in found.items()}
    return HostTotals(totals.pop("", Totals()), dict(sorted(totals.items())))


def read_pauses(path: Path) -> list[CredentialPause]:
    """Of every credential that has one, also when its time is over: compare `until` with the clock."""
    with open_reader(path) as tx:
        users: dict[str, list[str]] = {}
        for row in tx.execute(
            "SELECT DISTINCT credential, mind FROM call WHERE credential IN (SELECT credential FROM pause) ORDER BY mind"
        ):
            users.setdefault(row["credential"], []).append(row["mind"])
        return [
            CredentialPause(row["kind"], row["until"], row["since"], row["reason"], tuple(users.get(row["credential"], ())))
            for row in tx.execute("SELECT * FROM pause ORDER BY credential, kind")
        ]


def read_calls(path: Path, mind: str | None = None, *, since: int = 0) -> list[LedgerCall]:
    """Reserved at or after an instant (ms), the oldest first."""
    with open_reader(path) as tx:
        rows = tx.execute("SELECT * FROM call WHERE at >= ? AND (? IS NULL OR mind = ?) ORDER BY at, mind, id", (since, mind, mind))
        return [_call(row) for row in rows]


def read_difference(path: Path) -> int:
    """Micro-USD by which the sums that caps are held against differ from the rows, over all windows: 0, or the file was changed."""
    with open_reader(path) as tx:
        rows = tx.execute(
            f"{_COUNTED} {_CELLS} SELECT abs(sum(amount)) AS off FROM cell GROUP BY scope, mind, conversation, window"
        )
        return sum(row["off"] for row in rows)


def _call(row: Any) -> LedgerCall:
    columns = (row[name] for name in ("mind", "id", "half", "run", "conversation", "state", "reserved", "cost", "at", "settled_at"))
    return LedgerCall(*columns)
