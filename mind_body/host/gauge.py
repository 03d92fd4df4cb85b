"""Rule: what a half of a Mind says in its unit's status line: what it is doing, and how full, how warm, how dear (systemctl(1))."""

from dataclasses import dataclass

SEPARATOR = " · "


@dataclass(frozen=True, slots=True)
class Gauge:
    """What is not known is left out."""

    doing: str
    turn: int = 0
    """Which one of its session."""
    prefix_tokens: int = 0
    ceiling_tokens: int = 0
    warm_ms: int = 0
    """How long the provider's cache of the session will live, if nobody asks."""
    today_micro_usd: int | None = None


def render_gauge(gauge: Gauge) -> str:
    """`Answering 2 messages · turn 14 · prefix 48k of 300k · warm 3 m · $0.42 today`."""
    turn = f"turn {gauge.turn}" if gauge.turn else ""
    warm = f"warm {_render_span(gauge.warm_ms)}" if gauge.warm_ms > 0 else ""
    today = "" if gauge.today_micro_usd is None else f"${gauge.today_micro_usd / 1e6:.2f} today"
    return SEPARATOR.join(part for part in (gauge.doing, turn, _render_prefix(gauge), warm, today) if part)


def render_tokens(count: int) -> str:
    """812, 24k, 1.2M."""
    if count < 1000:
        return str(count)
    return f"{round(count / 1000)}k" if count < 999_500 else f"{count / 1_000_000:.1f}M"


def _render_prefix(gauge: Gauge) -> str:
    if not gauge.prefix_tokens:
        return ""
    of = f" of {render_tokens(gauge.ceiling_tokens)}" if gauge.ceiling_tokens else ""
    return f"prefix {render_tokens(gauge.prefix_tokens)}{of}"


def _render_span(ms: int) -> str:
    """Minutes, rounded down; hours where there are any. A line that changes each second would only be noise."""
    minutes = ms // 60_000
    if minutes < 1:
        return "under a minute"
    return f"{minutes} m" if minutes < 60 else f"{minutes // 60} h {minutes % 60} m"
