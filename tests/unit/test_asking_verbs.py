"""`mind questions` and `mind campaign`: what they show, what they put into the mind, and what they refuse."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mind_body.home import Home
from mind_body.host.poke import Pokes, open_poke_socket
from mind_body.mind.asking_records import Campaign, Question
from mind_body.mind.campaigns import close_campaign, open_campaign, read_campaigns
from mind_body.mind.follow_ups import read_open_follow_ups
from mind_body.mind.questions import admit_question, read_open_questions, read_questions
from mind_body.mind.rooms import save_members
from mind_body.mind.store import open_mind
from tests import builders
from tests.homes import call, make_home

BOB = "@bob:mind.localhost"
T = 1_800_000_000_000


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path, "ada", "bea", released=True, self={"enabled": True}, people={"operators": [BOB]})


def ask(home: Home, question_id: str, name: str = "ada", **columns: Any) -> None:
    values: dict[str, Any] = {"kind": "purse", "about": "day:2027-01-15", "text": "She has \x1b[31mspent it.", "asked_at": T}
    question = Question(id=question_id, **{**values, "room_id": None, "said_id": None, **columns})
    with closing(open_mind(home.mind_db(name))) as mind, mind.write() as tx:
        assert admit_question(tx, question)


def open_questions(home: Home, name: str = "ada") -> list[str]:
    with closing(open_mind(home.mind_db(name))) as mind, mind.read() as tx:
        return [one.id for one in read_open_questions(tx)]


def shown(home: Home, *words: str) -> Any:
    told = call(home, *words, "--json")
    assert told.exit_code == 0, told.output
    return json.loads(told.stdout)


# -- questions -----------------------------------------------------------------------------------------------------------


def test_the_questions_of_all_minds_are_listed_with_what_answers_them(home: Home) -> None:
    ask(home, "aaaaaaaaaaaa1", asked_at=T + 1)
    ask(home, "bbbbbbbbbbbb1", "bea", room_id="!dm:x", kind="breaker", about="work:1")
    found = shown(home, "questions")["questions"]
    assert [(one["mind"], one["id"], one["room"]) for one in found] == [
        ("bea", "bbbbbbbbbbbb1", "!dm:x"),
        ("ada", "aaaaaaaaaaaa1", None),
    ]
    assert [one["mind"] for one in shown(home, "questions", "ada")["questions"]] == ["ada"]
    told = call(home, "questions").stdout
    assert "`mind questions answer ada aaaaaaaa reopen` (or retire)" in told
    assert "in no room yet: she has no direct conversation with an operator" in told
    assert "\x1b" not in told


def test_every_key_of_a_question_is_in_the_help(home: Home) -> None:
    ask(home, "a1")
    told = " ".join(call(home, "questions", "--help").output.split())
    assert all(key in told for key in shown(home, "questions")["questions"][0])


@pytest.mark.parametrize("words", ["reopen", "retire"])
def test_an_answer_is_on_record_in_the_name_of_who_gave_it_and_the_heartbeat_is_poked(home: Home, words: str) -> None:
    ask(home, "aaaaaaaaaaaa1")
    ask(home, "cccccccccccc1", about="month:2027-01")
    with closing(Pokes(open_poke_socket(home.heartbeat_socket))) as pokes:
        told = call(home, "questions", "answer", "ada", "aaaa", words)
        assert told.exit_code == 0, told.output
        assert pokes.drain()
    assert open_questions(home) == ["cccccccccccc1"]
    (one,) = [one for one in shown(home, "questions", "--all")["questions"] if one["answer"]]
    assert (one["answer"], bool(one["answered_by"]), bool(one["answered_at"])) == (words, True, True)


def test_a_question_is_answered_once(home: Home) -> None:
    ask(home, "aaaaaaaaaaaa1")
    assert call(home, "questions", "answer", "ada", "aaaa", "retire").exit_code == 0
    told = call(home, "questions", "answer", "ada", "aaaaaaaaaaaa1", "reopen")
    assert (told.exit_code, "answered already: retire" in told.stderr) == (1, True)


def test_an_id_that_is_meant_by_none_or_several_is_a_sentence_and_answers_nothing(home: Home) -> None:
    ask(home, "aaaaaaaaaaaa1")
    ask(home, "aaaabbbbbbbb2", about="month:2027-01")
    assert "give more of the id" in call(home, "questions", "answer", "ada", "aaaa", "retire").stderr
    assert "has no question 'zz'; `mind questions ada`" in call(home, "questions", "answer", "ada", "zz", "retire").stderr
    assert call(home, "questions", "answer", "ada", "", "retire").exit_code == 1
    assert call(home, "questions", "answer", "ada", "aaaab", "perhaps").exit_code == 2
    assert call(home, "questions", "answer", "eve", "aaaab", "retire").exit_code == 78
    assert len(open_questions(home)) == 2


def test_a_mind_that_cannot_be_read_hides_no_others_question(home: Home) -> None:
    ask(home, "bbbbbbbbbbbb1", "bea")
    home.mind_db("ada").write_bytes(b"\0" * 8192)
    told = call(home, "questions", "--json")
    assert (told.exit_code, "ada is passed over" in told.stderr) == (0, True)
    assert len(json.loads(told.stdout)["questions"]) == 1
    assert "There is no open question" in call(make_home(home.etc.parent / "other", "eve"), "questions").stdout


def test_a_mind_may_be_named_like_a_verb(tmp_path: Path) -> None:
    home = make_home(tmp_path, "answer")
    ask(home, "a1", "answer")
    assert [one["id"] for one in shown(home, "questions", "list", "answer")["questions"]] == ["a1"]


# -- campaigns -----------------------------------------------------------------------------------------------------------


def test_a_campaign_is_opened_listed_and_closed(home: Home) -> None:
    assert call(home, "campaign", "open", "ada", "tide-tables", "Keep", "the tides", "up to date.").exit_code == 0
    assert call(home, "campaign", "open", "ada", "garden", "-", input="Water it.\nTwice\x1b[31m a day.\n").exit_code == 0
    found = shown(home, "campaign", "list", "ada")["campaigns"]
    assert [(one["slug"], one["state"], one["text"]) for one in found] == [
        ("tide-tables", "open", "Keep the tides up to date."),
        ("garden", "open", "Water it.\nTwice[31m a day."),
    ]
    assert all(one["opened_by"] for one in found)
    with closing(Pokes(open_poke_socket(home.heartbeat_socket))) as pokes:
        assert call(home, "campaign", "close", "ada", "garden").exit_code == 0
        assert pokes.drain()
    assert [one["state"] for one in shown(home, "campaign", "list", "ada")["campaigns"]] == ["open", "closed"]
    assert shown(home, "campaign", "list", "bea")["campaigns"] == []
    assert "garden  closed" in call(home, "campaign", "list", "ada").stdout


def test_every_key_of_a_campaign_is_in_the_help(home: Home) -> None:
    call(home, "campaign", "open", "ada", "garden", "Water it.")
    told = " ".join(call(home, "campaign", "--help").output.split())
    assert all(key in told for key in shown(home, "campaign", "list", "ada")["campaigns"][0])


def test_opening_what_is_open_or_was_replaces_nothing_and_says_so(home: Home) -> None:
    call(home, "campaign", "open", "ada", "garden", "Water it.")
    again = call(home, "campaign", "open", "ada", "garden", "Burn it.")
    assert (again.exit_code, "is open already" in again.stderr, "nothing was replaced" in again.stderr) == (1, True, True)
    call(home, "campaign", "close", "ada", "garden")
    assert "a name is used once" in call(home, "campaign", "open", "ada", "garden", "Burn it.").stderr
    assert "is closed since" in call(home, "campaign", "close", "ada", "garden").stderr
    assert "was never opened" in call(home, "campaign", "close", "ada", "sea").stderr
    assert [one["text"] for one in shown(home, "campaign", "list", "ada")["campaigns"]] == ["Water it."]


@pytest.mark.parametrize(
    "words", [("Garden", "x"), ("a b", "x"), ("", "x"), ("g" * 65, "x"), ("g", " "), ("g", "x" * 4001), ("g",)]
)
def test_a_name_or_a_text_out_of_bounds_is_a_usage_error(home: Home, words: tuple[str, ...]) -> None:
    assert call(home, "campaign", "open", "ada", *words).exit_code == 2
    with closing(open_mind(home.mind_db("ada"))) as mind, mind.read() as tx:
        assert read_campaigns(tx) == []


def test_bytes_that_are_no_text_are_no_traceback(home: Home) -> None:
    assert call(home, "campaign", "open", "ada", "g", "-", input=b"\xff\xfe water").exit_code == 0
    assert call(home, "campaign", "open", "ada", "h", "half \udcff a letter").exit_code == 0


def test_work_is_started_for_a_campaign_that_is_open(home: Home) -> None:
    with closing(open_mind(home.mind_db("ada"))) as mind, mind.write() as tx:
        builders.insert_room(tx, "!dm:x", conversation="direct:!dm:x")
        save_members(tx, "!dm:x", [(BOB, "Bob", "join")])
        for slug in ("garden", "sea"):
            open_campaign(tx, Campaign(slug, "Water it.", "bob", T, None))
        close_campaign(tx, "sea", T)
    assert call(home, "run", "start", "ada", "--brief", "x", "--campaign", "garden").exit_code == 0
    for slug in ("sea", "sky"):
        told = call(home, "run", "start", "ada", "--brief", "x", "--campaign", slug)
        assert (told.exit_code, f"no open campaign '{slug}'" in told.stderr) == (78, True)
    with closing(open_mind(home.mind_db("ada"))) as mind, mind.read() as tx:
        assert [one.campaign for one in read_open_follow_ups(tx)] == ["garden"]
        assert read_questions(tx) == []
