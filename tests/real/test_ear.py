"""The ear against a real Synapse: what becomes mail, in which order, and what a death in the middle leaves. No model is needed."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.real.parts.hearing import OpenScene, join_room
from tests.real.parts.organ import Organ
from tests.real.parts.person import Person
from tests.real.parts.scene import Scene, wait_until
from tests.real.parts.synapse import Homeserver

pytestmark = pytest.mark.real


def heard(scene: Scene, room: str, standing: str | None = None) -> list[dict[str, Any]]:
    rows = scene.rows("ada", "SELECT * FROM heard WHERE room_id = ? ORDER BY seq", room)
    return [row for row in rows if standing in {None, row["standing"]}]


def bodies(scene: Scene, room: str, standing: str | None = None) -> list[str]:
    return [row["body"] for row in heard(scene, room, standing)]


def wait_body(scene: Scene, room: str, body: str) -> dict[str, Any]:
    found = wait_until(f"'{body}' to be heard", lambda: [row for row in heard(scene, room) if row["body"] == body])
    return dict(found[0])


def wait_synced(scene: Scene) -> None:
    """Her first sync is over."""
    scene.wait_rows("ada", "a position", "SELECT 1 FROM position")


def begin(scene: Scene, mouth: Organ) -> tuple[str, Person]:
    """Ada, who listens, and bob."""
    her, bob = scene.add_mind("ada"), scene.person()
    mouth.start()
    wait_synced(scene)
    return her, bob


def test_an_upgraded_room_is_followed_and_a_dm_stays_one(scene: Scene, mouth: Organ) -> None:
    her, bob = begin(scene, mouth)
    public, dm = join_room(scene, bob, her, public=True), join_room(scene, bob, her, direct=True)
    for old, text in ((public, "here we go on"), (dm, "and we here")):
        new = bob.call("POST", f"/rooms/{old}/upgrade", json={"new_version": "11"})["replacement_room"]
        if old == dm:
            bob.invite(new, her)  # as clients do; the homeserver lets nobody in by itself
        scene.wait_joined("ada", new)
        bob.say_to(new, her, text)
        assert wait_body(scene, new, text)["standing"] == "mail"
    (known,) = scene.rows("ada", "SELECT conversation FROM room WHERE room_id = ?", new)
    assert known["conversation"] == f"direct:{new}"


def test_the_first_sync_is_history_and_says_nothing(scene: Scene, mouth: Organ, homeserver: Homeserver) -> None:
    her = scene.add_mind("ada")
    bob = scene.person()
    room = bob.create_room(public=True)
    her_client = homeserver.person_of(homeserver.login(her[1:].partition(":")[0], "her long password"))
    her_client.join(room)
    bob.say_to(room, her, "are you there, from before?")
    mouth.start()
    assert wait_body(scene, room, "are you there, from before?")["standing"] == "context"
    bob.say_to(room, her, "and now?")
    assert wait_body(scene, room, "and now?")["standing"] == "mail"
    assert bodies(scene, room, "mail") == ["and now?"]
    assert bob.texts(room, her) == []
    assert mouth.stop() == 0


def test_an_invite_and_a_message_while_she_was_down_are_mail_in_a_dm(scene: Scene, mouth: Organ) -> None:
    her = scene.add_mind("ada")
    bob = scene.person()
    before = bob.create_room(invite=(her,), direct=True)
    bob.send(before, "sent before she ever lived")
    mouth.start()
    assert wait_body(scene, before, "sent before she ever lived")["standing"] == "mail"
    mouth.stop()
    room = bob.create_room(invite=(her,), direct=True)
    texts = [f"hello {n}" for n in range(30)]
    for text in texts:
        bob.send(room, text)
    mouth.start()
    wait_body(scene, room, texts[-1])
    assert bodies(scene, room, "mail") == texts
    (known,) = scene.rows("ada", "SELECT conversation FROM room WHERE room_id = ?", room)
    assert known["conversation"] == f"direct:{room}"


@pytest.mark.parametrize("crash_at", ["", "ear.gap-page", "ear.T1"])
def test_d4_25_messages_and_30_state_events_while_she_was_down_are_mail_in_order_once(
    scene: Scene, mouth: Organ, crash_at: str
) -> None:
    her, bob = begin(scene, mouth)
    room = join_room(scene, bob, her)
    dm = join_room(scene, bob, her, direct=True)
    bob.say_to(room, her, "the last one before")
    wait_body(scene, room, "the last one before")
    mouth.stop()
    texts = [f"number {n}" for n in range(25)]
    for number, text in enumerate(texts):
        bob.say_to(room, her, text)
        bob.send(dm, text)
        bob.set_state(room, "m.room.name", {"name": f"name {number}"})
    for number in range(5):
        bob.set_state(room, "m.room.topic", {"topic": f"topic {number}"})
    if crash_at:
        mouth.start(crash_at=crash_at)
        mouth.wait_killed()
    mouth.start()
    wait_body(scene, room, texts[-1])
    wait_body(scene, dm, texts[-1])
    assert bodies(scene, room, "mail") == ["the last one before", *texts]
    assert bodies(scene, dm, "mail") == texts
    bob.say_to(room, her, "and after")
    wait_body(scene, room, "and after")
    assert bodies(scene, room, "mail") == ["the last one before", *texts, "and after"]
    assert scene.rows("ada", "SELECT * FROM gap") == []
    assert scene.rows("ada", "SELECT * FROM arrival") == []


def test_d1_a_death_between_the_answer_and_the_rows_loses_nothing(scene: Scene, mouth: Organ) -> None:
    her, bob = begin(scene, mouth)
    room = join_room(scene, bob, her)
    mouth.stop()
    bob.say_to(room, her, "only once")
    mouth.start(crash_at="ear.sync-answered")
    mouth.wait_killed()
    assert bodies(scene, room) == []
    mouth.start()
    wait_body(scene, room, "only once")
    bob.say_to(room, her, "next")
    wait_body(scene, room, "next")
    assert bodies(scene, room, "mail") == ["only once", "next"]


def test_d2_without_its_position_nothing_old_becomes_mail(scene: Scene, mouth: Organ) -> None:
    her, bob = begin(scene, mouth)
    room = join_room(scene, bob, her, direct=True)
    bob.send(room, "before")
    wait_body(scene, room, "before")
    mouth.stop()
    bob.send(room, "lost with the position")
    scene.forget("ada", "DELETE FROM position")
    mouth.start()
    assert wait_body(scene, room, "lost with the position")["standing"] == "context"
    assert bodies(scene, room, "mail") == ["before"]
    bob.send(room, "after")
    assert wait_body(scene, room, "after")["standing"] == "mail"


def test_d2_a_lost_mind_still_knows_its_dms_and_makes_no_mail_of_old_messages(scene: Scene, mouth: Organ) -> None:
    her, bob = begin(scene, mouth)
    room = join_room(scene, bob, her, direct=True)
    bob.send(room, "before")
    wait_body(scene, room, "before")
    mouth.stop()
    for file in scene.home.mind_dir("ada").glob("mind.db*"):
        file.unlink()
    scene.make_mind_file("ada")
    mouth.start()
    assert wait_body(scene, room, "before")["standing"] == "context"
    bob.send(room, "after")
    assert wait_body(scene, room, "after")["standing"] == "mail"


def test_d7_she_hears_neither_herself_on_another_device_nor_a_notice_as_mail(
    scene: Scene, mouth: Organ, homeserver: Homeserver
) -> None:
    her, bob = begin(scene, mouth)
    room = join_room(scene, bob, her, direct=True)
    second = homeserver.person_of(homeserver.login(her[1:].partition(":")[0], "her long password"))
    second.send(room, "typed by herself elsewhere")
    bob.send(room, {"msgtype": "m.notice", "body": "a status", "m.mentions": {"user_ids": [her]}})
    bob.send(room, "real")
    wait_body(scene, room, "real")
    assert bodies(scene, room) == ["a status", "real"]
    assert bodies(scene, room, "mail") == ["real"]


def test_w3_strangers_are_heard_as_context_and_their_invites_declined(scene: Scene, mouth: Organ) -> None:
    friend, stranger, chief = scene.person("friend"), scene.person("stranger"), scene.person("chief")
    people = {"may_address": [friend.user_id], "may_invite": [friend.user_id], "operators": [chief.user_id]}
    her = scene.add_mind("ada", tables={"people": people})
    mouth.start()
    wait_synced(scene)
    room = join_room(scene, friend, her)
    for person in (stranger, chief):
        friend.invite(room, person.user_id)
        person.join(room)
    stranger.say_to(room, her, "answer me")
    friend.say_to(room, her, "please")
    chief.say_to(room, her, "now")
    wait_body(scene, room, "now")
    assert bodies(scene, room, "mail") == ["please", "now"]
    assert bodies(scene, room, "context") == ["answer me"]
    trap = stranger.create_room(invite=(her,), direct=True)
    scene.wait_rows("ada", "the invite to be declined", "SELECT 1 FROM room WHERE room_id = ? AND membership = 'declined'", trap)
    assert "may_invite" in mouth.journal()
    join_room(scene, chief, her, direct=True)


def test_only_what_addresses_her_is_mail_in_a_room_and_public_rooms_share_one_conversation(scene: Scene, mouth: Organ) -> None:
    her, bob = begin(scene, mouth)
    rooms = [join_room(scene, bob, her, public=public) for public in (False, True, True)]
    for room in rooms:
        bob.send(room, "nobody is meant")
        bob.say_to(room, her, "you are meant")
    for room in rooms:
        wait_body(scene, room, "you are meant")
        assert bodies(scene, room, "mail") == ["you are meant"]
        assert bodies(scene, room, "context") == ["nobody is meant"]
    found = [scene.rows("ada", "SELECT conversation FROM room WHERE room_id = ?", room)[0]["conversation"] for room in rooms]
    assert found == [f"room:{rooms[0]}", "open", "open"]


def test_a_dm_that_gains_a_third_member_is_a_room_from_then_on(scene: Scene, mouth: Organ) -> None:
    her = scene.add_mind("ada")
    bob, eve = scene.person(), scene.person("eve")
    mouth.start()
    wait_synced(scene)
    room = join_room(scene, bob, her, direct=True)
    bob.invite(room, eve.user_id)
    eve.join(room)
    scene.wait_rows("ada", "the room", "SELECT 1 FROM room WHERE room_id = ? AND conversation = ?", room, f"room:{room}")
    eve.leave(room)
    bob.send(room, "just us again")
    assert wait_body(scene, room, "just us again")["standing"] == "context"


def test_an_edit_and_a_redaction_reach_what_she_has_not_read(scene: Scene, mouth: Organ) -> None:
    her, bob = begin(scene, mouth)
    room = join_room(scene, bob, her, direct=True)
    first, second = bob.send(room, "frist"), bob.send(room, "regretted")
    wait_body(scene, room, "regretted")
    new = {"msgtype": "m.text", "body": "first"}
    bob.send(room, {**new, "body": "* first", "m.new_content": new, "m.relates_to": {"rel_type": "m.replace", "event_id": first}})
    bob.redact(room, second)
    scene.wait_rows("ada", "the redaction", "SELECT 1 FROM heard WHERE event_id = ? AND state = 'withdrawn'", second)
    assert bodies(scene, room) == ["first", ""]


def test_an_encrypted_room_is_told_once_that_she_cannot_read(scene: Scene, mouth: Organ) -> None:
    her, bob = begin(scene, mouth)
    state = [{"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}]
    room = join_room(scene, bob, her, direct=True, initial_state=state)
    bob.send(room, {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x"}, kind="m.room.encrypted")
    scene.wait_rows("ada", "the notice", "SELECT 1 FROM said WHERE room_id = ?", room)
    bob.send(room, {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "y"}, kind="m.room.encrypted")
    bob.wait_for("the notice", lambda: bob.messages(room, her))
    assert [event["content"]["msgtype"] for event in bob.messages(room, her)] == ["m.notice"]
    assert len(scene.rows("ada", "SELECT 1 FROM said WHERE room_id = ?", room)) == 1


def test_a_held_mind_hears_and_joins_nothing(scene: Scene, mouth: Organ) -> None:
    her, bob = begin(scene, mouth)
    room = join_room(scene, bob, her, direct=True)
    scene.brake("ada", "held")
    wait_until("the brake to be noticed", lambda: "is held" in mouth.journal())
    bob.send(room, "heard all the same")
    invited = bob.create_room(invite=(her,), direct=True)
    wait_body(scene, room, "heard all the same")
    scene.wait_rows("ada", "the invite", "SELECT 1 FROM room WHERE room_id = ? AND membership = 'invited'", invited)
    scene.brake("ada", "released")
    scene.wait_joined("ada", invited)


def test_a_gap_over_the_cap_says_how_many_she_missed(homeserver: Homeserver, open_scene: OpenScene) -> None:
    scene, mouth = open_scene(homeserver, gap_max_events=10)
    her, bob = begin(scene, mouth)
    room = join_room(scene, bob, her, direct=True)
    bob.send(room, "start")
    wait_body(scene, room, "start")
    mouth.stop()
    for number in range(60):
        bob.send(room, f"number {number}")
    mouth.start()
    wait_body(scene, room, "number 59")
    found = bodies(scene, room, "mail")
    # Synapse may still hand out the answer to the poll that the stop cut off: then the first one is not in the gap.
    missed = next(index for index, body in enumerate(found) if "could not be read" in body)
    before, after = found[:missed], found[missed + 1 :]
    assert after == [f"number {number}" for number in range(30, 60)]
    assert before in (["start"], ["start", "number 0"])
    assert found[missed].startswith(f"{31 - len(before)} messages before the next one")


def test_a_restarted_homeserver_and_a_lost_token_are_waited_out(
    start_homeserver: Callable[..., Homeserver], open_scene: OpenScene
) -> None:
    homeserver = start_homeserver()
    scene, mouth = open_scene(homeserver, sync_timeout_s=2.0)
    her, bob = begin(scene, mouth)
    room = join_room(scene, bob, her, direct=True)
    homeserver.restart()
    bob.send(room, "after the restart")
    wait_body(scene, room, "after the restart")
    assert "cannot hear just now" in mouth.journal()
    token = (scene.home.credentials / "ada.matrix-session").read_text().strip()
    (before,) = scene.rows("ada", "SELECT device_id FROM identity")
    her_client = Person(homeserver.base_url, her, token)
    her_client.call("POST", "/logout", json={})
    her_client.close()
    bob.send(room, "after the logout")
    wait_body(scene, room, "after the logout")
    (after,) = scene.rows("ada", "SELECT device_id FROM identity")
    assert before == after


def test_one_broken_mind_is_told_and_stops_no_other(scene: Scene, mouth: Organ) -> None:
    her = scene.add_mind("ada")
    scene.add_mind("bad")
    scene.home.mind_file("bad").write_text("nonsense = ")
    scene.add_mind("worse")
    (scene.home.credentials / "worse.matrix-password").write_text("not her password")
    bob = scene.person()
    mouth.start()
    wait_synced(scene)
    room = join_room(scene, bob, her, direct=True)
    bob.send(room, "still here")
    wait_body(scene, room, "still here")
    wait_until("both faults to be told", lambda: all(word in mouth.journal() for word in ("bad.toml", "worse.matrix-password")))
    late = scene.add_mind("late")
    other = bob.create_room(invite=(late,), direct=True)
    scene.wait_joined("late", other)
