"""The heartbeat's rule: what would wake her, for which conversations, and until when not (design §9)."""

import dataclasses
import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.control.effective import Control, Dial, Held, Released
from mind_body.control.govern import House, Skip, keeps_quiet, spacing_ms
from mind_body.heartbeat.wake import Busy, Dead, Decision, Open, Rest, Unheld, Wait, bury, decide_wake, judge_run
from mind_body.mind.records import Pause, Run
from mind_body.mind.wake_facts import PendingMail, Standing, WakeFacts
from mind_body.settings import HostConfig
from tests.builders import NOW, OPERATOR, make_config, make_run
from tests.strategies import controls, houses, instants, releases, wake_facts

HOST = HostConfig()
RELEASED: Control = Released(Dial(1.0, 14_400.0, 1.0))
HELD: Control = Held("the operator said so")
HOME = "!home:example.org"
PLAIN = House(make_config(), HOST)
BEATS = House(make_config(persona={"beat": True, "home_room": HOME}), HOST)
QUIET = House(make_config(persona={"quiet_hours": ("22:00-07:00",), "quiet_for": "everyone"}), HOST)
NIGHT = round(dt.datetime(2026, 11, 30, 23, tzinfo=dt.UTC).timestamp() * 1000)
MORNING, NOON = NIGHT + 8 * 3_600_000, NIGHT + 13 * 3_600_000


def mail(conversation: str = "room:!a", *, oldest: int = NOW, newest: int | None = None, sender: str = "@bob:x") -> PendingMail:
    return PendingMail(conversation, 1, oldest, oldest if newest is None else newest, (sender,))


def facts(*pending: PendingMail, awaited: tuple[str, ...] = (), home: str | None = None, **standing: Any) -> WakeFacts:
    return WakeFacts(pending, Standing(**standing), awaited, home)


def ended(outcome: str = "done", *, at: int = NOW, turns: int = 1) -> Run:
    return make_run(opened_at=at - 1000, ended_at=at, outcome=outcome, turns=turns)


def decide(seen: WakeFacts, now: int, control: Control = RELEASED, house: House = PLAIN) -> Decision:
    return decide_wake(seen, control, house, now)


def opened(seen: WakeFacts, now: int, house: House = PLAIN) -> Open:
    decision = decide(seen, now, house=house)
    assert isinstance(decision, Open), decision
    return decision


def waited(seen: WakeFacts, now: int, house: House = PLAIN, control: Control = RELEASED) -> tuple[int, str]:
    """Until when, and what the governor calls it."""
    decision = decide(seen, now, control, house)
    assert isinstance(decision, Wait), decision
    assert decision.skip is not None
    assert decision.reason == decision.skip.reason
    assert decision.until == decision.skip.look_again_at
    return decision.until, decision.skip.kind


# Mail.


def test_a_message_waits_for_the_next_one_of_the_same_breath() -> None:
    assert decide(facts(mail()), NOW) == Wait(
        NOW + 1500, "more may come of the same breath", Skip("breath", "more may come of the same breath", NOW + 1500)
    )
    assert opened(facts(mail()), NOW + 1500) == Open(("room:!a",), "mention", "1 message (mention)")


def test_someone_who_never_stops_typing_is_answered_after_five_seconds() -> None:
    busy = mail(oldest=NOW, newest=NOW + 4900)
    assert waited(facts(busy), NOW + 4999) == (NOW + 5000, "breath")
    assert opened(facts(busy), NOW + 5000).cause == "mention"


def test_every_conversation_that_is_ripe_is_granted_and_no_other() -> None:
    ripe, also, green = mail("room:!a"), mail("open", oldest=NOW + 100), mail("direct:!c", oldest=NOW + 1900)
    assert opened(facts(ripe, also, green), NOW + 2000).conversations == ("room:!a", "open")


@pytest.mark.parametrize(
    ("pending", "cause"),
    [
        ([mail("room:!a")], "mention"),
        ([mail("open")], "mention"),
        ([mail("direct:!a")], "direct"),
        ([mail("room:!a", sender=OPERATOR)], "operator"),
        ([mail("room:!a"), mail("direct:!b")], "direct"),
        ([mail("direct:!b"), mail("room:!a", sender=OPERATOR)], "operator"),
        ([mail("room:!a", sender=OPERATOR.upper())], "mention"),
    ],
)
def test_the_weightiest_cause_names_the_run(pending: list[PendingMail], cause: str) -> None:
    assert opened(facts(*pending), NOW + 9000).cause == cause


@pytest.mark.parametrize(("glob", "sender"), [("@*:ops.example.org", "@eve:ops.example.org"), ("@*:[::1]", "@eve:[::1]")])
def test_operators_may_be_a_glob(glob: str, sender: str) -> None:
    house = House(make_config(people={"operators": (glob,)}), HOST)
    assert opened(facts(mail(sender=sender)), NOW + 9000, house).cause == "operator"


# Her own work that is over.


def test_work_that_is_over_wakes_her_where_it_was_asked_for() -> None:
    assert opened(facts(awaited=("room:!a",)), NOW) == Open(("room:!a",), "self_run", "work of hers that is over")


def test_work_that_is_over_is_told_together_with_mail_that_is_ripe() -> None:
    decision = opened(facts(mail("direct:!b", oldest=NOW - 9000), awaited=("room:!a",)), NOW)
    assert decision == Open(("direct:!b", "room:!a"), "direct", "1 message (direct), and work of hers that is over")


def test_mail_that_is_about_to_be_ripe_tells_the_work_that_is_over_there() -> None:
    assert waited(facts(mail("room:!a"), awaited=("room:!a",)), NOW) == (NOW + 1500, "breath")
    assert opened(facts(mail("room:!a"), awaited=("room:!b",)), NOW).conversations == ("room:!b",)


# What holds her up.


def test_a_live_run_makes_everything_wait() -> None:
    until, kind = waited(facts(mail(), live=make_run()), NOW + 9000)
    assert (until, kind) == (NOW + 39_000, "busy")


def test_a_held_brake_outranks_everything() -> None:
    everything = facts(mail(sender=OPERATOR), awaited=("open",), home="open", last_act_at=0, live=make_run())
    assert decide(everything, NOW + 9000, HELD, BEATS) == Rest("held: the operator said so")
    assert decide(facts(), NOW, HELD, BEATS) == Rest("held: the operator said so")


def test_a_pause_makes_mail_wait_until_it_is_over() -> None:
    limited = Pause("limited", NOW + 60_000, "the plan's limit", 1)
    seen = facts(mail(), pauses=(limited, Pause("overloaded", NOW + 10, "busy")))
    decision = decide(seen, NOW + 9000)
    assert isinstance(decision, Wait)
    assert decision.skip == Skip("paused", "paused (limited): the plan's limit", NOW + 60_000, "limited")
    assert opened(seen, NOW + 60_000).cause == "mention"


@pytest.mark.parametrize(
    ("cause", "mended_at", "opens"),
    [
        ("authentication", NOW + 5_000, True),
        ("fault", NOW + 5_000, True),
        ("authentication", NOW - 1, False),
        ("authentication", NOW + 3_000_000, False),
        ("authentication", 0, False),
        ("limited", NOW + 5_000, False),
    ],
)
def test_a_pause_ends_where_a_file_that_can_mend_it_was_changed_since(cause: str, mended_at: int, opens: bool) -> None:
    seen = facts(mail(), pauses=(Pause(cause, NOW + 3_600_000, "HTTP 401", 1, since=NOW),))
    decision = decide(seen, NOW + 9_000, house=dataclasses.replace(PLAIN, mended_at=mended_at))
    assert isinstance(decision, Open) == opens


def test_a_pause_without_anything_to_wake_for_is_rest() -> None:
    assert isinstance(decide(facts(pauses=(Pause("limited", NOW + 60_000, "x"),)), NOW), Rest)


def test_a_run_that_came_to_nothing_delays_mail() -> None:
    assert waited(facts(mail(oldest=0), recent=(ended("dead"),) * 3), NOW) == (NOW + 2000, "backoff")


def test_what_holds_up_mail_is_never_hidden_by_a_later_scheduled_wake() -> None:
    seen = facts(mail(oldest=0), home="open", last_act_at=NOW, pauses=(Pause("limited", NOW + 10, "x"),))
    assert waited(seen, NOW, BEATS) == (NOW + 10, "paused")


# Quiet hours.


def test_what_is_ripe_in_the_night_waits_for_the_morning_but_operators_are_answered() -> None:
    bob = mail("direct:!bob", oldest=NIGHT - 9000)
    operator = mail("direct:!op", oldest=NIGHT - 8000, sender=OPERATOR)
    assert waited(facts(bob), NIGHT, QUIET) == (MORNING, "quiet")
    assert opened(facts(bob, operator), NIGHT, QUIET) == Open(("direct:!op",), "operator", "1 message (operator)")
    assert opened(facts(bob, operator), MORNING, QUIET).conversations == ("direct:!bob", "direct:!op")


def test_an_operators_unfinished_breath_is_waited_for_in_the_night() -> None:
    bob = mail("direct:!bob", oldest=NIGHT - 9000)
    operator = mail("direct:!op", oldest=NIGHT - 100, sender=OPERATOR)
    assert waited(facts(bob, operator), NIGHT, QUIET) == (NIGHT + 1400, "breath")


def test_an_operators_unfinished_breath_holds_up_nobody_by_day() -> None:
    bob = mail("direct:!bob", oldest=NOON - 9000)
    operator = mail("direct:!op", oldest=NOON - 100, sender=OPERATOR)
    assert opened(facts(bob, operator), NOON, QUIET).conversations == ("direct:!bob",)


def test_work_that_is_over_is_not_told_in_the_quiet_beside_an_operators_mail() -> None:
    operator = mail("direct:!op", oldest=NIGHT - 8000, sender=OPERATOR)
    assert opened(facts(operator, awaited=("room:!b",)), NIGHT, QUIET).conversations == ("direct:!op",)
    assert waited(facts(awaited=("room:!b",)), NIGHT, QUIET) == (MORNING, "quiet")


# Scheduled wakes.


def test_nobody_spoke_is_rest_and_says_what_is_missing_for_scheduled_wakes() -> None:
    homeless = House(make_config(persona={"beat": True}), HOST)
    assert decide(facts(), NOW) == Rest("nobody spoke to her")
    assert decide(facts(), NOW, house=homeless) == Rest("nobody spoke to her, and without a home_room she has no scheduled wakes")
    assert decide(facts(), NOW, house=BEATS) == Rest(f"nobody spoke to her, and she is not in her home room {HOME}")
    assert decide(facts(home="open"), NOW, house=BEATS) == Rest("she has heard nobody yet")


def test_a_scheduled_wake_comes_a_cadence_after_her_last_run_in_her_home_room() -> None:
    seen = facts(home="open", last_act_at=NOW)
    due = NOW + 14_400_000
    assert waited(seen, due - 1, BEATS) == (due, "cadence")
    assert opened(seen, due, BEATS) == Open(("open",), "beat", "a scheduled wake")


def test_each_in_silence_doubles_the_wait_for_the_next_one() -> None:
    decision = decide(facts(home="open", last_act_at=NOW, silent_beats=2), NOW, house=BEATS)
    assert isinstance(decision, Wait)
    assert decision.until == NOW + 4 * 14_400_000
    assert decision.reason == "the next scheduled wake is not due yet, doubled for 2 in silence"


def test_a_hotter_dial_wakes_sooner() -> None:
    hot = Released(Dial(2.0, 300.0, 1.0))
    assert waited(facts(home="open", last_act_at=NOW), NOW, BEATS, hot) == (NOW + 150_000, "cadence")


def test_she_has_no_scheduled_wakes_unless_she_is_told_to() -> None:
    assert isinstance(decide(facts(home="open", last_act_at=0), NOW), Rest)


def test_a_scheduled_wake_never_goes_before_mail_of_the_same_breath() -> None:
    assert waited(facts(mail(oldest=NOW), home="open", last_act_at=0), NOW, BEATS) == (NOW + 1500, "breath")


def test_mail_that_is_ripe_goes_before_an_overdue_scheduled_wake() -> None:
    assert opened(facts(mail(oldest=0), home="open", last_act_at=0), NOW, BEATS).cause == "mention"


def test_who_speaks_during_a_scheduled_turn_is_answered_next_and_never_beside_it() -> None:
    turn = make_run(cause="beat", conversations=("open",), holder="me", held_at=NOW)
    seen = facts(mail("direct:!b"), home="open", last_act_at=0, live=turn, silent_beats=5)
    assert waited(seen, NOW + 9000, BEATS)[1] == "busy"
    over = facts(mail("direct:!b"), home="open", last_act_at=NOW + 9000, recent=(ended(at=NOW + 9000),), silent_beats=0)
    assert opened(over, NOW + 9000, BEATS) == Open(("direct:!b",), "direct", "1 message (direct)")


# Live runs.


def test_a_held_run_is_busy_exactly_while_its_holder_has_the_lock() -> None:
    run = make_run(holder="me", held_at=NOW)
    assert judge_run(run, "me", RELEASED, HOST, NOW + 10**9) == Busy()
    assert isinstance(judge_run(run, None, RELEASED, HOST, NOW), Dead)
    assert isinstance(judge_run(run, "another", RELEASED, HOST, NOW), Dead)
    assert judge_run(run, "me", HELD, HOST, NOW) == Busy()


def test_a_run_that_nobody_adopted_is_dead_after_its_grace_and_not_before() -> None:
    run = make_run(opened_at=NOW)
    assert judge_run(run, None, RELEASED, HOST, NOW + 119_999) == Unheld(NOW + 120_000)
    dead = judge_run(run, None, RELEASED, HOST, NOW + 120_000)
    assert isinstance(dead, Dead)
    assert dead.outcome == "dead"


def test_a_run_that_nobody_may_adopt_any_more_is_ended_as_held() -> None:
    dead = judge_run(make_run(), None, HELD, HOST, NOW)
    assert isinstance(dead, Dead)
    assert dead.outcome == "held"
    after = bury(facts(live=make_run()), dead, NOW).standing
    assert (after.live, after.recent[0].outcome, after.last_act_at) == (None, "held", NOW)


def test_a_clock_that_stepped_back_holds_nothing_up_for_longer_than_twice_its_wait() -> None:
    back = NOW - 3_600_000
    assert isinstance(decide(facts(mail(oldest=NOW)), back), Open)
    assert isinstance(decide(facts(mail(oldest=0), recent=(ended("dead"),)), back), Open)
    assert isinstance(judge_run(make_run(opened_at=NOW), None, RELEASED, HOST, back), Dead)
    seconds = facts(mail(oldest=NOW))
    assert waited(seconds, NOW - 4_000)[0] <= NOW - 4_000 + 2 * 5_000


# Whatever the facts.


@given(wake_facts, controls, houses(), instants)
def test_it_opens_only_what_it_may(seen: WakeFacts, control: Control, house: House, now: int) -> None:
    decision = decide_wake(seen, control, house, now)
    assert decision.reason
    if isinstance(decision, Open):
        assert isinstance(control, Released)
        assert seen.standing.live is None
        assert decision.conversations
        asked = {one.conversation for one in seen.pending} | set(seen.awaited)
        assert set(decision.conversations) <= ({seen.home} if decision.cause == "beat" else asked)
    if isinstance(decision, Wait):
        assert decision.until > now
        assert decision.skip is not None


@given(wake_facts, releases, houses(), instants)
def test_a_scheduled_wake_is_opened_only_where_nothing_else_waits_and_her_cadence_has_passed(
    seen: WakeFacts, control: Control, house: House, now: int
) -> None:
    decision = decide_wake(seen, control, house, now)
    if isinstance(decision, Open) and decision.cause == "beat":
        assert isinstance(control, Released)
        assert not seen.pending
        assert not seen.awaited
        assert decision.conversations == (seen.home,)
        last = seen.standing.last_act_at
        assert last is not None
        assert abs(now - last) >= spacing_ms(control.dial, seen.standing.silent_beats)


@given(wake_facts, houses(), instants)
def test_nothing_opens_while_held(seen: WakeFacts, house: House, now: int) -> None:
    assert decide_wake(seen, HELD, house, now) == Rest("held: the operator said so")


@given(wake_facts, releases, houses(), instants)
def test_in_the_quiet_for_everyone_nobody_but_operators_is_answered(
    seen: WakeFacts, control: Control, house: House, now: int
) -> None:
    decision = decide_wake(seen, control, house, now)
    if isinstance(decision, Open) and keeps_quiet(house, now):
        assert decision.cause == "operator"
        theirs = {one.conversation for one in seen.pending if OPERATOR in one.senders}
        assert set(decision.conversations) <= theirs


@given(wake_facts, releases, houses(), instants)
def test_outside_of_it_everything_that_is_ripe_is_opened_together(
    seen: WakeFacts, control: Control, house: House, now: int
) -> None:
    decision = decide_wake(seen, control, house, now)
    if isinstance(decision, Open) and not keeps_quiet(house, now) and decision.cause not in {"beat", "self_run"}:
        ripe = {one.conversation for one in seen.pending if one.oldest_at + 15_000 <= now and one.newest_at + 15_000 <= now}
        assert ripe <= set(decision.conversations)


@given(wake_facts, controls, houses(), instants)
def test_asking_again_when_it_said_so_leads_to_a_run(seen: WakeFacts, control: Control, house: House, now: int) -> None:
    """No wait goes on for ever: each ends in a run, or in a later instant, at most a few per thing that is waited for."""
    seen = dataclasses.replace(seen, standing=dataclasses.replace(seen.standing, live=None, spent_day=0, spent_month=0))
    for _ in range(32):
        decision = decide_wake(seen, control, house, now)
        if not isinstance(decision, Wait):
            return
        now = decision.until
    pytest.fail(f"still {decision}")


@given(wake_facts, controls, houses(), instants, st.integers(0, 10**9))
def test_before_it_said_to_look_again_the_answer_is_the_same(
    seen: WakeFacts, control: Control, house: House, now: int, sooner: int
) -> None:
    """Who looks only at that instant misses nothing: without a change nothing is opened before it."""
    decision = decide_wake(seen, control, house, now)
    if isinstance(decision, Wait) and decision.skip is not None and decision.skip.kind != "busy":
        between = now + sooner % (decision.until - now)
        assert isinstance(decide_wake(seen, control, house, between), Wait)
