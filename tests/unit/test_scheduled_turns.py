"""Turns that nobody asked for, and what the governor says before each turn of a run: where she may speak, and when she stops."""

from pathlib import Path
from typing import Any

import pytest

from mind_body.clock import now_ms
from mind_body.control.loops import HOME_SPENT
from mind_body.mind.places import note_spoken, read_place
from mind_body.mind.pulses import read_pulse
from mind_body.mind.records import Run, RunKind
from mind_body.mind.runs import end_run, open_run
from mind_body.mind.turns import MAIL_READ_MAX
from mind_body.persona.opening import NO_MAIL, Nothing, Opened
from tests.builders import NOW, insert_heard, insert_room
from tests.fakes import Ask
from tests.persona_stage import CONVERSATION, ROOM, Stage, saying

OTHER = "!b:example.org"
TOML = f"""
[persona]
beat = true
home_room = "{ROOM}"
loop_turns = 3
counterpart_turns = 5
[people]
operators = ["@op:example.org"]
bots = ["@bot:example.org"]
[spend]
day_usd = 0.01
"""


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Ada's home room is r1; r2 is in the same conversation."""
    stage = Stage(tmp_path, TOML)
    with stage.mind.write() as tx:
        insert_room(tx, OTHER, number=2, name="Kitchen", conversation=CONVERSATION)
    return stage


def beat(stage: Stage) -> Run:
    return stage.grant(cause="beat")


def done(stage: Stage, run: Run) -> None:
    with stage.mind.write() as tx:
        end_run(tx, run.id, stage.holder, "done", "", NOW)


def hear(stage: Stage, body: str = "hello", *, room_id: str = ROOM, person: bool = True, **columns: Any) -> int:
    """Mail, as the mouth stores it: a person's word begins the count anew."""
    sender = {} if person else {"sender": "@bot:example.org", "person": 0}
    (seq,) = stage.hear(body, room_id=room_id, **sender, **columns)
    if person:
        with stage.mind.write() as tx:
            note_spoken(tx, room_id, columns.get("thread"), seq, columns.get("at", NOW))
    return seq


def dropped(stage: Stage) -> str:
    return str(stage.journal.lines[-1][2]["DROPPED"])


async def test_a_scheduled_wake_is_one_turn_without_mail_that_sees_and_speaks_into_her_home_room_alone(stage: Stage) -> None:
    stage.hear("rain in the garden", standing="context", at=NOW - 7_200_000)
    stage.hear("soup in the kitchen", standing="context", room_id=OTHER)
    with stage.mind.write() as tx:
        note_spoken(tx, ROOM, None, 1, NOW - 7_200_000)
        note_spoken(tx, OTHER, None, 2, NOW)
    stage.provider.answer = lambda _: {
        "say": [*saying("Good morning.")["say"], *saying("Good soup.", room="r2")["say"]],
        "react": [{"message": "m2", "key": "👍"}, {"message": "m1", "key": "🌧"}],
    }
    run = beat(stage)
    await stage.turn(run)
    (ask,) = stage.provider.asks
    assert "This is a scheduled wake: nobody called you. Nobody has spoken here for 2 h. Silence is fine" in ask.text
    assert 'r1 is the room "Garden".' in ask.text
    assert "| rain in the garden" in ask.text
    assert "Kitchen" not in ask.text
    assert "soup" not in ask.text
    assert stage.said() == ["Good morning.", "🌧"]
    assert "home room alone" in dropped(stage)
    assert stage.open(run, turns=1) == Nothing("done", NO_MAIL)


async def test_silence_is_fine_on_a_scheduled_wake_and_so_is_a_wish_to_speak_elsewhere(stage: Stage) -> None:
    stage.provider.answer = lambda ask: saying() if ask.number == 0 else saying("Soup!", room="r2")
    for _ in range(2):
        await stage.turn(run := beat(stage))
        done(stage, run)
    assert len(stage.provider.asks) == 2, "nobody asks her again"
    assert "Nobody has spoken here yet." in stage.provider.asks[0].text
    assert (stage.said(), stage.journal.kinds()) == ([], ["turn.replied", "turn.replied"])


async def test_who_speaks_during_a_scheduled_turn_is_answered_next_and_elsewhere_by_the_next_run(stage: Stage) -> None:
    with stage.mind.write() as tx:
        insert_room(tx, "!c:example.org", number=3)

    def answer(ask: Ask) -> Any:
        if ask.number == 0:
            hear(stage, "elsewhere", room_id="!c:example.org")
            hear(stage, "good morning, ada")
        return saying("Hello.")

    stage.provider.answer = answer
    run = beat(stage)
    await stage.turn(run)
    await stage.turn(run, turns=1)
    first, second = (ask.text for ask in stage.provider.asks)
    assert "| good morning, ada" not in first
    assert "| good morning, ada" in second
    assert "There is mail for you." in second
    assert isinstance(stage.open(run, turns=2), Nothing)
    assert len(stage.pending()) == 1
    await stage.turn(stage.grant("room:!c:example.org"))
    assert stage.pending() == []


async def test_who_spoke_before_a_scheduled_turn_is_answered_in_its_place(stage: Stage) -> None:
    hear(stage, "are you there?", room_id=OTHER)
    stage.provider.answer = lambda _: saying("I am.", room="r2")
    run = beat(stage)
    await stage.turn(run)
    assert stage.said() == ["I am."]
    assert "scheduled" not in stage.provider.asks[0].text
    assert stage.open(run, turns=1) == Nothing("done", NO_MAIL), "a moment of her own comes first in a run or not at all"


@pytest.mark.parametrize("change", ["membership = 'left'", "conversation = 'elsewhere'", "encrypted = 1"])
async def test_without_a_home_room_that_she_can_use_a_scheduled_wake_says_nothing_anywhere(stage: Stage, change: str) -> None:
    run = beat(stage)
    with stage.mind.write() as tx:
        tx.execute(f"UPDATE room SET {change} WHERE room_id = ?", (ROOM,))
    assert isinstance(stage.open(run), Nothing)
    assert (stage.run(run).outcome, stage.provider.asks) == ("done", [])


async def test_unanswered_she_speaks_in_her_home_room_as_often_as_a_bot_is_answered_and_again_after_a_word(stage: Stage) -> None:
    stage.provider.answer = lambda _: saying("Anybody?")
    for _ in range(3):
        await stage.turn(run := beat(stage))
        done(stage, run)
    run = beat(stage)
    assert stage.open(run) == Nothing("done", HOME_SPENT)
    assert (stage.run(run).end_reason, len(stage.provider.asks)) == (HOME_SPENT, 3)
    hear(stage)
    await stage.turn(run := beat(stage))
    await stage.turn(run := beat_after(stage, run))
    assert len(stage.provider.asks) == 5


def beat_after(stage: Stage, run: Run) -> Run:
    done(stage, run)
    return beat(stage)


async def test_her_newest_wish_is_kept_and_one_that_cannot_be_read_changes_nothing(stage: Stage) -> None:
    answers: list[dict[str, Any]] = [{"urgency": 700, "tempo": 900}, {"urgency": "much", "tempo": None}, {}]
    stage.provider.answer = lambda ask: saying("Hm.") | answers[ask.number]
    found = []
    for body in ("one", "two", "three"):
        hear(stage, body)
        await stage.turn(run := stage.grant())
        done(stage, run)
        with stage.mind.read() as tx:
            pulse = read_pulse(tx)
        assert pulse is not None
        found.append((pulse.urgency, pulse.tempo_s))
    assert found == [(700, 900), (700, None), (700, None)]
    assert stage.said() == ["Hm."] * 3
    assert len(stage.rows("SELECT * FROM pulse")) == 2


async def test_a_reply_that_is_discarded_leaves_no_wish(stage: Stage) -> None:
    hear(stage)
    run = stage.grant()

    def answer(_: Ask) -> Any:
        stage.bury(run)
        return saying("too late") | {"urgency": 700, "tempo": None}

    stage.provider.answer = answer
    await stage.turn(run)
    assert stage.rows("SELECT * FROM pulse") == []


async def test_w2_a_bot_gets_its_turns_within_one_run_and_a_persons_word_begins_the_count_anew(stage: Stage) -> None:
    stage.provider.answer = lambda ask: saying("@bot hello")
    run = stage.grant()
    taken = 0
    for _ in range(5):
        hear(stage, "ada, hello", person=False)
        opening = stage.open(run, turns=taken)
        if not isinstance(opening, Opened):
            break
        await stage.taker.take(opening)
        taken += 1
    assert (taken, len(stage.said())) == (3, 3)
    assert len(stage.pending()) == 1, "what is turned away stays where it is"
    hear(stage, "what are you two up to?")
    await stage.turn(stage.grant())
    assert (stage.pending(), len(stage.said())) == ([], 4), "and is shown with what a person says there"


async def test_w2_a_person_in_another_room_is_answered_while_a_bot_is_not_and_the_room_of_the_bot_hears_nothing(
    stage: Stage,
) -> None:
    stage.provider.answer = lambda ask: saying("hello")
    for _ in range(3):
        hear(stage, "ada, hello", person=False)
        await stage.turn(run := stage.grant())
        done(stage, run)
    hear(stage, "ada, hello", person=False)
    hear(stage, "ada, the soup?", room_id=OTHER)
    stage.provider.answer = lambda _: {"say": [*saying("It boils.", room="r2")["say"], *saying("@bot soup!")["say"]], "react": []}
    await stage.turn(stage.grant())
    assert stage.said() == ["hello"] * 3 + ["It boils."]
    assert "3 turns there since a person last spoke" in dropped(stage)
    assert len(stage.pending()) == 1


async def test_what_may_not_be_said_where_she_wants_it_is_no_reason_to_ask_her_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TOML.replace("loop_turns", 'silence = "never-when-addressed"\nloop_turns'))
    with stage.mind.write() as tx:
        insert_room(tx, OTHER, number=2, conversation=CONVERSATION)
    stage.provider.answer = lambda _: saying("hello")
    for _ in range(3):
        hear(stage, "ada, hello", person=False)
        await stage.turn(run := stage.grant())
        done(stage, run)
    hear(stage, "ada, hello", room_id=OTHER)
    await stage.turn(stage.grant())
    assert (len(stage.provider.asks), len(stage.said())) == (4, 3)


async def test_where_she_speaks_unasked_the_turn_counts_too(stage: Stage) -> None:
    hear(stage, "tell them in the kitchen")
    stage.provider.answer = lambda _: saying("Rain!", room="r2")
    await stage.turn(stage.grant())
    with stage.mind.read() as tx:
        assert [read_place(tx, room, "").turns_here for room in (ROOM, OTHER)] == [1, 1]


async def test_however_much_of_one_account_waits_it_hides_nobody_elses(stage: Stage) -> None:
    for _ in range(5):
        hear(stage, "again", sender="@eve:example.org")
        await stage.turn(run := stage.grant(), now=now_ms())
        done(stage, run)
    with stage.mind.write() as tx:
        for _ in range(MAIL_READ_MAX + 1):
            insert_heard(tx, ROOM, sender="@eve:example.org")
    hear(stage, "and I?")
    opening = stage.open(stage.grant(), now=now_ms())
    assert isinstance(opening, Opened)
    assert [heard.body for heard in opening.batch.mail] == ["and I?"]


async def test_a_days_cap_that_is_reached_within_a_run_ends_it_in_order_before_the_next_call(stage: Stage) -> None:
    stage.provider.micro_usd_per_token = 10
    hear(stage, "x" * 8_000)
    run = stage.grant()
    stage.provider.answer = lambda _: saying("ok")
    await stage.turn(run, now=now_ms())
    assert stage.run(run).cost_micro_usd >= 10_000
    hear(stage, "and?")
    opening = stage.open(run, turns=1, now=now_ms())
    assert isinstance(opening, Nothing)
    assert (opening.outcome, stage.run(run).outcome) == ("spend", "spend")
    assert "that she may in a day" in opening.reason == stage.run(run).end_reason
    assert (len(stage.pending()), len(stage.provider.asks)) == (1, 1)


async def test_what_her_self_spends_beside_her_counts(stage: Stage) -> None:
    with stage.mind.write() as tx:
        work = open_run(tx, RunKind.SELF_RUN, [CONVERSATION], "request", "a test", now_ms())
        tx.execute("INSERT INTO self_progress VALUES (?, '', 0, 0, 0, 10000, 1, ?)", (work.id, now_ms()))
    hear(stage)
    opening = stage.open(stage.grant(), now=now_ms())
    assert isinstance(opening, Nothing)
    assert opening.outcome == "spend"
