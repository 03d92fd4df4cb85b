"""The one governor: whatever would wake her gets a Wake, or a Skip with its reason and when to look again (design §9)."""

import dataclasses
import datetime as dt
import zoneinfo

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mind_body.control.effective import Control, Dial, Held, Released
from mind_body.control.govern import (
    CADENCE_MIN_MS,
    MENDABLE,
    SHARED,
    SPREAD_MS,
    Ask,
    House,
    Skip,
    Verdict,
    Wake,
    backoff_ms,
    govern,
    is_mended,
    keeps_quiet,
    spacing_ms,
)
from mind_body.mind.records import Pause, Run
from mind_body.mind.wake_facts import Standing
from mind_body.settings import HostConfig
from tests.builders import NOW, make_config, make_run
from tests.strategies import CAUSES, DAY, PAUSES, ZONES, asks, chances, controls, dials, houses, instants, releases, standings

HOUR = 3_600_000
RELEASED: Control = Released(Dial(1.0, 14_400.0, 1.0))
PLAIN = House(make_config(), HostConfig())


def at(text: str, zone: str) -> int:
    return round(dt.datetime.fromisoformat(text).replace(tzinfo=zoneinfo.ZoneInfo(zone)).timestamp() * 1000)


def make_house(
    *, zone: str = "UTC", mended_at: int = 0, chance: float = 0.0, keyed_at: int = 0, **tables: dict[str, object]
) -> House:
    return House(make_config(**tables), HostConfig(time_zone=zone), mended_at, chance, keyed_at)


def ended(outcome: str = "done", *, at: int = NOW, turns: int = 1, cause: str = "direct") -> Run:
    return make_run(opened_at=at - 1000, ended_at=at, outcome=outcome, turns=turns, cause=cause)


def mail(standing: Standing, now: int = NOW, house: House = PLAIN, control: Control = RELEASED) -> Verdict:
    """What is said to somebody's message that is ripe."""
    return govern(Ask("direct", now), standing, control, house, now)


def beat(standing: Standing, now: int, control: Control = RELEASED, house: House = PLAIN) -> Verdict:
    return govern(Ask("beat", now), standing, control, house, now)


# Every wake, whatever its cause.


@given(asks, standings, controls, houses(), instants)
def test_every_question_has_an_answer_and_a_skip_names_a_reason_and_a_later_instant(
    ask: Ask, standing: Standing, control: Control, house: House, now: int
) -> None:
    verdict = govern(ask, standing, control, house, now)
    if isinstance(verdict, Wake):
        assert verdict == Wake(ask.cause, now)
    else:
        assert verdict.reason
        assert verdict.look_again_at > now
        assert (verdict.cause != "") == (verdict.kind in {"paused", "spend"})


@given(asks, standings, houses(), instants)
def test_nothing_wakes_while_held(ask: Ask, standing: Standing, house: House, now: int) -> None:
    verdict = govern(ask, standing, Held("the operator said so"), house, now)
    assert isinstance(verdict, Skip)
    assert (verdict.kind, verdict.reason) == ("held", "held: the operator said so")


@given(asks, standings, releases, houses(), instants)
def test_nothing_wakes_beside_a_live_run(ask: Ask, standing: Standing, control: Control, house: House, now: int) -> None:
    verdict = govern(ask, dataclasses.replace(standing, live=make_run()), control, house, now)
    assert isinstance(verdict, Skip)
    assert verdict.kind == "busy"


@given(asks, standings, controls, houses(), instants)
def test_it_is_a_function_of_the_record_alone_so_that_a_restart_changes_no_outcome(
    ask: Ask, standing: Standing, control: Control, house: House, now: int
) -> None:
    again = dataclasses.replace(standing, pauses=standing.pauses[:])
    assert govern(ask, standing, control, house, now) == govern(ask, again, control, house, now)


@given(asks, standings, releases, houses(), instants)
def test_of_several_hindrances_the_one_that_ends_last_is_told(
    ask: Ask, standing: Standing, control: Control, house: House, now: int
) -> None:
    standing = dataclasses.replace(standing, live=None)
    whole = govern(ask, standing, control, house, now)
    free = Standing(silent_beats=standing.silent_beats)
    alone = [
        govern(ask, free, control, house, now),
        govern(Ask(ask.cause, now), dataclasses.replace(free, recent=standing.recent), control, house, now),
        govern(Ask(ask.cause, now), dataclasses.replace(free, last_act_at=standing.last_act_at), control, house, now),
        *(govern(Ask(ask.cause, now), dataclasses.replace(free, pauses=(one,)), control, house, now) for one in standing.pauses),
    ]
    spent = ("spent_day", "spent_month", "extensions_day", "extensions_month")
    alone.append(
        govern(
            Ask(ask.cause, now), dataclasses.replace(free, **{name: getattr(standing, name) for name in spent}), control, house, now
        )
    )
    latest = max((one.look_again_at for one in alone if isinstance(one, Skip)), default=None)
    assert (whole.look_again_at if isinstance(whole, Skip) else None) == latest


# The cadence.


@given(standings, dials(), houses(), instants)
def test_a_scheduled_wake_is_never_earlier_than_the_cadence(standing: Standing, dial: Dial, house: House, now: int) -> None:
    assume(standing.last_act_at is None or standing.last_act_at <= now)
    if isinstance(beat(standing, now, Released(dial), house), Wake):
        assert standing.last_act_at is None or now - standing.last_act_at >= max(round(dial.cadence_s * 1000), CADENCE_MIN_MS)


@given(dials(), st.integers(0, 100))
def test_a_scheduled_wake_in_silence_doubles_the_spacing_up_to_a_day(dial: Dial, silent: int) -> None:
    cadence = round(dial.cadence_s * 1000)
    now, then = spacing_ms(dial, silent), spacing_ms(dial, silent + 1)
    assert cadence <= now <= then <= max(DAY, cadence)
    assert then == 2 * now or (then == max(DAY, cadence) and 2 * now >= then)
    if silent == 0:
        assert now == max(cadence, CADENCE_MIN_MS)


def count_in_silence(dial: Dial, days: int, *, last_act: int, run_ms: int, house: House) -> list[int]:
    """When she is woken by herself, if nobody ever says a word: the rule, asked again when it says so."""
    now, woken, last, end = NOW, list[int](), NOW - last_act, NOW + days * DAY
    while now < end:
        verdict = beat(Standing(last_act_at=last, silent_beats=len(woken)), now, Released(dial), house)
        if isinstance(verdict, Skip):
            now = verdict.look_again_at
        else:
            woken.append(now)
            now = last = now + run_ms
    return woken


quiet_houses = st.sampled_from(
    [
        PLAIN,
        make_house(zone="Europe/Berlin", persona={"quiet_hours": ("22:00-07:00",)}),
        make_house(persona={"quiet_hours": ("00:00-23:59",)}),
    ]
)


@given(dials(), st.integers(0, 30 * DAY), st.integers(0, 600_000), quiet_houses)
@example(Dial(2.0, 1.0, 1.0), 30 * DAY, 0, PLAIN)
@example(Dial(2.0, 1.0, 1.0), 0, 0, PLAIN)
@example(Dial(1.0, 60.0, 1.0), 30 * DAY, 0, PLAIN)
@example(Dial(2.0, 120.1, 1.0), 30 * DAY, 0, PLAIN)
def test_two_weeks_without_a_person_hold_at_most_24_scheduled_wakes_at_any_dial(
    dial: Dial, last_act: int, run_ms: int, house: House
) -> None:
    assert len(count_in_silence(dial, 14, last_act=last_act, run_ms=run_ms, house=house)) <= 24


def test_two_weeks_at_the_hottest_dial_hold_23() -> None:
    assert len(count_in_silence(Dial(2.0, 1.0, 1.0), 14, last_act=30 * DAY, run_ms=0, house=PLAIN)) == 23


@given(standings, standings, releases, houses(), instants, st.sampled_from(["operator", "direct", "mention"]))
def test_one_word_of_a_person_is_answered_as_soon_as_if_there_had_been_no_silence(
    standing: Standing, other: Standing, control: Control, house: House, now: int, cause: str
) -> None:
    """Whatever number of scheduled wakes in silence there were, and when: nothing of that holds up an answer."""
    fresh = dataclasses.replace(standing, silent_beats=0, last_act_at=None)
    weary = dataclasses.replace(standing, silent_beats=other.silent_beats, last_act_at=other.last_act_at)
    ask = Ask(cause, now)  # type: ignore[arg-type] # one of its literals
    assert govern(ask, weary, control, house, now) == govern(ask, fresh, control, house, now)


@given(dials(), st.integers(1, 40))
def test_after_a_persons_word_the_spacing_is_the_dials_again(dial: Dial, silent: int) -> None:
    in_silence = beat(Standing(last_act_at=NOW, silent_beats=silent), NOW, Released(dial))
    after_a_word = beat(Standing(last_act_at=NOW, silent_beats=0), NOW, Released(dial))
    assert isinstance(in_silence, Skip)
    assert isinstance(after_a_word, Skip)
    assert after_a_word.look_again_at == NOW + spacing_ms(dial, 0) <= in_silence.look_again_at


# Pauses, resets, and what an operator mends.


@given(st.sampled_from(PAUSES), st.integers(1, 30 * DAY), chances)
def test_a_pause_holds_until_its_end_and_no_longer_than_the_spread(cause: str, length: int, chance: float) -> None:
    house = make_house(chance=chance)
    standing = Standing(pauses=(Pause(cause, NOW + length, "for a reason", since=NOW),))
    spread = SPREAD_MS if cause in SHARED else 0
    assert isinstance(mail(standing, NOW + length - 1, house), Skip)
    assert isinstance(mail(standing, NOW + length + spread, house), Wake)


@given(st.sampled_from(SHARED), st.lists(chances, min_size=2, max_size=8, unique_by=lambda one: round(one * SPREAD_MS)))
def test_after_a_reset_everybody_goes_on_within_the_spread_and_nobody_at_the_same_instant(cause: str, many: list[float]) -> None:
    standing = Standing(pauses=(Pause(cause, NOW + HOUR, "for a reason", since=NOW),))
    skips = [mail(standing, NOW, make_house(chance=chance)) for chance in many]
    whens = [skip.look_again_at for skip in skips if isinstance(skip, Skip)]
    assert len(set(whens)) == len(many)
    assert all(NOW + HOUR <= when <= NOW + HOUR + SPREAD_MS for when in whens)


@given(st.sampled_from(SHARED), st.integers(1, HOUR), chances)
def test_nobody_waits_more_than_a_quarter_longer_for_a_short_limit(cause: str, length: int, chance: float) -> None:
    standing = Standing(pauses=(Pause(cause, NOW + length, "for a reason", since=NOW),))
    assert isinstance(mail(standing, NOW + length + length // 4, make_house(chance=chance)), Wake)


@given(st.sampled_from(PAUSES), instants, instants, instants)
def test_a_pause_is_mended_where_a_file_that_can_mend_it_was_changed_since(cause: str, since: int, mended: int, now: int) -> None:
    pause = Pause(cause, now + HOUR, "HTTP 401", 1, since=since)
    assert is_mended(pause, make_house(mended_at=mended), now) == (cause in MENDABLE and since < mended <= now)
    rekeyed = make_house(mended_at=mended, keyed_at=mended)
    assert is_mended(pause, rekeyed, now) == (since < mended <= now), "another key is another plan"
    assert not is_mended(dataclasses.replace(pause, since=0), rekeyed, now)


@pytest.mark.parametrize("cause", MENDABLE)
def test_turning_the_dial_ends_what_an_operator_mends_at_once(cause: str) -> None:
    standing = Standing(pauses=(Pause(cause, NOW + HOUR, "HTTP 401", 1, since=NOW),))
    assert isinstance(mail(standing, NOW + 10), Skip)
    assert isinstance(mail(standing, NOW + 10, make_house(mended_at=NOW + 5)), Wake)


def test_a_plan_limit_is_mended_by_another_key_alone() -> None:
    standing = Standing(pauses=(Pause("limited", NOW + HOUR, "the plan's limit", since=NOW),))
    verdict = mail(standing, NOW + 10, make_house(mended_at=NOW + 5))
    assert isinstance(verdict, Skip)
    assert (verdict.kind, verdict.cause, verdict.reason) == ("paused", "limited", "paused (limited): the plan's limit")
    assert isinstance(mail(standing, NOW + 10, make_house(keyed_at=NOW + 5)), Wake)


# The back-off.


@given(st.integers(1, 100), st.floats(1e-3, 1e3), st.floats(1e-3, 1e6))
def test_the_back_off_doubles_and_is_bounded(strikes: int, least: float, most: float) -> None:
    host = HostConfig(restart_min_s=least, restart_max_s=most)
    now, then = backoff_ms(strikes, host), backoff_ms(strikes + 1, host)
    assert min(round(least * 1000), round(most * 1000)) <= now <= then <= round(most * 1000)
    assert then <= 2 * now + 1
    assert backoff_ms(0, host) == 0


@pytest.mark.parametrize(("strikes", "wait"), [(1, 500), (2, 1000), (3, 2000), (8, 60_000), (16, 60_000)])
def test_runs_that_came_to_nothing_delay_the_next_one_twice_as_long_each(strikes: int, wait: int) -> None:
    standing = Standing(recent=(ended("dead"),) * strikes)
    verdict = mail(standing)
    assert isinstance(verdict, Skip)
    assert (verdict.kind, verdict.look_again_at) == ("backoff", NOW + wait)
    assert isinstance(mail(standing, NOW + wait), Wake)


@pytest.mark.parametrize("recent", [(ended(),), (ended("held", turns=0),), (ended(), ended("dead"), ended("dead"))])
def test_a_run_that_did_something_or_was_held_delays_nothing(recent: tuple[Run, ...]) -> None:
    assert isinstance(mail(Standing(recent=recent)), Wake)


def test_a_run_without_a_single_turn_came_to_nothing_whatever_it_says() -> None:
    assert isinstance(mail(Standing(recent=(ended("done", turns=0),))), Skip)


# Spending.


@given(st.sampled_from(CAUSES), st.integers(0, 3 * 10**7), st.integers(0, 2), st.sampled_from(ZONES), instants)
def test_a_cap_that_is_reached_wakes_nobody_until_its_window_is_over(
    cause: str, spent: int, extensions: int, zone: str, now: int
) -> None:
    house = make_house(zone=zone, spend={"day_usd": 10.0, "month_usd": 1000.0})
    ask = Ask(cause, now)  # type: ignore[arg-type] # one of its literals
    verdict = govern(ask, Standing(spent_day=spent, spent_month=spent, extensions_day=extensions), RELEASED, house, now)
    assert isinstance(verdict, Skip) == (spent >= 10_000_000 * (1 + extensions))
    if isinstance(verdict, Skip):
        assert (verdict.kind, verdict.cause) == ("spend", "spend-day")
        opens = dt.datetime.fromtimestamp(verdict.look_again_at / 1000, zoneinfo.ZoneInfo(zone))
        today = dt.datetime.fromtimestamp(now / 1000, zoneinfo.ZoneInfo(zone))
        assert opens.date() == today.date() + dt.timedelta(days=1)
        assert opens.hour == 0 or opens.date().month in {3, 4, 9, 10}


@pytest.mark.parametrize(
    ("zone", "now", "opens", "hours"),
    [
        ("Europe/Berlin", "2026-03-29 00:30", "2026-03-30 00:00", 22.5),
        ("Europe/Berlin", "2026-10-25 00:30", "2026-10-26 00:00", 24.5),
        ("Australia/Lord_Howe", "2026-04-05 00:30", "2026-04-06 00:00", 24.0),
        ("America/Santiago", "2026-09-05 12:00", "2026-09-06 01:00", 12.0),
    ],
)
def test_a_days_cap_opens_at_midnight_there_also_when_the_clock_is_changed(zone: str, now: str, opens: str, hours: float) -> None:
    instant = at(now, zone)
    verdict = mail(Standing(spent_day=10_000_000), instant, make_house(zone=zone))
    assert isinstance(verdict, Skip)
    assert verdict.look_again_at == at(opens, zone) == instant + hours * HOUR
    assert verdict.reason == "she has spent $10.00 of the $10.00 that she may in a day"


def test_a_months_cap_opens_with_the_next_month() -> None:
    instant = at("2026-11-30 12:00", "Europe/Berlin")
    verdict = mail(Standing(spent_day=1, spent_month=100_000_000), instant, make_house(zone="Europe/Berlin"))
    assert isinstance(verdict, Skip)
    assert (verdict.cause, verdict.look_again_at) == ("spend-month", at("2026-12-01", "Europe/Berlin"))


# Quiet hours.


@pytest.mark.parametrize(
    ("quiet_for", "woken"),
    [
        ("unprompted", {"operator", "direct", "mention", "self_run", "work"}),
        ("everyone", {"operator", "work"}),
    ],
)
def test_quiet_hours_hold_back_whom_they_say(quiet_for: str, woken: set[str]) -> None:
    house = make_house(zone="Europe/Berlin", persona={"quiet_hours": ("22:00-07:00",), "quiet_for": quiet_for})
    night, morning = at("2026-11-30 23:00", "Europe/Berlin"), at("2026-12-01 07:00", "Europe/Berlin")
    verdicts = {cause: govern(Ask(cause, night), Standing(), RELEASED, house, night) for cause in CAUSES}
    assert {cause for cause, verdict in verdicts.items() if isinstance(verdict, Wake)} == woken
    assert all(verdict.look_again_at == morning for verdict in verdicts.values() if isinstance(verdict, Skip))
    assert all(isinstance(govern(Ask(cause, morning), Standing(), RELEASED, house, morning), Wake) for cause in CAUSES)
    assert keeps_quiet(house, night) == (quiet_for == "everyone")
    assert not keeps_quiet(house, morning)


# Clocks.


def wait_after(standing: Standing, ask: Ask, dial: Dial, now: int) -> int:
    """How long it is until she is woken, asked again whenever it says so."""
    then = now
    for _ in range(4):
        verdict = govern(ask, standing, Released(dial), PLAIN, then)
        if isinstance(verdict, Wake):
            return then - now
        then = verdict.look_again_at
    pytest.fail(f"still {verdict}")


steps_back = st.integers(0, 30 * DAY)


@given(dials(), st.integers(0, 20), steps_back)
def test_a_clock_set_back_makes_no_cadence_longer_than_twice_its_length(dial: Dial, silent: int, back: int) -> None:
    standing = Standing(last_act_at=NOW, silent_beats=silent)
    assert wait_after(standing, Ask("beat", 0), dial, NOW - back) < 2 * spacing_ms(dial, silent)


@given(st.integers(1, 16), steps_back)
def test_nor_a_back_off(strikes: int, back: int) -> None:
    standing = Standing(recent=(ended("dead", at=NOW),) * strikes)
    assert wait_after(standing, Ask("direct", 0), Dial(1.0, 1.0, 1.0), NOW - back) < 2 * backoff_ms(strikes, PLAIN.host)


@given(st.sampled_from(PAUSES), st.integers(1, 2 * DAY), steps_back)
def test_nor_a_pause_that_says_since_when_it_is(cause: str, length: int, back: int) -> None:
    standing = Standing(pauses=(Pause(cause, NOW + length, "for a reason", since=NOW),))
    assert wait_after(standing, Ask("direct", 0), Dial(1.0, 1.0, 1.0), NOW - back) <= 2 * length


@given(asks, standings, releases, houses(), instants)
def test_asking_again_when_it_said_so_leads_to_a_wake(
    ask: Ask, standing: Standing, control: Control, house: House, now: int
) -> None:
    """No skip goes on for ever: each ends in a wake, or in a later instant, at most one per thing that is waited for."""
    standing = dataclasses.replace(standing, live=None, spent_day=0, spent_month=0)
    for _ in range(24):
        verdict = govern(ask, standing, control, house, now)
        if isinstance(verdict, Wake):
            return
        now = verdict.look_again_at
    pytest.fail(f"still {verdict}")
