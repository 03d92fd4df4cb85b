"""What an answer comes to (cases.md M1): decoded, never scanned."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.mind.asking_records import Pulse
from mind_body.mind.wake_facts import Place
from mind_body.persona.places import keep_back, place_of
from mind_body.persona.pulse_acts import PULSE_ACTS, Wish, pulse_of
from mind_body.persona.reply import React, Read, Say, Shown, Unread, named_messages, read_reply, reply_schema
from mind_body.persona.work_acts import acts_of
from tests.builders import NOW, make_config
from tests.unit.test_prompt import make_heard, make_room

ACTS = ("say", "react")
ROOM = "!r1:example.org"
OTHER = make_room(2)
MESSAGES = {
    7: make_heard(7),
    8: make_heard(8, thread="$thread"),
    9: make_heard(9, room_id=OTHER.room_id),
}
SHOWN = Shown([make_room(), OTHER], MESSAGES, [MESSAGES[7]])


def read(answer: object, shown: Shown = SHOWN, acts: tuple[str, ...] = ACTS, *, small: bool = False) -> Read | Unread:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return read_reply(text, acts, shown, small=small)


def say(text: str = "hi", room: str = "r1", **more: object) -> dict[str, object]:
    return {"room": room, "text": text, "reply_to": None, "thread": None, **more}


def admitted(answer: object, shown: Shown = SHOWN) -> Read:
    found = read(answer, shown)
    assert isinstance(found, Read), found
    return found


@pytest.mark.parametrize(
    "text",
    [
        "Sure! Here is my answer.",
        "NO_REPLY",
        "HEARTBEAT_OK",
        "",
        "   ",
        '{"say": [{"room": "r1", "text": "cut o',
        '{"say": [], "react": []}{"say": [], "react": []}',
        '```json\n{"say": [], "react": []}\n```',
        '<thinking>hm</thinking>{"say": [], "react": []}',
        '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        "null",
        "[]",
        '"say"',
        "7",
        '{"say": "hello", "react": []}',
        '{"react": []}',
        '{"say": null, "react": []}',
        "[" * 200_000,
        '{"say": ' + "9" * 5_000 + "}",
    ],
)
def test_m1_what_is_not_one_fitting_document_is_unread(text: str) -> None:
    assert isinstance(read(text), Unread)


@given(st.text(max_size=200) | st.recursive(st.none() | st.booleans() | st.text(max_size=9), st.lists).map(json.dumps))
def test_m1_no_other_text_can_reach_a_room(text: str) -> None:
    assert isinstance(read(text), Unread)


@given(
    st.dictionaries(
        st.sampled_from(["say", "react", "remember", "error"]),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(["r1", "r2", "r9", "m7", "m8", "m9"]),
            lambda inner: (
                st.lists(inner, max_size=10)
                | st.dictionaries(st.sampled_from(["room", "text", "message", "key", "reply_to"]), inner)
            ),
            max_leaves=30,
        ),
    )
)
def test_whatever_the_shape_the_answer_has_a_value_and_only_known_rooms_and_messages(answer: dict[str, object]) -> None:
    found = read(answer)
    if isinstance(found, Read):
        assert len(found.say) <= 8
        assert len(found.react) <= 4
        assert {one.room_id for one in found.say} <= {ROOM, OTHER.room_id}
        assert {one.event_id for one in found.react} <= {heard.event_id for heard in MESSAGES.values()}
        assert all(one.text.strip() for one in found.say)
    named_messages(json.dumps(answer))


def test_silence_is_an_empty_say() -> None:
    assert admitted({"say": [], "react": []}) == Read(())
    assert admitted({"say": [say("  \n ")], "react": []}) == Read(())


def test_a_bad_act_costs_no_other() -> None:
    found = admitted({"say": [say("one"), {"room": "r1"}, say("two", "r9"), say("three")], "react": "nonsense"})
    assert [one.text for one in found.say] == ["one", "three"]
    assert len(found.dropped) == 3


def test_a_say_of_which_nothing_is_left_is_worth_a_repair() -> None:
    found = read({"say": [say(room="r9")], "react": []})
    assert isinstance(found, Unread)
    assert "r9" in found.why


def test_no_more_than_eight_are_said_and_four_reacted() -> None:
    found = admitted({"say": [say(str(n)) for n in range(12)], "react": [{"message": "m7", "key": "👍"}] * 6})
    assert [one.text for one in found.say] == [str(n) for n in range(8)]
    assert len(found.react) == 4
    assert len(found.dropped) == 2


def test_a_reaction_is_one_sign_on_a_message_that_she_was_shown() -> None:
    keys = ["👍", "❤️", "NO_REPLY", "I am sorry", "", "👍 👍"]
    found = admitted({"say": [], "react": [{"message": "m7", "key": key} for key in keys[:4]]})
    assert [one.key for one in found.react] == ["👍", "❤️"]
    assert admitted({"say": [], "react": [{"message": "m1", "key": "👍"}]}).react == ()
    assert admitted({"say": [], "react": [{"message": "m9", "key": "👍"}]}).react == (React(OTHER.room_id, "$e9", "👍"),)


def test_the_thread_is_the_one_named_else_that_of_the_answered_else_that_of_all_the_mail() -> None:
    threaded = replace(SHOWN, mail=[make_heard(8, thread="$t"), make_heard(10, thread="$t")])
    mixed = replace(SHOWN, mail=[make_heard(8, thread="$t"), make_heard(10)])
    assert admitted({"say": [say()], "react": []}).say == (Say(ROOM, "hi", None, None),)
    assert admitted({"say": [say()], "react": []}, threaded).say == (Say(ROOM, "hi", "$t", None),)
    assert admitted({"say": [say()], "react": []}, mixed).say == (Say(ROOM, "hi", None, None),)
    assert admitted({"say": [say(reply_to="m8")], "react": []}).say == (Say(ROOM, "hi", "$thread", "$e8"),)
    assert admitted({"say": [say(reply_to="m7")], "react": []}, threaded).say == (Say(ROOM, "hi", None, "$e7"),)
    assert admitted({"say": [say(thread="m7")], "react": []}).say == (Say(ROOM, "hi", "$e7", None),)
    assert admitted({"say": [say(thread="m8")], "react": []}).say == (Say(ROOM, "hi", "$thread", None),)


@pytest.mark.parametrize("handle", ["m1", "m9", "r1", "$e7", 7, ""])
def test_a_relation_that_she_cannot_mean_is_dropped_and_the_words_are_kept(handle: object) -> None:
    found = read({"say": [say(reply_to=handle)], "react": []})
    if isinstance(handle, str):
        assert isinstance(found, Read)
        assert found.say == (Say(ROOM, "hi", None, None),)
        assert len(found.dropped) == 1
    else:
        assert isinstance(found, Unread)


def test_a_field_that_is_not_among_her_acts_is_not_acted_on() -> None:
    found = read({"say": [say()], "react": [{"message": "m7", "key": "👍"}]}, acts=("say",))
    assert isinstance(found, Read)
    assert found.react == ()


def test_a_small_model_speaks_into_the_room_and_thread_of_the_newest_mail() -> None:
    shown = replace(SHOWN, mail=[MESSAGES[7], MESSAGES[8]])
    assert read({"say": " hello "}, shown, small=True) == Read((Say(ROOM, "hello", "$thread", None),))
    assert read({"say": "hello"}, replace(SHOWN, mail=[]), small=True) == Read((Say(ROOM, "hello", None, None),))


@pytest.mark.parametrize(
    "answer", [{"say": ""}, {"say": " \n"}, {"say": "x" * 301}, {"say": ["hi"]}, {}, "hello", {"say": "\u200b"}]
)
def test_a_small_model_is_never_silent_and_never_long(answer: object) -> None:
    assert isinstance(read(answer, small=True), Unread)


def test_the_schema_is_one_constant_that_names_no_room() -> None:
    schema = reply_schema(ACTS, small=False)
    assert schema == reply_schema(ACTS, small=False)
    assert set(schema["properties"]) == {"say", "react"}
    assert set(reply_schema(("react",), small=False)["properties"]) == {"react"}
    assert reply_schema(ACTS, small=True)["properties"]["say"]["maxLength"] == 300
    assert "enum" not in json.dumps(schema)


def wishing(**wish: object) -> Read:
    found = read({"say": [say()], "react": []} | wish, acts=(*ACTS, *PULSE_ACTS))
    assert isinstance(found, Read), found
    assert found.say == (Say(ROOM, "hi", None, None),), "what is wrong with a wish costs nothing else"
    return found


def test_urgency_and_tempo_are_read() -> None:
    assert wishing(urgency=700, tempo=900).wish == Wish(700, 900, voted=True)
    assert wishing(urgency=0, tempo=None).wish == Wish(0, None, voted=True)
    assert wishing().wish == Wish(), "an answer that is older than they are is an answer"
    assert wishing().dropped == ()


@pytest.mark.parametrize("bad", [-1, 1001, 7.5, "700", None, True, [], {}, 10**30])
def test_an_urgency_that_cannot_be_used_costs_nothing_else(bad: object) -> None:
    found = wishing(urgency=bad, tempo=900)
    assert found.wish == Wish(None, 900, voted=True)
    assert [reason.partition(" ")[0] for reason in found.dropped] == ["`urgency`"]


@pytest.mark.parametrize("bad", [59, 86_401, 0, 900.5, "900", False, []])
def test_a_tempo_that_cannot_be_used_costs_nothing_else(bad: object) -> None:
    found = wishing(urgency=700, tempo=bad)
    assert found.wish == Wish(700, None, voted=False)
    assert [reason.partition(" ")[0] for reason in found.dropped] == ["`tempo`"]


def test_what_she_does_not_say_of_it_stays_as_she_said_it_before() -> None:
    before = Pulse("t1", 700, 900, NOW)
    assert pulse_of(Wish(), before, "t2", NOW) is None
    assert pulse_of(Wish(urgency=3), before, "t2", NOW) == Pulse("t2", 3, 900, NOW)
    assert pulse_of(Wish(voted=True), before, "t2", NOW) == Pulse("t2", 700, None, NOW)
    assert pulse_of(Wish(tempo_s=60, voted=True), None, "t2", NOW) == Pulse("t2", 0, 60, NOW)


def test_the_schema_has_urgency_and_tempo_last_and_only_for_a_mind_with_scheduled_wakes() -> None:
    assert acts_of(make_config()) == ("say", "react")
    acts = acts_of(make_config(persona={"beat": True}, self={"enabled": True}))
    schema = reply_schema(acts, small=False)
    assert schema["required"] == list(schema["properties"]) == ["say", "react", "start_self_run", "tell_self", "urgency", "tempo"]
    assert reply_schema(acts_of(make_config(persona={"beat": True})), small=True) == reply_schema((), small=True)
    found = read({"say": [say()], "react": [], "urgency": 700}, acts=ACTS)
    assert isinstance(found, Read)
    assert (found.wish, found.dropped) == (Wish(), ("`urgency` is not among her acts",))


def test_a_scheduled_wake_speaks_into_the_rooms_that_it_is_shown_and_is_not_asked_again_for_the_rest() -> None:
    home = replace(SHOWN, rooms=[make_room()], mail=[], scheduled=True)
    found = admitted({"say": [say("here"), say("there", room="r2"), say("nowhere", room="r9")], "react": []}, home)
    assert [(one.room_id, one.text) for one in found.say] == [(ROOM, "here")]
    assert len([reason for reason in found.dropped if "home room alone" in reason]) == 2
    silent = admitted({"say": [say("there", room="r2")], "react": []}, home)
    assert (silent.say, silent.kept_back, len(silent.dropped)) == ((), True, 1)
    assert isinstance(read({"say": [{"room": "r1"}], "react": []}, home), Unread), "what cannot be read is still worth a repair"


CONFIG = make_config(persona={"loop_turns": 3})


def kept(say: Say, mail: list[Any], *, here: int, room: int) -> bool:
    places = {place_of(say): Place(say.room_id, say.thread or "", here, room)}
    found = keep_back(Read((say,)), places, mail, CONFIG)
    assert found.kept_back == (not found.say) == bool(found.dropped)
    return bool(found.say)


def test_into_a_spent_place_nothing_is_said_unless_a_person_of_that_place_is_answered() -> None:
    there = Say(ROOM, "hi", None, None)
    bot, person = make_heard(7, person=False), make_heard(8)
    assert kept(there, [], here=2, room=2)
    assert not kept(there, [], here=3, room=3)
    assert not kept(there, [], here=0, room=3), "a new thread for every message buys nothing"
    assert kept(there, [bot], here=3, room=3), "the turn that is being taken was allowed, and is one of the three"
    assert not kept(there, [bot], here=4, room=4)
    assert kept(there, [bot, person], here=9, room=9)
    assert not kept(there, [make_heard(8, thread="$t")], here=4, room=4), "a person elsewhere in the room is answered there"
    assert not kept(there, [make_heard(9, room_id=OTHER.room_id)], here=3, room=3)


@given(
    st.lists(st.sampled_from([None, "$t"]), max_size=4),
    st.lists(st.tuples(st.sampled_from([None, "$t"]), st.booleans()), max_size=4),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_keeping_back_only_ever_takes_away_and_never_an_answer_to_a_person(
    threads: list[str | None], mail: list[tuple[str | None, bool]], here: int, room: int
) -> None:
    says = tuple(Say(ROOM, "hi", thread, None) for thread in threads)
    batch = [make_heard(seq, thread=thread, person=person) for seq, (thread, person) in enumerate(mail, start=1)]
    places = {place_of(one): Place(ROOM, one.thread or "", here, max(here, room)) for one in says}
    found = keep_back(Read(says), places, batch, CONFIG)
    assert len(found.say) + len(found.dropped) == len(says)
    assert all(one in found.say for one in says if (one.thread, True) in mail)
    assert found.say == says or max(here, room) >= 3
