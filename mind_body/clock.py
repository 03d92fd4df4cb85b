"""Door: the wall clock, in milliseconds since the epoch.

The instant is read here and handed on as a value: rules are told the time. It is for display and for waiting, never for
"is this message new" (design §3). Waiting itself goes by trio's monotonic clock.
"""

import datetime as dt
import time
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
