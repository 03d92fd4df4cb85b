"""Minds that answer each other for ever stop at their budget, and a person's word begins it anew (design §9, cases W2).

Real Minds under `mind up` and a real Synapse; the scripted model always answers with a mention of another Mind. What was said is
read back by an account that takes no part.
"""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mind_body.matrix.notices import NoticeKey, render_sentence
from tests.real.parts.chat_api import Request, answer_with, open_chat_api
from tests.real.parts.company import HOST, Company, answer_each, new_mail, who_asks
from tests.real.parts.echo import Mail
from tests.real.parts.scene import Scene
from tests.real.parts.synapse import Homeserver

pytestmark = pytest.mark.real

BUDGET = 6
SPENT = render_sentence("en", NoticeKey.LOOP_SPENT)
QUESTION = "tell me"
"""What a person begins with who is to be answered himself."""
NAMES = ("ada", "bea", "cyd", "dot", "eve")


@contextmanager
def open_company(homeserver: Homeserver, directory: Path, *names: str) -> Iterator[Company]:
    with open_chat_api() as api:
        scene = Scene(homeserver, directory, **HOST)
        try:
            company = Company(scene, api, *names, tables={"persona": {"loop_turns": BUDGET}})
            scene.up()
            yield company
        finally:
            scene.close()


class Chatter:
    """Answers every Mind with a mention of others, and every person with an answer."""

    def __init__(self, company: Company, *, everybody: bool) -> None:
        self.company = company
        self.everybody = everybody
        """A mention of all the others; else of the next one in the row."""
        self.slow: dict[str, float] = {}

    def __call__(self, request: Request) -> dict[str, Any]:
        time.sleep(self.slow.get(who_asks(request)[0], 0))
        return answer_each(request, self.text)

    def text(self, me: str, mail: Mail) -> str:
        if mail.sender == self.company.bob.user_id and mail.text.startswith(QUESTION):
            return f"re: {mail.text}"
        return f"what do you think of it, {self.others(me)}?"

    def others(self, me: str) -> str:
        names, ids = self.company.names, self.company.ids
        if self.everybody:
            return " and ".join(ids[name] for name in names if name != me)
        return ids[names[(names.index(me) + 1) % len(names)]]


def is_about_the_loop(request: Request) -> bool:
    return any(not mail.text.startswith(QUESTION) for mail in new_mail(request))


def assert_stopped(company: Company, room: str, stretches: int, *, of: str = "ada") -> None:
    """Nobody went past the budget in any stretch, `of` used all of it, and it was told once: there, and in the journal."""
    for name in company.names:
        said, notices = company.said(room, name), company.notices(room, name)
        assert len(said) <= BUDGET * stretches
        assert len(said) == len([one for one in company.asked(name) if is_about_the_loop(one)])
        assert len(company.asked(name)) == company.turns(name)
        assert set(notices) <= {SPENT}
        assert len(notices) == len(company.lines("loop.spent", name)) <= stretches
    assert len(company.said(room, of)) == BUDGET * stretches
    assert company.notices(room, of) == [SPENT] * stretches


@pytest.mark.parametrize(("count", "everybody"), [(2, False), (3, True), (5, True)], ids=["two", "three", "five"])
def test_minds_that_always_mention_each_other_stop_at_the_budget_and_go_on_at_a_persons_word(
    homeserver: Homeserver, tmp_path: Path, count: int, everybody: bool
) -> None:
    with open_company(homeserver, tmp_path / "home", *NAMES[:count]) as company:
        chatter = Chatter(company, everybody=everybody)
        chatter.slow = {"bea": 0.3}
        company.api.default = answer_with(chatter)
        room = company.open_room()
        for stretch in (1, 2):
            company.bob.say_to(room, company.ids["ada"], "well?")
            company.wait_settled()
            assert_stopped(company, room, stretch)


class Threader(Chatter):
    """Gives every answer a thread of its own: one of the notes that lie in the room is its root."""

    def __call__(self, request: Request) -> dict[str, Any]:
        answer = super().__call__(request)
        me = self.company.names.index(who_asks(request)[0])
        inputs = [message["content"] for message in request.messages if message["role"] == "user"]
        notes = [found[1] for text in inputs for found in _NOTE.finditer(text)]
        nth = len(self.company.asked(who_asks(request)[0])) - 1
        for say in answer["say"]:
            say["thread"] = notes[(nth * len(self.company.names) + me) % len(notes)]
        return answer


_NOTE = re.compile(r"^\[(m\d+) r\d+\] context from \S+ [^\n]*\n\| note \d+$", re.MULTILINE)


def roots(company: Company, room: str) -> list[str]:
    """The thread of each answer."""
    said = [one["content"] for one in company.witness.messages(room) if one["content"]["body"].startswith("what do you")]
    return [one["m.relates_to"]["event_id"] for one in said if one["m.relates_to"]["rel_type"] == "m.thread"]


def test_a_thread_of_its_own_for_every_message_buys_no_further_turn(homeserver: Homeserver, tmp_path: Path) -> None:
    with open_company(homeserver, tmp_path / "home", "ada", "bea") as company:
        company.api.default = answer_with(Threader(company, everybody=True))
        room = company.open_room()
        notes = [company.bob.send(room, {"msgtype": "m.text", "body": f"note {n}", "m.mentions": {}}) for n in range(2 * BUDGET)]
        company.wait_settled()
        company.bob.say_to(room, company.ids["ada"], "well?")
        company.wait_settled()
        assert_stopped(company, room, 1)
        assert sorted(roots(company, room)) == sorted(notes), "no two of the answers are in one thread"
        company.bob.say_in_thread(room, notes[0], "well?", **{"m.mentions": {"user_ids": [company.ids["ada"]]}})
        company.wait_settled()
        assert_stopped(company, room, 2)


class Interrupted(Chatter):
    """Stops in the middle of ada's third turn in the loop, until a person has asked her something elsewhere."""

    def __init__(self, company: Company) -> None:
        super().__init__(company, everybody=True)
        self.reached, self.asked = threading.Event(), threading.Event()

    def __call__(self, request: Request) -> dict[str, Any]:
        about = [one for one in self.company.asked("ada") if is_about_the_loop(one)]
        if who_asks(request)[0] == "ada" and len(about) == 3:
            self.reached.set()
            assert self.asked.wait(60)
        return super().__call__(request)


def test_a_person_who_chats_in_other_rooms_is_answered_there_and_begins_nothing_anew(
    homeserver: Homeserver, tmp_path: Path
) -> None:
    """One of the other rooms is of the same open conversation: its mail and the loop's come in one batch."""
    with open_company(homeserver, tmp_path / "home", "ada", "bea") as company:
        chatter = Interrupted(company)
        company.api.default = answer_with(chatter)
        room, open_room = company.open_room(public=True), company.open_room("ada", public=True)
        direct = company.direct("ada")
        shared = company.scene.rows("ada", "SELECT DISTINCT conversation FROM room WHERE room_id IN (?, ?)", room, open_room)
        assert [row["conversation"] for row in shared] == ["open"]
        company.bob.say_to(room, company.ids["ada"], "well?")
        assert chatter.reached.wait(60)
        company.bob.say_to(open_room, company.ids["ada"], "tell me one")
        company.bob.send(direct, "tell me two")
        company.scene.wait_rows("ada", "both to be heard", "SELECT 1 FROM heard WHERE body LIKE 'tell me%'", count=2)
        chatter.asked.set()
        company.wait_settled()
        assert_stopped(company, room, 1)
        company.bob.say_to(open_room, company.ids["ada"], "tell me three")
        company.bob.send(direct, "tell me four")
        company.wait_settled()
        assert company.said(open_room, "ada") == ["re: tell me one", "re: tell me three"]
        assert company.said(direct, "ada") == ["re: tell me two", "re: tell me four"]
        assert_stopped(company, room, 1)
        company.bob.say_to(room, company.ids["ada"], "go on")
        company.wait_settled()
        assert_stopped(company, room, 2)
