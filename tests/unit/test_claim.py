"""The rule of claiming: which work, when, and when it is enough; what reactions to a proposal come to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.control.effective import Dial, Held, Released
from mind_body.control.govern import House
from mind_body.heartbeat.breaker import NOTHING, PASSED_OVER, Retired, count_fruitless, plan_breaker
from mind_body.heartbeat.claim import CONFIRM_MS, Asked, Claim, Confirmed, Refused, decide_claim, judge_proposal, make_handoff
from mind_body.heartbeat.wake import Rest, Wait
from mind_body.mind.asking_records import Question
from mind_body.mind.records import Pause, Run, RunKind
from mind_body.mind.wake_facts import Standing
from mind_body.mind.work_records import FATES, FollowUp, FollowUpState, OpenWork, Progress, Proposal, Reaction, WorkFacts
from mind_body.settings import HostConfig
from tests.builders import NOW, OPERATOR, make_config, make_question, make_run

HOST = HostConfig(restart_min_s=1, restart_max_s=8)
RELEASED = Released(Dial(1.0, 3600, 1.0))
BOB, EVE = "@bob:example.org", "@eve:example.org"
CONFIG = make_config(people={"may_start": (BOB,)}, self={"enabled": True})
ROOM = "!a:example.org"


def make_work(work_id: str = "w", **columns: Any) -> FollowUp:
    values: dict[str, Any] = dict.fromkeys(FollowUp.__slots__) | {
        "id": work_id,
        "conversation": f"room:{ROOM}",
        "room_id": ROOM,
        "asked_by": BOB,
        "brief": "dig",
        "workspace": "main",
        "state": FollowUpState.OPEN,
        "opened_at": NOW,
    }
    return FollowUp(**(values | columns))


def ended(*outcomes: str, at: int = NOW) -> tuple[Run, ...]:
    return tuple(make_run(kind=RunKind.SELF_RUN, outcome=outcome, ended_at=at) for outcome in outcomes)


def facts(*works: OpenWork, **columns: Any) -> WorkFacts:
    return WorkFacts(open=works, proposals=(), reactions=(), standing=Standing(**columns))


def decide(found: WorkFacts, *, control: Any = RELEASED, config: Any = CONFIG, now: int = NOW) -> Any:
    return decide_claim(found, control, House(config, HOST), now)


FRESH = OpenWork(make_work(), ())


def test_the_oldest_work_is_claimed_for_who_asked() -> None:
    first, second = OpenWork(make_work("1"), ()), OpenWork(make_work("2"), ())
    claim = decide(facts(first, second))
    assert isinstance(claim, Claim)
    assert (claim.follow_up.id, BOB in claim.reason) == ("1", True)


def test_one_run_at_a_time_and_none_while_held_or_without_a_self() -> None:
    busy = decide(facts(FRESH, live=make_run(kind=RunKind.SELF_RUN)))
    assert isinstance(busy, Wait)
    assert busy.skip is not None
    assert busy.skip.kind == "busy"
    assert isinstance(decide(facts(FRESH), control=Held("a reason")), Rest)
    assert isinstance(decide(facts(FRESH), config=make_config()), Rest)
    assert isinstance(decide(facts()), Rest)


def test_a_pause_of_the_self_holds_it_off_until_its_end() -> None:
    pauses = (Pause("limited", NOW + 5, "a limit"), Pause("fault", NOW + 9, "a fault"), Pause("budget", NOW, "over"))
    waiting = decide(facts(FRESH, pauses=pauses))
    assert isinstance(waiting, Wait)
    assert waiting.until == NOW + 9
    assert isinstance(decide(facts(FRESH, pauses=pauses), now=NOW + 9), Claim)


def test_the_caps_of_spending_hold_work_off_until_they_are_renewed_and_quiet_hours_do_not() -> None:
    spent = facts(FRESH, spent_day=10_000_000)
    waiting = decide(spent)
    assert isinstance(waiting, Wait)
    assert waiting.skip is not None
    assert (waiting.skip.kind, waiting.skip.cause) == ("spend", "spend-day")
    assert waiting.until > NOW
    assert isinstance(decide(facts(FRESH, spent_day=10_000_000, extensions_day=1)), Claim)
    quiet = make_config(self={"enabled": True}, persona={"quiet_hours": ("00:00-23:59",), "quiet_for": "everyone"})
    assert isinstance(decide(facts(FRESH), config=quiet), Claim)


def test_work_of_a_conversation_that_has_cost_what_it_may_waits_and_holds_up_no_other() -> None:
    apart = (("room:!a", Pause("spend", NOW + 9, "a cap of its own")),)
    capped, other = OpenWork(make_work("1", conversation="room:!a"), ()), OpenWork(make_work("2", conversation="room:!b"), ())
    claim = decide(facts(capped, other, apart=apart))
    assert isinstance(claim, Claim)
    assert claim.follow_up.id == "2"
    assert decide(facts(capped, apart=apart)) == Wait(NOW + 9, "paused (spend): a cap of its own")


def test_m4_work_that_came_to_nothing_waits_longer_each_time_and_holds_up_no_other() -> None:
    once, twice = OpenWork(make_work("1"), ended("died")), OpenWork(make_work("2"), ended("died", "dead"))
    claim = decide(facts(once, FRESH))
    assert isinstance(claim, Claim)
    assert claim.follow_up.id == "w"
    assert decide(facts(once)) == Wait(NOW + 1000, "the last run came to nothing")
    assert decide(facts(twice)) == Wait(NOW + 2000, "the last 2 runs came to nothing")
    assert decide(facts(twice, once)).until == NOW + 1000
    assert isinstance(decide(facts(once), now=NOW + 1000), Claim)


def test_a_spent_budget_is_renewed_a_cadence_of_the_dial_later() -> None:
    work = OpenWork(make_work(), ended("budget"))
    assert decide(facts(work)) == Wait(NOW + 3_600_000, "the last run spent its budget")
    hotter = Released(Dial(2.0, 3600, 1.0))
    assert isinstance(decide(facts(work), control=hotter, now=NOW + 1_800_000), Claim)


@pytest.mark.parametrize("outcome", ["flushed", "limited", "held"])
def test_what_is_to_go_on_goes_on_at_once(outcome: str) -> None:
    assert isinstance(decide(facts(OpenWork(make_work(), ended(outcome)))), Claim)


def make_item(*outcomes: str, about: str = "work:w", **columns: Any) -> OpenWork:
    return OpenWork(make_work(about), ended(*outcomes), about=about, **columns)


def test_after_three_in_a_row_its_operators_are_asked_and_it_is_passed_over_until_they_answer() -> None:
    counts = {
        ("dead", "died", "killed"): True,
        ("dead", "held", "limited", "died", "budget", "refused"): True,
        ("dead", "died"): False,
        ("dead", "died", "flushed", "dead"): False,
        ("result", "dead", "dead", "dead"): False,
        (): False,
    }
    for outcomes, trips in counts.items():
        work = make_item(*outcomes)
        found = plan_breaker([work], NOW)
        assert [isinstance(one, Question) for one in found] == [True] * trips
        assert isinstance(decide(facts(work), now=NOW + 3_600_000), Rest if trips else Claim)
        assert isinstance(decide(facts(work, FRESH), now=NOW), Claim), "it holds up no other"


def test_a_question_says_what_happened_and_not_what_was_asked_for_and_is_the_same_until_there_is_news() -> None:
    past = ended("died", "died", "killed")
    work = OpenWork(make_work("w", brief="a secret brief"), past, about="work:w")
    (question,) = plan_breaker([work], NOW)
    assert isinstance(question, Question)
    assert (question.kind, question.about) == ("breaker", "work:w")
    assert BOB in question.text
    assert "last 3 runs came to nothing" in question.text
    assert "secret" not in question.text
    again = plan_breaker([work], NOW + 9)
    assert [one.id for one in again if isinstance(one, Question)] == [question.id]
    newer = OpenWork(make_work("w"), (*ended("died"), *past), about="work:w", reopened_after=past[0].id)
    assert plan_breaker([newer], NOW) == [], "reopened, it has its tries again"


def test_while_they_are_asked_nobody_asks_again_and_what_they_left_at_that_is_given_up() -> None:
    work = make_item("died", "died", "died", question_open=True)
    assert plan_breaker([work], NOW) == []
    retired = make_item("died", "died", "died", answered=make_question(answer="retire", answered_by=OPERATOR))
    (todo,) = plan_breaker([retired], NOW)
    assert isinstance(todo, Retired)
    assert OPERATOR in todo.why


def test_work_of_a_campaign_is_one_item_and_rests_when_it_is_closed() -> None:
    past = ended("died", "died", "died")
    works = [OpenWork(make_work(one), (), about="campaign:spring", campaign_past=past) for one in "ab"]
    (question,) = plan_breaker(works, NOW)
    assert isinstance(question, Question)
    assert "spring" in question.text
    assert isinstance(decide(facts(*works)), Rest)
    closed = OpenWork(make_work(campaign="spring"), (), about="campaign:spring", campaign_closed=True)
    assert decide(facts(closed)) == Rest("the campaign spring is closed")
    assert plan_breaker([closed], NOW) == []
    assert isinstance(decide(facts(closed, FRESH)), Claim)


def test_every_outcome_of_a_self_is_counted_one_way() -> None:
    again = {outcome for outcome, fate in FATES.items() if fate == "again"}
    assert again <= NOTHING | PASSED_OVER
    assert not NOTHING & PASSED_OVER
    assert not (NOTHING | PASSED_OVER) & {"result", "flushed"}
    assert set(FATES) <= NOTHING | PASSED_OVER | {"result", "flushed"}
    assert "interrupted" in NOTHING, "what a person stopped is over; what stalled is tried again, and not for ever"
    assert count_fruitless(ended("died", "authentication", "died")) == 2, "work is not to blame for a key"


instants = st.integers(NOW - 10**8, NOW + 10**8)
outcomes = st.sampled_from(sorted([*FATES, "dead", "failed"]))


@given(st.lists(st.tuples(st.lists(outcomes, max_size=4), instants), max_size=4), instants)
def test_a_wait_is_never_for_the_past_and_what_it_waits_for_is_then_claimed(works: list[Any], now: int) -> None:
    found = facts(*[OpenWork(make_work(str(n)), ended(*past, at=at), about=f"work:{n}") for n, (past, at) in enumerate(works)])
    answer = decide(found, now=now)
    asked = {one.about for one in plan_breaker(found.open, now) if isinstance(one, Question)}
    if isinstance(answer, Wait):
        assert answer.until > now
        assert answer.until - now <= 2 * 3_600_000, "also where the clock stepped back"
        assert isinstance(decide(found, now=answer.until), Claim)
    elif isinstance(answer, Rest):
        assert len(asked) == len(works), "nothing is left but what the operators are asked about"
    else:
        assert f"work:{answer.follow_up.id}" not in asked


def react(key: str, sender: str = BOB, target: str = "$ask", room_id: str = ROOM) -> Reaction:
    return Reaction(f"${key}{sender}", room_id, target, sender, key, NOW)


PROPOSAL = Proposal(make_work(state=FollowUpState.PROPOSED), "$ask")


def judge(*reactions: Reaction, now: int = NOW, proposal: Proposal = PROPOSAL, config: Any = CONFIG) -> Any:
    return judge_proposal(proposal, reactions, config.people, now)


@pytest.mark.parametrize("key", ["✅", "👍", "👍\ufe0f", "👍🏽", "✅\ufe0f"])
def test_the_asker_confirms_by_a_reaction_in_any_of_its_looks(key: str) -> None:
    assert judge(react(key)) == Confirmed()


@pytest.mark.parametrize(
    "reaction",
    [
        react("✅", EVE),
        react("✅", OPERATOR),
        react("✅", "@Bob:example.org"),
        react("🎉"),
        react("✅✅"),
        react("✅", target="$other"),
        react("✅", room_id="!other"),
        react("❌", EVE),
    ],
)
def test_nobody_elses_reaction_counts_nor_another_sign_nor_one_elsewhere(reaction: Reaction) -> None:
    assert judge(reaction) == Asked(NOW + CONFIRM_MS)


def test_the_asker_or_an_operator_declines_it_and_that_outweighs() -> None:
    assert isinstance(judge(react("❌")), Refused)
    assert isinstance(judge(react("❌", OPERATOR)), Refused)
    assert isinstance(judge(react("✅"), react("❌")), Refused)


def test_it_waits_a_day_and_only_for_somebody_who_may_still_start_work() -> None:
    assert judge(now=NOW + CONFIRM_MS - 1) == Asked(NOW + CONFIRM_MS)
    assert isinstance(judge(now=NOW + CONFIRM_MS), Refused)
    assert judge(now=NOW - 10**9) == Asked(NOW - 10**9 + CONFIRM_MS), "a clock that stepped back lengthens nothing"
    assert isinstance(judge(react("✅"), config=make_config()), Refused)
    unsent = Proposal(PROPOSAL.follow_up, None)
    assert isinstance(judge(react("✅"), proposal=unsent), Asked)


def test_a_hand_off_from_the_record_says_that_it_is_one_and_what_was_seen_last() -> None:
    run = make_run(kind=RunKind.SELF_RUN)
    seen = make_handoff(run, make_work(), Progress(run.id, "Bash: make test", 1, 2, 3, 4, 5, NOW), [], "its holder is gone", NOW)
    assert (seen.run_id, seen.workspace, seen.origin, seen.cut) == (run.id, "main", "record", False)
    assert "its holder is gone" in seen.text
    assert "Bash: make test" in seen.text
    assert "not known" in make_handoff(run, make_work(), None, [], "gone", NOW).text
