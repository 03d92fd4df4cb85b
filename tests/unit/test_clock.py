"""The operator's day and month: they begin when the wall clock of a time zone says so, whatever it jumps over (design §10)."""

import datetime as dt
import zoneinfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mind_body.clock import day_start, is_zone, list_zones, local_day, local_month, month_start, next_day, next_month, offset_ms
from mind_body.control.govern import window_of
from mind_body.mind.wake_facts import Window
from mind_body.settings import HostConfig

HOUR = 3_600_000
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",  # changes at midnight, both ways
    "Asia/Beirut",  # so does this, on other days
    "Australia/Lord_Howe",  # by half an hour
    "Africa/Casablanca",  # back for Ramadan
    "America/Havana",  # midnight comes twice
    "America/St_Johns",  # until 2011 at one minute past midnight: a date began, ended, and began again
    "Pacific/Apia",  # has had no 30 December 2011
)


def at(text: str, zone: str = "UTC", *, fold: int = 0) -> int:
    return round(dt.datetime.fromisoformat(text).replace(tzinfo=zoneinfo.ZoneInfo(zone), fold=fold).timestamp() * 1000)


def shown(instant: int, zone: str) -> str:
    return dt.datetime.fromtimestamp(instant / 1000, zoneinfo.ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M")


zones = st.sampled_from(ZONES)
instants = st.integers(at("2005-01-01"), at("2037-01-01"))


@st.composite
def midnights(draw: st.DrawFn) -> int:
    """Hours around a day's beginning in some zone; most clocks are changed there or a little later."""
    day = draw(st.dates(dt.date(2005, 1, 1), dt.date(2036, 12, 31)))
    return at(f"{day} 00:00") + draw(st.integers(-16 * HOUR, 16 * HOUR))


times = instants | midnights()
ST_JOHNS_TWICE = at("2010-11-07 00:00", "America/St_Johns")


@given(zones, times)
@example("America/St_Johns", ST_JOHNS_TWICE - 1)
@example("America/St_Johns", ST_JOHNS_TWICE)
@example("America/St_Johns", ST_JOHNS_TWICE + 30_000)
@example("America/St_Johns", ST_JOHNS_TWICE + 60_000)
@example("America/St_Johns", ST_JOHNS_TWICE + HOUR)
@example("Pacific/Apia", at("2011-12-29 12:00", "Pacific/Apia"))
@example("Pacific/Apia", at("2011-12-31 12:00", "Pacific/Apia"))
@example("America/Havana", at("2026-11-01 00:30", "America/Havana", fold=1))
def test_the_next_day_is_the_first_instant_of_a_later_date(zone: str, now: int) -> None:
    begins = next_day(now, zone)
    assert begins > now
    assert local_day(begins, zone) > local_day(now, zone)
    assert local_day(begins - 1, zone) <= local_day(now, zone)


@given(zones, times)
@example("America/St_Johns", ST_JOHNS_TWICE + 30_000)
@example("America/St_Johns", ST_JOHNS_TWICE + 60_000)
def test_a_day_began_before_now_with_its_own_date(zone: str, now: int) -> None:
    begins = day_start(now, zone)
    assert begins <= now
    assert local_day(begins, zone) == local_day(now, zone)
    assert local_day(begins - 1, zone) < local_day(now, zone)


@given(zones, times)
@example("America/St_Johns", ST_JOHNS_TWICE + 30_000)
@example("America/St_Johns", ST_JOHNS_TWICE + HOUR)
def test_a_day_has_23_to_25_hours(zone: str, now: int) -> None:
    hours = (next_day(now, zone) - day_start(now, zone)) / HOUR
    assert 23 <= hours <= 25
    if zone == "Australia/Lord_Howe":
        assert hours in {23.5, 24, 24.5}


@given(zones, times)
def test_a_month_is_as_its_days_are(zone: str, now: int) -> None:
    begins, over = month_start(now, zone), next_month(now, zone)
    assert begins <= day_start(now, zone) <= now < next_day(now, zone) <= over
    assert local_month(begins, zone) == local_month(now, zone) < local_month(over, zone)
    assert local_month(begins - 1, zone) < local_month(now, zone)
    assert local_month(over - 1, zone) == local_month(now, zone)
    assert local_day(now, zone).startswith(local_month(now, zone))


@given(zones, times)
def test_days_follow_each_other_without_a_hole(zone: str, now: int) -> None:
    for _ in range(5):
        tomorrow = next_day(now, zone)
        assert day_start(tomorrow, zone) <= tomorrow
        assert local_day(day_start(tomorrow, zone), zone) == local_day(tomorrow, zone)
        now = tomorrow


@pytest.mark.parametrize(
    ("zone", "now", "begins"),
    [
        ("Europe/Berlin", "2026-03-28 12:00", "2026-03-29 00:00"),
        ("America/Santiago", "2026-09-05 12:00", "2026-09-06 01:00"),  # 00:00 is jumped over
        ("Asia/Beirut", "2026-03-28 12:00", "2026-03-29 01:00"),
        ("America/Havana", "2026-03-07 12:00", "2026-03-08 01:00"),
        ("Pacific/Apia", "2011-12-29 12:00", "2011-12-31 00:00"),
    ],
)
def test_a_date_without_a_midnight_begins_with_the_jump(zone: str, now: str, begins: str) -> None:
    begun = next_day(at(now, zone), zone)
    assert shown(begun, zone) == begins
    assert local_day(begun - 1, zone) == now[:10]


def test_a_date_that_begins_twice_is_opened_again_for_who_asks_in_between() -> None:
    zone = "America/St_Johns"
    assert next_day(ST_JOHNS_TWICE - 1, zone) == ST_JOHNS_TWICE
    between = ST_JOHNS_TWICE + 60_000
    assert shown(between, zone) == "2010-11-06 23:01"
    assert next_day(between, zone) == ST_JOHNS_TWICE + HOUR


def test_what_a_window_is_comes_from_the_hosts_time_zone() -> None:
    now = at("2026-12-31 23:30", "Europe/Berlin")
    assert window_of(HostConfig(time_zone="Europe/Berlin"), now) == Window(
        "2026-12-31",
        at("2026-12-31", "Europe/Berlin"),
        "2026-12",
        at("2026-12-01", "Europe/Berlin"),
        at("2027-01-01", "Europe/Berlin"),
        at("2027-01-01", "Europe/Berlin"),
    )
    assert window_of(HostConfig(time_zone="Pacific/Auckland"), now).month == "2027-01"


@given(zones, times)
def test_the_offset_is_what_lies_between_utc_and_the_wall(zone: str, now: int) -> None:
    assert shown(now, zone) == shown(now + offset_ms(now, zone), "UTC")


@pytest.mark.parametrize("name", ["Europe/Atlantis", "", "Europe", "../../etc/passwd", "/etc/passwd", "Europe/Berlin\0", "x" * 300])
def test_what_is_no_zone_is_said_to_be_none(name: str) -> None:
    assert not is_zone(name)


def test_every_listed_zone_has_days() -> None:
    now = at("2026-03-29 00:30")
    zones = list_zones()
    assert len(zones) > 400  # also where the machine has no zone files
    for zone in zones:
        assert is_zone(zone)
        assert day_start(now, zone) <= now < next_day(now, zone)
