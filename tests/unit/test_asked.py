"""Answers to the operators' questions: what counts as one, whose, where, and that nothing else of a room is taken for one."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.matrix.events import SAID_KEY
from mind_body.matrix.wire import parse_messages, parse_sync
from mind_body.mind.hearing import read_gap
from mind_body.mind.outbox import admit_said, mark_attempted, mark_sent, next_said
from mind_body.mind.questions import admit_question, mark_asked, read_question
from mind_body.mind.store import Mind
from mind_body.mouth.asked import SIGNS, WORDS
from mind_body.mouth.take_in import TakeIn, Taken
from mind_body.mouth.words import lone_word
from tests.builders import NOW, OPERATOR, insert_room, make_config, make_mind, make_new_said, make_question
from tests.unit.test_hear import BOB, CAPS, HER, ROOM, Json, event, message, timeline

OTHER = "!other:example.org"
ASKED = "$asked"
CONFIG = make_config(people={"operators": (OPERATOR, "@*:minds.example.org")})


@pytest.fixture
def mind(tmp_path: Path) -> Mind:
    """In a DM with an operator where one question was asked, by $asked."""
    mind = make_mind(tmp_path)
    with mind.write() as tx:
        for room_id in (ROOM, OTHER):
            insert_room(tx, room_id, direct=1, conversation=f"direct:{room_id}")
    ask(mind, "question-1", ASKED)
    return mind


def ask(mind: Mind, question_id: str, event_id: str, *, room_id: str = ROOM) -> None:
    say(mind, f"notice-{question_id}", event_id, room_id=room_id)
    with mind.write() as tx:
        admit_question(tx, make_question(question_id, about=f"work:{question_id}"))
        mark_asked(tx, question_id, room_id, f"notice-{question_id}")


def say(mind: Mind, said_id: str, event_id: str, *, room_id: str = ROOM) -> None:
    with mind.write() as tx:
        admit_said(tx, [make_new_said(said_id, room_id)], None, NOW)
        mark_attempted(tx, said_id, "D", NOW)
        mark_sent(tx, said_id, event_id)


def hear(mind: Mind, *events: Json, room_id: str = ROOM, **how: Any) -> Taken:
    sync = parse_sync({"next_batch": "s", "rooms": {"join": {room_id: timeline([*events], **how)}}})
    with mind.write() as tx:
        return TakeIn(tx, HER, CONFIG, NOW).sync(sync, "s0")


def reply(number: int | str, body: str, to: str = ASKED, **content: Any) -> Json:
    sender = content.pop("sender", OPERATOR)
    return message(number, body, sender=sender, relates={"m.in_reply_to": {"event_id": to}}, **content)


def word(number: int | str, body: str, **content: Any) -> Json:
    return message(number, body, sender=content.pop("sender", OPERATOR), **content)


def reaction(number: int | str, key: str, *, sender: str = OPERATOR, target: str = ASKED, **content: Any) -> Json:
    relates = {"rel_type": "m.annotation", "event_id": target, "key": key}
    return event(number, "m.reaction", {"m.relates_to": relates, **content}, sender)


def answer_to(mind: Mind, question_id: str = "question-1") -> tuple[str | None, str | None]:
    with mind.read() as tx:
        found = read_question(tx, question_id)
    assert found is not None
    return found.answer, found.answered_by


def mail(mind: Mind) -> list[str]:
    with mind.read() as tx:
        return [row["body"] for row in tx.execute("SELECT body FROM heard WHERE standing = 'mail' ORDER BY seq")]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (reply(1, "reopen"), "reopen"),
        (reply(1, "Again!"), "reopen"),
        (reply(1, "yes"), "reopen"),
        (reply(1, "Go  on."), "reopen"),
        (reply(1, "👍🏽"), "reopen"),
        (reply(1, "> <@ada:example.org> Shall it go on?\n\nyes"), "reopen"),
        (reply(1, "@ada:example.org: retire"), "retire"),
        (reply(1, "NO"), "retire"),
        (reply(1, "stop"), "retire"),
        (reply(1, "leave it"), "retire"),
        (message(1, "no", sender=OPERATOR, relates={"rel_type": "m.thread", "event_id": ASKED}), "retire"),
        (word(1, "reopen"), "reopen"),
        (word(1, "“retire”"), "retire"),
        (word(1, "yes"), "reopen"),
        (word(1, "❌"), "retire"),
        (reaction(1, "✅"), "reopen"),
        (reaction(1, "👍🏿"), "reopen"),
        (reaction(1, "❌\ufe0f"), "retire"),
        (reaction(1, "👎"), "retire"),
    ],
)
def test_an_operator_answers_in_words_or_by_a_reaction_and_nobody_is_woken(mind: Mind, said: Json, answer: str) -> None:
    taken = hear(mind, said)
    assert answer_to(mind) == (answer, OPERATOR)
    assert not taken.mail
    assert taken.for_heartbeat
    with mind.read() as tx:
        rows = tx.execute("SELECT standing, reason FROM heard").fetchall()
    assert [(row["standing"], row["reason"]) for row in rows] in ([], [("context", "it answers a question")])


@pytest.mark.parametrize(
    "said",
    [
        reply(1, "reopen", sender=BOB),
        word(1, "retire", sender=BOB),
        reaction(1, "✅", sender=BOB),
        reply(1, "yes, but only tomorrow"),
        reply(1, "what was it about?"),
        reply(1, "reopen", msgtype="m.notice"),
        reply(1, "reopen", msgtype="m.image"),
        reply(1, "reopen", sender="@eve:minds.example.org", **{SAID_KEY: "a Mind's"}),
        reaction(1, "✅", sender="@eve:minds.example.org", **{SAID_KEY: "a Mind's"}),
        reply(1, "reopen", to="$something-else"),
        message(1, "reopen", sender=OPERATOR, relates={"rel_type": "m.thread", "event_id": "$elsewhere"}),
        reaction(1, "❤️"),
        reaction(1, "✅", target="$something-else"),
        word(1, "reopen the window, please"),
    ],
)
def test_whatever_else_is_said_there_answers_nothing(mind: Mind, said: Json) -> None:
    hear(mind, said)
    assert answer_to(mind) == (None, None)
    asks_her = said["type"] == "m.room.message" and said["content"]["msgtype"] != "m.notice"
    assert mail(mind) == ([said["content"]["body"]] if asks_her else [])


def test_a_question_is_answered_only_where_it_was_asked(mind: Mind) -> None:
    hear(mind, word(1, "reopen"), reply(2, "reopen"), reaction(3, "✅"), room_id=OTHER)
    assert answer_to(mind) == (None, None)


def test_a_question_of_one_room_is_not_answered_from_another_where_one_is_open_too(mind: Mind) -> None:
    ask(mind, "question-2", "$asked2", room_id=OTHER)
    hear(mind, reply(1, "reopen"), reaction(2, "✅"), room_id=OTHER)
    assert (answer_to(mind), answer_to(mind, "question-2")) == ((None, None), (None, None))


def test_of_two_open_questions_the_one_that_is_replied_to_is_answered(mind: Mind) -> None:
    ask(mind, "question-2", "$asked2")
    hear(mind, word(1, "reopen"))
    assert (answer_to(mind), answer_to(mind, "question-2")) == ((None, None), (None, None))
    hear(mind, reply(2, "retire", to="$asked2"))
    assert (answer_to(mind), answer_to(mind, "question-2")) == ((None, None), ("retire", OPERATOR))
    hear(mind, word(3, "reopen"))
    assert answer_to(mind) == ("reopen", OPERATOR)


def test_a_yes_to_something_that_she_has_said_since_is_ordinary_mail(mind: Mind) -> None:
    say(mind, "something-else", "$later")
    hear(mind, word(1, "yes"), word(2, "stop"))
    assert answer_to(mind) == (None, None)
    assert mail(mind) == ["yes", "stop"]
    hear(mind, word(3, "retire"))
    assert answer_to(mind) == ("retire", OPERATOR)


def test_a_question_that_waits_to_be_sent_is_not_answered_by_what_was_said_before_it(mind: Mind) -> None:
    hear(mind, reaction(1, "👎"))
    with mind.write() as tx:
        admit_question(tx, make_question("question-2"))
        admit_said(tx, [make_new_said("notice-2", ROOM)], None, NOW)
        mark_asked(tx, "question-2", ROOM, "notice-2")
    hear(mind, word(2, "reopen"))
    assert answer_to(mind, "question-2") == (None, None)


def test_the_first_answer_counts_and_what_follows_is_ordinary_mail(mind: Mind) -> None:
    taken = hear(mind, word(1, "retire"), word(2, "reopen"), reaction(3, "✅"))
    assert answer_to(mind) == ("retire", OPERATOR)
    assert mail(mind) == ["reopen"]
    assert len(taken.answered) == 1
    hear(mind, reply(4, "reopen"))
    assert answer_to(mind) == ("retire", OPERATOR)
    assert mail(mind) == ["reopen", "reopen"]


def test_an_answer_is_confirmed_once_in_the_room(mind: Mind) -> None:
    assert hear(mind, reaction(1, "✅")).for_voice
    hear(mind, reaction(2, "❌"))
    with mind.read() as tx:
        assert [(row.room_id, row.content["body"]) for row in next_said(tx)] == [(ROOM, "Understood: it goes on.")]


def test_an_answer_that_the_homeserver_shows_again_is_none_to_the_next_question(mind: Mind) -> None:
    hear(mind, word(1, "reopen"))
    ask(mind, "question-2", "$asked2")
    hear(mind, word(1, "reopen"))
    assert answer_to(mind, "question-2") == (None, None)


def test_a_question_is_answered_also_where_its_receipt_was_lost(tmp_path: Path) -> None:
    mind = make_mind(tmp_path)
    with mind.write() as tx:
        insert_room(tx, ROOM, direct=1, conversation=f"direct:{ROOM}")
        admit_question(tx, make_question())
        admit_said(tx, [make_new_said("notice", ROOM)], None, NOW)
        mark_asked(tx, "question-1", ROOM, "notice")
        mark_attempted(tx, "notice", "D", NOW)
    question = message("q", "Shall it go on?", sender=HER)
    question["content"][SAID_KEY] = "notice"
    hear(mind, question, reaction(1, "✅", target="$q"))
    assert answer_to(mind) == ("reopen", OPERATOR)


def test_an_answer_behind_a_gap_is_heard_when_the_gap_is_filled(mind: Mind) -> None:
    hear(mind, word("late", "thanks"), limited=True)
    with mind.write() as tx:
        gap = read_gap(tx, ROOM)
        assert gap is not None
        page = parse_messages({"chunk": [reaction("r", "✅")]})
        TakeIn(tx, HER, CONFIG, NOW).page(gap, page, CAPS)
    assert answer_to(mind) == ("reopen", OPERATOR)
    assert mail(mind) == ["thanks"]


def test_what_was_said_before_she_came_answers_nothing(mind: Mind) -> None:
    left = event("left", "m.room.member", {"membership": "leave"}, HER, state_key=HER)
    hear(mind, left, reply(1, "reopen"), reaction(2, "✅"))
    assert answer_to(mind) == (None, None)


@given(st.text(max_size=40) | st.sampled_from([*WORDS, *SIGNS]), st.sampled_from(["ada", "Ada L.", ""]))
def test_a_lone_word_is_found_in_any_case_and_punctuation_and_nothing_longer_is(text: str, name: str) -> None:
    found = lone_word(text, WORDS, HER, name)
    assert found is None or found in " ".join(text.casefold().split())
    for one in WORDS:
        assert lone_word(f"  *{one.upper()}*! ", WORDS, HER, name) == one
        assert lone_word(f"{HER}: {one}", WORDS, HER, name) == one
        assert lone_word(f"{one} {text}x", WORDS, HER, name) is None
