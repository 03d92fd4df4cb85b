"""Work as the breaker sees it, over a real mind: what belongs to one item, in which order, and since which answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mind_body.heartbeat.breaker import find_trip
from mind_body.mind.campaigns import close_campaign, open_campaign
from mind_body.mind.claims import read_work_facts
from mind_body.mind.follow_ups import admit_follow_up, open_self_run
from mind_body.mind.questions import admit_question, answer_question, read_question
from mind_body.mind.records import Pause, Run
from mind_body.mind.runs import adopt_run, set_pause
from mind_body.mind.self_runs import end_self_run
from mind_body.mind.store import Mind, Transaction
from mind_body.mind.work_items import PAST_MAX
from mind_body.mind.work_records import FATES, FollowUp, NewFollowUp, OpenWork, SelfRunEnd
from tests.builders import NOW, OPERATOR, WINDOW, insert_room, make_campaign, make_mind, make_question

ROOM = "!a:example.org"


@pytest.fixture
def tx(tmp_path: Path) -> Iterator[Transaction]:
    mind: Mind = make_mind(tmp_path)
    with mind.write() as opened:
        insert_room(opened, ROOM)
        open_campaign(opened, make_campaign("spring"))
        open_campaign(opened, make_campaign("autumn"))
        yield opened
    mind.close()


def ask(tx: Transaction, campaign: str | None = None) -> FollowUp:
    new = NewFollowUp(f"room:{ROOM}", ROOM, "$asked", "@bob:example.org", "dig", "main", campaign)
    return admit_follow_up(tx, new, NOW)


def run(tx: Transaction, work: FollowUp, outcome: str) -> FollowUp | None:
    """One run of it, and what goes on or is open again."""
    opened = open_self_run(tx, work, "a test", NOW)
    assert opened is not None
    assert adopt_run(tx, opened.id, "holder", NOW)
    ended = end_self_run(tx, opened, "holder", SelfRunEnd(outcome, "", None, FATES[outcome]), NOW)
    assert ended is not None
    return ended.follow_up


def run_on(tx: Transaction, work: FollowUp, *outcomes: str) -> FollowUp:
    for outcome in outcomes:
        after = run(tx, work, outcome)
        assert after is not None
        work = after
    return work


def the_work(tx: Transaction) -> OpenWork:
    (found,) = read_work_facts(tx, WINDOW).open
    return found


def outcomes(past: tuple[Run, ...]) -> list[str | None]:
    return [one.outcome for one in past]


def test_work_is_one_item_with_everything_that_it_goes_on_from(tx: Transaction) -> None:
    first = ask(tx)
    assert (the_work(tx).about, the_work(tx).past) == (f"work:{first.id}", ())
    ask_other = ask(tx)
    run(tx, ask_other, "result")
    last = run_on(tx, first, "flushed", "died", "flushed", "flushed", "killed")
    found = the_work(tx)
    assert last.continues != first.id
    assert (found.follow_up, found.about) == (last, f"work:{first.id}")
    assert outcomes(found.item_past) == ["killed", "flushed", "flushed", "died", "flushed"]


def test_work_of_a_campaign_is_one_item_together(tx: Transaction) -> None:
    ours, theirs = ask(tx, "spring"), ask(tx, "spring")
    alone, other = ask(tx), ask(tx, "autumn")
    ours = run_on(tx, ours, "died", "flushed")
    run(tx, theirs, "killed")
    run_on(tx, alone, "refused")
    run_on(tx, other, "no-result")
    works = {one.follow_up.id: one for one in read_work_facts(tx, WINDOW).open}
    for work in (ours, theirs):
        found = works[work.id]
        assert found.about == "campaign:spring"
        assert outcomes(found.item_past) == ["killed", "flushed", "died"]
    assert outcomes(works[ours.id].past) == ["flushed", "died"]
    assert outcomes(works[other.id].item_past) == ["no-result"]
    assert outcomes(works[alone.id].item_past) == ["refused"]


@pytest.mark.parametrize("campaign", [None, "spring"])
def test_what_is_looked_back_on_has_an_end_and_a_live_run_is_no_part_of_it(tx: Transaction, campaign: str | None) -> None:
    work = run_on(tx, ask(tx, campaign), *["flushed"] * (PAST_MAX + 2), "died")
    assert len(the_work(tx).item_past) == PAST_MAX
    ask(tx, campaign)
    assert open_self_run(tx, work, "now", NOW) is not None
    other = the_work(tx)
    assert len(other.item_past) == (PAST_MAX if campaign else 0)
    assert other.about == (f"campaign:{campaign}" if campaign else f"work:{other.follow_up.id}")
    if campaign:
        assert outcomes(other.item_past)[:2] == ["died", "flushed"]


@pytest.mark.parametrize("campaign", [None, "spring"])
def test_what_an_operator_reopens_is_counted_from_there_on(tx: Transaction, campaign: str | None) -> None:
    work = run_on(tx, ask(tx, campaign), "flushed", "died", "died", "died")
    found = the_work(tx)
    assert find_trip(found.item_past, found.reopened_after)
    assert (found.question_open, found.answered) == (False, None)
    admit_question(tx, make_question("q", about=found.about))
    assert the_work(tx).question_open
    assert answer_question(tx, "q", "reopen", OPERATOR, NOW)
    found = the_work(tx)
    answered = read_question(tx, "q")
    assert (found.question_open, found.answered, found.reopened_after) == (False, answered, found.item_past[0].id)
    assert find_trip(found.item_past, found.reopened_after) is None
    run_on(tx, work, "died", "died")
    assert find_trip(the_work(tx).item_past, the_work(tx).reopened_after) is None
    run_on(tx, work, "died")
    assert find_trip(the_work(tx).item_past, the_work(tx).reopened_after)


def test_reopening_before_any_run_forgives_nothing_that_comes_later(tx: Transaction) -> None:
    work = ask(tx)
    admit_question(tx, make_question("q", about=the_work(tx).about))
    answer_question(tx, "q", "reopen", OPERATOR, NOW)
    assert the_work(tx).reopened_after is None
    run_on(tx, work, "died", "died", "died")
    assert find_trip(the_work(tx).item_past, the_work(tx).reopened_after)


def test_work_of_a_closed_campaign_is_told_apart_and_of_one_that_nobody_opened_is_not(tx: Transaction) -> None:
    ask(tx, "spring")
    assert not the_work(tx).campaign_closed
    close_campaign(tx, "spring", NOW)
    assert the_work(tx).campaign_closed
    run_on(tx, ask(tx, "unheard-of"), "died")
    ask(tx, "unheard-of")
    works = read_work_facts(tx, WINDOW).open
    assert [one.campaign_closed for one in works] == [True, False, False]
    assert [one.about.partition(":")[0] for one in works] == ["campaign", "work", "work"], "nobody could close it"
    assert [outcomes(one.item_past) for one in works] == [[], ["died"], []]


def test_the_standing_of_her_self_comes_with_its_work(tx: Transaction) -> None:
    set_pause(tx, Pause("self-limited", 9, "x"))
    set_pause(tx, Pause("limited", 9, "x"))
    run_on(tx, ask(tx), "died")
    facts = read_work_facts(tx, WINDOW)
    assert facts.standing.pauses == (Pause("limited", 9, "x"),)
    assert outcomes(facts.standing.recent) == ["died"]
