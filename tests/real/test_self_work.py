"""A person asks for work, a Self does it, and its Persona tells: Synapse, `mind up`, the real CLI, scripted models."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.real.parts.chat_api import Answer, Request, answer_with
from tests.real.parts.echo import echo, read_mail
from tests.real.parts.house import House
from tests.real.parts.messages_api import MessagesApi, Prose, call, prefix
from tests.real.parts.person import Event

pytestmark = pytest.mark.real
BRIEF = "Write the word hello into greeting.txt, and its length into length.txt."
RESULT = "Both files are written: greeting.txt says hello, length.txt says 5."


def ask_for_work(house: House, works: MessagesApi, **people: Any) -> None:
    """Her Persona starts work for whoever says "please write", and tells what came of it."""
    house.tables = {
        "self": {"enabled": True, "base_url": works.url, "credential": "api-key", "model": "claude-sonnet-4-5", "linger_s": 1.0},
        "people": {"may_start": ["@bob-*"], "may_steer": ["@bob-*"], **people},
    }
    assert house.her
    secret = house.scene.home.credentials / "ada.self-key"
    secret.touch(0o600)
    secret.write_text("sk-ant-made-up")
    works.default = Prose(RESULT)
    house.api.default = persona(lambda text: "please write" in text)


def persona(starts: Callable[[str], bool]) -> Callable[[Request], Answer]:
    def act(request: Request) -> dict[str, Any]:
        answer: dict[str, Any] = {"say": [], "react": [], "start_self_run": None, "tell_self": None}
        mail = read_mail(request.last_user)
        if not mail:
            room = request.last_user.partition("# What changed")[2].partition("r1")[1] or "r1"
            return {**answer, "say": [{"room": room, "text": "It is done.", "reply_to": None, "thread": None}]}
        if starts(mail[-1].text):
            return {**answer, "start_self_run": {"brief": BRIEF, "asked_in": mail[-1].handle, "repo": "site", "campaign": None}}
        return {**answer, **echo(request)}

    return answer_with(act)


def in_threads(events: list[Event]) -> list[Event]:
    return [event for event in events if event["content"].get("m.relates_to", {}).get("rel_type") == "m.thread"]


def test_a_person_asks_for_work_a_self_really_does_it_and_her_persona_tells(house: House, works: MessagesApi) -> None:
    ask_for_work(house, works)
    works.script(
        call("Bash", prefix(20_000), command="printf hello > greeting.txt"),
        call("Write", prefix(21_000), file_path="/work/site/length.txt", content="5"),
        Prose(RESULT, usage=prefix(22_000)),
    )
    house.scene.up()
    room = house.direct()
    house.bob.send(room, "please write hello for me")
    assert house.answers(room, deadline_s=60)[-1] == "It is done."
    house.rest()
    (run,) = house.scene.rows("ada", "SELECT * FROM run WHERE kind = 'self_run'")
    assert run["outcome"] == "result"
    (work,) = [path.parent for path in house.scene.home.mind_dir("ada").rglob("greeting.txt")]
    assert ((work / "greeting.txt").read_text(), (work / "length.txt").read_text()) == ("hello", "5")
    told = [event["content"]["body"] for event in in_threads(house.events_of_hers(room))]
    assert any(RESULT in body for body in told), told
    assert RESULT in house.api.requests[-1].last_user, "her next turn knows what came of it"
    assert [event["content"]["msgtype"] for event in house.events_of_hers(room)].count("m.text") == 1


def test_a_stranger_starts_nothing_and_a_member_confirms_the_brief_before_a_strangers_words_can(
    house: House, works: MessagesApi
) -> None:
    ask_for_work(house, works)
    house.scene.up()
    mallory = house.scene.person("mallory")
    room = house.public(mallory)
    mallory.say_to(room, house.her, "please write my file")
    turn = "SELECT 1 FROM turn WHERE state = 'replied'"
    house.scene.wait_rows("ada", "her turn", turn)
    assert not house.scene.rows("ada", "SELECT 1 FROM follow_up")
    house.bob.say_to(room, house.her, "yes, please write that")
    (work,) = house.scene.wait_rows("ada", "the proposal", "SELECT * FROM follow_up")
    assert work["state"] == "proposed"
    question = house.bob.wait_for(
        "the question", lambda: [event for event in house.events_of_hers(room) if BRIEF in event["content"]["body"]]
    )[0]
    annotate = {"rel_type": "m.annotation", "event_id": question["event_id"], "key": "✅"}
    mallory.send(room, {"m.relates_to": annotate}, "m.reaction")
    house.scene.wait_rows("ada", "mallory's reaction", "SELECT 1 FROM reaction")
    house.rest()
    assert not house.scene.rows("ada", "SELECT 1 FROM run WHERE kind = 'self_run'"), "nobody else's confirmation counts"
    house.bob.send(room, {"m.relates_to": annotate}, "m.reaction")
    house.scene.wait_rows("ada", "the work to be done", "SELECT 1 FROM follow_up WHERE state = 'done'", deadline_s=60)
    assert len(house.scene.rows("ada", "SELECT 1 FROM run WHERE kind = 'self_run'")) == 1
