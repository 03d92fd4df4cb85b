"""What a Self says in the room: once per run, in its thread, whole characters, and costs for operators alone."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.matrix.events import SAID_KEY
from mind_body.matrix.notices import NoticeKey
from mind_body.matrix.speech import measure_content
from mind_body.mind.records import Membership, SaidKind
from mind_body.mind.work_records import FollowUp, FollowUpState
from mind_body.mouth.room import new_room
from mind_body.self_run.actions import Outcome
from mind_body.self_run.room import (
    RESULT_BYTES,
    Figures,
    Place,
    progress_id,
    render_continues,
    render_edit,
    render_elapsed,
    render_end,
    render_figures,
    render_progress,
    render_root,
    shows_cost,
)
from mind_body.settings import PeopleConfig

BOB = "@bob:example.org"
PLACE = Place("r2", "!room:example.org", "self-r1", "en")
FIGURES = Figures("Bash", 190_000, 123_000, 300_000)
WORK = FollowUp(
    id="f1", conversation="direct:!room:example.org", room_id="!room:example.org", asked_in="$asked", asked_by=BOB,
    brief="Tidy the *notes*.\nAll of them.", workspace="notes", campaign=None, state=FollowUpState.CLAIMED, confirm_said=None,
    run_id="r2", continues=None, thread_said="self-r1", thread_root=None, opened_at=1, ended_at=None, result=None, why=None,
)  # fmt: skip


def test_the_first_message_says_what_for_whom_and_answers_who_asked() -> None:
    root = render_root(PLACE, WORK)
    assert (root.id, root.reply_to, root.thread_said) == ("self-r1", "$asked", None)
    assert BOB in root.content["body"]
    assert root.content["body"].endswith("> Tidy the *notes*.\n> All of them.")
    assert "<blockquote>" in root.content["formatted_body"]
    assert root.content["m.mentions"] == {}


def test_a_brief_cannot_speak_in_her_name() -> None:
    body = render_root(PLACE, replace(WORK, brief="x\r\n\r\nI am done.")).content["body"]
    assert "\nI am done." not in body


def test_all_else_is_in_the_thread_and_is_said_once_per_run() -> None:
    rows = [render_continues(PLACE), render_progress(PLACE, FIGURES), render_end(PLACE, Outcome.RESULT, "ok")]
    assert {row.thread_said for row in rows} == {"self-r1"}
    assert [row.content[SAID_KEY] for row in rows] == [row.id for row in rows]
    again = replace(PLACE, thread_said="self-r0", language="xx")
    assert render_end(again, Outcome.DIED, "").id == rows[2].id
    assert render_end(replace(PLACE, run_id="r3"), Outcome.RESULT, "ok").id != rows[2].id


def test_an_edit_replaces_the_one_message_and_old_clients_see_a_star() -> None:
    edit = render_edit(PLACE, 7, FIGURES)
    assert (edit.kind, edit.edits, edit.id) == (SaidKind.EDIT, progress_id("r2"), f"{progress_id('r2')}.7")
    assert edit.content["body"] == "* " + edit.content["m.new_content"]["body"]
    assert edit.content["m.new_content"]["body"] == render_progress(PLACE, FIGURES).content["body"]
    assert edit.content["m.new_content"]["body"] == "At work: Bash · 3 min · 41 % of 300,000 tokens"
    assert render_edit(PLACE, 8, FIGURES, over=True).content["m.new_content"]["body"].startswith("Was at work")


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_its_words_and_no_reason_in_them(outcome: Outcome) -> None:
    assert NoticeKey(f"self_ended_{outcome.replace('-', '_')}")
    row = render_end(PLACE, outcome, "")
    assert row.kind is SaidKind.NOTICE
    assert len(row.content["body"]) < 100


@given(st.text(max_size=20) | st.text("é漢👩", min_size=1500, max_size=3000))
def test_of_a_result_the_first_bytes_are_shown_and_whole_characters(result: str) -> None:
    row = render_end(PLACE, Outcome.RESULT, result)
    shown = row.content["body"].removeprefix("I am done.")
    assert len(shown.encode()) <= RESULT_BYTES + 100
    assert measure_content(row.content) < 48 * 1024
    assert ("There is more" in shown) == (len(result.strip().encode("utf-8", "replace")) > RESULT_BYTES)


@given(
    st.text(max_size=300), st.integers(-5, 10**10), st.integers(0, 10**7), st.integers(0, 10**7), st.none() | st.integers(0, 10**9)
)
def test_figures_are_one_line(doing: str, elapsed: int, prefix: int, ceiling: int, cost: int | None) -> None:
    line = render_figures(Figures(doing, elapsed, prefix, ceiling, cost))
    assert "\n" not in line
    assert len(line) < 200
    assert ("$" in line.removeprefix(doing[:60])) or cost is None


@pytest.mark.parametrize(
    ("ms", "words"), [(0, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (3_600_000, "1 h 0 min"), (100_000_000, "27 h 46 min")]
)
def test_time_is_told_in_its_largest_units(ms: int, words: str) -> None:
    assert render_elapsed(ms) == words


def test_costs_are_for_operators_alone() -> None:
    people = PeopleConfig(operators=(BOB,))
    room = new_room("!room:example.org", 1, Membership.JOINED)
    assert shows_cost(replace(room, direct=True), BOB, people)
    assert not shows_cost(room, BOB, people)
    assert not shows_cost(replace(room, direct=True), "@eve:example.org", people)
    assert not shows_cost(None, BOB, people)
