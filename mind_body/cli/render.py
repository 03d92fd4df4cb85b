"""Rule: how figures look to people: tables, durations, counts."""

from collections.abc import Sequence

from mind_body.clock import local_day, render_local
from mind_body.matrix.outside import clean


def render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they must be, two spaces apart; nothing is cut."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def render_tokens(count: int) -> str:
    """812, 24k, 1.2M."""
    if count < 1000:
        return str(count)
    if count < 1_000_000:
        return f"{round(count / 1000)}k"
    return f"{count / 1_000_000:.1f}M"


def render_wait(ms: int) -> str:
    """A duration in its two largest units: `3 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`."""
    seconds = max(ms, 0) // 1000
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    parts = []
    for name, size in units:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or "0 s"


def render_when(at: int, zone: str, now: int) -> str:
    """An instant to come, on the wall clock there and as a wait: `at 07:12 (in 3 min)`, `on 2026-12-01 at 00:00 (in 5 h)`."""
    day, _, minute = render_local(at, zone).partition(" ")
    date = "" if day == local_day(now, zone) else f"on {day} "
    return f"{date}at {minute} (in {render_wait(at - now)})" if at > now else "now"


def list_words(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def render_plain(text: str) -> str:
    """Outside text, safe on a terminal: no escape sequence, no direction character; lines after the first are indented."""
    return clean(text).replace("\n", "\n    ")
