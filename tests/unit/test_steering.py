"""What is written in the thread of a running Self: to whom it goes, what it is, and that nothing of it is lost or doubled."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.matrix.wire import parse_sync
from mind_body.mind.outbox import admit_said, mark_attempted, mark_sent, next_said
from mind_body.mind.reactions import read_reactions
from mind_body.mind.records import SaidKind
from mind_body.mind.steers import drop_steers, mark_given, read_live_thread, read_queued_steers
from mind_body.mind.store import Mind
from mind_body.mind.wakes import read_waiting_mail
from mind_body.mouth.steering import is_stop
from mind_body.mouth.take_in import TakeIn, Taken
from tests.builders import NOW, insert, insert_room, make_config, make_mind, make_new_said
from tests.unit.test_hear import BOB, HER, ROOM, Json, edit, event, message, timeline

EVE = "@eve:example.org"
PEOPLE = {"may_steer": [BOB]}


@pytest.fixture
def mind(tmp_path: Path) -> Mind:
    """In a DM with a run whose thread begins at $root."""
    mind = make_mind(tmp_path)
    with mind.write() as tx:
        insert_room(tx, ROOM, direct=1, conversation=f"direct:{ROOM}")
        open_run(tx)
        mark_sent(tx, "self-r1", "$root")
    return mind


def open_run(tx: Any) -> None:
    """Its first message is attempted, not sent."""
    insert(
        tx, "run", id="r1", kind="self_run", conversations=f'["direct:{ROOM}"]', cause="request", reason="x",
        opened_at=NOW, thread_said="self-r1",
    )  # fmt: skip
    admit_said(tx, [make_new_said("self-r1", ROOM, SaidKind.NOTICE)], None, NOW)
    mark_attempted(tx, "self-r1", "D", NOW)


def inside(number: int | str, body: str, sender: str = BOB, **content: Any) -> Json:
    return message(number, body, sender=sender, relates={"rel_type": "m.thread", "event_id": "$root"}, **content)


def take(mind: Mind, *events: Json) -> Taken:
    sync = parse_sync({"next_batch": "s2", "rooms": {"join": {ROOM: timeline(list(events))}}})
    with mind.write() as tx:
        return TakeIn(tx, HER, make_config(people=PEOPLE), NOW).sync(sync, "s1")


def steers(mind: Mind) -> list[tuple[str, str, str]]:
    with mind.read() as tx:
        return [(one.kind, one.sender, one.text) for one in read_queued_steers(tx, "r1")]


def hows(taken: Taken) -> list[str]:
    return [admitted.how for _, admitted in taken.heard]


def pending(mind: Mind) -> int:
    with mind.read() as tx:
        return sum(mail.count for mail in read_waiting_mail(tx))


def notices(mind: Mind) -> list[tuple[str | None, str | None]]:
    with mind.read() as tx:
        return [(row.thread, row.reply_to) for row in next_said(tx)]


def test_what_may_steer_says_in_the_thread_reaches_the_run_in_order_and_wakes_nobody(mind: Mind) -> None:
    taken = take(mind, inside(1, "use the blue one"), inside(2, "and be quick"), inside(3, "Stop!"))
    assert hows(taken) == ["steer", "steer", "stop"]
    assert steers(mind) == [("steer", BOB, "use the blue one"), ("steer", BOB, "and be quick"), ("stop", BOB, "Stop!")]
    assert taken.for_self
    assert not taken.for_heartbeat
    assert pending(mind) == 0
    assert hows(take(mind, inside(1, "use the blue one"))) == ["known"]
    assert len(steers(mind)) == 3


def test_others_are_told_once_each_and_steer_nothing(mind: Mind) -> None:
    taken = take(mind, inside(1, "stop", EVE), inside(2, "I said stop", EVE))
    assert hows(taken) == ["barred", "barred"]
    assert not taken.for_self
    assert taken.for_voice
    assert not take(mind, inside(3, "hello?", EVE)).for_voice
    assert notices(mind) == [("$root", "$1")]
    assert steers(mind) == []
    assert pending(mind) == 0
    assert take(mind, inside(4, "me too", "@mallory:example.org")).for_voice


def test_outside_the_thread_in_another_room_and_as_a_notice_it_is_what_it_always_was(mind: Mind) -> None:
    assert hows(take(mind, message(1, "hello"))) == ["mail"]
    assert hows(take(mind, inside(2, "beep", EVE, msgtype="m.notice"))) == ["context"]
    assert notices(mind) == []
    with mind.write() as tx:
        tx.execute("UPDATE said SET room_id = '!other:example.org' WHERE id = 'self-r1'")
    assert hows(take(mind, inside(3, "hello"))) == ["mail"]


def test_with_no_run_live_the_thread_is_ordinary_mail(mind: Mind) -> None:
    with mind.write() as tx:
        tx.execute("UPDATE run SET ended_at = ?, outcome = 'result'", (NOW,))
    assert hows(take(mind, inside(1, "thank you"), inside(2, "stop", EVE))) == ["mail", "mail"]
    assert steers(mind) == []


def test_what_a_run_was_not_given_before_it_ended_is_mail_and_what_it_was_given_is_not(mind: Mind) -> None:
    take(mind, inside(1, "given"), inside(2, "not given"), inside(3, "stop"))
    with mind.write() as tx:
        mark_given(tx, read_queued_steers(tx, "r1")[0].id)
        drop_steers(tx, "r1")
    assert pending(mind) == 1
    with mind.read() as tx:
        (row,) = tx.execute("SELECT body FROM heard WHERE state = 'pending'").fetchall()
    assert row["body"] == "not given"


def test_an_edit_in_time_changes_what_is_given_and_a_later_one_is_given_too(mind: Mind) -> None:
    take(mind, inside(1, "use the blu one"), edit(2, "$1", "use the blue one"))
    assert steers(mind) == [("steer", BOB, "use the blue one")]
    with mind.write() as tx:
        mark_given(tx, read_queued_steers(tx, "r1")[0].id)
    taken = take(mind, edit(3, "$1", "stop"))
    assert hows(taken) == ["stop"]
    assert steers(mind) == [("stop", BOB, "stop")]
    assert hows(take(mind, edit(4, "$1", "mine now", sender=EVE))) == ["unknown"]


def test_what_is_redacted_before_it_was_given_is_not_given(mind: Mind) -> None:
    take(mind, inside(1, "a slip of the tongue"), event(2, "m.room.redaction", {"redacts": "$1"}))
    assert steers(mind) == []


def test_a_thread_whose_receipt_is_not_stored_yet_is_known_from_the_room_itself(tmp_path: Path) -> None:
    mind = make_mind(tmp_path)
    with mind.write() as tx:
        insert_room(tx, ROOM, direct=1, conversation=f"direct:{ROOM}")
        open_run(tx)
        assert read_live_thread(tx) is None
    said: Json = {"io.mind-body.said": "self-r1"}
    hers = message("root", "I work on this", sender=HER, **said)
    forged = message("x", "so do I", sender=EVE, **said)
    taken = take(mind, forged, hers, inside(1, "use the blue one"))
    assert hows(taken) == ["mail", "steer"]
    with mind.read() as tx:
        live = read_live_thread(tx)
    assert live is not None
    assert live.root == "$root"


def test_reactions_to_what_she_said_are_kept_until_they_are_taken_back(mind: Mind) -> None:
    def react(number: int, target: str) -> Json:
        return event(number, "m.reaction", {"m.relates_to": {"rel_type": "m.annotation", "event_id": target, "key": "✅"}})

    taken = take(mind, react(1, "$root"), react(2, "$somebody-elses"))
    assert hows(taken) == ["reacted", "unknown"]
    assert taken.for_heartbeat
    with mind.read() as tx:
        (kept,) = read_reactions(tx, ["$root", "$somebody-elses"])
    assert (kept.key, kept.sender) == ("✅", BOB)
    take(mind, event(3, "m.room.redaction", {"redacts": "$1"}))
    with mind.read() as tx:
        assert read_reactions(tx, ["$root"]) == []


@pytest.mark.parametrize(
    "text",
    ["stop", "Stop!", " STOP. ", "**stop**", f"{HER}: stop", "Ada, stop", "stop, Ada", "`stop`", "@ada: stop…"],
)
def test_the_word_alone_is_a_stop(text: str) -> None:
    assert is_stop(text, HER, "Ada")


@pytest.mark.parametrize(
    "text", ["stop the server", "don't stop", "", "Ada", "nonstop", "stops", "stop stop", "bob: stop", "adastop"]
)
def test_anything_more_is_for_the_self_to_read(text: str) -> None:
    assert not is_stop(text, HER, "Ada")


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    assert is_stop(text, HER, text[:5]) in {True, False}
