"""Rule: what a run came to by the gateway, which is the truth for money, and which of its bounds that touches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mind_body.model.passage import Passed
from mind_body.model.session import Usage


@dataclass(frozen=True, slots=True)
class Totals:
    """The requests of a run, added up."""

    requests: int
    """Those that left."""
    cost_micro_usd: int
    per_model: Mapping[str, Mapping[str, int]]
    usage: Usage


def add_up(passed: Iterable[Passed]) -> Totals:
    requests, cost, usage = 0, 0, Usage()
    models: dict[str, dict[str, int]] = {}
    for one in passed:
        requests += one.sent
        cost += one.cost_micro_usd
        usage = usage.plus(one.metered.usage)
        if one.metered.model or one.cost_micro_usd:
            _add(models.setdefault(one.metered.model or "unknown", {}), one)
    return Totals(requests, cost, models, usage)


def find_spent(passed: Sequence[Passed]) -> str | None:
    """Why no further call is made, where the newest was declined for money."""
    last = passed[-1].declined if passed else None
    return last.reason if last is not None and last.kind == "budget" else None


def find_limit(passed: Sequence[Passed]) -> int | None:
    """Until when the plan's limit holds, where the newest call met it (ms)."""
    return passed[-1].limit_until if passed else None


def _add(total: dict[str, int], one: Passed) -> None:
    tokens = _tokens(one.metered.usage) | {"cost_micro_usd": one.cost_micro_usd, "requests": int(one.sent)}
    for key, value in tokens.items():
        total[key] = total.get(key, 0) + value


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "uncached_tokens": usage.uncached,
        "cache_read_tokens": usage.cache_read,
        "cache_write_5m_tokens": usage.cache_write_5m,
        "cache_write_1h_tokens": usage.cache_write_1h,
        "output_tokens": usage.output,
    }
