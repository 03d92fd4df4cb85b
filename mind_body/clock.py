"""Door: the wall clock, in milliseconds since the epoch.

The instant is read here and handed on as a value: rules are told the time. It is for display and for waiting, never for
"is this message new" (design §3). Waiting itself goes by trio's monotonic clock.
"""

import datetime as dt
import functools
import time
import zoneinfo
from typing import NewType

Millis = NewType("Millis", int)
"""Milliseconds since 1970-01-01 UTC."""


def now_ms() -> Millis:
    return Millis(time.time_ns() // 1_000_000)


def render_utc(at: int) -> str:
    """ISO 8601 in UTC to the second, for people."""
    return dt.datetime.fromtimestamp(at / 1000, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_day_start(at: int) -> Millis:
    """The first instant of the UTC day of `at`: what "spent today" counts from."""
    return Millis(at - at % 86_400_000)


# A day and a month are the operator's: they begin when the wall clock of a time zone says so, whatever it jumps over.


def is_zone(name: str) -> bool:
    """Whether there is a time zone of this name."""
    try:
        _zone(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def list_zones() -> list[str]:
    """The names of all time zones that this machine knows."""
    return sorted(zoneinfo.available_timezones())


def render_local(at: int, zone: str) -> str:
    """Date and wall clock there, to the minute, for people."""
    return _local(at, zone).strftime("%Y-%m-%d %H:%M")


def local_day(at: int, zone: str) -> str:
    """The date there, like 2026-11-30: sorts as it passes."""
    return _local(at, zone).strftime("%Y-%m-%d")


def local_month(at: int, zone: str) -> str:
    """Like 2026-11."""
    return _local(at, zone).strftime("%Y-%m")


def offset_ms(at: int, zone: str) -> int:
    """How far the wall clock there is ahead of UTC."""
    offset = _local(at, zone).utcoffset() or dt.timedelta()
    return offset.days * 86_400_000 + offset.seconds * 1000


def day_start(at: int, zone: str) -> Millis:
    """The first instant of the date that it is there; where a clock goes back over midnight, of the date's first beginning."""
    return _first_of(_local(at, zone).date(), zone)


def next_day(at: int, zone: str) -> Millis:
    """The first instant of the next date there: after 23, 24 or 25 hours at most, as daylight saving has it."""
    return _first_after(_local(at, zone).date() + dt.timedelta(days=1), zone, at)


def month_start(at: int, zone: str) -> Millis:
    return _first_of(_local(at, zone).date().replace(day=1), zone)


def next_month(at: int, zone: str) -> Millis:
    """The first instant of the next month there."""
    return _first_after((_local(at, zone).date().replace(day=1) + dt.timedelta(days=32)).replace(day=1), zone, at)


def _first_after(date: dt.date, zone: str, at: int) -> Millis:
    """Where a clock goes back over midnight, its date begins twice: then the second time, for who asks after the first."""
    first = _first_of(date, zone)
    if first > at:
        return first
    again = dt.datetime(date.year, date.month, date.day, tzinfo=_zone(zone), fold=1)
    return Millis(max(round(again.timestamp() * 1000), at + 1))


def _first_of(date: dt.date, zone: str) -> Millis:
    # In a gap, fold=0 takes the offset from before it: 00:00 that is not there is the instant of the jump itself.
    midnight = dt.datetime(date.year, date.month, date.day, tzinfo=_zone(zone))
    return Millis(round(midnight.timestamp() * 1000))


def _local(at: int, zone: str) -> dt.datetime:
    return dt.datetime.fromtimestamp(at / 1000, _zone(zone))


@functools.lru_cache(maxsize=16)
def _zone(name: str) -> zoneinfo.ZoneInfo:
    return zoneinfo.ZoneInfo(name)
