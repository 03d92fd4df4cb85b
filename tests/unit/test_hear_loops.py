"""Bots in a room (cases W2): who is a person, and that what bots write where her turns are spent is heard and wakes nobody."""

import itertools
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mind_body.control.loops import is_spent, name_stretch
from mind_body.matrix.events import SAID_KEY
from mind_body.matrix.wire import parse_messages, parse_sync
from mind_body.mind.hearing import read_gap
from mind_body.mind.outbox import next_said
from mind_body.mind.places import admit_turn_places, newest_seq
from mind_body.mind.records import SaidKind
from mind_body.mind.store import Mind
from mind_body.mind.wake_facts import Place
from mind_body.mouth.take_in import TakeIn, Taken
from mind_body.mouth.tell import tell_taken
from tests.builders import NOW, insert_room, insert_run, insert_session, insert_turn, make_config, make_mind
from tests.examples import share
from tests.unit.test_ear_waits import seated
from tests.unit.test_hear import BOB, CAPS, HER, ROOM, Json, edit, event, message, timeline

BOT = "@bot:example.org"
PEOPLE = {"bots": [BOT]}
TURNS = 6
"""The default of `loop_turns`."""


@pytest.fixture
def mind(tmp_path: Path) -> Mind:
    return in_a_room(tmp_path)


def in_a_room(directory: Path) -> Mind:
    mind = make_mind(directory)
    with mind.write() as tx:
        insert_room(tx, ROOM)
        insert_session(tx)
        insert_run(tx, id="run")
    return mind


def take_turns(mind: Mind, count: int, *, thread: str = "") -> None:
    """So many answered turns for what was written there."""
    with mind.write() as tx:
        for _ in range(count):
            number = int(tx.execute("SELECT count(*) FROM turn").fetchone()[0])
            insert_turn(tx, f"t{number}", run_id="run", number=number, after_seq=newest_seq(tx))
            admit_turn_places(tx, f"t{number}", [(ROOM, thread)])


def hear(mind: Mind, *events: Json, **how: Any) -> Taken:
    sync = parse_sync({"next_batch": "s", "rooms": {"join": {ROOM: timeline([*events], **how)}}})
    with mind.write() as tx:
        return TakeIn(tx, HER, make_config(people=PEOPLE), NOW).sync(sync, "s0")


def from_bot(number: int | str, *, thread: str = "", **content: Any) -> Json:
    relates = {"rel_type": "m.thread", "event_id": thread} if thread else None
    return message(number, sender=BOT, relates=relates, **content)


def from_person(number: int | str, *, thread: str = "") -> Json:
    relates = {"rel_type": "m.thread", "event_id": thread} if thread else None
    return message(number, "good morning", relates=relates)


def from_another_mind(number: int) -> Json:
    made = message(number)
    made["content"][SAID_KEY] = "what she said"
    return made


def standings(mind: Mind) -> dict[str, str]:
    with mind.read() as tx:
        return {row["event_id"]: row["standing"] for row in tx.execute("SELECT event_id, standing FROM heard ORDER BY seq")}


def notices(mind: Mind) -> list[str | None]:
    """The threads in which it was told."""
    with mind.read() as tx:
        rows = tx.execute("SELECT thread FROM said WHERE kind = ? ORDER BY place", (SaidKind.NOTICE,))
        return [row["thread"] for row in rows]


@pytest.mark.parametrize(
    ("said", "person"),
    [
        (message(1), 1),
        (message(1, sender=BOT), 0),
        (message(1, msgtype="m.notice"), 0),
        (from_another_mind(1), 0),
        (message(1, sender="@mail:bridge.example.org"), 0),
    ],
)
def test_every_message_says_whether_a_person_wrote_it(mind: Mind, said: Json, person: int) -> None:
    config = make_config(people={**PEOPLE, "persons": ["@*:example.org"]})
    sync = parse_sync({"next_batch": "s", "rooms": {"join": {ROOM: timeline([said])}}})
    with mind.write() as tx:
        TakeIn(tx, HER, config, NOW).sync(sync, "s0")
        (row,) = tx.execute("SELECT person, (SELECT count(*) FROM spoke) AS spoke FROM heard").fetchall()
    assert (row["person"], row["spoke"]) == (person, person)


def test_bots_have_their_turns_and_then_wait_for_a_person(mind: Mind) -> None:
    hear(mind, from_person(0))
    take_turns(mind, TURNS - 1)
    assert hear(mind, from_bot(1)).mail
    take_turns(mind, 1)
    assert not hear(mind, from_bot(2), from_bot(3)).mail
    assert hear(mind, from_person(4), from_bot(5)).mail
    found = standings(mind)
    assert [found[f"${number}"] for number in (1, 2, 3, 5)] == ["mail", "context", "context", "mail"]
    with mind.read() as tx:
        (row,) = tx.execute("SELECT reason FROM heard WHERE event_id = '$2'").fetchall()
    assert "6 turns since a person last spoke" in row["reason"]


def test_a_persons_own_message_is_mail_however_much_is_spent(mind: Mind) -> None:
    take_turns(mind, 10 * TURNS)
    assert hear(mind, message(1)).mail


async def test_a_spent_room_is_told_once_in_the_room_and_once_in_the_journal_until_a_person_speaks(
    mind: Mind, tmp_path: Path
) -> None:
    async def nobody(_: Any) -> Any:
        raise AssertionError("nothing is asked of the homeserver")

    async with seated(tmp_path / "seat", nobody) as (seat, told):
        for stretch in range(2):
            tell_taken(seat, hear(mind, from_person(f"person{stretch}")))
            take_turns(mind, TURNS)
            for number in range(5):
                tell_taken(seat, hear(mind, from_bot(f"{stretch}-{number}")))
            assert (len(notices(mind)), told.kinds.count("loop.spent")) == (stretch + 1, stretch + 1)


def test_a_new_thread_for_every_message_buys_nothing_and_is_told_once(mind: Mind) -> None:
    hear(mind, from_person("p"))
    for number in range(TURNS):
        assert hear(mind, from_bot(number, thread=f"$root{number}")).mail
        take_turns(mind, 1, thread=f"$root{number}")
    for number in range(TURNS, 3 * TURNS):
        assert not hear(mind, from_bot(number, thread=f"$root{number}")).mail
    assert notices(mind) == [None]


def test_a_thread_that_is_spent_is_told_there_while_people_talk_beside_it(mind: Mind) -> None:
    for number in range(TURNS):
        hear(mind, from_person(f"p{number}"))
        assert hear(mind, from_bot(number, thread="$root")).mail
        take_turns(mind, 1, thread="$root")
    assert not hear(mind, from_person("p"), from_bot("late", thread="$root")).mail
    assert notices(mind) == ["$root"]
    with mind.read() as tx:
        assert next_said(tx)[0].thread == "$root"
    assert hear(mind, from_person("there", thread="$root"), from_bot("later", thread="$root")).mail


def test_a_mention_that_a_bot_edits_in_is_weighed_where_the_message_stands(mind: Mind) -> None:
    hear(mind, from_person(0), from_bot(1, body="hello all", thread="$root"), from_bot(2, body="hello all"))
    take_turns(mind, TURNS, thread="$root")
    hear(mind, from_person(3))  # begins the room's count anew, not the thread's
    assert hear(mind, edit(4, "$2", "hello ada", sender=BOT)).mail
    assert not hear(mind, edit(5, "$1", "hello ada", sender=BOT)).mail
    assert standings(mind)["$1"] == "context"


def test_what_people_said_before_she_came_begins_nothing_anew(mind: Mind) -> None:
    take_turns(mind, TURNS)
    left = event("left", "m.room.member", {"membership": "leave"}, HER, state_key=HER)
    back = event("back", "m.room.member", {"membership": "join"}, HER, state_key=HER)
    assert not hear(mind, left, from_person(1), back, from_bot(2)).mail


def test_a_gap_full_of_bots_is_not_mail_by_its_length(mind: Mind) -> None:
    with mind.write() as tx:
        tx.execute("UPDATE room SET direct = 1, joined_members = 2")
    take_turns(mind, TURNS)
    hear(mind, from_bot("after"), limited=True)
    with mind.write() as tx:
        gap = read_gap(tx, ROOM)
        assert gap is not None
        TakeIn(tx, HER, make_config(people=PEOPLE), NOW).gap(gap, cut_off=True)
    assert set(standings(mind).values()) == {"context"}


def test_what_came_in_a_gap_is_weighed_in_its_order(mind: Mind) -> None:
    take_turns(mind, TURNS)
    hear(mind, from_bot("after"), limited=True)
    with mind.write() as tx:
        gap = read_gap(tx, ROOM)
        assert gap is not None
        page = parse_messages({"chunk": [from_person("person"), from_bot("before")]})
        TakeIn(tx, HER, make_config(people=PEOPLE), NOW).page(gap, page, CAPS)
    found = standings(mind)
    assert (found["$before"], found["$after"]) == ("context", "mail")


Speech = tuple[bool, str]
"""Whether a person, and in which thread."""


@settings(max_examples=share(0.25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from(["", "$a", "$b"])), min_size=1, max_size=12),
    st.lists(st.sampled_from(["", "$a", "$b"]), max_size=2 * TURNS),
    st.sets(st.integers(1, 11)),
)
def test_wherever_a_timeline_is_cut_the_same_is_turned_away(
    tmp_path_factory: pytest.TempPathFactory, speeches: list[Speech], turns: list[str], cuts: set[int]
) -> None:
    """Against a count by hand: turns in a place and in the room, each begun anew by a person's word in it."""
    mind = in_a_room(tmp_path_factory.mktemp("mind"))
    here: defaultdict[str, int] = defaultdict(int)
    for thread in turns:
        take_turns(mind, 1, thread=thread)
        here[thread] += 1
    room, expected = len(turns), []
    for person, thread in speeches:
        if person:
            here[thread] = room = 0
        expected.append(max(here[thread], room) < TURNS)
    events = [
        message(number, sender=BOB if person else BOT, relates={"rel_type": "m.thread", "event_id": thread} if thread else None)
        for number, (person, thread) in enumerate(speeches)
    ]
    edges = [0, *sorted(cut for cut in cuts if cut < len(events)), len(events)]
    for first, last in itertools.pairwise(edges):
        hear(mind, *events[first:last])
    assert [standing == "mail" for standing in standings(mind).values()] == expected
    assert len(notices(mind)) == len(set(notices(mind)))
    mind.close()


@given(st.integers(0, 20), st.integers(0, 20), st.sampled_from(["", "$a", "$b"]), st.integers(0, 9), st.integers(0, 9))
def test_a_spent_room_has_one_name_in_all_its_threads(here: int, extra: int, thread: str, spoke: int, later: int) -> None:
    config = make_config()
    place = Place(ROOM, thread, here, here + extra, spoke, spoke + later)
    if here + extra >= TURNS:
        assert is_spent(place, config)
        assert name_stretch(place, config) == name_stretch(Place(ROOM, "", 0, TURNS, 0, spoke + later), config)
    else:
        assert name_stretch(place, config)[0] == (thread or None)
