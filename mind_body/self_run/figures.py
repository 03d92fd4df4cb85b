"""Rule: what a run came to by the gateway, which is the truth for money, and which of its bounds that touches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mind_body.clock import render_utc
from mind_body.model.limits import LIMIT_WAIT_MS
from mind_body.model.passage import GIVEN_UP, Passed
from mind_body.model.session import Failed, Limited, Usage
from mind_body.model.trouble import judge_passed
from mind_body.self_run.actions import Outcome

_OF_THE_MODEL = frozenset({Outcome.SPEND, Outcome.OVERLOADED, Outcome.AUTHENTICATION, Outcome.PAYMENT, Outcome.NO_RESULT})
"""Ends that may be what the provider, or the lease, said to the newest call."""


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


def find_declined(passed: Sequence[Passed], kind: Literal["held", "budget", "spend"]) -> str | None:
    """Why no further call is made, where the newest was declined for this."""
    last = passed[-1].declined if passed else None
    return last.reason if last is not None and last.kind == kind else None


def find_limit(passed: Sequence[Passed], now: int) -> int | None:
    """Until when a limit holds, where the newest call met it or was declined for it (ms)."""
    shown = judge_passed(passed[-1], now) if passed else None
    return shown.until if isinstance(shown, Limited) else None


def find_trouble(outcome: Outcome, passed: Sequence[Passed], limit_until: int | None, now: int) -> Limited | Failed | None:
    """What holds up the next run too: why the newest call came to nothing, where the run ended of that.

    The run's own cap is none: the next one has a cap of its own. `limit_until` is what the CLI told of a limit.
    """
    told = [one for one in passed if one.broken != GIVEN_UP]
    shown = judge_passed(told[-1], now) if told else None
    if outcome is Outcome.LIMITED:
        met = shown.until if isinstance(shown, Limited) else None
        until = max(met or 0, limit_until or 0) or now + LIMIT_WAIT_MS
        return Limited(until, f"a limit of the plan, until {render_utc(until)}")
    if outcome not in _OF_THE_MODEL or not isinstance(shown, Failed) or shown.kind in {"held", "budget"}:
        return Failed("authentication", None, "the credential was refused") if outcome is Outcome.AUTHENTICATION else None
    return shown


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
