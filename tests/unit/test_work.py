"""The record of work over a real mind: follow-ups and their lives, hand-offs, steers, reactions, figures, what is told."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mind_body.mind.claims import bury_self_run, read_work_facts
from mind_body.mind.follow_ups import (
    admit_follow_up,
    confirm_follow_up,
    continue_follow_up,
    drop_follow_up,
    finish_follow_up,
    open_self_run,
    read_follow_up,
    read_open_follow_ups,
    read_proposals,
    read_thread_root,
    reopen_follow_up,
)
from mind_body.mind.handoffs import admit_handoff, newest_handoff, read_handoff
from mind_body.mind.news import forget_news, read_awaited, read_news
from mind_body.mind.outbox import admit_said, mark_sent
from mind_body.mind.reactions import admit_reaction, expire_reactions, read_reactions, withdraw_reaction
from mind_body.mind.records import Run, RunKind
from mind_body.mind.restored import admit_restored
from mind_body.mind.runs import adopt_run, end_run, live_run, read_run
from mind_body.mind.self_runs import end_self_run, read_progress, record_figures, write_progress
from mind_body.mind.steers import admit_steer, mark_given, read_live_thread, read_queued_steers, withdraw_steer
from mind_body.mind.store import Mind, Transaction
from mind_body.mind.work_records import (
    FATES,
    FollowUp,
    FollowUpState,
    Handoff,
    NewFollowUp,
    Progress,
    Reaction,
    SelfRunEnd,
)
from tests.builders import NOW, WINDOW, insert, insert_heard, insert_room, make_mind, make_new_said
from tests.examples import share

ROOM = "!a:example.org"
CONVERSATION = f"room:{ROOM}"
BOB = "@bob:example.org"
HOLDER = "holder"


def make_work(**columns: Any) -> NewFollowUp:
    values = {
        "conversation": CONVERSATION,
        "room_id": ROOM,
        "asked_in": "$asked",
        "asked_by": BOB,
        "brief": "dig",
        "workspace": "main",
    }
    return NewFollowUp(**(values | columns))


def begin(tx: Transaction, work: FollowUp, *, hold: bool = True, now: int = NOW) -> Run:
    run = open_self_run(tx, work, "a test", now)
    assert run is not None
    assert not hold or adopt_run(tx, run.id, HOLDER, now)
    return run


def state(tx: Transaction, work: FollowUp) -> FollowUpState:
    found = read_follow_up(tx, work.id)
    assert found is not None
    return found.state


@pytest.fixture
def tx(tmp_path: Path) -> Iterator[Transaction]:
    mind: Mind = make_mind(tmp_path)
    with mind.write() as opened:
        insert_room(opened, ROOM, number=1)
        yield opened
    mind.close()


def test_work_is_claimed_together_with_its_run_and_by_one_run_alone(tx: Transaction) -> None:
    work = admit_follow_up(tx, make_work(), NOW)
    run = begin(tx, work, hold=False)
    assert live_run(tx, RunKind.SELF_RUN) == run
    assert (run.conversations, run.follow_up_id, run.thread_said) == ((CONVERSATION,), work.id, f"self-{run.id}")
    claimed = read_follow_up(tx, work.id)
    assert claimed is not None
    assert (claimed.state, claimed.run_id, claimed.thread_said) == (FollowUpState.CLAIMED, run.id, run.thread_said)
    end_run(tx, run.id, None, "result", "", NOW)
    assert open_self_run(tx, work, "again", NOW) is None, "it is claimed already"
    assert live_run(tx, RunKind.SELF_RUN) is None, "and no run without work"


def test_who_waits_longest_goes_first_whatever_the_clock_did(tx: Transaction) -> None:
    for follow_up_id in ("b", "a"):
        admit_follow_up(tx, make_work(), NOW, follow_up_id=follow_up_id)
    assert [one.id for one in read_open_follow_ups(tx)] == ["b", "a"]


def test_what_came_to_nothing_is_open_again_in_its_place_and_its_later_runs_share_its_thread(tx: Transaction) -> None:
    first, second = admit_follow_up(tx, make_work(), NOW), admit_follow_up(tx, make_work(), NOW)
    run = begin(tx, first)
    assert end_self_run(tx, run, HOLDER, SelfRunEnd("died", "it died", None, "again"), NOW)
    waiting = read_open_follow_ups(tx)
    assert [one.id for one in waiting] == [first.id, second.id]
    again = begin(tx, waiting[0])
    assert (again.thread_said, again.cause) == (run.thread_said, "again")


def test_what_is_left_unfinished_goes_on_as_new_work_in_the_same_thread_behind_what_waits(tx: Transaction) -> None:
    first, second = admit_follow_up(tx, make_work(campaign="spring"), NOW), admit_follow_up(tx, make_work(), NOW)
    run = begin(tx, first)
    insert_root(tx, run, "$root")
    ended = end_self_run(tx, run, HOLDER, SelfRunEnd("flushed", "the ceiling", None, "continue"), NOW)
    assert ended is not None
    assert ended.follow_up is not None
    assert [one.id for one in read_open_follow_ups(tx)] == [second.id, ended.follow_up.id]
    assert state(tx, first) is FollowUpState.DONE
    new = ended.follow_up
    assert (new.continues, new.thread_said, new.thread_root, new.brief) == (first.id, run.thread_said, "$root", "dig")
    assert (new.campaign, new.asked_in, new.asked_by) == ("spring", "$asked", BOB)


@pytest.mark.parametrize("outcome", sorted(FATES))
def test_whatever_it_came_to_the_run_and_its_work_end_together_and_once(tx: Transaction, outcome: str) -> None:
    work = admit_follow_up(tx, make_work(), NOW)
    run = begin(tx, work)
    end = SelfRunEnd(outcome, "because", "é" * 1000, FATES[outcome])
    assert end_self_run(tx, run, "somebody else", end, NOW) is None
    assert state(tx, work) is FollowUpState.CLAIMED
    assert end_self_run(tx, run, HOLDER, end, NOW) is not None
    assert end_self_run(tx, run, HOLDER, end, NOW) is None
    found = read_run(tx, run.id)
    assert found is not None
    assert (found.outcome, found.result) == (outcome, "é" * 400)
    assert state(tx, work) is (FollowUpState.OPEN if FATES[outcome] == "again" else FollowUpState.DONE)
    assert len(read_open_follow_ups(tx)) == (FATES[outcome] != "done")


def test_only_what_waits_can_be_dropped_or_confirmed_and_only_what_is_claimed_finished(tx: Transaction) -> None:
    work = admit_follow_up(tx, make_work(), NOW, confirm_said="ask")
    assert [one.follow_up.id for one in read_proposals(tx)] == [work.id]
    assert not read_open_follow_ups(tx)
    assert open_self_run(tx, work, "", NOW) is None
    assert confirm_follow_up(tx, work.id)
    assert not confirm_follow_up(tx, work.id)
    assert not finish_follow_up(tx, work.id, "", "x", NOW)
    run = begin(tx, work)
    assert not drop_follow_up(tx, work.id, "why", NOW)
    assert reopen_follow_up(tx, "another run") is None
    assert continue_follow_up(tx, work, "another run", "why", NOW) is None
    assert finish_follow_up(tx, work.id, run.id, "x", NOW)
    assert not drop_follow_up(tx, work.id, "why", NOW)


def test_the_question_of_a_proposal_is_known_by_its_event_once_it_was_sent(tx: Transaction) -> None:
    admit_said(tx, [make_new_said("ask", ROOM)], None, NOW)
    admit_follow_up(tx, make_work(), NOW, confirm_said="ask")
    reaction = Reaction("$r", ROOM, "$ask", BOB, "✅", NOW)
    assert admit_reaction(tx, reaction)
    assert not admit_reaction(tx, reaction)
    assert [one.event_id for one in read_proposals(tx)] == [None]
    assert read_work_facts(tx, WINDOW).reactions == ()
    mark_sent(tx, "ask", "$ask")
    assert read_work_facts(tx, WINDOW).reactions == (reaction,)
    assert withdraw_reaction(tx, "$r")
    assert read_reactions(tx, ["$ask"]) == []
    admit_reaction(tx, reaction)
    assert (expire_reactions(tx, NOW), expire_reactions(tx, NOW + 1)) == (0, 1)


def test_a_thread_is_known_from_the_receipt_and_the_root_is_kept(tx: Transaction) -> None:
    work = admit_follow_up(tx, make_work(), NOW)
    run = begin(tx, work)
    assert read_live_thread(tx) is None
    insert_root(tx, run, "$root")
    thread = read_live_thread(tx)
    assert thread is not None
    assert (thread.run_id, thread.conversation, thread.room_id, thread.root) == (run.id, CONVERSATION, ROOM, "$root")
    claimed = read_follow_up(tx, work.id)
    assert claimed is not None
    assert read_thread_root(tx, claimed) == "$root"
    end_self_run(tx, run, HOLDER, SelfRunEnd("result", "", "done", "done"), NOW)
    assert read_live_thread(tx) is None


def test_there_is_one_hand_off_per_run_and_the_newest_run_counts_on_a_workspace(tx: Transaction) -> None:
    for run_id in ("2", "1", "3"):  # a clock that was set back gives a later run a smaller id
        insert(
            tx,
            "run",
            id=run_id,
            kind="self_run",
            conversations="[]",
            cause="",
            reason="",
            opened_at=1,
            ended_at=2,
            outcome="result",
            follow_up_id=f"work-{run_id}",
        )
        values = {
            "room_id": "!d",
            "asked_by": "@bob:x",
            "brief": "b",
            "workspace": "main",
            "state": "done",
            "opened_at": 1,
            "ended_at": 2,
        }
        insert(tx, "follow_up", id=f"work-{run_id}", conversation="direct:!d", **values)
    for run_id, text in (("2", "first"), ("2", "again"), ("1", "second")):
        admit_handoff(tx, Handoff(run_id, "main", text, "model", False, NOW))
    admit_handoff(tx, Handoff("3", "other", "elsewhere", "record", True, NOW))
    first, newest = read_handoff(tx, "2"), newest_handoff(tx, "main", "direct:!d")
    assert first is not None
    assert newest is not None
    assert (first.text, newest.text) == ("first", "second")
    assert newest_handoff(tx, "nowhere", "direct:!d") is None
    assert newest_handoff(tx, "main", "room:!r") is None, "what one conversation left is not for another"


def test_what_a_run_was_not_given_goes_on_to_the_next_one_and_back_to_the_room_when_the_work_is_over(tx: Transaction) -> None:
    run = begin(tx, admit_follow_up(tx, make_work(), NOW))
    insert_heard(tx, event_id="$s1", standing="context", state="closed", closed_how="self")
    insert_heard(tx, event_id="$s2", standing="context", state="closed", closed_how="self")
    for event in ("$s1", "$s2"):
        admit_steer(tx, run.id, event, "steer", BOB, "faster", NOW)
    admit_steer(tx, run.id, None, "steer", BOB, "from her", NOW)
    mark_given(tx, read_queued_steers(tx, run.id)[0].id)
    ended = end_self_run(tx, run, HOLDER, SelfRunEnd("flushed", "", None, "continue"), NOW)
    assert ended is not None
    assert ended.follow_up is not None
    after = begin(tx, ended.follow_up)
    assert [(one.event_id, one.text) for one in read_queued_steers(tx, after.id)] == [("$s2", "faster"), (None, "from her")]
    end_self_run(tx, after, HOLDER, SelfRunEnd("result", "", "done", "done"), NOW)
    assert not read_queued_steers(tx, after.id)
    pending = tx.execute("SELECT event_id FROM heard WHERE standing = 'mail' AND state = 'pending'").fetchall()
    assert [row["event_id"] for row in pending] == ["$s2"]


def test_nothing_is_said_to_a_run_that_is_over_nor_twice_nor_after_it_was_taken_back(tx: Transaction) -> None:
    run = begin(tx, admit_follow_up(tx, make_work(), NOW))
    assert admit_steer(tx, run.id, "$s", "steer", BOB, "hi", NOW)
    assert admit_steer(tx, run.id, "$s", "steer", BOB, "hi", NOW) is None
    steer = read_queued_steers(tx, run.id)[0]
    assert withdraw_steer(tx, "$s")
    assert not mark_given(tx, steer.id)
    end_self_run(tx, run, HOLDER, SelfRunEnd("result", "", "done", "done"), NOW)
    assert admit_steer(tx, run.id, "$late", "steer", BOB, "hi", NOW) is None


def test_figures_are_set_and_not_added_and_only_by_the_holder(tx: Transaction) -> None:
    run = begin(tx, admit_follow_up(tx, make_work(), NOW))
    usage = {"a model": {"input_tokens": 5, "cost_micro_usd": 70}}
    for _ in range(2):
        assert record_figures(tx, run.id, HOLDER, 3, 70, usage)
    assert not record_figures(tx, run.id, "another", 9, 900, {})
    found = read_run(tx, run.id)
    assert found is not None
    assert (found.turns, found.cost_micro_usd, found.model_usage) == (3, 70, usage)
    for doing in ("Read", "Bash"):
        write_progress(tx, Progress(run.id, doing, 1, 2, 3, 4, 5, NOW))
    progress = read_progress(tx, run.id)
    assert progress is not None
    assert progress.doing == "Bash"


def test_a_dead_run_is_buried_once_with_its_work_open_and_the_hand_off_it_left_itself(tx: Transaction) -> None:
    work = admit_follow_up(tx, make_work(), NOW)
    run = live(tx, begin(tx, work))
    admit_handoff(tx, Handoff(run.id, "main", "its own", "model", False, NOW))
    record = Handoff(run.id, "main", "from the record", "record", False, NOW)
    assert bury_self_run(tx, run, "dead", "gone", NOW, handoff=record) is not None
    assert bury_self_run(tx, run, "dead", "gone", NOW, handoff=record) is None
    kept = read_handoff(tx, run.id)
    assert kept is not None
    assert kept.text == "its own"
    assert state(tx, work) is FollowUpState.OPEN


def test_the_end_of_a_run_is_news_where_it_was_asked_for_until_an_answered_turn_has_told_it(tx: Transaction) -> None:
    insert_heard(tx, event_id="$asked")
    run = begin(tx, admit_follow_up(tx, make_work(), NOW))
    (under_way,) = read_news(tx, CONVERSATION, None)
    assert (under_way.told, under_way.asked_seq, read_awaited(tx)) == ("started", 1, ())
    end_self_run(tx, run, HOLDER, SelfRunEnd("result", "", "done", "done"), NOW)
    (ended,) = read_news(tx, CONVERSATION, None)
    assert (ended.told, ended.goes_on, ended.run.result) == ("ended", False, "done")
    assert read_news(tx, "room:!other", None) == []
    assert read_awaited(tx) == (CONVERSATION,)
    tx.execute("UPDATE room SET membership = 'left'")
    assert read_awaited(tx) == (), "where she cannot speak, nothing wakes her"
    tx.execute("UPDATE room SET membership = 'joined'")
    forget_news(tx, run.id)
    assert (read_awaited(tx), read_news(tx, CONVERSATION, None)) == ((), [])


def test_work_that_goes_on_by_itself_wakes_nobody_until_all_of_it_is_over(tx: Transaction) -> None:
    work: FollowUp | None = admit_follow_up(tx, make_work(), NOW)
    for _ in range(3):
        assert work is not None
        ended = end_self_run(tx, begin(tx, work), HOLDER, SelfRunEnd("flushed", "", None, "continue"), NOW)
        assert ended is not None
        work = ended.follow_up
        assert read_awaited(tx) == ()
    assert work is not None
    end_self_run(tx, begin(tx, work), HOLDER, SelfRunEnd("result", "", "done", "done"), NOW)
    assert read_awaited(tx) == (CONVERSATION,)
    assert [one.goes_on for one in read_news(tx, CONVERSATION, None)] == [False] * 4


def test_in_a_restored_mind_claimed_work_is_open_again(tx: Transaction) -> None:
    work = admit_follow_up(tx, make_work(), NOW)
    begin(tx, work)
    admit_restored(tx, NOW)
    assert state(tx, work) is FollowUpState.OPEN
    assert live_run(tx, RunKind.SELF_RUN) is None


DEEDS = ("admit", "propose", "confirm", "drop", "claim", "end", "bury")


@settings(max_examples=share(0.25), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 5), st.sampled_from(sorted(FATES)))))
def test_whatever_happens_exactly_the_claimed_work_has_the_live_run_and_nothing_is_forgotten(
    tmp_path_factory: pytest.TempPathFactory, deeds: list[tuple[str, int, str]]
) -> None:
    mind = make_mind(tmp_path_factory.mktemp("mind"))
    asked = 0
    with mind.write() as tx:
        for deed, which, outcome in deeds:
            asked += deed in {"admit", "propose"}
            do(tx, deed, which, outcome)
            rows = tx.execute("SELECT state, run_id, continues FROM follow_up").fetchall()
            claimed = [row["run_id"] for row in rows if row["state"] == "claimed"]
            run = live_run(tx, RunKind.SELF_RUN)
            assert claimed == ([run.id] if run else [])
            assert sum(row["continues"] is None for row in rows) == asked
    mind.close()


def do(tx: Transaction, deed: str, which: int, outcome: str) -> None:
    run = live_run(tx, RunKind.SELF_RUN)
    ids = [row["id"] for row in tx.execute("SELECT id FROM follow_up ORDER BY id")]
    one = read_follow_up(tx, ids[which % len(ids)]) if ids else None
    if deed in {"admit", "propose"}:
        admit_follow_up(tx, make_work(), NOW, confirm_said="ask" if deed == "propose" else None)
    elif deed == "claim" and one is not None and run is None and open_self_run(tx, one, "", NOW) is not None:
        opened = live_run(tx, RunKind.SELF_RUN)
        assert opened is not None
        adopt_run(tx, opened.id, HOLDER, NOW)
    elif deed == "end" and run is not None:
        end_self_run(tx, run, HOLDER, SelfRunEnd(outcome, "", "text", FATES[outcome]), NOW)
    elif deed == "bury" and run is not None:
        bury_self_run(tx, run, "dead", "gone", NOW, handoff=None)
    elif deed == "confirm" and one is not None:
        confirm_follow_up(tx, one.id)
    elif deed == "drop" and one is not None:
        drop_follow_up(tx, one.id, "why", NOW)


def live(tx: Transaction, run: Run) -> Run:
    found = read_run(tx, run.id)
    assert found is not None
    return found


def insert_root(tx: Transaction, run: Run, event_id: str) -> None:
    assert run.thread_said is not None
    admit_said(tx, [make_new_said(run.thread_said, ROOM)], None, NOW)
    mark_sent(tx, run.thread_said, event_id)
