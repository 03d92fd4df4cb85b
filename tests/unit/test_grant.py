"""What a reservation comes to: laws of the rule, and its edges."""

import datetime as dt
import zoneinfo
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mind_body.clock import local_day, local_month
from mind_body.control.effective import Control, Dial, Held, Released
from mind_body.lease.grant import (
    LONGEST_MS,
    SHORT_MS,
    Asked,
    Caps,
    Standing,
    Stop,
    decide_grant,
    find_stop,
    is_apart,
    is_over,
    make_stop,
    outlast,
)
from mind_body.lease.seldom import Seldom
from mind_body.model.lease_lines import Granted, Refused
from mind_body.settings import HostSpendConfig, SpendConfig
from tests.builders import NOW

USD = 1_000_000
RELEASED = Released(Dial(1.0, 3600, 1.0))
"""A run may cost a dollar."""


def make_caps(*, mind: dict[str, Any] | None = None, host: dict[str, Any] | None = None, **values: Any) -> Caps:
    """A Mind's caps of 10 a day and 100 a month, the host's of 50 and 500, in UTC."""
    return Caps(SpendConfig(**(mind or {})), HostSpendConfig(**(host or {})), values.pop("zone", "UTC"), **values)


def decide(
    ceiling: int, now: int = NOW, control: Control = RELEASED, caps: Caps | None = None, **standing: Any
) -> Granted | Refused:
    return decide_grant(Asked(ceiling), control, Standing(**standing), caps or make_caps(), now)


def refused(answer: Granted | Refused) -> Refused:
    assert isinstance(answer, Refused), "it was granted"
    return answer


# Laws


amounts = st.integers(0, 20 * USD)
kinds = st.sampled_from(["limited", "overloaded", "authentication", "payment"])
stops = st.builds(
    make_stop,
    kinds,
    st.none() | st.integers(NOW - 10**6, NOW + 10**6),
    st.just("they said so"),
    st.integers(NOW - 10**6, NOW + 10**6),
    st.integers(NOW - 10**6, NOW + 10**6),
)
standings = st.builds(
    Standing,
    stops=st.lists(stops, max_size=3).map(tuple),
    run=amounts,
    mind_day=amounts,
    mind_month=amounts,
    conversation_day=amounts,
    conversation_month=amounts,
    host_day=amounts,
    host_month=amounts,
)
asked = st.builds(Asked, amounts, st.sampled_from(["new", "reserved", "settled"]), amounts)
ZONES = ("UTC", "Europe/Berlin", "Pacific/Apia", "America/St_Johns", "Africa/Cairo", "America/Santiago", "Asia/Beirut")
usd = st.floats(0, 20, allow_nan=False)
caps = st.builds(
    Caps,
    st.builds(
        SpendConfig, day_usd=usd, month_usd=usd, conversation_day_usd=st.none() | usd, conversation_month_usd=st.none() | usd
    ),
    st.builds(HostSpendConfig, day_usd=usd, month_usd=usd),
    st.sampled_from(ZONES),
    st.just(0) | st.integers(NOW - 10**6, NOW + 10**6),
    st.integers(0, 3),
    st.integers(0, 3),
)
controls = st.builds(Held, st.text(max_size=2000)) | st.builds(
    Released, st.builds(Dial, st.floats(0.05, 2), st.just(3600.0), st.floats(0, 30))
)


@given(asked, controls, standings, caps, st.integers(NOW - 10**11, NOW + 10**11))
def test_a_refusal_has_a_reason_and_an_instant_where_one_is_known_and_held_outranks_all(
    asked: Asked, control: Control, standing: Standing, caps: Caps, now: int
) -> None:
    answer = decide_grant(asked, control, standing, caps, now)
    if isinstance(control, Held):
        assert answer == Refused(kind="held", reason=control.reason[:1000])
    elif isinstance(answer, Refused):
        assert answer.reason
        if answer.kind in {"spend", "limited", "overloaded"}:
            assert answer.until is not None
            assert answer.until > now
        elif answer.kind == "budget" and asked.ceiling <= control.dial.run_cap:
            assert answer.until == now, "another run has room for it"
        else:
            assert answer.until is None, "only an operator opens it"
        if answer.kind == "spend":
            assert answer.until is not None
            opened = (local_day(answer.until, caps.zone), local_month(answer.until, caps.zone))
            assert opened != (local_day(now, caps.zone), local_month(now, caps.zone)), "it may be asked again in another window"


@given(st.lists(st.tuples(st.sampled_from("rsl"), amounts, amounts), max_size=40), usd, usd)
def test_spending_passes_no_cap_while_calls_stay_below_their_ceilings(
    steps: Sequence[tuple[str, int, int]], first_cap: float, second_cap: float
) -> None:
    """r: a call is reserved; s: the oldest is settled; l: its answer is lost, and it counts whole for ever."""
    cap, settled, lost = first_cap, 0, 0
    reserved: list[int] = []
    for step, ceiling, cost in steps:
        committed = settled + lost + sum(reserved)
        if step == "r":
            made = make_caps(mind={"day_usd": cap, "month_usd": 10**6}, host={"day_usd": 10**6, "month_usd": 10**6})
            if isinstance(decide(ceiling, control=Released(Dial(1, 1, 1000)), caps=made, mind_day=committed), Granted):
                reserved.append(ceiling)
            cap = second_cap if len(reserved) > 3 else cap
        elif reserved:
            oldest = reserved.pop(0)
            settled, lost = (settled + min(cost, oldest), lost) if step == "s" else (settled, lost + oldest)
        assert settled + lost + sum(reserved) <= max(first_cap, second_cap) * USD + 1


@given(st.lists(st.tuples(amounts, st.integers(0, 60 * USD)), max_size=40), usd)
def test_a_call_that_costs_more_than_its_ceiling_is_the_last_one(calls: Sequence[tuple[int, int]], cap: float) -> None:
    """One after the other, so the cap is passed by one reservation's overrun at most."""
    spent, made = 0, make_caps(mind={"day_usd": cap, "month_usd": 10**6}, host={"day_usd": 10**6, "month_usd": 10**6})
    for ceiling, cost in calls:
        answer = decide(ceiling, control=Released(Dial(1, 1, 1000)), caps=made, mind_day=spent)
        if ceiling and spent > cap * USD + 1:
            assert isinstance(answer, Refused)
        if isinstance(answer, Granted) and ceiling:
            assert spent + ceiling <= cap * USD + 1
            spent += cost


@given(standings, caps, amounts, amounts)
def test_who_is_refused_a_little_is_refused_more(standing: Standing, caps: Caps, little: int, more: int) -> None:
    little, more = sorted((little, more))
    if little and isinstance(decide_grant(Asked(little), RELEASED, standing, caps, NOW), Refused):
        assert isinstance(decide_grant(Asked(more), RELEASED, standing, caps, NOW), Refused)


# The order of reasons


def test_the_order_of_reasons() -> None:
    wrong: dict[str, Any] = {
        "stops": (Stop("limited", NOW + 5, "limit", NOW - 1),),
        "run": USD,
        "mind_day": 10 * USD,
    }
    one = Asked(1, "settled")
    assert refused(decide_grant(one, Held("enough"), Standing(**wrong), make_caps(), NOW)).kind == "held"
    assert "settled already" in refused(decide_grant(one, RELEASED, Standing(**wrong), make_caps(), NOW)).reason
    assert refused(decide(1, **wrong)) == Refused(kind="limited", reason="limit", until=NOW + 5)
    wrong["stops"] = ()
    assert refused(decide(1, **wrong)).kind == "budget"
    wrong["run"] = 0
    assert refused(decide(1, **wrong)).kind == "spend"
    assert decide(1) == Granted()


def test_a_reservation_asked_again_is_granted_though_its_sums_are_full() -> None:
    full = Standing(run=USD, mind_day=10 * USD)
    assert decide_grant(Asked(5, "reserved", 5), RELEASED, full, make_caps(), NOW) == Granted()
    assert decide_grant(Asked(4, "reserved", 5), RELEASED, full, make_caps(), NOW) == Granted()
    assert refused(decide_grant(Asked(6, "reserved", 5), RELEASED, full, make_caps(), NOW)).kind == "budget"
    assert decide_grant(Asked(6, "reserved", 5), RELEASED, Standing(run=USD - 1), make_caps(), NOW) == Granted()


def test_a_call_that_no_run_may_make_is_opened_by_the_dial_alone() -> None:
    answer = refused(decide(1_500_000))
    assert (answer.kind, answer.until) == ("budget", None)
    assert answer.reason == "the call may cost $1.50, and one run may cost $1.00 in all"
    assert decide(1_500_000, control=Released(Dial(2.0, 3600, 1.0))) == Granted()


def test_the_run_is_capped_by_the_dial_and_another_run_has_room() -> None:
    answer = refused(decide(200_000, run=900_000))
    assert (answer.kind, answer.until) == ("budget", NOW)
    assert answer.reason == "the call may cost $0.20, and $0.90 of the $1.00 that this run may cost are committed"
    assert decide(200_000, run=900_000, control=Released(Dial(2.0, 3600, 1.0))) == Granted()


@pytest.mark.parametrize(
    ("standing", "whose", "until"),
    [
        ({"mind_day": 10 * USD}, "she may spend in a day", "day"),
        ({"mind_month": 100 * USD}, "she may spend in a month", "month"),
        ({"conversation_day": 2 * USD}, "this conversation may cost in a day", "day"),
        ({"conversation_month": 5 * USD}, "this conversation may cost in a month", "month"),
        ({"host_day": 50 * USD}, "all Minds together may spend in a day", "day"),
        ({"host_month": 500 * USD}, "all Minds together may spend in a month", "month"),
        ({"mind_day": 10 * USD, "host_month": 500 * USD}, "all Minds together may spend in a month", "month"),
        ({"mind_day": 10 * USD, "host_day": 50 * USD}, "she may spend in a day", "day"),
    ],
)
def test_each_cap_refuses_with_its_own_words_until_its_window_ends(standing: dict[str, Any], whose: str, until: str) -> None:
    caps = make_caps(mind={"conversation_day_usd": 2, "conversation_month_usd": 5}, zone="Europe/Berlin")
    answer = refused(decide(1, caps=caps, **standing))
    assert answer.kind == "spend"
    assert whose in answer.reason
    assert answer.until is not None
    opens = dt.datetime.fromtimestamp(answer.until / 1000, zoneinfo.ZoneInfo("Europe/Berlin"))
    assert (opens.hour, opens.minute, opens.second) == (0, 0, 0)
    assert (opens.day == 1) == (until == "month")


def test_a_conversation_without_caps_of_its_own_has_none() -> None:
    assert decide(1, conversation_day=9 * USD, conversation_month=99 * USD) == Granted()


def test_an_operator_may_allow_her_cap_once_more_but_not_the_hosts() -> None:
    spent: dict[str, Any] = {"mind_day": 10 * USD, "mind_month": 100 * USD}
    assert isinstance(decide(1, caps=make_caps(extensions_day=1), **spent), Refused), "the month is not extended"
    assert decide(1, caps=make_caps(extensions_day=1, extensions_month=1), **spent) == Granted()
    assert decide(10 * USD, caps=make_caps(extensions_day=1), control=Released(Dial(1, 1, 99)), mind_day=10 * USD) == Granted()
    assert isinstance(decide(1, caps=make_caps(extensions_day=9), host_day=50 * USD), Refused)


def test_what_cannot_cost_anything_passes_no_cap() -> None:
    assert decide(0, run=9 * USD, mind_day=99 * USD, host_month=999 * USD) == Granted()


# When it opens: midnight, wherever the clock jumps


def at(zone: str, *local: int, fold: int = 0) -> int:
    return round(dt.datetime(*local, fold=fold, tzinfo=zoneinfo.ZoneInfo(zone)).timestamp() * 1000)  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("zone", "asked_at", "hours"),
    [
        ("Europe/Berlin", (2026, 3, 28, 12), 12),
        ("Europe/Berlin", (2026, 3, 29, 0, 30), 22.5),  # a day of 23 hours
        ("Europe/Berlin", (2026, 10, 25, 0, 30), 24.5),  # a day of 25
        ("America/Santiago", (2026, 9, 5, 23), 1),  # the clock jumps over midnight: the day begins at one
        ("America/Santiago", (2026, 4, 4, 22, 30), 2.5),  # it goes back at midnight: 23:00 comes twice before the next day
        ("Africa/Cairo", (2026, 4, 23, 23), 1),
        ("Asia/Beirut", (2026, 3, 28, 23), 1),
        ("Pacific/Apia", (2011, 12, 29, 12), 12),  # the day after it was left out
        ("America/St_Johns", (2006, 10, 28, 23, 0), 1),  # the next day begins, for a minute, …
    ],
)
def test_a_day_opens_when_the_wall_clock_says_so(zone: str, asked_at: tuple[int, ...], hours: float) -> None:
    now = at(zone, *asked_at)
    answer = refused(decide(1, now, caps=make_caps(zone=zone), mind_day=10 * USD))
    assert answer.until == now + round(hours * 3_600_000)
    assert local_day(answer.until, zone) > local_day(now, zone)
    assert local_day(answer.until - 1, zone) == local_day(now, zone)


def test_where_a_day_begins_twice_who_was_refused_in_between_waits_for_the_second_time() -> None:
    """Newfoundland went back from one minute past midnight to a minute past eleven."""
    again = at("America/St_Johns", 2006, 10, 28, 23, 30, fold=1)
    assert local_day(again, "America/St_Johns") == "2006-10-28"
    answer = refused(decide(1, again, caps=make_caps(zone="America/St_Johns"), mind_day=10 * USD))
    assert answer.until == again + 30 * 60_000


def test_a_month_opens_at_the_first_midnight_of_the_next() -> None:
    now = at("Europe/Berlin", 2026, 10, 25, 12)  # after the clock went back
    answer = refused(decide(1, now, caps=make_caps(zone="Europe/Berlin"), mind_month=100 * USD))
    assert answer.until == at("Europe/Berlin", 2026, 11, 1)


# What is wrong with a credential


@given(stops, st.integers(NOW - 10**6, NOW + 10**6), st.integers(0, 10**6))
def test_a_stop_that_is_over_stays_over(stop: Stop, now: int, later: int) -> None:
    if stop.since <= now and is_over(stop, 0, now):
        assert is_over(stop, 0, now + later)


def test_what_an_operator_mends_holds_until_a_file_was_changed_after_the_call() -> None:
    stop = Stop("authentication", None, "the key is refused", since=NOW)
    assert refused(decide(1, NOW + 10**12, stops=(stop,))).until is None
    for mended_at, over in ((NOW - 1, False), (NOW, False), (NOW + 1, True), (NOW + 100, False)):
        assert is_over(stop, mended_at, NOW + 50) == over, "and what the clock has not reached proves nothing"


def test_a_clock_that_was_set_back_means_one_more_try_and_not_a_longer_wait() -> None:
    assert is_over(Stop("limited", NOW + 10, "limit", NOW), 0, NOW - 1000)
    assert is_over(Stop("payment", None, "no money", NOW), 0, NOW - 1000)


def test_of_several_stops_the_one_that_holds_longest_is_the_reason() -> None:
    limited = Stop("limited", NOW + 5, "limit", NOW)
    overloaded = Stop("overloaded", NOW + 9, "busy", NOW)
    refused_key = Stop("authentication", None, "key", NOW)
    assert find_stop((limited, overloaded), 0, NOW) == overloaded
    assert find_stop((limited, overloaded, refused_key), 0, NOW) == refused_key
    assert find_stop((limited, overloaded), 0, NOW + 9) is None


def test_a_limit_holds_for_a_moment_where_nobody_said_how_long_and_never_for_ever() -> None:
    assert make_stop("limited", None, "", NOW - 5, NOW).until == NOW + SHORT_MS
    assert make_stop("overloaded", 10**18, "", NOW - 5, NOW).until == NOW + LONGEST_MS
    assert make_stop("payment", NOW + 5, "", NOW - 5, NOW) == Stop("payment", None, "", NOW - 5)


def test_of_two_limits_told_side_by_side_the_later_end_counts() -> None:
    short, long = Stop("limited", NOW + 5, "short", NOW - 2), Stop("limited", NOW + 9, "long", NOW - 3)
    assert outlast(short, long) == replace(long, since=NOW - 2)
    assert outlast(long, short) == replace(long, since=NOW - 2)
    assert outlast(short, None) == short
    key = Stop("payment", None, "", NOW)
    assert outlast(replace(key, since=NOW - 9), key) == key


# What the CLI says, and what is told


@example(100, 102)
@example(100, 103)
@example(0, 1)
@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_two_sums_are_apart_when_they_differ_by_more_than_two_percent_of_the_larger(ours: int, theirs: int) -> None:
    assert is_apart(ours, theirs) == (abs(ours - theirs) > 0.02 * max(ours, theirs))
    assert is_apart(ours, theirs) == is_apart(theirs, ours)
    assert not is_apart(ours, ours)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 200_000)), max_size=60))
def test_the_same_thing_is_told_once_a_minute_and_nothing_is_kept_back_uncounted(told: list[tuple[str, int]]) -> None:
    seldom, last, kept = Seldom(), dict[str, int](), dict[str, int]()
    now = NOW
    for thing, after in told:
        now += after
        count = seldom.count(thing, now)
        if thing in last and now - last[thing] < 60_000:
            assert count is None
            kept[thing] = kept.get(thing, 0) + 1
        else:
            assert count == kept.pop(thing, 0)
            last[thing] = now


def test_what_is_remembered_of_telling_is_bounded() -> None:
    seldom = Seldom()
    for number in range(5000):
        assert seldom.count(str(number), NOW) == 0
    assert len(seldom._told) <= 1000
    assert seldom.count("4999", NOW) is None
