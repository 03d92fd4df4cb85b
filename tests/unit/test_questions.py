"""What the operators are asked, over a real mind: once, answered once, by whoever is first."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mind_body.mind.asking_records import Answer
from mind_body.mind.changes import Answered
from mind_body.mind.hearing import admit_heard
from mind_body.mind.outbox import admit_said, mark_sent
from mind_body.mind.questions import (
    admit_question,
    answer_question,
    has_open_question,
    mark_asked,
    read_extensions,
    read_newest_about,
    read_newest_reopened,
    read_open_questions,
    read_question,
    read_question_events,
    read_questions,
)
from mind_body.mind.records import SaidKind
from mind_body.mind.store import Mind, Transaction
from tests.builders import NOW, OPERATOR, insert_room, make_mind, make_new_said, make_question
from tests.examples import share

ROOM = "!dm:example.org"


@pytest.fixture
def tx(tmp_path: Path) -> Iterator[Transaction]:
    mind: Mind = make_mind(tmp_path)
    with mind.write() as opened:
        insert_room(opened, ROOM, direct=1)
        yield opened
    mind.close()


def test_the_same_thing_is_asked_once_and_answered_once(tx: Transaction) -> None:
    question = make_question()
    assert admit_question(tx, question)
    assert not admit_question(tx, replace(question, text="again"))
    assert read_open_questions(tx) == read_questions(tx) == [question]
    assert answer_question(tx, question.id, "reopen", OPERATOR, NOW + 1)
    assert not answer_question(tx, question.id, "retire", "@late:x", NOW + 2)
    assert not answer_question(tx, "nobody asked", "retire", OPERATOR, NOW)
    answered = replace(question, answer="reopen", answered_by=OPERATOR, answered_at=NOW + 1)
    assert read_question(tx, question.id) == answered
    assert (read_open_questions(tx), read_questions(tx)) == ([], [answered])
    assert not admit_question(tx, question), "what was answered is not asked again for the same cause"
    assert read_open_questions(tx) == []


def test_what_is_heard_answers_and_says_so_only_to_who_was_first(tx: Transaction) -> None:
    admit_question(tx, make_question())
    changes = [
        Answered("question-1", "retire", OPERATOR),
        Answered("question-1", "reopen", "@two:x"),
        Answered("?", "reopen", "@x"),
    ]
    assert [(one.how, one.seq) for one in admit_heard(tx, changes, NOW)] == [("answered", None), ("known", None), ("known", None)]
    found = read_question(tx, "question-1")
    assert found is not None
    assert (found.answer, found.answered_by, found.answered_at) == ("retire", OPERATOR, NOW)


def test_a_question_waits_for_its_room_and_can_be_answered_by_its_event_until_it_is(tx: Transaction) -> None:
    for number in (1, 2):
        admit_question(tx, make_question(f"q{number}"))
        admit_said(tx, [make_new_said(f"s{number}", ROOM, SaidKind.NOTICE)], None, NOW)
    assert read_question_events(tx) == {}
    mark_asked(tx, "q1", ROOM, "s1")
    asked = read_question(tx, "q1")
    assert asked is not None
    assert (asked.room_id, asked.said_id) == (ROOM, "s1")
    assert read_question_events(tx) == {}, "nobody has seen it yet"
    mark_sent(tx, "s1", "$q1")
    assert read_question_events(tx) == {"$q1": "q1"}
    answer_question(tx, "q1", "reopen", OPERATOR, NOW)
    assert read_question_events(tx) == {}
    mark_asked(tx, "q1", "!elsewhere", "s2")
    later = read_question(tx, "q1")
    assert later is not None
    assert later.room_id == ROOM, "an answered question is not asked anywhere"


def test_of_several_about_one_thing_the_newest_row_counts_whatever_the_clock_did(tx: Transaction) -> None:
    assert read_newest_about(tx, "work:1") is None
    assert read_newest_reopened(tx, "work:1") is None
    admit_question(tx, make_question("z", asked_at=NOW))
    answer_question(tx, "z", "reopen", OPERATOR, NOW)
    admit_question(tx, make_question("a", asked_at=NOW - 9))
    admit_question(tx, make_question("other", about="work:2"))
    newest, answered = read_newest_about(tx, "work:1"), read_newest_about(tx, "work:1", answered=True)
    assert newest is not None
    assert answered is not None
    assert (newest.id, answered.id) == ("a", "z")
    assert has_open_question(tx, "work:1")
    answer_question(tx, "a", "retire", OPERATOR, NOW - 8)
    assert not has_open_question(tx, "work:1")
    reopened, answered = read_newest_reopened(tx, "work:1"), read_newest_about(tx, "work:1", answered=True)
    assert reopened is not None
    assert answered is not None
    assert (reopened.id, answered.id) == ("z", "a")
    assert [one.id for one in read_questions(tx)] == ["other", "a", "z"], "the newest first"


@settings(max_examples=share(0.25), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["day:1", "month:1"]), st.sampled_from(["reopen", "retire"]))))
def test_a_window_is_extended_once_for_each_question_whose_first_answer_said_so(
    tmp_path_factory: pytest.TempPathFactory, answers: list[tuple[int, str, Answer]]
) -> None:
    mind = make_mind(tmp_path_factory.mktemp("mind"))
    first: dict[str, Answer] = {}
    with mind.write() as tx:
        admit_question(tx, make_question("breaker", about="day:1"))
        answer_question(tx, "breaker", "reopen", OPERATOR, NOW)
        for number, about, answer in answers:
            question_id = f"{about}-{number}"
            admit_question(tx, make_question(question_id, kind="purse", about=about))
            assert answer_question(tx, question_id, answer, OPERATOR, NOW) is (question_id not in first)
            first.setdefault(question_id, answer)
        for about in ("day:1", "month:1"):
            expected = sum(answer == "reopen" for question_id, answer in first.items() if question_id.startswith(about))
            assert read_extensions(tx, about) == expected
    mind.close()
