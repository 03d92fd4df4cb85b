"""Rule: quiet hours: spans of the wall clock of a time zone, across midnight and daylight saving (design §9).

It is quiet while the clock on the wall there shows a minute of some span, also where it jumps into one or shows one twice. Between
two changes of that clock the end is arithmetic; where a change lies before the end, it is looked at anew from the change on.
"""

import functools
from collections.abc import Sequence

from mind_body.clock import next_day, offset_ms

MINUTE_MS = 60_000
DAY_MINUTES = 1440
CHANGES_MAX = 4
"""Changes of the clock within one quiet; more than one was never seen."""


def quiet_until(spans: Sequence[str], zone: str, now: int) -> int | None:
    """When the quiet that it is in now ends (ms); None where it is not quiet. Where it never ends, the next day."""
    left = _minutes_left(tuple(spans))
    at = now
    for _ in range(CHANGES_MAX + 1):
        wall = at + offset_ms(at, zone)
        minutes = left[wall // MINUTE_MS % DAY_MINUTES]
        if not minutes:
            return at if at > now else None
        if minutes > DAY_MINUTES:
            break
        end = at + minutes * MINUTE_MS - wall % MINUTE_MS
        at = _first_change(zone, at, end)
    return at if at > now else next_day(now, zone)


@functools.lru_cache(maxsize=256)
def _minutes_left(spans: tuple[str, ...]) -> tuple[int, ...]:
    """For each minute of a day, how many minutes from its beginning on are quiet in a row; more than a day's where all are."""
    quiet = [any(_holds(begin, end, minute) for begin, end in map(_parse, spans)) for minute in range(DAY_MINUTES)]
    left, row = [0] * DAY_MINUTES, 0
    for minute in reversed(range(2 * DAY_MINUTES)):  # twice round, since a row may go across midnight
        row = row + 1 if quiet[minute % DAY_MINUTES] else 0
        left[minute % DAY_MINUTES] = row
    return tuple(left)


def _first_change(zone: str, start: int, end: int) -> int:
    """The first instant after `start` at which the zone's clock has been changed; `end` where that is later, or never."""
    before = offset_ms(start, zone)
    if offset_ms(end, zone) == before:
        return end
    while end - start > 1:
        middle = (start + end) // 2
        start, end = (middle, end) if offset_ms(middle, zone) == before else (start, middle)
    return end


def _holds(begin: int, end: int, minute: int) -> bool:
    return begin <= minute < end if begin < end else minute >= begin or minute < end


def _parse(span: str) -> tuple[int, int]:
    begin, end = (int(part[:2]) * 60 + int(part[3:]) for part in span.split("-"))
    return begin, end
