"""The outbox: said once, in order, and what came of it, on a real mind."""

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mind_body.mind import outbox
from mind_body.mind.records import NewSaid, Said, SaidKind, SaidState
from mind_body.mind.store import Mind, open_mind
from tests.builders import insert_room, make_mind
from tests.examples import share


@pytest.fixture
def mind(tmp_path: Path) -> Iterator[Mind]:
    opened = make_mind(tmp_path)
    yield opened
    opened.close()


def new_said(said_id: str, room_id: str = "!a:x", kind: SaidKind = SaidKind.SAY, body: str = "hi", **more: str) -> NewSaid:
    return NewSaid(said_id, kind, room_id, "m.room.message", {"msgtype": "m.text", "body": body}, **more)


def new_edit(said_id: str, of: str = "p") -> NewSaid:
    return new_said(said_id, kind=SaidKind.EDIT, edits=of)


def admit(mind: Mind, *rows: NewSaid, now: int = 1) -> int:
    with mind.write() as tx:
        return outbox.admit_said(tx, rows, None, now)


def read(mind: Mind, said_id: str) -> Said:
    with mind.read() as tx:
        found = outbox.read_said(tx, said_id)
    assert found is not None
    return found


def next_ids(mind: Mind) -> list[str]:
    with mind.read() as tx:
        return [row.id for row in outbox.next_said(tx)]


def test_the_same_id_is_queued_once_and_keeps_its_first_content(mind: Mind) -> None:
    assert admit(mind, new_said("s1", body="first"), new_said("s2")) == 2
    assert admit(mind, new_said("s1", body="second"), new_said("s3"), now=9) == 1
    assert read(mind, "s1").content["body"] == "first"
    assert read(mind, "s1").queued_at == 1


def test_each_room_has_one_row_whose_turn_it_is(mind: Mind) -> None:
    admit(mind, new_said("a1"), new_said("a2"), new_said("b1", "!b:x"))
    assert next_ids(mind) == ["a1", "b1"]
    with mind.write() as tx:
        outbox.mark_sent(tx, "a1", "$1")
    assert next_ids(mind) == ["a2", "b1"]


def test_replies_go_before_notices_and_among_themselves_in_order(mind: Mind) -> None:
    admit(mind, new_said("n1", kind=SaidKind.NOTICE), new_said("b1", "!b:x", SaidKind.NOTICE))
    admit(mind, new_said("s1"), new_said("s2", kind=SaidKind.REACTION))
    order = []
    while ids := next_ids(mind):
        order.append(ids[0])
        with mind.write() as tx:
            outbox.mark_refused(tx, ids[0], "test")
    assert order == ["s1", "s2", "n1", "b1"]


def test_an_edit_goes_after_everything_else_in_its_room(mind: Mind) -> None:
    admit(mind, new_edit("e1"), new_said("n1", kind=SaidKind.NOTICE), new_said("s1"))
    order = []
    while ids := next_ids(mind):
        order += ids
        with mind.read() as tx:
            following = outbox.next_said_in(tx, "!a:x")
        assert following is not None
        assert following.id == ids[0]
        with mind.write() as tx:
            outbox.mark_refused(tx, ids[0], "test")
    assert order == ["s1", "n1", "e1"]


def test_a_newer_edit_takes_the_place_of_one_that_nobody_tried_to_send(mind: Mind) -> None:
    admit(mind, new_edit("e1"), new_edit("other", of="q"))
    with mind.write() as tx:
        outbox.mark_attempted(tx, "e1", "DEVICE", 10)
    admit(mind, new_edit("e2"))
    admit(mind, new_edit("e3"))
    admit(mind, new_edit("e2"))
    states = {said_id: read(mind, said_id).state for said_id in ("e1", "e2", "e3", "other")}
    assert states == {
        "e1": SaidState.ATTEMPTED,
        "e2": SaidState.SUPERSEDED,
        "e3": SaidState.QUEUED,
        "other": SaidState.QUEUED,
    }
    with mind.read() as tx:
        assert outbox.count_edits(tx, "p") == 3


@settings(max_examples=share(0.5), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.sampled_from(["admit", "attempt", "send", "again"]), max_size=20), st.integers(0, 10**9))
def test_whatever_happens_between_edits_at_most_one_waits_unattempted_and_it_is_the_newest(
    mind: Mind, steps: list[str], run: int
) -> None:
    made: list[str] = []
    target = f"p{run}-{len(steps)}"
    for number, step in enumerate(steps):
        if step == "admit":
            made.append(f"{target}.{number}")
            admit(mind, new_edit(made[-1], of=target))
        elif step == "again" and made:
            assert admit(mind, new_edit(made[0], of=target)) == 0
        waiting = [one for one in made if read(mind, one).state in {SaidState.QUEUED, SaidState.ATTEMPTED}]
        if waiting and step in {"attempt", "send"}:
            with mind.write() as tx:
                outbox.mark_attempted(tx, waiting[0], "D", number)
                if step == "send":
                    outbox.mark_sent(tx, waiting[0], f"${waiting[0]}")
        queued = [one for one in made if read(mind, one).state is SaidState.QUEUED]
        assert queued in ([], made[-1:])
    with mind.write() as tx:
        tx.execute("DELETE FROM said")


def test_what_a_row_relates_to_is_known_when_that_has_been_sent(mind: Mind) -> None:
    admit(mind, new_said("root"), new_said("first"), new_said("late", thread_said="root", after_said="first", edits="gone"))
    late = read(mind, "late")
    with mind.write() as tx:
        assert outbox.read_related(tx, late) == {}
        outbox.mark_sent(tx, "root", "$root")
        assert outbox.read_related(tx, late) == {"root": "$root"}


def test_what_is_queued_for_a_room_waits_until_she_has_joined_it(mind: Mind) -> None:
    with mind.write() as tx:
        insert_room(tx, "!a:x", membership="invited")
    admit(mind, new_said("s1"))
    assert next_ids(mind) == []
    with mind.write() as tx:
        tx.execute("UPDATE room SET membership = 'joined'")
    assert next_ids(mind) == ["s1"]


def test_the_first_attempt_is_kept_until_history_has_shown_that_nothing_arrived(mind: Mind) -> None:
    admit(mind, new_said("s1"))
    with mind.write() as tx:
        outbox.mark_attempted(tx, "s1", "DEVICE", 10)
        outbox.mark_attempted(tx, "s1", "OTHER", 20)
    assert (read(mind, "s1").attempted_at, read(mind, "s1").device_id) == (10, "DEVICE")
    with mind.write() as tx:
        outbox.mark_attempted(tx, "s1", "OTHER", 30, renewed=True)
    assert (read(mind, "s1").attempted_at, read(mind, "s1").device_id) == (30, "OTHER")


def test_after_a_login_nobody_knows_which_attempts_the_homeserver_remembers(mind: Mind) -> None:
    admit(mind, new_said("sent"), new_said("tried"), new_said("new"))
    with mind.write() as tx:
        for said in ("sent", "tried"):
            outbox.mark_attempted(tx, said, "DEVICE", 10)
        outbox.mark_sent(tx, "sent", "$event")
        outbox.forget_devices(tx)
    assert (read(mind, "tried").attempted_at, read(mind, "tried").device_id) == (10, None)
    assert (read(mind, "sent").device_id, read(mind, "new").state) == ("DEVICE", "queued")


def test_a_receipt_names_the_event_and_ends_the_row(mind: Mind) -> None:
    admit(mind, new_said("s1"))
    with mind.write() as tx:
        outbox.mark_attempted(tx, "s1", "DEVICE", 10)
        outbox.mark_sent(tx, "s1", "$event")
        outbox.mark_refused(tx, "s1", "too late")
        outbox.mark_wait(tx, "s1", 99, "too late")
    assert (read(mind, "s1").state, read(mind, "s1").event_id) == (SaidState.SENT, "$event")
    with mind.read() as tx:
        assert outbox.count_unsent(tx) == 0


def test_a_wait_is_remembered_when_the_mind_is_opened_again(mind: Mind) -> None:
    admit(mind, new_said("s1"))
    with mind.write() as tx:
        outbox.mark_wait(tx, "s1", 5000, "limited")
    mind.close()
    again = open_mind(mind.path)
    found = read(again, "s1")
    assert (found.not_before, found.tries, found.reason, found.state) == (5000, 1, "limited", SaidState.QUEUED)
    again.close()


@settings(max_examples=share(0.25), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(body=st.text())
def test_any_text_comes_back_as_it_was(mind: Mind, body: str) -> None:
    admit(mind, new_said(f"s-{body}", body=body))
    assert read(mind, f"s-{body}").content["body"] == body


ADMITTER = textwrap.dedent("""
    import sys
    from pathlib import Path
    from mind_body.mind import outbox
    from mind_body.mind.records import NewSaid, SaidKind
    from mind_body.mind.store import open_mind
    mind = open_mind(Path(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    new = 0
    for number in range(60):
        row = NewSaid(f"shared-{number}", SaidKind.SAY, "!a:x", "m.room.message", {"body": str(number)})
        mine = NewSaid(f"{sys.argv[2]}-{number}", SaidKind.NOTICE, "!a:x", "m.room.message", {"body": str(number)})
        with mind.write() as tx:
            new += outbox.admit_said(tx, [row, mine], None, 1)
    print(new)
""")


def test_two_processes_queue_at_once_and_nothing_is_lost_or_doubled(mind: Mind) -> None:
    command = [sys.executable, "-c", ADMITTER, str(mind.path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    children = [subprocess.Popen([*command, name], **pipes) for name in ("one", "two")]  # type: ignore[call-overload]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    outputs = []
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        outputs.append(child.communicate(timeout=30)[0])
        assert child.returncode == 0
    assert sum(map(int, outputs)) == 180
    with mind.read() as tx:
        assert outbox.count_unsent(tx) == 180
    order = []
    for _ in range(60):
        order.append(next_ids(mind)[0])
        with mind.write() as tx:
            outbox.mark_sent(tx, order[-1], f"${order[-1]}")
    assert order == [f"shared-{number}" for number in range(60)]
