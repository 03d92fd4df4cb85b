"""Her turns since a person spoke, over a real mind: what counts, where, and what begins the count anew."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mind_body.control.loops import is_spent
from mind_body.mind.changes import MISSED, EditedHeard, ForSelf, NewHeard, Withdrawn
from mind_body.mind.hearing import admit_heard, expire_context
from mind_body.mind.places import admit_turn_places, newest_seq, note_spoken, read_place, read_places, read_turns_today
from mind_body.mind.records import RunKind, Standing, TurnState
from mind_body.mind.runs import adopt_run, close_dead_run, live_run, open_run
from mind_body.mind.store import Mind
from mind_body.mind.turning import NewTurn, TurnEnd
from mind_body.mind.turns import close_turn, open_turn
from mind_body.mind.wake_facts import FOREVER, Window
from tests.builders import NOW, insert_room, insert_session, make_config, make_mind
from tests.examples import share

ROOM, OTHER = "!a:example.org", "!b:example.org"
BOT, BOB = "@bot:example.org", "@bob:example.org"
DAY_MS = 86_400_000


@dataclass
class Bed:
    """A Mind in two rooms, with a run that is held for as long as the test lasts."""

    mind: Mind
    run_id: str = ""
    heard: int = 0
    turns: list[str] = field(default_factory=list)

    def hear(
        self, thread: str | None = None, *, room: str = ROOM, person: bool = False, sender: str = "", **columns: object
    ) -> int:
        """One message; its seq."""
        self.heard += 1
        values: dict[str, object] = {
            "event_id": f"${self.heard}",
            "room_id": room,
            "sender": BOB if person else BOT,
            "sender_name": "",
            "kind": "m.text",
            "body": "hello",
            "sent_at": NOW,
            "reply_to": None,
            "thread": thread,
            "standing": Standing.MAIL,
            "reason": "",
            "person": person,
        }
        with self.mind.write() as tx:
            (admitted,) = admit_heard(tx, [NewHeard(**(values | columns))], NOW)  # type: ignore[arg-type] # values of a test
        assert admitted.seq is not None
        return admitted.seq

    def begin(self, *mail: int, context: tuple[int, ...] = (), now: int = NOW) -> str:
        """A turn that is under way."""
        turn_id = f"turn-{len(self.turns)}"
        self.turns.append(turn_id)
        with self.mind.write() as tx:
            new = NewTurn(turn_id, self.run_id, "s", len(self.turns), "open", "", mail, context)
            assert open_turn(tx, new, "holder", now)
        return turn_id

    def end(self, turn_id: str, state: TurnState = TurnState.REPLIED) -> None:
        with self.mind.write() as tx:
            assert close_turn(tx, turn_id, self.run_id, holder="holder", end=TurnEnd(state), now=NOW)

    def turn(self, *mail: int, state: TurnState = TurnState.REPLIED, now: int = NOW) -> str:
        turn_id = self.begin(*mail, now=now)
        self.end(turn_id, state)
        return turn_id

    def counts(self, thread: str = "", room: str = ROOM) -> tuple[int, int]:
        with self.mind.read() as tx:
            place = read_place(tx, room, thread)
        return place.turns_here, place.turns_room


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return make_bed(tmp_path)


def make_bed(directory: Path) -> Bed:
    mind = make_mind(directory)
    with mind.write() as tx:
        insert_room(tx, ROOM)
        insert_room(tx, OTHER)
        insert_session(tx, "s")
        run = open_run(tx, RunKind.PERSONA_TURN, ["open"], "mention", "", NOW)
        assert adopt_run(tx, run.id, "holder", NOW)
    return Bed(mind, run.id)


def test_her_turns_are_counted_from_a_persons_last_word(bed: Bed) -> None:
    assert bed.counts() == (0, 0)
    for _ in range(3):
        bed.turn(bed.hear())
    assert bed.counts() == (3, 3), "nobody has spoken yet: all of them"
    word = bed.hear(person=True)
    assert bed.counts() == (0, 0)
    bed.turn(word)
    bed.turn(bed.hear())
    assert bed.counts() == (2, 2), "the turn that answers the person is one of them"
    assert bed.counts(room=OTHER) == (0, 0)


def test_a_thread_of_its_own_for_every_message_buys_nothing(bed: Bed) -> None:
    for number in range(6):
        bed.turn(bed.hear(f"$root-{number}"))
    assert bed.counts("$root-0") == (1, 6)
    assert bed.counts("$never-seen") == (0, 6)
    with bed.mind.read() as tx:
        assert is_spent(read_place(tx, ROOM, "$the-next-one"), make_config())


def test_people_who_chat_elsewhere_in_the_room_buy_a_thread_nothing(bed: Bed) -> None:
    for _ in range(6):
        bed.turn(bed.hear("$bots"))
        bed.hear(person=True)
    assert bed.counts("$bots") == (6, 0)
    bed.hear("$bots", person=True)
    assert bed.counts("$bots") == (0, 0)


def test_a_turn_under_way_counts_and_one_that_answered_nobody_does_not(bed: Bed) -> None:
    turn = bed.begin(bed.hear())
    assert bed.counts() == (1, 1)
    bed.end(turn, TurnState.LIMITED)
    assert bed.counts() == (0, 0)
    for state in (TurnState.FAILED, TurnState.LIMITED):
        bed.turn(bed.hear(), state=state)
    assert bed.counts() == (0, 0)
    for state in (TurnState.REPLIED, TurnState.UNREADABLE, TurnState.REFUSED):
        bed.turn(bed.hear(), state=state)
    assert bed.counts() == (3, 3)
    bed.begin(bed.hear())
    with bed.mind.write() as tx:
        run = live_run(tx, RunKind.PERSONA_TURN)
        assert run is not None
        assert close_dead_run(tx, run, "it died", NOW)
    assert bed.counts() == (3, 3), "a lost turn spends nothing"


def test_a_word_that_comes_while_she_thinks_begins_the_count_anew(bed: Bed) -> None:
    turn = bed.begin(bed.hear())
    bed.hear(person=True)
    bed.end(turn)
    assert bed.counts() == (0, 0)


def test_a_turn_counts_once_in_every_place_its_mail_came_from(bed: Bed) -> None:
    bed.turn(bed.hear(), bed.hear(), bed.hear("$t"), bed.hear(room=OTHER))
    assert bed.counts() == bed.counts("$t") == bed.counts(room=OTHER) == (1, 1)


def test_what_travels_along_as_context_spends_nothing_where_it_was_said(bed: Bed) -> None:
    bed.begin(bed.hear(), context=(bed.hear("$t"), bed.hear(room=OTHER)))
    assert (bed.counts(), bed.counts("$t"), bed.counts(room=OTHER)) == ((1, 1), (0, 1), (0, 0))


def test_an_older_word_that_is_noted_late_takes_nothing_back(bed: Bed) -> None:
    early, late = bed.hear(), bed.hear(person=True)
    with bed.mind.write() as tx:
        note_spoken(tx, ROOM, None, early, NOW + 1)
        assert read_place(tx, ROOM, "").spoke_seq == late


def test_where_she_speaks_without_having_been_asked_counts_once_too(bed: Bed) -> None:
    turn = bed.turn()
    for _ in range(2):
        with bed.mind.write() as tx:
            admit_turn_places(tx, turn, [(ROOM, ""), (ROOM, "$t")])
    assert bed.counts() == bed.counts("$t") == (1, 1)


def test_the_count_survives_the_words_that_began_it(bed: Bed) -> None:
    bed.turn(bed.hear())
    word = bed.hear(person=True, standing=Standing.CONTEXT)
    with bed.mind.write() as tx:
        assert expire_context(tx, NOW + 1) == 1
        assert newest_seq(tx) == read_place(tx, ROOM, "").spoke_seq == word
    assert bed.counts() == (0, 0)
    bed.turn(bed.hear())
    assert bed.counts() == (1, 1)


def test_a_turn_that_is_opened_after_every_word_has_expired_counts(bed: Bed) -> None:
    mail = bed.hear()
    bed.hear(person=True, standing=Standing.CONTEXT)
    with bed.mind.write() as tx:
        expire_context(tx, NOW + 1)
    bed.turn(mail)
    assert bed.counts() == (1, 1)


@pytest.mark.parametrize(
    "columns",
    [
        {"person": False},
        {"person": True, "history": True},
        {"person": True, "kind": MISSED},
    ],
)
def test_only_what_a_person_says_to_her_begins_the_count_anew(bed: Bed, columns: dict[str, object]) -> None:
    bed.turn(bed.hear())
    bed.hear(**columns)  # type: ignore[arg-type] # columns of a row
    assert bed.counts() == (1, 1)


def test_words_for_a_running_self_are_words_in_the_room(bed: Bed) -> None:
    bed.turn(bed.hear())
    bed.hear("$self", person=True, for_self=ForSelf("r1", None, "$x", "faster"))
    assert bed.counts() == (1, 0)


def test_hearing_it_again_editing_it_and_taking_it_back_change_no_count(bed: Bed) -> None:
    bed.hear(person=True)
    bed.turn(bed.hear())
    change = NewHeard("$1", ROOM, BOB, "", "m.text", "hello", NOW, None, None, Standing.MAIL, "")
    edit = EditedHeard("$1", ROOM, BOB, "hello!", Standing.MAIL, "")
    with bed.mind.write() as tx:
        assert [one.how for one in admit_heard(tx, [change, edit, Withdrawn("$1", ROOM)], NOW)] == ["known", "edited", "withdrawn"]
    assert bed.counts() == (1, 1)


def test_the_stretch_has_the_name_of_the_word_that_began_it(bed: Bed) -> None:
    word, threaded = bed.hear(person=True), bed.hear("$t", person=True)
    with bed.mind.read() as tx:
        places = read_places(tx, [(ROOM, ""), (ROOM, "$t"), (OTHER, ""), (ROOM, "")])
    assert {pair: (one.spoke_seq, one.spoke_room_seq) for pair, one in places.items()} == {
        (ROOM, ""): (word, threaded),
        (ROOM, "$t"): (threaded, threaded),
        (OTHER, ""): (0, 0),
    }


def day(begin: int, end: int = FOREVER) -> Window:
    return Window("", begin, "", 0, end)


def test_todays_turns_are_told_by_who_wrote_the_mail(bed: Bed) -> None:
    bed.turn(bed.hear(), now=NOW - DAY_MS)
    bed.turn(bed.hear(), bed.hear(), bed.hear(person=True))
    bed.turn(bed.hear(), state=TurnState.LIMITED)
    bed.turn(bed.hear(room=OTHER))
    bed.begin(bed.hear(person=True))
    with bed.mind.read() as tx:
        assert read_turns_today(tx, day(NOW)) == {BOT: 2, BOB: 2}
        assert read_turns_today(tx, day(NOW + 1)) == {}
        assert read_turns_today(tx, day(NOW - 9, NOW)) == {}, "a clock that was ahead has written them"


_DEED = st.tuples(
    st.sampled_from(["person", "bot", "turn", "lost"]), st.sampled_from(["", "$t1", "$t2"]), st.sampled_from([ROOM, OTHER])
)


@settings(max_examples=share(0.25), deadline=None)
@given(st.lists(_DEED, max_size=25))
def test_the_counts_are_what_reading_everything_again_would_give(
    tmp_path_factory: pytest.TempPathFactory, deeds: Sequence[tuple[str, str, str]]
) -> None:
    bed = make_bed(tmp_path_factory.mktemp("mind"))
    log: list[tuple[str, str, str]] = []
    for deed, thread, room in deeds:
        if deed in {"person", "bot"}:
            bed.hear(thread or None, room=room, person=deed == "person")
        else:
            bed.turn(bed.hear(thread or None, room=room), state=TurnState.REPLIED if deed == "turn" else TurnState.FAILED)
        log.append((deed, thread, room))
    for room in (ROOM, OTHER):
        in_room = [(deed, thread) for deed, thread, one in log if one == room]
        for thread in ("", "$t1", "$t2", "$t3"):
            here = [deed for deed, one in in_room if one == thread]
            expected = _turns_since_a_person(here), _turns_since_a_person([deed for deed, _ in in_room])
            assert bed.counts(thread, room) == expected
    bed.mind.close()


def _turns_since_a_person(deeds: Sequence[str]) -> int:
    last = max((index for index, deed in enumerate(deeds) if deed == "person"), default=-1)
    return list(deeds[last + 1 :]).count("turn")
