"""The mouth's part in questions to the operators, against a real Synapse: the room for them, and the answers. Without a model."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import trio

from mind_body.errors import MatrixRefused
from mind_body.host.poke import send_poke
from mind_body.matrix.client import Account, MatrixClient
from mind_body.matrix.notices import NoticeKey, render_notice
from mind_body.mind.outbox import admit_said
from mind_body.mind.questions import admit_question, mark_asked
from mind_body.mind.store import open_mind
from tests.builders import NOW, make_question
from tests.real.parts.hearing import OpenScene, join_room
from tests.real.parts.organ import Organ
from tests.real.parts.person import Person
from tests.real.parts.scene import Scene, wait_until
from tests.real.parts.synapse import Homeserver

pytestmark = pytest.mark.real
_fresh = itertools.count(1)
NO_ALIASES = {"alias_creation_rules": [{"action": "deny"}]}


def raise_question(scene: Scene, question_id: str = "question-1", room: str | None = None) -> None:
    """What the heartbeat does; asked in a room where one is given."""
    mind = open_mind(scene.home.mind_db("ada"))
    try:
        with mind.write() as tx:
            admit_question(tx, make_question(question_id, about=f"work:{question_id}"))
            if room is not None:
                notice = render_notice("en", NoticeKey.QUESTION, question_id, room, text="It came to nothing three times.")
                admit_said(tx, [notice], None, NOW)
                mark_asked(tx, question_id, room, notice.id)
    finally:
        mind.close()
    send_poke(scene.home.mouth_socket)


def ask(scene: Scene, person: Person, room: str, question_id: str) -> str:
    """The event that asks it, as somebody in the room sees it."""
    raise_question(scene, question_id, room)
    (row,) = scene.wait_rows(
        "ada", "the question", "SELECT event_id FROM said JOIN question ON question.said_id = said.id "
        "WHERE question.id = ? AND event_id IS NOT NULL", question_id,
    )  # fmt: skip
    assert any(event["event_id"] == row["event_id"] and "“reopen”" in event["content"]["body"] for event in person.messages(room))
    return str(row["event_id"])


def react(person: Person, room: str, event_id: str, key: str) -> None:
    relation = {"rel_type": "m.annotation", "event_id": event_id, "key": key}
    person.send(room, {"m.relates_to": relation}, kind="m.reaction")


def wait_answer(scene: Scene, question_id: str) -> tuple[str, str]:
    (row,) = scene.wait_rows("ada", "an answer", "SELECT * FROM question WHERE id = ? AND state = 'answered'", question_id)
    return row["answer"], row["answered_by"]


def invites(person: Person) -> dict[str, Any]:
    """Room id → the invite's content."""
    # A first sync is answered at once whatever it waits for, and Synapse keeps the answer under the request's own words.
    answer = person.call("GET", "/sync", params={"timeout": str(next(_fresh))})
    found = {}
    for room, invited in answer["rooms"].get("invite", {}).items():
        for event in invited["invite_state"]["events"]:
            if event["type"] == "m.room.member" and event["state_key"] == person.user_id:
                found[room] = event["content"]
    return found


def wait_direct(scene: Scene) -> str:
    (row,) = scene.wait_rows("ada", "a direct room", "SELECT * FROM room WHERE conversation LIKE 'direct:%'")
    return str(row["room_id"])


@pytest.mark.parametrize("crash_at", ["", "ear.question-room"])
@pytest.mark.parametrize("extra", [{}, NO_ALIASES], ids=["alias", "no aliases"])
def test_a_direct_room_with_the_operator_is_made_once(
    start_homeserver: Callable[..., Homeserver], open_scene: OpenScene, crash_at: str, extra: dict[str, Any]
) -> None:
    scene, mouth = open_scene(start_homeserver(extra=extra))
    chief = scene.person("chief")
    her = scene.add_mind("ada", tables={"people": {"operators": ["@*:elsewhere.example", chief.user_id]}})
    raise_question(scene)
    if crash_at:
        mouth.start(crash_at=crash_at)
        mouth.wait_killed()
    mouth.start()
    room = wait_direct(scene)
    assert {where: content["is_direct"] for where, content in invites(chief).items()} == {room: True}
    mouth.stop()
    mouth.start()
    chief.join(room)
    scene.wait_rows("ada", "the operator", "SELECT 1 FROM member WHERE user_id = ? AND membership = 'join'", chief.user_id)
    react(chief, room, ask(scene, chief, room, "question-2"), "✅")
    assert wait_answer(scene, "question-2") == ("reopen", chief.user_id)
    assert invites(chief) == {}
    (known,) = scene.rows("ada", "SELECT joined_members, invited_members FROM room")
    assert (known["joined_members"], known["invited_members"]) == (2, 0)
    assert her in {event["sender"] for event in chief.history(room) if event["type"] == "m.room.create"}


def test_an_operator_answers_by_a_reply_by_a_word_and_by_a_reaction(scene: Scene, mouth: Organ) -> None:
    chief = scene.person("chief")
    her = scene.add_mind("ada", tables={"people": {"operators": [chief.user_id]}})
    mouth.start()
    room = join_room(scene, chief, her, direct=True)
    react(chief, room, ask(scene, chief, room, "by-reaction"), "👍")
    assert wait_answer(scene, "by-reaction") == ("reopen", chief.user_id)
    ask(scene, chief, room, "by-word")
    chief.send(room, "Retire!")
    assert wait_answer(scene, "by-word") == ("retire", chief.user_id)
    asked = ask(scene, chief, room, "by-reply")
    relation = {"m.in_reply_to": {"event_id": asked}}
    chief.send(room, {"msgtype": "m.text", "body": f"> <{her}> It came\n\ngo on", "m.relates_to": relation})
    assert wait_answer(scene, "by-reply") == ("reopen", chief.user_id)
    chief.send(room, "reopen the window, please")
    scene.wait_rows("ada", "mail", "SELECT 1 FROM heard WHERE body = 'reopen the window, please'")
    heard = scene.rows("ada", "SELECT body, standing, reason FROM heard ORDER BY seq")
    assert [(row["body"], row["standing"]) for row in heard] == [
        ("Retire!", "context"), ("go on", "context"), ("reopen the window, please", "mail"),
    ]  # fmt: skip
    assert {row["reason"] for row in heard if row["standing"] == "context"} == {"it answers a question"}
    told = wait_until("three answers to be confirmed", lambda: found if len(found := confirmations(chief, room, her)) == 3 else [])
    assert told == ["Understood: it goes on.", "Understood: it is left at that.", "Understood: it goes on."]


def confirmations(person: Person, room: str, her: str) -> list[str]:
    bodies = [event["content"]["body"] for event in person.messages(room, her)]
    return [body for body in bodies if body.startswith("Understood")]


def test_a_strangers_answer_changes_nothing(scene: Scene, mouth: Organ) -> None:
    chief, eve = scene.person("chief"), scene.person("eve")
    her = scene.add_mind("ada", tables={"people": {"operators": [chief.user_id]}})
    mouth.start()
    room = join_room(scene, chief, her, eve)
    asked = ask(scene, chief, room, "question-1")
    react(eve, room, asked, "✅")
    eve.send(room, {"msgtype": "m.text", "body": "retire", "m.relates_to": {"m.in_reply_to": {"event_id": asked}}})
    (row,) = scene.wait_rows("ada", "it to be heard", "SELECT * FROM heard WHERE body = 'retire'")
    assert row["standing"] == "mail"
    assert scene.rows("ada", "SELECT state FROM question")[0]["state"] == "asked"
    react(chief, room, asked, "❌")
    assert wait_answer(scene, "question-1") == ("retire", chief.user_id)


def test_no_room_is_made_where_an_operator_has_one_already(scene: Scene, mouth: Organ) -> None:
    chief = scene.person("chief")
    her = scene.add_mind("ada", tables={"people": {"operators": [chief.user_id]}})
    mouth.start()
    room = join_room(scene, chief, her, direct=True)
    raise_question(scene)
    ask(scene, chief, room, "asked-there")
    chief.send(room, "heard after two looks")
    scene.wait_rows("ada", "it to be heard", "SELECT 1 FROM heard WHERE body = 'heard after two looks'")
    mouth.stop()
    assert len(scene.rows("ada", "SELECT 1 FROM room")) == 1


async def test_the_client_finds_a_room_by_its_alias_and_invites_to_a_dm(homeserver: Homeserver) -> None:
    mine, theirs = homeserver.register(homeserver.unique("ada")), homeserver.register(homeserver.unique("bob"))
    local = homeserver.unique("room")
    alias = f"#{local}:{homeserver.server_name}"
    async with MatrixClient() as client:
        account = client.account(homeserver.base_url, mine.token)
        assert await account.resolve_alias(alias) is None
        room = await account.create_room({"room_alias_name": local})
        assert await account.resolve_alias(alias) == room
        assert await account.joined_rooms() == {room}
        assert await refused(account, local) == "M_ROOM_IN_USE"
        await account.invite_direct(room, theirs.user_id)
    bob = homeserver.person_of(theirs)
    found = await trio.to_thread.run_sync(invites, bob)
    assert found[room]["is_direct"] is True


async def refused(account: Account, local: str) -> str:
    with pytest.raises(MatrixRefused) as caught:
        await account.create_room({"room_alias_name": local})
    return caught.value.code
