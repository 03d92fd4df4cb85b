"""The last reason in `mind status`: why she does nothing just now, or how her newest run ended. By the heartbeat's own rules."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.cli.status import REASON_LEAST, REASON_MOST, _cut
from mind_body.clock import now_ms
from mind_body.home import Home
from mind_body.host.liveness import take_hold
from mind_body.mind.places import admit_turn_places, note_spoken
from mind_body.mind.records import Pause
from mind_body.mind.runs import set_pause
from mind_body.mind.store import Transaction, open_mind
from tests import builders
from tests.homes import call, make_home

MIN = 60_000


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path, "ada", released=True)


@contextmanager
def remembering(home: Home) -> Iterator[Transaction]:
    mind = open_mind(home.mind_db("ada"))
    with mind.write() as tx:
        yield tx
    mind.close()


def last(home: Home) -> tuple[str, int | None]:
    told = json.loads(call(home, "status", "--json").stdout)["minds"][0]
    return told["last_reason"], told["last_at"]


def mail(tx: Transaction, **columns: Any) -> None:
    builders.insert_heard(tx, builders.insert_room(tx), at=now_ms() - MIN, **columns)


def test_to_whom_nobody_has_spoken_there_is_that_to_say(home: Home) -> None:
    assert last(home) == ("nobody spoke to her", None)


def test_a_run_that_ended_is_the_last_word_with_its_instant_whichever_half_it_was(home: Home) -> None:
    at = now_ms() - 3 * MIN
    with remembering(home) as tx:
        builders.insert_run(tx, ended_at=at, end_reason="no eligible mail")
    assert last(home) == ("done: no eligible mail", at)
    assert "done: no eligible mail, 3 min ago" in call(home, "status").stdout
    with remembering(home) as tx:
        builders.insert_run(tx, kind="self_run", ended_at=at + MIN, outcome="flushed", end_reason="its context was full")
    assert last(home) == ("self: flushed: its context was full", at + MIN)


def test_what_holds_up_mail_outweighs_how_a_run_ended(home: Home) -> None:
    with remembering(home) as tx:
        builders.insert_run(tx, ended_at=now_ms() - MIN, end_reason="no eligible mail", turns=1)
        mail(tx)
    reason, at = last(home)
    assert reason.startswith("begins when the heartbeat looks: 1 message")
    assert at is None
    with remembering(home) as tx:
        set_pause(tx, Pause("limited", now_ms() + 9 * MIN, "You've hit your limit", 1, now_ms()))
    assert last(home)[0] == "paused (limited): You've hit your limit"
    assert "paused (limited): You've hit your limit" in call(home, "status").stdout


def test_a_pause_with_nothing_waiting_is_not_why_she_rests(home: Home) -> None:
    with remembering(home) as tx:
        builders.insert_run(tx, ended_at=now_ms() - MIN, end_reason="no eligible mail", turns=1)
        set_pause(tx, Pause("limited", now_ms() + 9 * MIN, "You've hit your limit", 1, now_ms()))
    assert last(home)[0] == "done: no eligible mail"


def test_the_brake_outweighs_all_but_what_she_is_doing(home: Home) -> None:
    with remembering(home) as tx:
        mail(tx)
        builders.insert_run(tx, ended_at=None, opened_at=now_ms(), holder="somebody", reason="1 message (direct)")
    hold = take_hold(home.lock_file("persona", "ada"), "somebody")
    assert hold is not None
    assert last(home)[0] == "acting: 1 message (direct)"
    builders.hold(home, "ada", "for the night")
    assert last(home)[0] == "acting: 1 message (direct)"
    hold.release()
    assert last(home)[0] == "held: for the night"


def test_a_run_whose_holder_has_died_is_not_being_done(home: Home) -> None:
    with remembering(home) as tx:
        mail(tx)
        builders.insert_run(tx, ended_at=None, opened_at=now_ms() - MIN, holder="somebody")
    assert not last(home)[0].startswith("acting")


def test_mail_of_bots_who_have_had_their_turns_is_said_to_bring_none(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", released=True, persona={"loop_turns": 1})
    with remembering(home) as tx:
        room = builders.insert_room(tx)
        note_spoken(tx, room, None, 0, 1)
        run, session = builders.insert_run(tx, ended_at=now_ms() - MIN), builders.insert_session(tx)
        builders.insert_turn(tx, "t", run_id=run, session_id=session)
        admit_turn_places(tx, "t", [(room, "")])
        builders.insert_heard(tx, room, at=now_ms() - MIN, person=0, sender="@bot:x")
    assert "person" in last(home)[0]
    assert not last(home)[0].startswith("done")


def test_work_that_waits_is_told_where_nothing_else_does(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", released=True, self={"enabled": True})
    with remembering(home) as tx:
        builders.insert(
            tx, "follow_up", id="w", conversation="open", room_id="!a:x", asked_by="@you:x", brief="b", workspace="main",
            state="open", opened_at=now_ms() - MIN,
        )  # fmt: skip
        set_pause(tx, Pause("self-overloaded", now_ms() + 9 * MIN, "too much to do", 1, now_ms()))
    assert last(home)[0] == "work: paused (overloaded): too much to do"


def test_a_held_mind_whose_file_cannot_be_read_is_said_to_be_held(home: Home) -> None:
    builders.hold(home, "ada", "for the night")
    home.mind_db("ada").write_bytes(b"\0" * 8192)
    assert last(home) == ("held: for the night", None)


def test_words_from_outside_move_no_cursor(home: Home) -> None:
    with remembering(home) as tx:
        builders.insert_run(tx, ended_at=now_ms() - MIN, outcome="dead", end_reason="a\x1b[31m\nb")
    told = call(home, "status").stdout
    assert "\x1b" not in told
    assert len([line for line in told.splitlines() if line.startswith("ada ")]) == 1


@given(st.text(max_size=400), st.integers(REASON_LEAST, REASON_MOST))
def test_a_long_reason_is_cut_to_what_is_left_of_the_line(text: str, most: int) -> None:
    cut = _cut(text, most)
    assert len(cut) <= most
    assert cut == text or text.startswith(cut.removesuffix("…"))
