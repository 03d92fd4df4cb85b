"""Acceptance: what a person at a real second Matrix client (matrix-nio, none of our code) sees of her."""

from collections.abc import Iterator

import pytest

from tests.parts_present import require_part
from tests.real.parts.chat_api import answer_with, slow
from tests.real.parts.echo import echo
from tests.real.parts.house import House
from tests.real.parts.second_client import SecondClient

pytestmark = pytest.mark.real


@pytest.fixture
def bob(house: House) -> Iterator[SecondClient]:
    require_part("matrix-nio")
    homeserver = house.scene.homeserver
    client = SecondClient(homeserver.base_url, homeserver.register(homeserver.unique("bob-nio-")))
    try:
        yield client
    finally:
        client.close()


def bodies(bob: SecondClient, room: str, her: str) -> list[str]:
    return [message["content"]["body"] for message in bob.messages(room, her)]


def test_a_dm_is_answered_in_it_without_a_mention_while_she_is_seen_typing_and_reading(house: House, bob: SecondClient) -> None:
    house.scene.up()
    room = house.joined(bob.create_room(house.her, direct=True))
    house.api.script(slow(1.5, answer_with(echo)))
    asked = bob.send(room, "are you there?")
    bob.wait_for("her answer", lambda: bodies(bob, room, house.her) == ["re: are you there?"])
    bob.wait_for("her read receipt", lambda: [s for s in bob.seen if s["what"] == "receipt" and s["event_id"] == asked])
    bob.wait_for("no typing", lambda: [s["users"] for s in bob.seen if s["what"] == "typing"][-1:] == [[]])
    order = [s["what"] for s in bob.seen if s["room"] == room and s.get("sender") != bob.user_id and s.get("users") != []]
    assert order.index("typing") < order.index("message"), "she was seen typing while she thought"
    (receipt,) = [s for s in bob.seen if s["what"] == "receipt" and s["event_id"] == asked]
    assert receipt["sender"] == house.her
    assert len(house.api.requests) == 1


def test_an_invite_and_a_dm_while_she_was_down_are_answered(house: House, bob: SecondClient) -> None:
    room = bob.create_room(house.her, direct=True)
    bob.send(room, "written before you came")
    house.scene.up()
    bob.wait_for("her answer", lambda: bodies(bob, room, house.her) == ["re: written before you came"])


def test_what_is_asked_in_a_thread_is_answered_in_that_thread(house: House, bob: SecondClient) -> None:
    house.scene.up()
    room = house.joined(bob.create_room(house.her, public=True))
    root = bob.send(room, "a root that is for nobody")
    relation = {"rel_type": "m.thread", "event_id": root, "is_falling_back": True, "m.in_reply_to": {"event_id": root}}
    mentions = {"user_ids": [house.her]}
    bob.send(room, "what do you think?", **{"m.relates_to": relation, "m.mentions": mentions})
    (inside,) = bob.wait_for("her answer in the thread", lambda: bob.messages(room, house.her))
    assert inside["content"]["m.relates_to"]["rel_type"] == "m.thread"
    assert inside["content"]["m.relates_to"]["event_id"] == root
    bob.send(room, "and outside of it?", **{"m.mentions": mentions})
    bob.wait_for("her answer outside", lambda: len(bob.messages(room, house.her)) == 2)
    outside = bob.messages(room, house.her)[-1]
    assert outside["content"]["body"] == "re: and outside of it?"
    assert outside["content"].get("m.relates_to", {}).get("rel_type") != "m.thread"


def test_where_nobody_addressed_her_she_is_silent_and_unseen(house: House, bob: SecondClient) -> None:
    house.scene.up()
    room = house.joined(bob.create_room(house.her, public=True))
    bob.send(room, "good morning everybody")
    last = bob.send(room, "nobody in particular is meant")
    house.scene.wait_rows("ada", "it to be heard", "SELECT 1 FROM heard WHERE event_id = ? AND standing = 'context'", last)
    other = house.joined(bob.create_room(house.her, direct=True))
    bob.send(other, "and this is for you")
    bob.wait_for("her answer elsewhere", lambda: bodies(bob, other, house.her) == ["re: and this is for you"])
    house.rest()
    assert bob.messages(room, house.her) == []
    assert not [s for s in bob.seen if s["what"] == "typing" and s["room"] == room and s["users"]]
    assert len(house.api.requests) == 1
