"""Which mail may still bring her a turn where bots talk with each other (design §9, cases W2)."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.control.effective import Dial, Released
from mind_body.control.govern import House
from mind_body.control.loops import Budget, is_person, is_spent, judge_mail, name_stretch, sift_mail
from mind_body.mind.wake_facts import Place, WaitingMail
from mind_body.settings import HostConfig, PeopleConfig
from probes.swarming.minds import SimMind
from probes.swarming.population import make_ring
from probes.swarming.world import Room, Weather, World
from tests.builders import NOW, OPERATOR, make_config
from tests.strategies import waiting_mails

CONFIG = make_config(persona={"loop_turns": 6, "counterpart_turns": 20})
HOUR = 3_600_000


def mail(
    *,
    sender: str = "@bob:x",
    person: bool = False,
    thread: str = "",
    room: str = "!a:x",
    conversation: str = "open",
    oldest: int = NOW,
) -> WaitingMail:
    return WaitingMail(conversation, room, thread, sender, person, 1, oldest, oldest, "$e")


def budget(*places: Place, today: dict[str, int] | None = None) -> Budget:
    return Budget({(place.room_id, place.thread): place for place in places}, today or {}, CONFIG)


# Who is a person.


@pytest.mark.parametrize(
    ("user", "people", "marked", "person"),
    [
        ("@bob:x", {}, False, True),
        ("@bob:x", {}, True, False),  # one of our own Minds, or a notice
        ("@bob:x", {"bots": ("@bob:x",)}, False, False),
        ("@bob:x", {"bots": ("@*bot:x",)}, False, True),
        ("@newsbot:x", {"bots": ("@*bot:x",)}, False, False),
        ("@bob:y", {"persons": ("@*:x",)}, False, False),  # unknown bots are not persons
        ("@bob:x", {"persons": ("@*:x",)}, False, True),
        ("@bob:x", {"persons": ("@*:x",)}, True, False),
        ("@bob:x", {"persons": ("@bob:x",), "bots": ("@bob:x",)}, False, False),
        ("@bob:x", {"persons": ()}, False, False),
        ("@op:y", {"persons": ("@*:x",), "operators": ("@op:y",)}, False, True),  # else her own operator's word would bring nothing
        ("@op:y", {"persons": ("@*:x",), "operators": ("@op:y",)}, True, False),  # a Mind that operates another
        ("@op:y", {"operators": ("@op:y",), "bots": ("@op:y",)}, False, False),
    ],
)
def test_persons_are_those_who_match_and_are_no_bots_and_bear_no_mark(
    user: str, people: dict[str, tuple[str, ...]], marked: bool, person: bool
) -> None:
    assert is_person(user, PeopleConfig(**people), marked=marked) == person


# What is turned away.


@pytest.mark.parametrize(
    ("here", "room", "spent"), [(0, 0, False), (5, 5, False), (6, 0, True), (0, 6, True), (6, 6, True), (7, 9, True)]
)
def test_a_place_is_spent_after_six_turns_there_or_in_all_of_its_room(here: int, room: int, spent: bool) -> None:
    place = Place("!a:x", "$t", here, room)
    assert is_spent(place, CONFIG) == spent
    assert (judge_mail(mail(thread="$t"), budget(place)) is not None) == spent


def test_what_is_turned_away_says_where_and_why() -> None:
    thread = judge_mail(mail(thread="$t"), budget(Place("!a:x", "$t", 6, 0)))
    room = judge_mail(mail(thread="$t"), budget(Place("!a:x", "$t", 1, 6)))
    assert thread is not None
    assert room is not None
    assert (thread.kind, thread.reason) == ("loop", "she has taken 6 turns since a person last spoke in this thread")
    assert (room.kind, room.reason) == ("loop", "she has taken 6 turns since a person last spoke in this room")


def test_a_place_that_is_not_known_has_had_no_turns() -> None:
    assert not is_spent(None, CONFIG)
    assert judge_mail(mail(), budget()) is None


def test_a_spent_place_is_named_by_the_word_that_began_its_stretch() -> None:
    assert name_stretch(Place("!a:x", "$t", 6, 0, 17, 18), CONFIG) == ("$t", "$t:17")
    assert name_stretch(Place("!a:x", "", 6, 0, 17, 18), CONFIG) == (None, ":17")
    assert name_stretch(Place("!a:x", "$t", 6, 6, 17, 18), CONFIG) == (None, ":18"), "a new thread a message hears of it once"


@given(waiting_mails, st.integers(0, 100), st.integers(0, 100))
def test_a_persons_own_message_is_never_turned_away_by_the_budget(one: WaitingMail, here: int, room: int) -> None:
    turned = judge_mail(one, budget(Place(one.room_id, one.thread, here, room)))
    assert turned is None or not one.person
    assert turned is None or turned.kind == "loop"


@given(waiting_mails, st.integers(0, 40))
def test_what_one_account_writes_brings_so_many_turns_a_day_and_operators_are_not_counted(one: WaitingMail, today: int) -> None:
    turned = judge_mail(one, budget(today={one.sender: today}))
    assert (turned is not None) == (today >= 20 and one.sender != OPERATOR)
    if turned is not None:
        assert (turned.kind, turned.reason) == ("ceiling", f"she has taken 20 turns for {one.sender} today")


places = st.builds(
    Place, st.sampled_from(["!a:x", "!b:x"]), st.sampled_from(["", "$t", "$u"]), st.integers(0, 9), st.integers(0, 9)
)
todays = st.dictionaries(st.sampled_from(["@bob:x", "@eve:x", OPERATOR]), st.integers(0, 30))


@given(st.lists(waiting_mails, max_size=8), st.lists(places, max_size=4), todays)
def test_sifting_loses_nothing_and_doubles_nothing(
    waiting: Sequence[WaitingMail], some: list[Place], today: dict[str, int]
) -> None:
    held = budget(*some, today=today)
    sifted = sift_mail(waiting, held)
    kept = [one for one in waiting if judge_mail(one, held) is None]
    assert [one.mail for one in sifted.turned_away] == [one for one in waiting if judge_mail(one, held) is not None]
    assert sum(one.count for one in sifted.pending) == sum(one.count for one in kept)
    assert {one.conversation for one in sifted.pending} == {one.conversation for one in kept}
    for one in sifted.pending:
        of_it = [mail for mail in kept if mail.conversation == one.conversation]
        assert (one.oldest_at, one.newest_at) == (min(m.oldest_at for m in of_it), max(m.newest_at for m in of_it))
        assert sorted(one.senders) == sorted({mail.sender for mail in of_it})
    assert list(sifted.pending) == sorted(sifted.pending, key=lambda one: (one.oldest_at, one.conversation))


# Whole conversations, over a simulated clock: scripted Minds that always answer with a mention (see probes/swarming).


def make_world(*, turn_s: float = 0.1, seed: int = 1) -> World:
    return World(HostConfig(), NOW, random.Random(seed), Weather(turn_s=(turn_s, 0.0), start_s=0.05, cost=(0, 0)))


def add_minds(world: World, count: int) -> list[SimMind]:
    house = House(make_config(people={"bots": ("@bot:x",)}, persona={"counterpart_turns": 10**6}), world.host)
    released = Released(Dial(1.0, 14_400.0, 1.0))
    return [world.add(SimMind(f"m{number}", house, released, 0, None), heard=False) for number in range(count)]


def add_room(world: World, room: Room) -> Room:
    world.rooms[room.id] = room
    return room


def chat(world: World, minds: list[SimMind], room: Room, every_ms: int) -> None:
    """A person who talks to them all the time, elsewhere."""

    def speak() -> None:
        for mind in minds:
            world.say(mind, room, "@carol:x", person=True)
        world.at(world.now + every_ms, speak)

    speak()


def turns_in(minds: list[SimMind], room: Room) -> list[int]:
    return [mind.whole.get(room.id, 0) for mind in minds]


@pytest.mark.parametrize("hop_ms", [0, 20_000, 3_600_000])
@pytest.mark.parametrize("threads", [False, True], ids=["one place", "a thread for every message"])
@pytest.mark.parametrize("minds", [2, 3, 5])
def test_minds_that_always_answer_each_other_stop_at_the_budget_however_slow_they_are(
    minds: int, threads: bool, hop_ms: int
) -> None:
    world = make_world()
    ring = add_minds(world, minds)
    room = make_ring(world, ring, "!ring:x", hop_ms, threads=threads)
    world.say(ring[0], room, "@bob:x", person=True)
    world.run(NOW + 100 * minds * (hop_ms + 2_000))
    assert turns_in(ring, room) == [6] * minds
    assert len(world.tally.stopped) == 1
    assert world.tally.loops_passed == 0


@pytest.mark.parametrize("hop_ms", [0, 20_000])
@pytest.mark.parametrize("minds", [2, 3, 5])
def test_a_person_who_chats_in_another_room_of_the_conversation_keeps_no_loop_alive(minds: int, hop_ms: int) -> None:
    world = make_world()
    ring = add_minds(world, minds)
    room = make_ring(world, ring, "!ring:x", hop_ms)
    other = add_room(world, Room("!other:x", room.conversation))
    chat(world, ring, other, 30_000)
    world.say(ring[0], room, "@bob:x", person=True)
    world.run(NOW + 4 * HOUR)
    assert turns_in(ring, room) == [6] * minds
    assert len(world.tally.stopped) == 1
    answered = len(world.tally.waits_ms)
    assert answered > 0.99 * world.tally.words > 900, "and the person there is answered all along"


def test_a_persons_word_there_begins_the_count_anew_and_nobody_elses_does() -> None:
    world = make_world()
    ring = add_minds(world, 2)
    room = make_ring(world, ring, "!ring:x", 0)
    world.say(ring[0], room, "@bob:x", person=True)
    world.run(NOW + HOUR)
    world.say(ring[0], room, "@bot:x", person=False)
    world.run(NOW + 2 * HOUR)
    assert turns_in(ring, room) == [6, 6]
    assert world.tally.turns == 12
    for word in (2, 3):
        world.say(ring[0], room, "@bob:x", person=True)
        world.run(world.now + HOUR)
        assert turns_in(ring, room) == [6, 6]
        assert world.tally.turns == 12 * word
    assert len(world.tally.stopped) == 3, "told once in every stretch"


@pytest.mark.parametrize("hop_ms", [1000, 20_000])
def test_a_bot_that_always_answers_gets_six_turns_and_then_is_left_unanswered(hop_ms: int) -> None:
    world = make_world()
    (ada,) = add_minds(world, 1)

    def answer(world: World, room: Room, mind: SimMind, thread: str) -> None:
        world.at(world.now + hop_ms, lambda: world.say(mind, room, "@bot:x", person=False, thread=thread))

    room = add_room(world, Room("!bot:x", "room:!bot:x", (ada,), answer))
    world.say(ada, room, "@bot:x", person=False)
    world.run(NOW + 24 * HOUR)
    assert world.tally.turns == 6
    assert len(world.tally.stopped) == 1


def test_two_loops_in_two_rooms_have_each_their_own_budget() -> None:
    world = make_world()
    ring = add_minds(world, 2)
    rooms = [make_ring(world, ring, room_id, 20_000) for room_id in ("!a:x", "!b:x")]
    for room in rooms:
        world.say(ring[0], room, "@bob:x", person=True)
    world.run(NOW + 24 * HOUR)
    assert [turns_in(ring, room) for room in rooms] == [[6, 6], [6, 6]]


def test_many_people_in_one_place_are_all_answered_whatever_the_bots_have_spent() -> None:
    world = make_world()
    ring = add_minds(world, 2)
    room = make_ring(world, ring, "!ring:x", 0)
    for number in range(50):
        world.at(NOW + number * 600_000, lambda number=number: world.say(ring[0], room, f"@p{number}:x", person=True))  # type: ignore[misc]
    world.run(NOW + 24 * HOUR)
    assert len(world.tally.waits_ms) == 50
    assert max(world.tally.waits_ms) < 10_000
