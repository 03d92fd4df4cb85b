"""Mail that is not answered now, over real minds: what is told, once, what is asked, and how it goes on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mind_body.control.govern import SPREAD_MS
from mind_body.control.loops import name_stretch
from mind_body.heartbeat.house import chance_of
from mind_body.host.liveness import take_hold
from mind_body.matrix.notices import NoticeKey, render_notice
from mind_body.mind.outbox import admit_said
from mind_body.mind.places import read_place
from mind_body.mind.questions import answer_question, read_open_questions
from mind_body.settings import HostConfig
from tests.builders import NOW, OPERATOR, hold, insert, insert_room, make_config, release
from tests.heart_stage import BOT, ROOM, Stage

HOUR, DAY = 3_600_000, 86_400_000
OTHER, DM = "!b:example.org", "!dm:example.org"
MIDNIGHT = 1_800_057_600_000
"""The next one in UTC."""


def make_stage(root: Path, *names: str, toml: str = "", **others: Any) -> Stage:
    made = Stage(root, *(names or ("ada",)), toml=toml, **others)
    for mind in made.minds.values():
        with mind.write() as tx:
            insert_room(tx, OTHER)
            insert_room(tx, DM, conversation=f"direct:{DM}", direct=1)
            insert(tx, "member", room_id=DM, user_id=OPERATOR, membership="join")
    return made


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = make_stage(tmp_path)
    yield made
    made.close()


def rooms(stage: Stage, name: str = "ada") -> list[str]:
    return [room for room, _, _ in stage.told(name) if room != DM]


async def test_each_room_in_which_somebody_waits_is_told_once_also_who_comes_later_and_after_restarts(stage: Stage) -> None:
    stage.pause("ada", "limited", NOW + HOUR)
    stage.hear("ada", NOW)
    await stage.look(NOW)
    stage.hear("ada", NOW + 1)
    stage.hear("ada", NOW + 2, room_id=OTHER, thread="$t")
    for minute in range(0, 60, 6):
        stage.restart()
        await stage.look(NOW + minute * 60_000)
    assert [(room, thread) for room, thread, _ in stage.told("ada")] == [(ROOM, None), (OTHER, "$t")]
    assert all("2027-01-15 09:00:00 UTC" in body for _, _, body in stage.told("ada"))
    assert stage.notes.kinds().count("wake.queued") >= 1


async def test_a_second_limit_for_the_same_unanswered_message_is_not_told_again_and_for_the_next_one_it_is(stage: Stage) -> None:
    stage.hear("ada", NOW)
    stage.pause("ada", "limited", NOW + HOUR)
    await stage.look(NOW)
    stage.pause("ada", "limited", NOW + 3 * HOUR)
    await stage.look(NOW + 2 * HOUR)
    assert len(rooms(stage)) == 1
    await stage.look(NOW + 4 * HOUR)
    stage.answered("ada", NOW + 4 * HOUR)
    stage.pause("ada", "limited", NOW + 6 * HOUR)
    stage.hear("ada", NOW + 5 * HOUR)
    await stage.look(NOW + 5 * HOUR)
    assert len(rooms(stage)) == 2


async def test_the_same_reason_is_one_line_in_the_journal_until_it_changes(stage: Stage) -> None:
    stage.pause("ada", "limited", NOW + HOUR)
    stage.hear("ada", NOW)
    for second in range(20):
        await stage.look(NOW + 1000 * second)
        stage.execute("ada", "UPDATE pause SET strikes = strikes + 1")
    lines = [sentence for kind, sentence, _ in stage.notes.lines if kind.startswith("wake.")]
    assert lines == ["1 message waits: paused (limited): a test."]
    hold(stage.home, "ada", "enough")
    await stage.look(NOW + 60_000)
    lines = [sentence for kind, sentence, _ in stage.notes.lines if kind.startswith("wake.")]
    assert lines[1:] == ["1 message waits: held: enough."]


async def test_at_a_reset_two_minds_go_on_at_instants_of_their_own_and_a_restart_changes_neither(tmp_path: Path) -> None:
    found = []
    for restarts in (False, True):
        stage = make_stage(tmp_path / str(restarts), "ada", "eve")
        for name in stage.minds:
            stage.pause(name, "limited", NOW + HOUR)
            stage.hear(name, NOW)
        opened: dict[str, int] = {}
        now = NOW
        while len(opened) < 2:
            if restarts:
                stage.restart()
            due = await stage.look(now)
            opened |= {name: now for name in stage.awake() if name not in opened}
            now = min(due or now + HOUR, now + 60_000)
        found.append(opened)
        stage.close()
    assert found[0] == found[1]
    assert found[0] == {name: NOW + HOUR + round(SPREAD_MS * chance_of(name)) for name in ("ada", "eve")}
    assert abs(found[0]["ada"] - found[0]["eve"]) > 100


async def test_after_a_limit_of_seconds_nobody_waits_much_longer_than_it_says(stage: Stage) -> None:
    stage.pause("ada", "limited", NOW + 8000, since=NOW)
    stage.hear("ada", NOW)
    due = await stage.look(NOW)
    assert due is not None
    assert NOW + 8000 <= due <= NOW + 10_000
    await stage.look(due)
    assert stage.awake() == ["ada"]


async def test_a_pause_that_an_operator_has_mended_is_over_and_nobody_is_told_of_it_any_more(stage: Stage) -> None:
    await stage.look(NOW)
    stage.pause("ada", "spend", NOW + DAY, since=NOW)
    release(stage.home, "ada", heat=0.5)
    stage.hear("ada", NOW)
    await stage.look(NOW + 2000)
    assert stage.awake() == ["ada"]
    assert rooms(stage) == []


async def test_over_her_cap_everybody_is_told_once_the_operators_are_asked_once_and_at_midnight_she_goes_on(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, toml="[spend]\nday_usd = 1.0\n")
    insert_cost(stage, 1_000_000, NOW - 1000)
    stage.hear("ada", NOW)
    opens = MIDNIGHT + round(SPREAD_MS * chance_of("ada"))
    assert await stage.look(NOW) == opens
    for hour in range(1, 10):
        stage.restart()
        await stage.look(NOW + hour * HOUR)
    assert rooms(stage) == [ROOM]
    assert stage.questions("ada") == ["day:2027-01-15"]
    assert [room for room, _, _ in stage.told("ada")].count(DM) == 1
    assert stage.awake() == []
    await stage.look(opens)
    assert stage.awake() == ["ada"]
    stage.close()


async def test_reopening_the_purse_allows_as_much_again_and_then_asks_anew_while_leaving_it_asks_nothing(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, toml="[spend]\nday_usd = 1.0\n")
    insert_cost(stage, 1_000_000, NOW - 1000)
    stage.pause("ada", "spend", MIDNIGHT, since=NOW)
    stage.hear("ada", NOW)
    await stage.look(NOW)
    answer(stage, "reopen")
    await stage.look(NOW + 5000)
    assert stage.awake() == ["ada"]
    stage.answered("ada", NOW + 5000)
    insert_cost(stage, 1_000_000, NOW + 5001)
    stage.hear("ada", NOW + 6000)
    await stage.look(NOW + 20_000)
    assert stage.questions("ada") == ["day:2027-01-15"] * 2
    answer(stage, "retire")
    for hour in range(1, 10):
        await stage.look(NOW + hour * HOUR)
    assert stage.questions("ada") == ["day:2027-01-15"] * 2
    assert stage.awake() == []
    stage.close()


async def test_quiet_hours_over_midnight_hold_back_everyone_but_operators_and_are_told_once(
    tmp_path: Path,
) -> None:
    toml = '[persona]\nquiet_hours = ["22:00-07:00"]\nquiet_for = "everyone"\n'
    stage = make_stage(tmp_path, toml=toml, host=HostConfig(time_zone="Europe/Berlin"))
    evening = 1_800_046_800_000  # 22:00 in Berlin
    stage.hear("ada", evening)
    assert await stage.look(evening + 5000) == evening + 9 * HOUR
    for hour in range(9):
        stage.restart()
        await stage.look(evening + hour * HOUR + 10_000)
    assert rooms(stage) == [ROOM]
    assert "quiet hours" in stage.told("ada")[0][2]
    stage.hear("ada", evening + 8 * HOUR, room_id=OTHER, sender=OPERATOR)
    await stage.look(evening + 8 * HOUR + 5000)
    run = stage.live("ada")
    assert run is not None
    assert run.conversations == (f"room:{OTHER}",)
    stage.answered("ada", evening + 8 * HOUR + 6000)
    await stage.look(evening + 9 * HOUR - 1000)
    assert stage.awake() == []
    await stage.look(evening + 9 * HOUR)
    assert stage.awake() == ["ada"]
    stage.close()


async def test_w2_bots_get_their_turns_then_silence_one_notice_and_one_line_until_a_person_speaks(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, toml="[persona]\nloop_turns = 3\n")
    now = await chatter(stage, NOW, 10)
    assert len(stage.rows("ada", "SELECT 1 FROM turn")) == 3
    assert [(room, thread) for room, thread, _ in stage.told("ada")] == [(ROOM, None)]
    assert stage.notes.kinds().count("loop.spent") == 1
    stage.restart()
    await stage.look(now)
    assert len(stage.told("ada")) == 1
    assert stage.awake() == []
    stage.hear("ada", now)
    now = await chatter(stage, now + 10_000, 10)
    assert len(stage.rows("ada", "SELECT 1 FROM turn")) == 6, "a person's word begins the count anew"
    assert len(stage.told("ada")) == 2
    stage.close()


async def test_w2_while_her_last_turn_is_under_way_nobody_is_told_that_she_stops(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, toml="[persona]\nloop_turns = 3\n")
    now = await chatter(stage, NOW, 2)
    stage.hear("ada", now, sender=BOT)
    await stage.look(now + 5000)
    lock = take_hold(stage.home.lock_file("persona", "ada"), "her")
    assert lock is not None
    stage.begin("ada", now + 5000)
    await stage.look(now + 6000)
    assert stage.told("ada") == []
    stage.answered("ada", now + 7000)
    await stage.look(now + 7000)
    assert stage.told("ada") == [], "nobody has asked for more"
    stage.hear("ada", now + 8000, sender=BOT)
    await stage.look(now + 8000)
    assert len(stage.told("ada")) == 1
    lock.release()
    stage.close()


async def test_w2_a_new_thread_for_every_message_buys_bots_nothing_and_is_told_in_no_thread_of_its_own(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, toml="[persona]\nloop_turns = 3\n")
    await chatter(stage, NOW, 10, threads=True)
    assert len(stage.rows("ada", "SELECT 1 FROM turn")) == 3
    assert [(room, thread) for room, thread, _ in stage.told("ada")] == [(ROOM, None)]
    stage.close()


async def test_w2_what_is_spent_in_one_room_holds_nobody_up_in_another(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, toml="[persona]\nloop_turns = 3\n")
    now = await chatter(stage, NOW, 5)
    stage.hear("ada", now, room_id=OTHER, sender=BOT)
    await stage.look(now + 5000)
    run = stage.live("ada")
    assert run is not None
    assert run.conversations == (f"room:{OTHER}",)
    stage.close()


async def test_w2_the_mouths_notice_of_the_same_stretch_is_the_same_notice(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, toml="[persona]\nloop_turns = 3\n")
    config = make_config(persona={"loop_turns": 3})
    now = await chatter(stage, NOW, 3)
    with stage.minds["ada"].write() as tx:
        thread, cause = name_stretch(read_place(tx, ROOM, ""), config)
        admit_said(tx, [render_notice("en", NoticeKey.LOOP_SPENT, cause, ROOM, thread=thread)], None, now)
    stage.hear("ada", now, sender=BOT)
    await stage.look(now + 5000)
    assert len(stage.told("ada")) == 1
    assert "loop.spent" not in stage.notes.kinds(), "the mouth has told it"
    stage.close()


async def test_one_account_gets_its_turns_of_the_day_is_told_and_is_answered_after_midnight(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, toml="[persona]\ncounterpart_turns = 2\n")
    now = NOW
    for _ in range(2):
        stage.hear("ada", now)
        await stage.look(now + 5000)
        stage.answered("ada", now + 5000)
        now += 10_000
    stage.hear("ada", now)
    due = await stage.look(now + 5000)
    assert stage.awake() == []
    assert due == MIDNIGHT
    stage.hear("ada", now, sender="@eve:example.org")
    await stage.look(now + 6000)
    assert stage.awake() == ["ada"], "others are answered"
    ((room, _, body),) = stage.told("ada")
    assert room == ROOM
    assert "@bob:example.org" in body
    assert stage.notes.kinds().count("loop.ceiling") == 1
    stage.execute("ada", "UPDATE run SET turns = 1 WHERE ended_at IS NULL")
    stage.end("ada", "done", now + 7000)
    stage.execute("ada", "UPDATE heard SET state = 'closed' WHERE sender = '@eve:example.org'")
    stage.restart()
    await stage.look(MIDNIGHT)
    assert stage.awake() == ["ada"]
    stage.close()


async def test_a_clock_that_is_set_back_holds_mail_up_for_its_breath_and_no_longer(stage: Stage) -> None:
    stage.hear("ada", NOW)
    await stage.look(NOW)
    due = await stage.look(NOW - HOUR)
    assert due is not None
    assert due <= NOW - HOUR + 5000
    await stage.look(due)
    assert stage.awake() == ["ada"]


async def test_a_message_and_a_run_of_work_wake_her_once_each_also_over_restarts(stage: Stage) -> None:
    stage.hear("ada", NOW)
    for step in range(20):
        stage.restart()
        await stage.look(NOW + 1000 * step)
        if stage.awake():
            stage.answered("ada", NOW + 1000 * step)
    assert len(stage.rows("ada", "SELECT 1 FROM run")) == 1


def insert_cost(stage: Stage, micro_usd: int, at: int) -> None:
    with stage.minds["ada"].write() as tx:
        values = {"kind": "self_run", "conversations": "[]", "cause": "request", "reason": "", "outcome": "result"}
        insert(tx, "run", id=f"dear-{at}", opened_at=at, ended_at=at, cost_micro_usd=micro_usd, **values)


def answer(stage: Stage, word: Any) -> None:
    with stage.minds["ada"].write() as tx:
        (question,) = read_open_questions(tx)
        assert answer_question(tx, question.id, word, OPERATOR, NOW)


async def chatter(stage: Stage, now: int, messages: int, *, threads: bool = False) -> int:
    """A bot that writes again after every answer of hers, and when there is none."""
    for number in range(messages):
        stage.hear("ada", now, sender=BOT, thread=f"$thread-{now}-{number}" if threads else None)
        await stage.look(now)
        now += 5000
        await stage.look(now)
        if stage.awake():
            stage.answered("ada", now)
            await stage.look(now)
    return now


async def test_in_the_seconds_after_midnight_over_which_minds_are_spread_nobody_is_asked_about_the_new_day(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, toml="[spend]\nday_usd = 1.0\n")
    await stage.look(NOW)
    stage.pause("ada", "spend", MIDNIGHT, since=NOW)
    stage.hear("ada", NOW)
    await stage.look(NOW)
    stage.hear("ada", MIDNIGHT)
    await stage.look(MIDNIGHT + 1)
    assert stage.awake() == [], "she is spread over the seconds after the reset"
    assert stage.questions("ada") == ["day:2027-01-15"]
    stage.close()


async def test_a_question_about_a_day_that_is_over_is_open_no_more_and_is_not_asked_late(tmp_path: Path) -> None:
    stage = make_stage(tmp_path, toml="[spend]\nday_usd = 1.0\n")
    stage.execute("ada", "DELETE FROM member")  # there is no room to ask in
    insert_cost(stage, 1_000_000, NOW - 1000)
    stage.hear("ada", NOW)
    await stage.look(NOW)
    assert stage.questions("ada") == ["day:2027-01-15"]
    stage.execute("ada", "UPDATE heard SET state = 'closed'")
    assert await stage.look(MIDNIGHT - HOUR) == MIDNIGHT
    stage.execute("ada", "INSERT INTO member (room_id, user_id, membership) VALUES (?, ?, 'join')", (DM, OPERATOR))
    await stage.look(MIDNIGHT)
    with stage.minds["ada"].read() as tx:
        assert read_open_questions(tx) == []
    assert [room for room, _, _ in stage.told("ada")] == [ROOM]
    (words,) = [sentence for kind, sentence, _ in stage.notes.lines if kind == "question.over"]
    assert words == "Nobody answered in time: the day 2027-01-15 is over."
    stage.close()


async def test_a_conversation_that_has_cost_what_it_may_holds_up_no_other_and_is_told_and_gone_on_with_by_itself(
    tmp_path: Path,
) -> None:
    stage = make_stage(tmp_path)
    await stage.look(NOW)
    stage.pause("ada", f"spend:room:{ROOM}", MIDNIGHT, since=NOW)
    stage.hear("ada", NOW)
    stage.hear("ada", NOW + 1)
    opens = MIDNIGHT + round(SPREAD_MS * chance_of("ada"))
    assert await stage.look(NOW + 5000) == opens
    assert stage.awake() == []
    ((room, _, body),) = stage.told("ada")
    assert room == ROOM
    assert "I have spent what I may spend" in body
    assert stage.questions("ada") == [], "only the setting lifts a conversation's cap"
    assert any("bring no turn: paused (spend)" in sentence for _, sentence, _ in stage.notes.lines)
    stage.hear("ada", NOW + 6000, room_id=OTHER)
    await stage.look(NOW + 12_000)
    run = stage.live("ada")
    assert run is not None
    assert run.conversations == (f"room:{OTHER}",)
    stage.answered("ada", NOW + 12_000)
    stage.restart()
    await stage.look(opens)
    run = stage.live("ada")
    assert run is not None
    assert run.conversations == (f"room:{ROOM}",)
    stage.close()


async def test_a_release_tries_a_conversations_cap_anew(stage: Stage) -> None:
    await stage.look(NOW)
    stage.pause("ada", f"spend:room:{ROOM}", MIDNIGHT, since=NOW)
    stage.hear("ada", NOW)
    release(stage.home, "ada", heat=0.5)
    await stage.look(NOW + 5000)
    assert stage.awake() == ["ada"]


async def test_what_is_turned_away_is_one_line_however_many_runs_come_and_go_beside_it(stage: Stage) -> None:
    await stage.look(NOW)
    stage.pause("ada", f"spend:room:{ROOM}", MIDNIGHT, since=NOW)
    stage.hear("ada", NOW)
    for step in range(1, 5):
        now = NOW + step * 10_000
        stage.hear("ada", now - 6000, room_id=OTHER)
        await stage.look(now)
        lock = take_hold(stage.home.lock_file("persona", "ada"), "her")
        assert lock is not None
        stage.begin("ada", now)
        await stage.look(now + 1)
        stage.answered("ada", now + 2)
        lock.release()
        await stage.look(now + 3)
    assert sum("brings no turn" in sentence for _, sentence, _ in stage.notes.lines) == 1
