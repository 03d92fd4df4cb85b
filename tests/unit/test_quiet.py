"""Quiet hours: what the clock on the wall of a time zone says, across midnight and daylight saving (design §9)."""

import datetime as dt
import zoneinfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mind_body.control.quiet import quiet_until

MINUTE = 60_000
DAY = 1440 * MINUTE
CHANGING = (
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "America/St_Johns",
    "UTC",
)


def at(text: str, zone: str = "UTC") -> int:
    """The instant at which the clock there shows this (the first time that it does)."""
    return round(dt.datetime.fromisoformat(text).replace(tzinfo=zoneinfo.ZoneInfo(zone)).timestamp() * 1000)


def wall(instant: int, zone: str) -> str:
    return dt.datetime.fromtimestamp(instant / 1000, zoneinfo.ZoneInfo(zone)).strftime("%H:%M")


def is_quiet(spans: tuple[str, ...], shown: str) -> bool:
    """By what people read off the wall, and nothing else."""
    for span in spans:
        begin, end = span.split("-")
        if (begin <= shown < end) if begin < end else (shown >= begin or shown < end):
            return True
    return False


def walk(spans: tuple[str, ...], zone: str, now: int) -> int | None:
    """The same by brute force: minute by minute until the wall says that it is over; never is the day after."""
    if not is_quiet(spans, wall(now, zone)):
        return None
    minute = now - now % MINUTE
    for _ in range(3 * 1440):
        minute += MINUTE
        if not is_quiet(spans, wall(minute, zone)):
            return minute
    return -1


def changes(zone: str) -> list[int]:
    """Every instant of 2024 to 2030 at which the clock there was changed, to the minute."""
    found, instant, there = [], at("2024-01-01"), zoneinfo.ZoneInfo(zone)

    def offset(ms: int) -> dt.timedelta | None:
        return dt.datetime.fromtimestamp(ms / 1000, there).utcoffset()

    while instant < at("2031-01-01"):
        if offset(instant) != offset(instant + DAY):
            found.append(next(m for m in range(instant, instant + DAY + MINUTE, MINUTE) if offset(m) != offset(instant)))
        instant += DAY
    return found


CHANGES = {zone: changes(zone) for zone in CHANGING}
minutes = st.integers(0, 1439).map(lambda minute: f"{minute // 60:02}:{minute % 60:02}")
spans_of_a_day = st.lists(st.tuples(minutes, minutes).map("-".join), max_size=4).map(tuple)
near_midnight = st.sampled_from(
    ["23:00-01:00", "23:59-00:00", "00:00-00:01", "00:00-02:30", "22:00-07:00", "02:00-03:00", "02:30-02:31"]
)
spans = spans_of_a_day | st.lists(near_midnight, min_size=1, max_size=3).map(tuple)


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, int]:
    """A zone, and an instant there: as often as not within a day and a half of a change of its clock."""
    zone = draw(st.sampled_from(CHANGING))
    anywhere = st.integers(at("2024-01-01"), at("2030-12-31"))
    around = draw(st.one_of(anywhere, st.sampled_from(CHANGES[zone] or [at("2026-03-29")])))
    return zone, around + draw(st.integers(-36 * 60 * MINUTE, 36 * 60 * MINUTE))


@given(spans, moments())
@example(("02:00-03:00",), ("Europe/Berlin", at("2026-03-29 01:59", "Europe/Berlin")))
@example(("01:00-02:30",), ("Europe/Berlin", at("2026-03-29 01:59", "Europe/Berlin")))
@example(("01:00-02:30",), ("Europe/Berlin", at("2026-10-25 02:10", "Europe/Berlin")))
@example(("22:00-00:00",), ("America/Santiago", at("2026-09-05 23:59", "America/Santiago")))
@example(("22:00-00:00",), ("Asia/Beirut", at("2026-10-24 23:59", "Asia/Beirut")))
@example(("01:00-02:15",), ("Australia/Lord_Howe", at("2026-10-04 01:45", "Australia/Lord_Howe")))
@example(("02:31-02:30",), ("Europe/Berlin", at("2026-03-29 01:59", "Europe/Berlin")))
def test_quiet_ends_exactly_when_the_clock_on_the_wall_first_says_so(quiet: tuple[str, ...], moment: tuple[str, int]) -> None:
    zone, now = moment
    told, walked = quiet_until(quiet, zone, now), walk(quiet, zone, now)
    if walked == -1:  # quiet all day long: look again a day later
        assert told is not None
        assert now < told <= now + DAY + 3_600_000
    else:
        assert told == walked


@given(spans, moments())
def test_the_end_of_quiet_is_later_than_now_and_not_quiet(quiet: tuple[str, ...], moment: tuple[str, int]) -> None:
    zone, now = moment
    until = quiet_until(quiet, zone, now)
    assert (until is not None) == is_quiet(quiet, wall(now, zone))
    if until is not None:
        assert until > now


@pytest.mark.parametrize(
    ("quiet", "now", "until"),
    [
        (("22:00-07:00",), "2026-11-30 21:59", None),
        (("22:00-07:00",), "2026-11-30 22:00", "2026-12-01 07:00"),
        (("22:00-07:00",), "2026-12-01 06:59", "2026-12-01 07:00"),
        (("22:00-07:00",), "2026-12-01 07:00", None),
        (("22:00-07:00", "07:00-08:00"), "2026-11-30 23:00", "2026-12-01 08:00"),
        (("22:00-07:00", "06:00-08:00"), "2026-11-30 23:00", "2026-12-01 08:00"),
        (("22:00-07:00", "23:00-01:00"), "2026-11-30 23:30", "2026-12-01 07:00"),
        (("22:00-06:00", "12:00-14:00"), "2026-11-30 23:30", "2026-12-01 06:00"),
        ((), "2026-11-30 23:30", None),
    ],
)
def test_spans_that_touch_or_overlap_are_one_quiet(quiet: tuple[str, ...], now: str, until: str | None) -> None:
    assert quiet_until(quiet, "Europe/Berlin", at(now, "Europe/Berlin")) == (at(until, "Europe/Berlin") if until else None)


def test_a_night_with_daylight_saving_is_an_hour_shorter_or_longer() -> None:
    spring, autumn = at("2026-03-28 22:00", "Europe/Berlin"), at("2026-10-24 22:00", "Europe/Berlin")
    assert quiet_until(("22:00-07:00",), "Europe/Berlin", spring) == spring + 8 * 3_600_000
    assert quiet_until(("22:00-07:00",), "Europe/Berlin", autumn) == autumn + 10 * 3_600_000


def test_an_hour_that_the_clock_jumps_over_is_no_quiet() -> None:
    before = at("2026-03-29 01:59", "Europe/Berlin")
    assert quiet_until(("02:00-03:00",), "Europe/Berlin", before) is None
    assert quiet_until(("02:00-03:00",), "Europe/Berlin", before + MINUTE) is None


def test_an_hour_that_comes_twice_is_quiet_twice() -> None:
    first = at("2026-10-25 02:10", "Europe/Berlin")
    assert quiet_until(("02:00-03:00",), "Europe/Berlin", first) == first + 110 * MINUTE
    assert quiet_until(("02:00-02:30",), "Europe/Berlin", first) == first + 20 * MINUTE
    assert quiet_until(("02:00-02:30",), "Europe/Berlin", first + 60 * MINUTE) == first + 80 * MINUTE
