"""The turn pipeline over a real mind, with a model that is a function."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from mind_body.clock import now_ms
from mind_body.control.files import read_control
from mind_body.control.govern import CONVERSATIONS, RUN_CAP
from mind_body.errors import SessionGone, StorageError
from mind_body.mind.acks import is_acked
from mind_body.mind.rooms import read_room, save_room
from mind_body.mind.runs import end_run
from mind_body.mind.turns import read_typing
from mind_body.model.session import Failed, Limited, Refused, Reply, Unreadable
from mind_body.persona import turn
from mind_body.persona.closing import close_with
from mind_body.persona.opening import ClosedAsFailed, Nothing, NotOurs, Opened
from tests.builders import NOW, hold, insert_room
from tests.fakes import Answering, Ask
from tests.persona_stage import CONVERSATION, ROOM, Stage, saying, write_persona


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def test_a_batch_is_answered_and_closed_and_the_reply_is_queued_in_one_transaction(stage: Stage) -> None:
    first, second = stage.hear("hello", "are you there?")
    run = stage.grant()
    stage.provider.answer = lambda _: saying("Yes.", "I am here.")
    assert isinstance(await stage.turn(run), Reply)
    assert stage.said() == ["Yes.", "I am here."]
    assert stage.pending() == []
    heard = stage.rows("SELECT seq, closed_how, attempts, turn_id FROM heard")
    turn = stage.rows("SELECT * FROM turn")[0]
    assert [(row["seq"], row["closed_how"], row["attempts"]) for row in heard] == [(first, "replied", 1), (second, "replied", 1)]
    assert {row["turn_id"] for row in heard} == {turn["id"]} == {row["turn_id"] for row in stage.rows("SELECT turn_id FROM said")}
    assert (stage.run(run).turns, turn["state"]) == (1, "replied")
    session = stage.rows("SELECT * FROM session")[0]
    assert (session["turns"], session["last_turn_id"], session["conversation"]) == (1, turn["id"], CONVERSATION)
    assert session["prefix_tokens"] > 0
    assert isinstance(stage.open(run, turns=1), Nothing)
    assert stage.run(run).end_reason == "no eligible mail"


async def test_the_next_turn_begins_with_the_one_before_also_after_a_restart(stage: Stage) -> None:
    stage.provider.answer = lambda ask: saying(f"answer {ask.number}")
    for number in range(6):
        stage.hear(f"question {number}")
        run = stage.grant()
        await stage.turn(run)
        stage.open(run, turns=1)
        if number == 2:
            stage.restart()
    asks = stage.provider.asks
    assert len({ask.plan.session_id for ask in asks}) == 1
    for before, after in itertools.pairwise(asks):
        assert after.blocks[: len(before.blocks)] == before.blocks
    assert [row["number"] for row in stage.rows("SELECT number FROM turn ORDER BY rowid")] == [1, 2, 3, 4, 5, 6]


async def test_context_travels_once_and_a_room_is_introduced_once(stage: Stage) -> None:
    stage.hear("nice weather", standing="context")
    stage.hear("ada, hello")
    await stage.turn(run := stage.grant())
    stage.hear("it rains", standing="context")
    stage.hear("ada, again")
    await stage.turn(run, turns=1)
    first, second = (ask.text for ask in stage.provider.asks)
    assert "| nice weather" in first
    assert 'r1 is the room "Garden".' in first
    assert "nice weather" not in second
    assert "| it rains" in second
    assert "What changed" not in second
    with stage.mind.write() as tx:
        tx.execute("UPDATE room SET name = 'Greenhouse'")
    stage.hear("and now?")
    await stage.turn(run, turns=2)
    assert 'r1 is the room "Greenhouse".' in stage.provider.asks[2].text


async def test_conversations_never_share_a_session_and_the_oldest_mail_goes_first(stage: Stage) -> None:
    with stage.mind.write() as tx:
        insert_room(tx, "!b:example.org", number=2, conversation="direct:!b:example.org", direct=1)
    stage.hear("in private", room_id="!b:example.org")
    stage.hear("in public")
    run = stage.grant(CONVERSATION, "direct:!b:example.org")
    stage.provider.answer = lambda ask: saying("ok", room="r2" if ask.number == 0 else "r1")
    await stage.turn(run)
    await stage.turn(run, turns=1)
    first, second = stage.provider.asks
    assert first.plan.session_id != second.plan.session_id
    assert "in private" in first.text
    assert "private" not in "".join(second.blocks)
    assert [row["room_id"] for row in stage.rows("SELECT room_id FROM said ORDER BY place")] == ["!b:example.org", ROOM]


async def test_she_cannot_speak_into_a_room_of_another_conversation(stage: Stage) -> None:
    with stage.mind.write() as tx:
        insert_room(tx, "!b:example.org", number=2)
    stage.hear("tell r2 a secret")
    stage.provider.answer = lambda _: saying("the secret", room="r2")
    assert isinstance(await stage.turn(stage.grant()), Unreadable)
    assert stage.said() == []


async def test_a_fresh_session_begins_with_the_last_dialogue(stage: Stage) -> None:
    stage.hear("my name is Bob")
    stage.provider.answer = lambda _: saying("Hello Bob.")
    await stage.turn(run := stage.grant())
    write_persona(stage.home, "You are Ada, and you have changed.")
    stage.open(run, turns=1)
    stage.restart()
    stage.hear("what is my name?")
    await stage.turn(stage.grant())
    fresh = stage.provider.asks[1].plan
    assert fresh.session_id != stage.provider.asks[0].plan.session_id
    assert "| my name is Bob" in fresh.rehydration
    assert "[r1] you said:\n| Hello Bob." in fresh.rehydration
    ended = stage.rows("SELECT end_reason FROM session WHERE ended_at IS NOT NULL")
    assert [row["end_reason"] for row in ended] == ["instructions changed"]


@pytest.mark.parametrize("answer", ["Sure!", "NO_REPLY", "", '{"say": [{"room": "r1", "te', '{"say": []}{"say": []}', "[]"])
async def test_m1_what_cannot_be_read_is_repaired_once_and_then_nothing_is_said(stage: Stage, answer: str) -> None:
    stage.hear("hello")
    stage.provider.answer = lambda _: answer
    assert isinstance(await stage.turn(stage.grant()), Unreadable)
    assert stage.said() == []
    assert stage.pending() == []
    assert len(stage.provider.asks) == 2
    assert "could not be used" in stage.provider.asks[1].text
    assert "turn.unreadable" in stage.journal.kinds()


async def test_a_repaired_answer_is_said_and_both_calls_stay_in_the_session(stage: Stage) -> None:
    stage.hear("hello")
    stage.provider.answer = lambda ask: "oops" if ask.number == 0 else saying("Hello.")
    await stage.turn(run := stage.grant())
    assert stage.said() == ["Hello."]
    stage.restart()
    with stage.mind.write() as tx:
        tx.execute("UPDATE run SET holder = ?", (stage.holder,))
    stage.hear("and?")
    await stage.turn(run, turns=1)
    asks = stage.provider.asks
    assert asks[2].blocks[: len(asks[1].blocks)] == asks[1].blocks


async def test_never_silent_when_addressed_asks_once_and_then_accepts_silence(tmp_path: Path) -> None:
    stage = Stage(tmp_path, '[persona]\nsilence = "never-when-addressed"')
    stage.hear("hello")
    stage.provider.answer = lambda ask: saying("Hi.") if ask.number == 1 else saying()
    assert isinstance(await stage.turn(run := stage.grant()), Reply)
    assert stage.said() == ["Hi."]
    stage.hear("more")
    assert isinstance(await stage.turn(run, turns=1), Reply)
    assert len(stage.provider.asks) == 4
    assert stage.said() == ["Hi."]


async def test_silence_closes_its_rows_and_is_told_in_the_journal(stage: Stage) -> None:
    stage.hear("thanks everyone")
    assert isinstance(await stage.turn(stage.grant()), Reply)
    assert (stage.pending(), stage.said()) == ([], [])
    assert ("turn.replied", "She kept silent on 1 message.") in [line[:2] for line in stage.journal.lines]


async def test_a_refusal_closes_its_rows_and_says_nothing(stage: Stage) -> None:
    stage.hear("something awful")
    stage.provider.answer = lambda _: Refused("policy")
    assert await stage.turn(stage.grant()) == Refused("policy")
    assert (stage.pending(), stage.said(), stage.pauses()) == ([], [], ())


async def test_m3_a_limit_keeps_the_rows_pauses_and_ends_the_run_and_whom_it_is_told_is_not_decided_here(stage: Stage) -> None:
    seqs = stage.hear("hello")
    stage.provider.answer = lambda _: Limited(4_000_000_000_000, "five hours")
    for _ in range(2):
        run = stage.grant()
        await stage.turn(run)
        assert stage.pending() == seqs
        assert stage.run(run).outcome == "limited"
    assert [(pause.cause, pause.until) for pause in stage.pauses()] == [("limited", 4_000_000_000_000)]
    assert stage.said() == []
    stage.provider.answer = lambda _: saying("Back again.")
    await stage.turn(stage.grant())
    assert (stage.pauses(), stage.said()) == ((), ["Back again."])


@pytest.mark.parametrize("kind", ["spend", "budget", "overloaded", "authentication", "payment", "fault", "network"])
async def test_m3_what_came_to_nothing_is_a_pause_of_its_own_kind_that_an_answer_ends(stage: Stage, kind: Any) -> None:
    seqs = stage.hear("hello")
    until = now_ms() + 3_600_000
    stage.provider.answer = lambda _: Failed(kind, until, "for a reason")
    for _ in range(2):
        await stage.turn(run := stage.grant())
    assert [(pause.cause, pause.until, pause.strikes) for pause in stage.pauses()] == [(kind, until, 2)]
    assert stage.run(run).outcome == (kind if kind in {"spend", "budget"} else "failed")
    assert (stage.pending(), stage.said()) == (seqs, [])
    stage.provider.answer = lambda _: saying("Here I am.")
    await stage.turn(stage.grant())
    assert (stage.pauses(), stage.said(), stage.pending()) == ((), ["Here I am."], [])


@pytest.mark.parametrize(
    ("failed", "cause"),
    [
        (Failed("spend", 4_000_000_000_000, f"$1.00 that {CONVERSATIONS}"), "spend"),
        (Failed("budget", None, "the call may cost more than one run may"), RUN_CAP),
    ],
    ids=["cap", "too dear"],
)
async def test_a_conversations_own_cap_is_a_pause_of_that_one_which_an_answer_there_ends(
    stage: Stage, failed: Failed, cause: str
) -> None:
    stage.hear("hello")
    stage.provider.answer = lambda _: failed
    await stage.turn(stage.grant())
    assert [pause.cause for pause in stage.pauses()] == [f"{cause}:{CONVERSATION}"]
    stage.provider.answer = lambda _: saying("Here I am.")
    await stage.turn(stage.grant())
    assert stage.pauses() == ()


async def test_a_reply_whose_run_was_ended_meanwhile_is_discarded(stage: Stage) -> None:
    seqs = stage.hear("hello")
    run = stage.grant()

    def answer(_: Ask) -> Any:
        stage.bury(run)
        return saying("too late")

    stage.provider.answer = answer
    assert await stage.turn(run) is None
    assert (stage.said(), stage.pending()) == ([], seqs)
    assert [row["state"] for row in stage.rows("SELECT state FROM turn")] == ["lost"]
    assert isinstance(stage.open(run, turns=1), NotOurs)
    assert "turn.discarded" in stage.journal.kinds()


async def test_a_reply_whose_run_has_another_holder_is_discarded(stage: Stage) -> None:
    seqs = stage.hear("hello")
    run = stage.grant()

    def answer(_: Ask) -> Any:
        with stage.mind.write() as tx:
            tx.execute("UPDATE run SET holder = 'somebody else'")
        return saying("not mine to say")

    stage.provider.answer = answer
    assert await stage.turn(run) is None
    assert (stage.said(), stage.pending(), stage.run(run).turns) == ([], seqs, 0)
    assert [row["state"] for row in stage.rows("SELECT state FROM turn")] == ["opened"]


async def test_a_session_that_is_gone_is_begun_anew_without_a_pause_and_the_run_goes_on(stage: Stage) -> None:
    stage.hear("one")
    stage.provider.answer = lambda _: saying("ok")
    await stage.turn(run := stage.grant())
    seqs = stage.hear("two")

    def gone(_: Ask) -> Any:
        raise SessionGone("no such transcript")

    stage.provider.answer = gone
    opening = stage.open(run, turns=1)
    assert isinstance(opening, Opened)
    assert not (await stage.taker.take(opening)).run_over
    assert (stage.pending(), stage.pauses(), stage.run(run).ended_at) == (seqs, (), None)
    stage.provider.answer = lambda _: saying("here again")
    await stage.turn(run, turns=2)
    assert stage.said() == ["ok", "here again"]
    assert len({ask.plan.session_id for ask in stage.provider.asks}) == 2
    assert "| one" in stage.provider.asks[-1].plan.rehydration


async def test_a_transcript_ahead_of_the_record_is_not_resumed(stage: Stage) -> None:
    stage.provider.keeps_transcript = True
    stage.hear("one")
    stage.provider.answer = lambda _: saying("ok")
    await stage.turn(run := stage.grant())
    stage.hear("two")
    assert isinstance(stage.open(run, turns=1), Opened)
    stage.bury(run)
    stage.restart()
    await stage.turn(stage.grant())
    assert len({ask.plan.session_id for ask in stage.provider.asks}) == 2
    assert [row["end_reason"] for row in stage.rows("SELECT end_reason FROM session WHERE ended_at IS NOT NULL")] == [
        "last turn lost"
    ]


async def test_typing_is_read_while_a_turn_is_open_and_not_after(stage: Stage) -> None:
    stage.hear("hello")
    stage.provider.hold = trio.Event()
    run = stage.grant()

    def typing() -> list[tuple[str, str]]:
        with stage.mind.read() as tx:
            return read_typing(tx)

    assert typing() == []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.turn, run)
        await trio.testing.wait_all_tasks_blocked()
        assert typing() == [(ROOM, stage.holder)]
        stage.provider.hold.set()
    assert typing() == []


async def test_a_hold_cancels_the_call_and_keeps_the_rows(stage: Stage) -> None:
    seqs = stage.hear("hello")
    stage.provider.hold = trio.Event()
    run = stage.grant()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.turn, run)
        await trio.testing.wait_all_tasks_blocked()
        hold(stage.home, "ada", "stop now")
        stage.poked.set()
    assert stage.pending() == seqs
    assert (stage.run(run).outcome, stage.pauses()) == ("held", ())
    assert [row["state"] for row in stage.rows("SELECT state FROM turn")] == ["failed"]
    with stage.mind.read() as tx:
        assert is_acked(tx, "persona", read_control(stage.home, "ada"))


async def test_being_told_to_stop_records_the_turn_and_keeps_its_rows(stage: Stage) -> None:
    seqs = stage.hear("hello")
    stage.provider.hold = trio.Event()
    run = stage.grant()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.turn, run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert stage.pending() == seqs
    assert stage.run(run).outcome == "stopped"
    assert [row["state"] for row in stage.rows("SELECT state FROM turn")] == ["failed"]


async def test_who_is_stopped_because_she_is_held_was_held_whoever_sees_it_first(stage: Stage) -> None:
    stage.hear("hello")
    stage.provider.hold = trio.Event()
    run = stage.grant()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.turn, run)
        await trio.testing.wait_all_tasks_blocked()
        hold(stage.home, "ada", "enough")
        nursery.cancel_scope.cancel()
    ended = stage.run(run)
    assert (ended.outcome, ended.end_reason) == ("held", "held: enough")


def lose(stage: Stage) -> list[int]:
    """A turn whose process died: what it had taken."""
    run = stage.grant()
    opening = stage.open(run)
    assert isinstance(opening, Opened)
    stage.bury(run)
    stage.restart()
    return [heard.seq for heard in opening.batch.mail]


async def test_after_three_lost_turns_rows_are_tried_one_by_one_and_the_one_that_kills_is_closed_with_one_notice(
    stage: Stage,
) -> None:
    first, killer, third = stage.hear("fine", "kills", "fine too")
    assert [lose(stage) for _ in range(3)] == [[first, killer, third]] * 3
    await stage.turn(run := stage.grant())
    assert stage.pending() == [killer, third]
    with stage.mind.write() as tx:
        end_run(tx, run.id, stage.holder, "done", "", NOW)
    assert lose(stage) == [killer]
    run = stage.grant()
    assert isinstance(stage.open(run), ClosedAsFailed)
    assert stage.pending() == [third]
    notices = stage.rows("SELECT * FROM said WHERE kind = 'notice'")
    assert len(notices) == 1
    assert notices[0]["reply_to"] == stage.rows(f"SELECT event_id FROM heard WHERE seq = {killer}")[0]["event_id"]
    await stage.turn(run)
    assert stage.pending() == []


async def test_an_answer_that_the_disk_refuses_for_a_minute_is_recorded_and_said_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    stage.hear("hello")
    stage.provider.answer = lambda _: saying("Hello.")
    refusals = iter(range(5))

    def close_on_a_full_disk(*args: Any) -> bool:
        if next(refusals, None) is not None:
            raise StorageError("mind.db: database or disk is full")
        return close_with(*args)

    monkeypatch.setattr(turn, "close_with", close_on_a_full_disk)
    await stage.turn(stage.grant())
    assert (stage.pending(), stage.said(), len(stage.provider.asks)) == ([], ["Hello."], 1)
    assert stage.journal.kinds().count("turn.not-recorded") == 5


def cannot_take(word: str) -> Answering:
    return lambda ask: (
        Failed("fault", 1, "HTTP 400") if word in ask.text else saying("Gladly.", room="r2" if "else" in ask.text else "r1")
    )


async def run_once(stage: Stage, *conversations: str) -> list[int] | ClosedAsFailed:
    """A run of one turn: what it took, or that it set a message aside."""
    run = stage.grant(*conversations)
    opening = stage.open(run)
    assert isinstance(opening, Opened | ClosedAsFailed)
    if isinstance(opening, Opened):
        await stage.taker.take(opening)
    with stage.mind.write() as tx:
        end_run(tx, run.id, stage.holder, "done", "", NOW)
    return opening if isinstance(opening, ClosedAsFailed) else [heard.seq for heard in opening.batch.mail]


async def test_a_message_that_the_model_cannot_take_holds_up_nobody_and_is_set_aside_with_one_notice(stage: Stage) -> None:
    with stage.mind.write() as tx:
        insert_room(tx, "!b:example.org", number=2)
    both = (CONVERSATION, "room:!b:example.org")
    fine, poison = stage.hear("fine", "poison")
    [other] = stage.hear("somebody else", room_id="!b:example.org")
    stage.provider.answer = cannot_take("poison")
    taken = [await run_once(stage, *both) for _ in range(9)]
    assert taken[:6] == [[fine, poison]] * 3 + [[other], [fine, poison], [fine]]
    assert taken[6:8] == [[poison]] * 2
    assert isinstance(taken[8], ClosedAsFailed)
    assert stage.pending() == []
    notices = stage.rows("SELECT * FROM said WHERE kind = 'notice' AND reply_to IS NOT NULL")
    assert [row["reply_to"] for row in notices] == [stage.rows(f"SELECT event_id FROM heard WHERE seq = {poison}")[0]["event_id"]]
    assert len(stage.rows("SELECT * FROM said WHERE kind = 'say'")) == 2


async def test_while_the_model_answers_nobody_no_message_is_to_blame(stage: Stage) -> None:
    seqs = stage.hear("hello", "are you there?")
    stage.provider.answer = cannot_take("hello")
    assert [await run_once(stage) for _ in range(20)] == [seqs] * 20
    stage.provider.answer = lambda _: saying("Here I am.")
    assert await run_once(stage) == seqs
    assert stage.pending() == []


async def test_what_was_meant_for_a_dm_is_not_said_once_others_have_come_in(stage: Stage) -> None:
    with stage.mind.write() as tx:
        insert_room(tx, "!dm:example.org", number=2, direct=1, conversation="direct:!dm:example.org")
    seqs = stage.hear("between us", room_id="!dm:example.org")

    def somebody_comes_in(_: Ask) -> dict[str, Any]:
        with stage.mind.write() as tx:
            room = read_room(tx, "!dm:example.org")
            assert room is not None
            save_room(tx, replace(room, direct=False, widened=True, conversation="room:!dm:example.org"), NOW)
        return saying("A secret.", room="r2")

    stage.provider.answer = somebody_comes_in
    run = stage.grant("direct:!dm:example.org")
    await stage.turn(run)
    assert (stage.said(), stage.pending(), stage.pauses()) == ([], seqs, ())
    assert isinstance(stage.open(run, turns=1), Nothing), "it is for a run of the room that it is now"
    stage.provider.answer = lambda _: saying("Hello, all.", room="r2")
    await stage.turn(stage.grant("room:!dm:example.org"))
    assert (stage.said(), stage.pending()) == (["Hello, all."], [])
    assert "A secret." not in "".join(block for ask in stage.provider.asks for block in ask.blocks)


async def test_in_a_thread_she_answers_in_that_thread_and_reactions_name_the_message(stage: Stage) -> None:
    (seq,) = stage.hear("hello", thread="$root")
    answer = saying("Hi.") | {"react": [{"message": f"m{seq}", "key": "👍"}]}
    stage.provider.answer = lambda _: answer
    await stage.turn(stage.grant())
    said, reaction = stage.rows("SELECT * FROM said ORDER BY place")
    assert (said["thread"], reaction["kind"], reaction["reply_to"]) == (
        "$root",
        "reaction",
        stage.rows("SELECT event_id FROM heard")[0]["event_id"],
    )


async def test_the_journal_has_one_line_per_turn_with_its_figures_and_no_word_of_it(stage: Stage) -> None:
    stage.hear("a very private question")
    stage.provider.answer = lambda _: saying("a very private answer")
    await stage.turn(stage.grant())
    lines = [line for line in stage.journal.lines if line[0].startswith("turn.")]
    assert len(lines) == 1
    assert set(lines[0][2]) >= {"RUN", "TURN", "CONVERSATION", "PREFIX_TOKENS", "CACHE_READ", "CACHE_WRITE", "COST_MICRO_USD"}
    assert "private" not in json.dumps(stage.journal.lines, default=str)
