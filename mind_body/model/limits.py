"""Rule: when a server says that it may be asked again, by the headers of its answer. Names in small letters; instants in ms.

1. A subscription's reset comes first, where its plan is what refused: of a plan that allows the call it tells the window's end, and
   the limit is another one. Then `Retry-After`, in milliseconds, seconds, or as a date.
2. Then the buckets of a rate limit (`x-ratelimit-reset-tokens: 6m0s`, `anthropic-ratelimit-requests-reset: 2026-11-30T07:00:00Z`).
   Of those that have nothing left, the last to be full again; where none says so, the first.
3. What cannot be read says nothing. No answer is in the past, nor later than a month: a server that says so is mistaken.
"""

import datetime as dt
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

WAIT_MAX_MS = 32 * 86_400_000
LIMIT_WAIT_MS = 60_000
"""Where a server does not say how long its limit holds."""
_PLAN = "anthropic-ratelimit-unified-"
_BUCKET = re.compile(r"(?:x-|anthropic-)?ratelimit-(?:reset(?P<behind>-[a-z-]+)?|(?P<before>[a-z-]+)-reset)")
_SPAN = re.compile(r"(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m(?!s))?(?:(?P<s>\d+(?:\.\d+)?)s)?(?:(?P<ms>\d+(?:\.\d+)?)ms)?")
_UNITS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_EPOCH_S, _EPOCH_MS = 1e9, 1e11
"""A number from here on is an instant in seconds, in milliseconds; a smaller one is so many seconds from now."""


def read_again_at(headers: Mapping[str, str], now: int) -> int | None:
    """The instant before which asking again is no use; None where nothing says."""
    found = _read_plan(headers, now)
    if found is None:
        found = _read_retry_after(headers, now)
    if found is None:
        found = _read_buckets(headers, now)
    return None if found is None else min(max(found, now), now + WAIT_MAX_MS)


def _read_plan(headers: Mapping[str, str], now: int) -> int | None:
    if headers.get(f"{_PLAN}status", "").startswith("allowed"):
        return None
    return _read_instant(headers.get(f"{_PLAN}reset", ""), now)


def _read_retry_after(headers: Mapping[str, str], now: int) -> int | None:
    millis, told = _number(headers.get("retry-after-ms", "")), headers.get("retry-after", "")
    if millis is not None:
        return now + millis
    seconds = _number(told, 1000)
    if seconds is not None:
        return now + seconds
    try:
        return _millis(parsedate_to_datetime(told))
    except (ValueError, OverflowError):
        return None


def _read_buckets(headers: Mapping[str, str], now: int) -> int | None:
    empty: list[int] = []
    others: list[int] = []
    for name, value in headers.items():
        if name.startswith(_PLAN) or not _BUCKET.fullmatch(name):
            continue
        at = _read_instant(value, now)
        if at is not None:
            (empty if _number(headers.get(name.replace("reset", "remaining"), "")) == 0 else others).append(at)
    return max(empty) if empty else min(others, default=None)


def _read_instant(value: str, now: int) -> int | None:
    told = value.strip()
    number = _number(told, 1)
    if number is not None:
        return number if number >= _EPOCH_MS else number * 1000 if number >= _EPOCH_S else now + (_number(told, 1000) or 0)
    span = _SPAN.fullmatch(told)
    if told and span is not None:
        return now + round(sum(float(amount or 0) * _UNITS[unit] for unit, amount in span.groupdict().items()))
    try:
        return _millis(dt.datetime.fromisoformat(told))
    except (ValueError, OverflowError):
        return None


def _millis(at: dt.datetime) -> int:
    return int((at if at.tzinfo else at.replace(tzinfo=dt.UTC)).timestamp() * 1000)


def _number(value: str, scale: int = 1) -> int | None:
    try:
        return min(max(int(float(value) * scale), 0), 10**15)
    except (ValueError, OverflowError):
        return None
