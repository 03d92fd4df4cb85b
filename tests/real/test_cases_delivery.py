"""The field's delivery faults (rows D1 to D8), with the real Synapse, the organs under `mind up`, a person elsewhere."""

import signal
import threading

import pytest

from tests.real.parts.chat_api import answer_with, held
from tests.real.parts.echo import echo
from tests.real.parts.house import House
from tests.real.parts.scene import wait_until

pytestmark = pytest.mark.real


def crash_once(house: House, point: str) -> dict[str, str]:
    return {"MIND_CRASH_AT": point, "MIND_CRASH_MARK": str(house.scene.directory / "crashed")}


def wait_crashed(house: House) -> None:
    wait_until("the crash", (house.scene.directory / "crashed").exists, 30)


def start_over(house: House, **env: str) -> None:
    house.scene.down()
    house.scene.up(**env)


def test_a_direct_message_is_answered_without_a_mention_and_once(house: House) -> None:
    house.scene.up()
    room = house.direct()
    house.bob.send(room, "hello there")
    assert house.answers(room) == ["re: hello there"]
    house.rest()
    assert house.bob.texts(room, house.her) == ["re: hello there"]
    assert len(house.api.requests) == 1


def test_d1_a_sync_answer_that_was_never_stored_comes_again(house: House) -> None:
    house.scene.up()
    room = house.direct()
    start_over(house, **crash_once(house, "ear.sync-answered"))
    house.bob.send(room, "are you there?")
    wait_crashed(house)
    assert house.answers(room) == ["re: are you there?"]
    house.rest()
    assert len(house.api.requests) == 1
    assert len(house.bob.texts(room, house.her)) == 1


def test_d2_without_a_position_history_is_never_answered_again(house: House) -> None:
    house.scene.up()
    room = house.direct()
    for text in ("one", "two"):
        house.bob.send(room, text)
        house.answers(room, 1 if text == "one" else 2)
    house.rest()
    house.scene.down()
    house.scene.forget("ada", "DELETE FROM position")
    house.scene.up()
    house.scene.wait_rows("ada", "a new baseline", "SELECT 1 FROM position")
    house.bob.send(room, "three")
    assert house.answers(room, 3) == ["re: one", "re: two", "re: three"]
    house.rest()
    assert len(house.api.requests) == 3


def test_d2_a_lost_mind_makes_no_turns_of_old_messages(house: House) -> None:
    house.scene.up()
    room = house.direct()
    house.bob.send(room, "before")
    house.answers(room)
    house.rest()
    house.scene.down()
    for file in house.scene.home.mind_dir("ada").glob("mind.db*"):
        file.unlink()
    house.scene.make_mind_file("ada")
    house.scene.up()
    house.scene.wait_rows("ada", "a new baseline", "SELECT 1 FROM position")
    house.bob.send(room, "after")
    assert house.answers(room, 2) == ["re: before", "re: after"]
    house.rest()
    assert len(house.api.requests) == 2


def test_d3_messages_sent_while_she_was_down_are_answered_in_both_rooms(house: House) -> None:
    house.scene.up()
    first, second = house.direct(), house.direct()
    house.scene.down()
    for room in (first, second):
        for n in range(3):
            house.bob.send(room, f"{n} of three")
    house.scene.up()
    for room in (first, second):
        house.answers(room)
    house.rest()
    for room in (first, second):
        said = " ".join(house.bob.texts(room, house.her))
        assert [said.count(f"{n} of three") for n in range(3)] == [1, 1, 1]
        assert said.index("0 of") < said.index("1 of") < said.index("2 of")


def test_25_messages_while_everything_is_down_are_all_answered_in_order_and_once(house: House) -> None:
    house.scene.up()
    room = house.direct()
    house.scene.down()
    for n in range(25):
        house.bob.send(room, f"<{n:02}>")
    house.scene.up()
    house.answers(room)
    house.rest()
    said = " ".join(house.bob.texts(room, house.her))
    assert [said.count(f"<{n:02}>") for n in range(25)] == [1] * 25
    assert [said.index(f"<{n:02}>") for n in range(25)] == sorted(said.index(f"<{n:02}>") for n in range(25))


@pytest.mark.parametrize("kill", [False, True], ids=["calm", "killed-mid-way"])
def test_d4_a_limited_timeline_leaves_no_hole(house: House, *, kill: bool) -> None:
    house.scene.up()
    room = house.direct()
    house.scene.down()
    for n in range(25):
        house.bob.send(room, f"<{n:02}>")
        house.bob.set_state(room, "m.room.topic", {"topic": f"topic {n}"})
    for n in range(5):
        house.bob.set_state(room, "m.room.topic", {"topic": f"late topic {n}"})
    house.scene.up(**(crash_once(house, "ear.gap-page") if kill else {}))
    if kill:
        wait_crashed(house)
    house.answers(room)
    house.rest()
    said = " ".join(house.bob.texts(room, house.her))
    assert [said.count(f"<{n:02}>") for n in range(25)] == [1] * 25
    assert [said.index(f"<{n:02}>") for n in range(25)] == sorted(said.index(f"<{n:02}>") for n in range(25))


def test_d4_over_the_cap_she_is_told_how_many_she_missed(house: House) -> None:
    (house.scene.directory / "config.toml").write_text("gap_max_events = 12\nlook_s = 1.0\n")
    house.scene.up()
    room = house.direct()
    house.scene.down()
    for n in range(40):
        house.bob.send(room, f"<{n:02}>")
    house.scene.up()
    house.answers(room)
    house.rest()
    assert "<39>" in " ".join(house.bob.texts(room, house.her))
    assert any("missed" in text for text in house.asked_of_the_model())


@pytest.mark.parametrize("point", ["voice.T4a", "voice.sent", "voice.T4b", "voice.before-T4a"])
def test_d5_a_reply_appears_once_wherever_the_voice_dies(house: House, point: str) -> None:
    house.scene.up()
    room = house.direct()
    start_over(house, **crash_once(house, point))
    house.bob.send(room, "once, please")
    wait_crashed(house)
    house.answers(room)
    house.rest()
    assert house.bob.texts(room, house.her) == ["re: once, please"]
    assert len(house.api.requests) == 1


def test_d6_a_reply_that_was_made_is_sent_without_asking_the_model_again(house: House) -> None:
    house.scene.up()
    room = house.direct()
    start_over(house, **crash_once(house, "persona.T3b"))
    house.bob.send(room, "make it once")
    wait_crashed(house)
    house.scene.down(signal.SIGTERM)
    house.scene.up()
    assert house.answers(room) == ["re: make it once"]
    house.rest()
    assert len(house.api.requests) == 1


def test_d7_she_never_answers_herself_from_any_device(house: House) -> None:
    house.scene.up()
    room = house.direct()
    own = house.her_client()
    own.send(room, "typed by my own account elsewhere")
    own.send(room, {"msgtype": "m.notice", "body": "a status of mine"})
    house.bob.send(room, {"msgtype": "m.notice", "body": "a notice is never mail"})
    house.bob.send(room, "and this is")
    house.bob.wait_for("the answer", lambda: "re: and this is" in house.bob.texts(room, house.her))
    house.rest()
    assert len(house.api.requests) == 1
    heard = house.scene.rows("ada", "SELECT body FROM heard WHERE standing = 'mail'")
    assert [row["body"] for row in heard] == ["and this is"]


def test_d8_five_messages_during_a_busy_turn_are_answered_together(house: House) -> None:
    house.scene.up()
    room = house.direct()
    thought = threading.Event()
    house.api.script(held(thought, answer_with(echo)))
    house.bob.send(room, "first")
    house.api.wait_for(1)
    for n in range(5):
        house.bob.send(room, f"<{n}>")
    house.scene.wait_rows("ada", "all of it to be heard", "SELECT 1 FROM heard WHERE body LIKE '<%'", count=5)
    thought.set()
    assert house.answers(room, 2) == ["re: first", "re: <0> <1> <2> <3> <4>"]
    house.rest()
    assert len(house.api.requests) == 2


def test_an_invite_and_a_message_while_she_was_down_are_answered(house: House) -> None:
    her = house.her
    room = house.bob.create_room(invite=(her,), direct=True)
    house.bob.send(room, "sent before you joined")
    house.scene.up()
    assert house.answers(room) == ["re: sent before you joined"]
    house.rest()
    assert len(house.api.requests) == 1


def test_what_is_said_between_her_invite_and_her_joining_is_mail(house: House) -> None:
    room = house.bob.create_room(name="a closed room")
    house.bob.send(room, "before the invite")
    house.bob.invite(room, house.her)
    house.bob.send(room, "welcome, tell us about you")
    house.scene.up()
    assert house.answers(room) == ["re: welcome, tell us about you"]
    house.bob.send(room, "and now we talk among ourselves")
    house.scene.wait_rows("ada", "it to be heard", "SELECT 1 FROM heard WHERE body LIKE 'and now%' AND standing = 'context'")
    house.rest()
    assert len(house.api.requests) == 1


def test_three_lost_turns_are_tried_one_by_one_and_the_one_that_kills_is_told_once(house: House) -> None:
    house.scene.up()
    room = house.direct()
    start_over(house, MIND_CRASH_AT="persona.T3a")  # armed for every start: she dies whenever she opens a turn
    house.bob.send(room, "the message that kills")
    notices = house.bob.wait_for(
        "one honest notice",
        lambda: [m for m in house.bob.messages(room, house.her) if m["content"]["msgtype"] == "m.notice"],
        60,
    )
    house.rest()
    assert len(notices) == 1
    assert not house.api.requests
    start_over(house)
    house.bob.send(room, "and a harmless one")
    assert house.answers(room) == ["re: and a harmless one"]
