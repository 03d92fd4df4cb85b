"""Rule: quiet hours: spans of the wall clock of a time zone, across midnight and daylight saving (design §9)."""

from collections.abc import Sequence

from mind_body.clock import day_start, local_minute, next_day

MINUTE_MS = 60_000
DAY_MINUTES = 1440


def quiet_until(spans: Sequence[str], zone: str, now: int) -> int | None:
    """When the quiet that it is in now ends (ms); None where it is not quiet. Spans that touch are one."""
    if not any(_holds(span, local_minute(now, zone)) for span in spans):
        return None
    at = now
    for _ in range(2 * len(spans) + 1):
        held = [span for span in spans if _holds(span, local_minute(at, zone))]
        if not held:
            return at
        at = max(_end_of(span, zone, at) for span in held)
    return at  # quiet all day long: look again then


def _holds(span: str, minute: int) -> bool:
    begin, end = _parse(span)
    return begin <= minute < end if begin < end else minute >= begin or minute < end


def _end_of(span: str, zone: str, at: int) -> int:
    """The next instant at which the wall clock shows the span's end or, where that minute is jumped over, what comes after."""
    _, end = _parse(span)
    start = day_start(at, zone) if local_minute(at, zone) < end else next_day(at, zone)
    # Wall-clock minutes are not minutes since midnight on a day that jumps; go by what the clock shows.
    guess = max(start + end * MINUTE_MS, at)
    for shift in (0, -60, -30, 30, 60, 90, 120):
        candidate = guess + shift * MINUTE_MS
        if candidate > at and local_minute(candidate, zone) == end and not _holds(span, local_minute(candidate, zone)):
            return candidate - candidate % MINUTE_MS
    return max(guess, at + MINUTE_MS)


def _parse(span: str) -> tuple[int, int]:
    begin, end = (int(part[:2]) * 60 + int(part[3:]) for part in span.split("-"))
    return begin, end
