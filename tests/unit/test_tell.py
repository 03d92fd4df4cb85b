"""The rules of telling: which wait is told, to whom, how often; and when the operators are asked about her purse."""

from typing import Any

import pytest

from mind_body.clock import next_day, next_month
from mind_body.control.govern import CONVERSATIONS, HOSTS, House, Skip
from mind_body.control.loops import TurnedAway
from mind_body.heartbeat.purse import plan_purse
from mind_body.heartbeat.tell import LONG_MS, STRIKES, plan_tell, plan_turned_away
from mind_body.mind.records import Pause
from mind_body.mind.wake_facts import Standing
from mind_body.settings import HostConfig
from tests.builders import NOW, OPERATOR, make_config, make_waiting

CONFIG = make_config()
HOUSE = House(CONFIG, HostConfig())
LATER = NOW + 3_600_000
WAITING = [
    make_waiting("!r1:example.org", oldest_event="$e1"),
    make_waiting("!r1:example.org", oldest_event="$e2", sender="@eve:example.org"),
    make_waiting("!r2:example.org", oldest_event="$e3", thread="$t"),
]


def tell(cause: str, *, until: int = LATER, strikes: int = 1, since: int = NOW, waiting: Any = WAITING) -> list[Any]:
    pause = Pause(cause, until, "because", strikes, since)
    skip = Skip("paused", f"paused ({cause}): because", until, cause)
    return plan_tell(waiting, skip, [pause], CONFIG, NOW)


def words(told: list[Any]) -> set[str]:
    return {one.row.content["body"] for one in told}


def test_people_who_wait_are_told_once_per_room_about_its_oldest_message() -> None:
    told = tell("limited")
    assert [(one.row.room_id, one.row.thread) for one in told] == [("!r1:example.org", None), ("!r2:example.org", "$t")]
    assert [one.row.id for one in tell("limited")] == [one.row.id for one in told], "the same cause, so the same notice"
    longer = [one.row.id for one in tell("limited", until=LATER + 9_000)]
    assert longer == [one.row.id for one in told], "also where it takes longer than was said"
    later = tell("limited", waiting=[*WAITING, make_waiting("!r1:example.org", oldest_event="$e9")])
    assert [one.row.id for one in later] == [one.row.id for one in told]


def test_a_wait_that_is_over_before_a_notice_is_read_is_not_told() -> None:
    assert tell("limited", until=NOW + 2_999) == []
    assert tell("limited", until=NOW + 3_000) != []


def test_bots_are_not_told_and_no_room_of_theirs_hears_of_it() -> None:
    assert tell("limited", waiting=[make_waiting(person=False)]) == []


@pytest.mark.parametrize("cause", ["overloaded", "fault", "network"])
def test_what_passes_by_itself_is_told_at_its_third_time_or_where_it_takes_long(cause: str) -> None:
    assert tell(cause, strikes=STRIKES - 1, until=NOW + 60_000) == []
    assert len(tell(cause, strikes=STRIKES, until=NOW + 60_000)) == 2
    assert len(tell(cause, until=NOW + LONG_MS)) == 2


@pytest.mark.parametrize("cause", ["authentication", "payment", "budget", "limited", "spend"])
def test_what_is_not_over_by_itself_is_told_at_once(cause: str) -> None:
    assert len(tell(cause, until=NOW + 60_000)) == 2


def test_each_cause_has_its_own_sentence_and_no_cap_says_that_the_model_cannot_be_reached() -> None:
    assert any("cannot be reached" in one for one in words(tell("authentication")))
    for cause in ("budget", "spend", "limited"):
        (sentence,) = words(tell(cause))
        assert "cannot be reached" not in sentence
        assert "2027-01-15 09:00" in sentence, "when she will be back"
    assert words(tell("budget")) != words(tell("limited"))


def test_where_no_wait_helps_no_instant_is_promised() -> None:
    away = [TurnedAway(mail, "dear", "too dear", LATER) for mail in WAITING]
    told = plan_turned_away(away, {}, CONFIG, "2027-01-15", LATER)
    assert [one.row.room_id for one in told] == ["!r1:example.org", "!r2:example.org"], "each room once"
    (sentence,) = words(told)
    assert "Whoever runs me has to allow more" in sentence
    assert "2027" not in sentence


def test_other_reasons_to_wait_are_nobodys_business() -> None:
    for kind in ("held", "busy", "backoff", "cadence", "breath"):
        skip = Skip(kind, "x", LATER)
        assert plan_tell(WAITING, skip, [], CONFIG, NOW) == []
    assert tell("died", until=LATER) == []


def test_quiet_hours_are_told_to_those_whom_they_hold_back_and_not_to_operators() -> None:
    waiting = [*WAITING, make_waiting("!r3:example.org", oldest_event="$e4", sender=OPERATOR)]
    told = plan_tell(waiting, Skip("quiet", "she keeps quiet hours", LATER), [], CONFIG, NOW)
    assert [one.row.room_id for one in told] == ["!r1:example.org", "!r2:example.org"]


SPENT = Standing(spent_day=10_000_000, spent_month=12_000_000)


def test_the_purse_asks_about_the_cap_that_is_reached_and_says_what_going_on_means() -> None:
    question = plan_purse(Skip("spend", "spent", LATER, "spend-day"), SPENT, HOUSE, NOW)
    assert question is not None
    assert (question.kind, question.about) == ("purse", "day:2027-01-15")
    assert "$10.00 of the $10.00" in question.text
    assert "2027-01-16 00:00:00 UTC" in question.text
    month = plan_purse(Skip("spend", "spent", LATER, "spend-month"), SPENT, HOUSE, NOW)
    assert month is not None
    assert month.about == "month:2027-01"
    assert month.id != question.id
    assert "this month" in month.text


def test_it_asks_once_until_it_was_reopened_and_is_spent_again() -> None:
    skip = Skip("spend", "spent", LATER, "spend-day")
    asked = [plan_purse(skip, SPENT, HOUSE, at) for at in (NOW, NOW + 60_000)]
    again = plan_purse(skip, Standing(spent_day=20_000_000, extensions_day=1), HOUSE, NOW)
    assert asked[0] is not None
    assert asked[1] is not None
    assert again is not None
    assert asked[0].id == asked[1].id != again.id
    assert "$20.00 of the $20.00" in again.text


@pytest.mark.parametrize("word", ["day", "month"])
def test_a_refusal_of_the_lease_asks_as_well_about_what_it_waits_for(word: str) -> None:
    until = next_day(NOW, "UTC") if word == "day" else next_month(NOW, "UTC")
    pause = Pause("spend", until, f"the call may cost $3.00, and $9.00 of the $10.00 that she may spend in a {word}", since=NOW)
    question = plan_purse(Skip("paused", "paused", until, "spend"), Standing(pauses=(pause,)), HOUSE, NOW)
    assert question is not None
    assert question.about.startswith(f"{word}:")
    assert pause.reason in question.text


@pytest.mark.parametrize("whose", [CONVERSATIONS, HOSTS])
def test_nobody_is_asked_about_a_cap_that_a_word_of_theirs_does_not_lift(whose: str) -> None:
    pause = Pause("spend", LATER, f"$9.00 of the $10.00 that {whose} in a day are committed", since=NOW)
    assert plan_purse(Skip("paused", "paused", LATER, "spend"), Standing(pauses=(pause,)), HOUSE, NOW) is None


def test_no_other_wait_is_about_the_purse() -> None:
    limited = Pause("limited", LATER, "a limit")
    assert plan_purse(None, SPENT, HOUSE, NOW) is None
    assert plan_purse(Skip("paused", "paused", LATER, "limited"), Standing(pauses=(limited,)), HOUSE, NOW) is None
    assert plan_purse(Skip("quiet", "quiet", LATER), SPENT, HOUSE, NOW) is None
