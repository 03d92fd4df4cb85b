"""Model output and prefixes in a whole household: rows M1, M2 and M3."""

import itertools
import json

import pytest

from mind_body.clock import now_ms
from mind_body.matrix.notices import NoticeKey, render_sentence
from tests.real.parts import chat_api
from tests.real.parts.chat_api import answer_with
from tests.real.parts.echo import echo
from tests.real.parts.house import House
from tests.real.parts.scene import wait_until

pytestmark = pytest.mark.real

OUTPUTS = {
    "prose": chat_api.prose(),
    "sentinel": chat_api.say("NO_REPLY"),
    "empty": chat_api.empty(),
    "cut-off": chat_api.cut_off(),
    "two-objects": chat_api.two_objects(),
    "refusal": chat_api.refusal(),
    "reasoning": chat_api.say("<think>They want {say}</think>"),
    "stack-trace": chat_api.garbage(),
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_m1_only_say_reaches_a_room(house: House, output: str) -> None:
    house.scene.up()
    room = house.direct()
    once = output in {"refusal", "stack-trace"}  # the others are asked once more, with what is wrong
    house.api.script(*[OUTPUTS[output]] * (1 if once else 2))
    house.bob.send(room, "a question")
    done = "SELECT 1 FROM turn WHERE state != 'opened'"
    house.scene.wait_rows("ada", "the turn to end", done)
    house.bob.send(room, "and another")
    said = house.bob.wait_for("the answer to the next", lambda: [t for t in house.bob.texts(room, house.her) if "and another" in t])
    house.rest()
    assert house.bob.texts(room, house.her) == said
    assert house.events_of_hers(room)[-1]["content"]["body"] == said[0]


def test_m1_an_overload_posts_nothing_and_the_answer_comes_when_it_is_over(house: House) -> None:
    house.scene.up()
    room = house.direct()
    house.api.script(chat_api.overloaded("1"))
    house.bob.send(room, "are you busy?")
    assert house.answers(room) == ["re: are you busy?"]
    house.rest()
    assert [event["content"]["msgtype"] for event in house.events_of_hers(room)] == ["m.text"]


def test_m2_every_request_begins_with_the_one_before_over_50_turns_and_a_restart(house: House) -> None:
    house.scene.up()
    room = house.direct()
    for n in range(50):
        house.bob.send(room, f"<{n}> " + "word " * (n % 7))
        house.answers(room, n + 1)
        house.rest()
        if n == 24:
            house.scene.down()
            house.scene.up()
    assert len(house.api.requests) == 50
    assert len(house.scene.rows("ada", "SELECT 1 FROM session")) == 1
    prefixes = [json.dumps(request.messages, ensure_ascii=False)[:-1] for request in house.api.requests]
    for before, after in itertools.pairwise(prefixes):
        assert after.startswith(before)
    frames = [{k: v for k, v in request.body.items() if k != "messages"} for request in house.api.requests]
    assert all(frame == frames[0] for frame in frames)


def test_m3_a_limit_sleeps_until_its_reset_and_is_said_once(house: House) -> None:
    house.scene.up()
    room = house.direct()
    house.api.script(chat_api.limited("8"))
    house.bob.send(room, "first")
    house.api.wait_for(1)
    house.bob.send(room, "second")
    house.bob.wait_for("her answer", lambda: house.bob.texts(room, house.her), 30)
    house.rest()
    assert house.bob.texts(room, house.her) == ["re: first second"]
    waited = house.api.requests[1].at - house.api.requests[0].at
    assert waited >= 7, "nothing is tried before the reset"
    assert len(house.api.requests) == 2
    notices = [event for event in house.events_of_hers(room) if event["content"]["msgtype"] == "m.notice"]
    assert len(notices) == 1


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (chat_api.fault(401, "no such key"), "authentication"),
        (chat_api.fault(402, "out of credit"), "payment"),
        (chat_api.fault(500), "fault"),
        (chat_api.fault(529, "overloaded"), "overloaded"),
    ],
    ids=["401", "402", "500", "529"],
)
def test_m3_each_fault_is_its_own_and_is_not_retried_in_a_rush(house: House, fault: chat_api.Step, cause: str) -> None:
    house.scene.up()
    room = house.direct()
    house.api.default = fault
    house.bob.send(room, "a question")
    (pause,) = house.scene.wait_rows("ada", "a pause", "SELECT * FROM pause")
    assert pause["cause"] == cause
    assert pause["reason"]
    assert pause["until"] > 0
    assert len(house.api.requests) <= 2
    assert house.scene.rows("ada", "SELECT state FROM heard WHERE standing = 'mail'") == [{"state": "pending"}]
    assert not house.bob.texts(room, house.her)


def test_the_dials_cap_refuses_the_call_before_it_is_made(house: House) -> None:
    house.tables = {"model": {"provider": "openai", "model": "claude-sonnet-4-5", "base_url": house.api.base_url}}
    house.scene.up()
    room = house.direct()
    house.scene.dial("ada", base_run_usd=0.000001)
    house.bob.send(room, "cheap?")
    (pause,) = house.scene.wait_rows("ada", "a pause", "SELECT * FROM pause WHERE cause LIKE 'run-cap:%'")
    assert pause["until"] - now_ms() > 3_500_000, "it is not tried again and again"
    (told,) = wait_until("word of it", lambda: house.events_of_hers(room))
    assert told["content"]["body"] == render_sentence("en", NoticeKey.TOO_DEAR)
    assert not house.api.requests
    house.scene.dial("ada", base_run_usd=1.0)
    house.api.default = answer_with(echo)
