"""The heartbeat's rule: whether she is woken, for what, and until when not (design §9)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.control.effective import Control, Dial, Held, Released
from mind_body.heartbeat.wake import Busy, Dead, Open, Rest, Unheld, Wait, backoff_ms, bury, decide_wake, judge_run
from mind_body.mind.records import Pause, Run
from mind_body.mind.wake_facts import PendingMail, WakeFacts
from mind_body.settings import HostConfig, MindConfig
from tests.builders import NOW, OPERATOR, make_config, make_run

HOST = HostConfig()
CONFIG = make_config()
RELEASED: Control = Released(Dial(1.0, 14_400.0, 1.0))
HELD: Control = Held("the operator said so")
BEATS = make_config(persona={"beat": True})


def mail(conversation: str = "room:!a", *, oldest: int = NOW, newest: int | None = None, sender: str = "@bob:x") -> PendingMail:
    return PendingMail(conversation, 1, oldest, oldest if newest is None else newest, (sender,))


def facts(*pending: PendingMail, **others: Any) -> WakeFacts:
    values: dict[str, Any] = {"live": None, "pauses": (), "recent": (), "first_heard_at": None, "active_conversation": None}
    return WakeFacts(pending=pending, **(values | others))


def ended(outcome: str = "done", *, at: int = NOW, turns: int = 1) -> Run:
    return make_run(opened_at=at - 1000, ended_at=at, outcome=outcome, turns=turns)


def decide(seen: WakeFacts, now: int, control: Control = RELEASED, config: MindConfig = CONFIG) -> Open | Wait | Rest:
    return decide_wake(seen, control, config, HOST, now)


def test_a_message_waits_for_the_next_one_of_the_same_breath() -> None:
    assert decide(facts(mail()), NOW) == Wait(NOW + 1500, "more may come of the same breath")
    assert isinstance(decide(facts(mail()), NOW + 1500), Open)


def test_someone_who_never_stops_typing_is_answered_after_five_seconds() -> None:
    busy = mail(oldest=NOW, newest=NOW + 4900)
    assert decide(facts(busy), NOW + 4999) == Wait(NOW + 5000, "more may come of the same breath")
    assert isinstance(decide(facts(busy), NOW + 5000), Open)


def test_every_conversation_that_is_due_is_granted_and_no_other() -> None:
    ripe, also, green = mail("room:!a"), mail("open", oldest=NOW + 100), mail("direct:!c", oldest=NOW + 1900)
    decision = decide(facts(ripe, also, green), NOW + 2000)
    assert isinstance(decision, Open)
    assert decision.conversations == ("room:!a", "open")


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
    decision = decide(facts(*pending), NOW + 9000)
    assert isinstance(decision, Open)
    assert decision.cause == cause


@pytest.mark.parametrize(("glob", "sender"), [("@*:ops.example.org", "@eve:ops.example.org"), ("@*:[::1]", "@eve:[::1]")])
def test_operators_may_be_a_glob(glob: str, sender: str) -> None:
    config = make_config(people={"operators": (glob,)})
    decision = decide(facts(mail(sender=sender)), NOW + 9000, config=config)
    assert isinstance(decision, Open)
    assert decision.cause == "operator"


def test_a_live_run_makes_everything_wait() -> None:
    assert isinstance(decide(facts(mail(), live=make_run()), NOW + 9000), Wait)
    assert isinstance(decide(facts(mail(), live=make_run()), NOW + 9000, HELD), Wait)


def test_a_held_brake_outranks_an_overdue_beat_and_an_operators_mail() -> None:
    seen = facts(mail(sender=OPERATOR), first_heard_at=0, active_conversation="open")
    assert decide(seen, NOW + 9000, HELD, BEATS) == Rest("held: the operator said so")


def test_a_pause_makes_mail_wait_until_it_is_over() -> None:
    limited = Pause("limited", NOW + 60_000, "the plan's limit", 1)
    seen = facts(mail(), pauses=(limited, Pause("overloaded", NOW + 10, "busy")))
    decision = decide(seen, NOW + 9000)
    assert isinstance(decision, Wait)
    assert decision.until == NOW + 60_000
    assert "limited" in decision.reason
    assert isinstance(decide(seen, NOW + 60_000), Open)


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
    decision = decide_wake(seen, RELEASED, CONFIG, HOST, NOW + 9_000, mended_at=mended_at)
    assert isinstance(decision, Open) == opens


def test_a_pause_without_anything_pending_is_rest() -> None:
    assert isinstance(decide(facts(pauses=(Pause("limited", NOW + 60_000, "x"),)), NOW), Rest)


def test_a_run_that_came_to_nothing_delays_the_next_and_each_further_one_doubles_it() -> None:
    for strikes, wait in [(1, 500), (2, 1000), (3, 2000), (8, 60_000), (16, 60_000)]:
        seen = facts(mail(oldest=0), recent=(ended("dead"),) * strikes)
        decision = decide(seen, NOW)
        assert isinstance(decision, Wait)
        assert decision.until == NOW + wait
        assert isinstance(decide(seen, NOW + wait), Open)


@pytest.mark.parametrize("recent", [(ended(),), (ended("held", turns=0),), (ended(), ended("dead"), ended("dead"))])
def test_a_run_that_did_something_or_was_held_delays_nothing(recent: tuple[Run, ...]) -> None:
    assert isinstance(decide(facts(mail(oldest=0), recent=recent), NOW), Open)


def test_a_run_without_a_single_turn_counts_as_fruitless_whatever_it_says() -> None:
    assert isinstance(decide(facts(mail(oldest=0), recent=(ended("done", turns=0),)), NOW), Wait)


def test_nobody_spoke_is_rest() -> None:
    assert decide(facts(), NOW) == Rest("nobody spoke to her")


def test_a_beat_comes_a_cadence_after_the_last_run_in_her_active_conversation() -> None:
    seen = facts(recent=(ended(at=NOW),), active_conversation="open")
    due = NOW + 14_400_000
    assert decide(seen, due - 1, config=BEATS) == Wait(due, "the next beat")
    decision = decide(seen, due, config=BEATS)
    assert isinstance(decision, Open)
    assert (decision.conversations, decision.cause) == (("open",), "beat")


def test_a_hotter_dial_beats_sooner() -> None:
    seen = facts(recent=(ended(at=NOW),), active_conversation="open")
    hot = Released(Dial(2.0, 100.0, 1.0))
    assert decide(seen, NOW, hot, BEATS) == Wait(NOW + 50_000, "the next beat")


def test_she_never_speaks_unprompted_before_she_heard_anybody_or_without_being_told_to() -> None:
    assert isinstance(decide(facts(), NOW, config=BEATS), Rest)
    old = facts(recent=(ended(at=0),), active_conversation="open")
    assert isinstance(decide(old, NOW), Rest)


def test_a_beat_never_goes_before_mail_of_the_same_breath() -> None:
    seen = facts(mail(oldest=NOW), recent=(ended(at=0),), active_conversation="open")
    assert decide(seen, NOW, config=BEATS) == Wait(NOW + 1500, "more may come of the same breath")


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
    assert bury(facts(live=make_run()), dead, NOW).recent[0].outcome == "held"


def test_a_clock_that_stepped_back_holds_nothing_up_for_longer_than_twice_its_wait() -> None:
    back = NOW - 3_600_000
    assert isinstance(decide(facts(mail(oldest=NOW)), back), Open)
    assert isinstance(decide(facts(mail(oldest=0), recent=(ended("dead"),)), back), Open)
    assert isinstance(judge_run(make_run(opened_at=NOW), None, RELEASED, HOST, back), Dead)


instants = st.integers(0, 10_000_000)
mails = st.builds(
    lambda conversation, oldest, span, sender: PendingMail(conversation, 1, oldest, oldest + span, (sender,)),
    st.sampled_from(["open", "direct:!a", "room:!b"]),
    instants,
    st.integers(0, 10_000),
    st.sampled_from(["@bob:x", OPERATOR]),
)
runs = st.builds(
    lambda outcome, at, turns: ended(outcome, at=at, turns=turns),
    st.sampled_from(["done", "dead", "held"]),
    instants,
    st.integers(0, 2),
)
wake_facts = st.builds(
    WakeFacts,
    pending=st.lists(mails, max_size=3, unique_by=lambda one: one.conversation).map(tuple),
    live=st.none() | st.just(make_run()),
    pauses=st.lists(st.builds(Pause, st.just("limited"), instants, st.just("x")), max_size=1).map(tuple),
    recent=st.lists(runs, max_size=4).map(tuple),
    first_heard_at=st.none() | instants,
    active_conversation=st.none() | st.just("open"),
)
controls = st.sampled_from([RELEASED, HELD, Released(Dial(0.05, 1.0, 0.0))])


@given(wake_facts, controls, st.sampled_from([CONFIG, BEATS]), instants)
def test_it_opens_only_what_it_may(seen: WakeFacts, control: Control, config: MindConfig, now: int) -> None:
    decision = decide_wake(seen, control, config, HOST, now)
    assert decision.reason
    if isinstance(decision, Open):
        assert seen.live is None
        assert isinstance(control, Released)
        assert all(pause.until <= now for pause in seen.pauses)
        assert decision.conversations
        assert decision.cause == "beat" or set(decision.conversations) <= {one.conversation for one in seen.pending}
    if isinstance(decision, Wait):
        assert decision.until is None or decision.until > now
        assert (decision.until is None) == (seen.live is not None)


@given(wake_facts, controls, st.sampled_from([CONFIG, BEATS]), instants)
def test_asking_again_when_it_said_so_leads_to_a_run(seen: WakeFacts, control: Control, config: MindConfig, now: int) -> None:
    """No wait goes on for ever: each ends in a run, or in a later instant, at most one per thing that is waited for."""
    for _ in range(8):
        decision = decide_wake(seen, control, config, HOST, now)
        if not isinstance(decision, Wait) or decision.until is None:
            return
        now = decision.until
    pytest.fail(f"still {decision}")


@given(st.integers(1, 100))
def test_the_back_off_never_shrinks_and_is_bounded(strikes: int) -> None:
    assert 500 <= backoff_ms(strikes, HOST) <= backoff_ms(strikes + 1, HOST) <= 60_000
