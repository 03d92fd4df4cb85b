"""The lease's asking side, before a lease that is slow, deaf, away, or talks nonsense. See the conformance suite for the rest."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from mind_body.clock import now_ms
from mind_body.home import Home
from mind_body.host.peers import forget_peer, register_peer
from mind_body.host.secrets import write_secret
from mind_body.model import lease as asking
from mind_body.model.lease import Lease, make_borrow, open_lease
from mind_body.model.lease_lines import Question, Refused, Settle, Tokens
from mind_body.model.session import Usage
from mind_body.model.spend import Credential, Declined, Reserved, Trouble
from tests.builders import hold, make_home, release
from tests.fake_lease import FakeLease
from tests.fakes import Notes

TABLES = '[model]\nprovider = "openai"\nbase_url = "http://x/v1"\ncredential = "api-key"\n'
ENOUGH = Usage(uncached=3, cache_read=2, output=1)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = make_home(tmp_path, "ada", toml=TABLES)
    write_secret(made.model_key("ada"), "sk-lent")
    register_peer(made, os.getpid(), "persona", "ada")
    return made


@pytest.fixture
def fake(home: Home) -> Iterator[FakeLease]:
    found = FakeLease(home).start()
    yield found
    found.stop()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines that a test can wait for."""
    for name, seconds in {"ASK_S": 0.4, "AGAIN_S": 0.01, "SETTLE_S": 0.2, "OWED_AGAIN_S": 0.05}.items():
        monkeypatch.setattr(asking, name, seconds)


def lease(home: Home, *, run: bool = True) -> Lease:
    found = Lease(home, "ada", Notes())
    if run:
        found.open_run("run", "room:!a")
    return found


async def test_without_a_run_nothing_may_be_called_and_nobody_is_asked(home: Home, fake: FakeLease) -> None:
    assert await lease(home, run=False).reserve("a", 1) == Declined("held", "no run is granted")
    ended = lease(home)
    ended.close_run()
    assert isinstance(await ended.reserve("a", 0), Declined)
    assert fake.asked == []


async def test_a_call_is_of_the_run_of_the_conversation_that_it_is_made_for_and_of_its_model(home: Home, fake: FakeLease) -> None:
    found = lease(home)
    await found.reserve("a", 7, "claude-sonnet-4-5")
    found.turn_to("direct:!b")
    await found.reserve("b", 0)
    told = [(one.call, one.run, one.conversation, one.model, one.ceiling_micro_usd) for one in fake.asked if one.ask == "reserve"]
    assert told == [("a", "run", "room:!a", "claude-sonnet-4-5", 7), ("b", "run", "direct:!b", "", 0)]


async def test_a_settlement_tells_usage_by_model_and_what_is_wrong(home: Home, fake: FakeLease) -> None:
    found = lease(home)
    await found.reserve("a", 7)
    await found.settle("a", ENOUGH, 5, "claude-sonnet-4-5", Trouble("limited", 9, "x" * 700))
    *_, told = fake.asked
    assert isinstance(told, Settle)
    assert told.usage == {"claude-sonnet-4-5": Tokens(uncached=3, cache_read=2, output=1)}
    assert told.trouble is not None
    assert (told.cost_micro_usd, told.trouble.kind, told.trouble.until, len(told.trouble.reason)) == (5, "limited", 9, 500)


async def test_who_is_not_known_for_a_moment_still_owes_what_a_call_came_to(home: Home, fake: FakeLease) -> None:
    found = lease(home)
    assert await found.reserve("a", 600) == Reserved()
    forget_peer(home, os.getpid())
    await found.settle("a", ENOUGH, 5)
    register_peer(home, os.getpid(), "persona", "ada")
    await found.tell_last()
    assert [one.call for one in fake.asked if isinstance(one, Settle)] == ["a"]


async def test_what_is_told_without_a_call_is_no_call_that_was_declined(home: Home, fake: FakeLease) -> None:
    journal = Notes()
    found = Lease(home, "ada", journal)
    found.open_run("run", "room:!a")
    for _ in range(2):
        await found.tell("a.told", Trouble("limited", now_ms() + 60_000, "the plan's limit"))
    assert "call.declined" not in journal.kinds()


# The brake.


async def test_a_hold_declines_without_the_lease(home: Home) -> None:
    hold(home, "ada", "enough")
    with trio.fail_after(0.3):
        assert await lease(home).reserve("a", 1) == Declined("held", "enough")
        assert await lease(home).borrow() == Declined("held", "enough")


async def test_a_hold_while_the_lease_is_slow_declines_what_it_grants_and_the_call_costs_nothing(
    home: Home, fake: FakeLease
) -> None:
    def hold_now(question: Question) -> None:
        if question.ask == "reserve":
            hold(home, "ada", "enough")

    fake.after = hold_now
    assert await lease(home).reserve("a", 900) == Declined("held", "enough")
    assert (fake.count("settle"), fake.cost()) == (1, 0)


async def test_a_control_file_that_cannot_be_read_holds(home: Home, fake: FakeLease) -> None:
    (home.control_dir("ada") / "dial.toml").unlink()
    assert isinstance(await lease(home).reserve("a", 0), Declined)
    assert fake.asked == []


# A lease that does not answer.


async def test_a_lease_that_is_not_there_is_a_fault_with_a_sentence_and_no_exception(home: Home) -> None:
    for found in (await lease(home).reserve("a", 1), await lease(home).borrow()):
        assert isinstance(found, Declined)
        assert found.kind == "fault"
        assert "the lease does not answer: nobody answers at" in found.reason
        assert found.until is not None
        assert 3_000 < found.until - now_ms() <= 5_000


async def test_a_lease_that_starts_again_in_time_is_waited_for(home: Home) -> None:
    fake = FakeLease(home)
    threading.Timer(0.15, fake.start).start()
    assert await lease(home).reserve("a", 1) == Reserved()
    fake.stop()


async def test_a_lost_connection_is_tried_again_and_the_call_is_reserved_once(home: Home, fake: FakeLease) -> None:
    lost = iter([b"", b"{"])
    fake.after = lambda _: next(lost, None)
    assert await lease(home).reserve("a", 600) == Reserved()
    assert (fake.count("reserve"), fake.cost()) == (3, 600)


async def test_a_lease_that_says_nothing_is_given_up_and_what_it_may_have_reserved_is_settled_at_nothing(
    home: Home, fake: FakeLease
) -> None:
    silent = threading.Event()

    def keep_silent(question: Question) -> None:
        if question.ask == "reserve":
            silent.wait(2)

    fake.after = keep_silent
    found = lease(home)
    with trio.fail_after(1):
        declined = await found.reserve("a", 600)
    assert isinstance(declined, Declined)
    assert declined.kind == "fault"
    assert fake.cost() == 600, "reserved, and nobody heard of it"
    silent.set()
    assert await found.reserve("b", 600) == Reserved()
    assert fake.cost() == 600


async def test_an_answer_that_is_none_is_a_fault(home: Home, fake: FakeLease) -> None:
    fake.before = lambda _: b'{"answer": "maybe"}\n'
    declined = await lease(home).reserve("a", 1)
    assert isinstance(declined, Declined)
    assert (declined.kind, "is no answer" in declined.reason) == ("fault", True)
    fake.before = lambda _: b'{"answer": "granted"}\n'
    lent = await lease(home).borrow()
    assert isinstance(lent, Declined)
    assert lent.kind == "fault"


async def test_a_lent_line_without_its_descriptor_lends_nothing(home: Home, fake: FakeLease) -> None:
    fake.before = lambda _: b'{"answer": "lent", "kind": "api-key"}\n'
    assert isinstance(await lease(home).borrow(), Declined)


@pytest.mark.parametrize("kind", ["fault", "peer"])
async def test_a_fault_of_the_leases_is_asked_again_soon(home: Home, fake: FakeLease, kind: str) -> None:
    fake.refusals["reserve"] = Refused(kind=kind, reason="the ledger cannot be read")
    declined = await lease(home).reserve("a", 1)
    assert isinstance(declined, Declined)
    assert (declined.kind, declined.reason) == ("fault", "the ledger cannot be read")
    assert declined.until is not None
    fake.refusals["reserve"] = Refused(kind=kind, reason="later", until=77)
    assert await lease(home).reserve("a", 1) == Declined("fault", "later", 77)


@pytest.mark.parametrize("kind", ["held", "budget", "spend", "limited", "overloaded", "authentication", "payment"])
async def test_every_other_no_keeps_its_name_and_its_end(home: Home, fake: FakeLease, kind: str) -> None:
    for until in (None, 1_900_000_000_000):
        fake.refusals["reserve"] = Refused(kind=kind, reason="so", until=until)
        assert await lease(home).reserve("a", 1) == Declined(kind, "so", until)  # type: ignore[arg-type]
    assert fake.count("settle") == 0, "what was refused is not reserved"


# What is owed.


async def test_a_settlement_that_did_not_arrive_holds_nobody_up_and_is_told_before_the_next_question(
    home: Home, fake: FakeLease
) -> None:
    found = lease(home)
    await found.reserve("a", 900)
    fake.stop()
    with trio.fail_after(1):
        await found.settle("a", ENOUGH, 100)
    declined = await found.reserve("b", 900)
    assert isinstance(declined, Declined)
    assert "nobody answers at" in declined.reason
    fake.start()
    assert await found.reserve("c", 900) == Reserved()
    assert [one.ask for one in fake.asked] == ["reserve", "settle", "settle", "reserve"]


async def test_what_is_owed_is_told_in_the_background_without_another_question(home: Home, fake: FakeLease) -> None:
    async with open_lease(home, "ada", Notes()) as found:
        found.open_run("run")
        await found.reserve("a", 900)
        fake.stop()
        await found.settle("a", ENOUGH, 100)
        fake.start()
        with trio.fail_after(3):
            while fake.cost() != 100:
                await trio.sleep(0.01)


async def test_a_settlement_that_the_ledger_could_not_take_is_told_again(home: Home, fake: FakeLease) -> None:
    found = lease(home)
    await found.reserve("a", 900)
    fake.refusals["settle"] = Refused(kind="fault", reason="the disk is full")
    await found.settle("a", ENOUGH, 100)
    assert fake.cost() == 900
    fake.refusals.clear()
    assert await found.reserve("b", 900) == Reserved()


async def test_a_settlement_is_not_lost_to_a_cancellation(home: Home, fake: FakeLease) -> None:
    found = lease(home)
    await found.reserve("a", 900)
    with trio.CancelScope() as scope:
        scope.cancel()
        await found.settle("a", ENOUGH, 100)
    assert scope.cancelled_caught
    assert await found.reserve("b", 900) == Reserved()


async def test_a_reservation_that_was_given_up_in_the_middle_costs_nothing(home: Home, fake: FakeLease) -> None:
    asked, go = threading.Event(), threading.Event()

    def wait(question: Question) -> None:
        if question.ask == "reserve":
            asked.set()
            go.wait(2)

    fake.after = wait
    found = lease(home)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(found.reserve, "a", 900)
        with trio.fail_after(2):
            while not asked.is_set():
                await trio.sleep(0.005)
        nursery.cancel_scope.cancel()
    go.set()
    fake.after = lambda _: None
    assert await found.reserve("b", 900) == Reserved()


async def test_what_is_still_owed_when_she_leaves_is_told_at_the_last(home: Home, fake: FakeLease) -> None:
    with trio.CancelScope() as scope:
        async with open_lease(home, "ada", Notes()) as found:
            found.open_run("run")
            await found.reserve("a", 900)
            found.report(50, 60)
            scope.cancel()
            await found.settle("a", ENOUGH, 100)
    assert (fake.cost(), fake.reports) == (100, {"run": (50, 60)})


async def test_a_settlement_that_never_arrives_is_given_up_with_a_line_in_the_journal(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "OWED_S", 0.1)
    notes = Notes()
    async with open_lease(home, "ada", notes) as found:
        await found.settle("a", ENOUGH, 100)
        with trio.fail_after(3):
            while "call.unsettled" not in notes.kinds():
                await trio.sleep(0.01)


async def test_reports_add_up_over_the_run_and_the_newest_sum_is_told(home: Home, fake: FakeLease) -> None:
    async with open_lease(home, "ada", Notes()) as found:
        found.report(1, 1)  # of no run
        found.open_run("run")
        found.report(100, 101)
        found.report(50, 52)
        with trio.fail_after(2):
            while fake.reports != {"run": (150, 153)}:
                await trio.sleep(0.01)


async def test_a_trouble_that_the_lease_knows_already_is_not_told_again(home: Home, fake: FakeLease) -> None:
    found = lease(home)
    until = now_ms() + 60_000
    await found.tell("a.told", Trouble("limited", until, "the plan's"))
    assert await found.reserve("b", 1) == Declined("limited", "the plan's", until)
    await found.tell("b.told", Trouble("limited", until, "the plan's"))
    assert fake.count("settle") == 1


async def test_who_needs_no_credential_asks_nobody(home: Home, fake: FakeLease) -> None:
    assert await make_borrow(lease(home), "none")() is None
    assert fake.asked == []
    assert await make_borrow(lease(home), "api-key")() == "sk-lent"
    release(home, "ada")


async def test_what_was_borrowed_is_closed(home: Home, fake: FakeLease) -> None:
    for _ in range(5):
        assert await lease(home).borrow() == Credential("sk-lent")
    fake.before = lambda _: b'{"answer": "noted"}\n'
    assert isinstance(await lease(home).borrow(), Declined)
    with trio.fail_after(2):
        while opened(home.model_key("ada")):  # the fake closes its own a moment later
            await trio.sleep(0.01)


def opened(path: Path) -> list[Path]:
    """Our descriptors of a file."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found += [link] if link.readlink() == path else []
    return found
