"""What a half of a Mind may rely on of its lease: one suite for the fake and for the real organ, through the asking side."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from mind_body.clock import now_ms
from mind_body.config import find_home
from mind_body.control.effective import DialFile
from mind_body.control.files import write_dial
from mind_body.home import Home
from mind_body.host.peers import forget_peer, register_peer
from mind_body.host.secrets import write_secret
from mind_body.log import Journal
from mind_body.model.lease import Lease
from mind_body.model.session import Usage
from mind_body.model.spend import Credential, Declined, Reserved, Trouble
from tests.builders import hold, make_home
from tests.fake_lease import FakeLease
from tests.real.parts.lease import start_lease

SECRET = "sk-lent-0123456789"
TABLES = """
[model]
provider = "openai"
base_url = "http://x/v1"
credential = "api-key"
[self]
enabled = true
base_url = "http://x/v1"
credential = "oauth-token"
"""


class Closeable(Protocol):
    def close(self) -> None: ...


@dataclass
class Place:
    """A home with a lease, and this process as one half of the Mind before it."""

    home: Home
    kind: str
    lease: Closeable | None = None

    def start(self) -> None:
        if self.kind == "fake":
            fake = FakeLease(self.home)
            fake.start()
            self.lease = _Stopping(fake)
        else:
            self.lease = start_lease(self.home)

    def half(self, organ: str = "persona", run: str | None = "run") -> Lease:
        register_peer(self.home, os.getpid(), organ, "ada")
        found = Lease(self.home, "ada", Journal(organ, "ada"))
        if run is not None:
            found.open_run(run, "room:!a")
        return found


@dataclass
class _Stopping:
    fake: FakeLease

    def close(self) -> None:
        self.fake.stop()


@contextmanager
def placed(root: Path, kind: str) -> Iterator[Place]:
    make_home(root, "ada", toml=TABLES)
    home = find_home(str(root))
    home.run.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_dial(home, "ada", DialFile(base_run_usd=0.001))  # a run may cost 1,000 micro-USD
    write_secret(home.model_key("ada"), SECRET)
    place = Place(home, kind)
    place.start()
    try:
        yield place
    finally:
        forget_peer(home, os.getpid())
        assert place.lease is not None
        place.lease.close()


@pytest.fixture(params=["fake", "real"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with placed(tmp_path, request.param) as found:
        yield found


async def test_who_is_no_half_of_a_mind_gets_nothing(place: Place) -> None:
    half = place.half()
    forget_peer(place.home, os.getpid())
    lent, reserved = await half.borrow(), await half.reserve("a", 0)
    assert isinstance(lent, Declined)
    assert isinstance(reserved, Declined)
    assert (lent.kind, reserved.kind) == ("fault", "fault")
    assert str(os.getpid()) in lent.reason
    assert lent.until is not None, "it may be registered in a moment"


async def test_a_credential_is_lent_and_in_no_repr(place: Place) -> None:
    lent = await place.half().borrow()
    assert isinstance(lent, Credential)
    assert lent.secret == SECRET
    assert SECRET not in repr(lent) + str(lent)


async def test_each_half_is_lent_its_own_and_a_self_without_one_her_personas(place: Place) -> None:
    assert await place.half("self").borrow() == Credential(SECRET)
    write_secret(place.home.credentials / "ada.self-key", "sk-of-the-self")
    assert await place.half("self").borrow() == Credential("sk-of-the-self")
    assert await place.half().borrow() == Credential(SECRET)


async def test_a_credential_is_read_anew_each_time(place: Place) -> None:
    half = place.half()
    await half.borrow()
    write_secret(place.home.model_key("ada"), "sk-new")
    assert await half.borrow() == Credential("sk-new")


async def test_a_missing_credential_is_an_operators_matter_and_named(place: Place) -> None:
    place.home.model_key("ada").unlink()
    for found in (await place.half().borrow(), await place.half().reserve("a", 1)):
        assert isinstance(found, Declined)
        assert (found.kind, found.until) == ("authentication", None)
        assert "ada.model-key" in found.reason


async def test_a_held_brake_declines_the_very_next_call(place: Place) -> None:
    half = place.half()
    assert await half.reserve("a", 1) == Reserved()
    hold(place.home, "ada", "enough")
    assert await half.reserve("b", 1) == Declined("held", "enough")
    assert await half.borrow() == Declined("held", "enough")


async def test_what_is_reserved_counts_whole_until_it_is_settled(place: Place) -> None:
    half = place.half()
    assert await half.reserve("a", 900) == Reserved()
    declined = await half.reserve("b", 200)
    assert isinstance(declined, Declined)
    assert declined.kind == "budget"
    assert declined.until is not None, "another run has room for it"
    assert "$0.000200" in declined.reason
    await half.settle("a", Usage(output=7), 100, "claude-sonnet-4-5")
    assert await half.reserve("b", 900) == Reserved()
    assert isinstance(await half.reserve("c", 1), Declined)
    too_dear = await half.reserve("d", 1_001)
    assert isinstance(too_dear, Declined)
    assert (too_dear.kind, too_dear.until) == ("budget", None), "no run has"


async def test_a_runs_cap_is_that_runs_alone_whatever_process_asks(place: Place) -> None:
    assert await place.half(run="one").reserve("a", 950) == Reserved()
    assert isinstance(await place.half(run="one").reserve("b", 100), Declined), "another process of the same run"
    assert await place.half(run="two").reserve("b", 100) == Reserved()


async def test_reserving_and_settling_are_idempotent_by_call_id(place: Place) -> None:
    half = place.half()
    assert await half.reserve("a", 600) == Reserved()
    assert await half.reserve("a", 600) == Reserved()
    await half.settle("a", Usage(), 400)
    await half.settle("a", Usage(), 400)
    assert isinstance(await half.reserve("a", 1), Declined), "a call that was made is not made again"
    assert await half.reserve("b", 600) == Reserved()


async def test_settling_what_was_never_reserved_changes_nothing(place: Place) -> None:
    half = place.half()
    await half.settle("x", Usage(), 1_000)
    assert await half.reserve("a", 1_000) == Reserved()


async def test_the_dial_is_read_anew_at_every_call(place: Place) -> None:
    half = place.half()
    assert isinstance(await half.reserve("a", 1_500), Declined)
    write_dial(place.home, "ada", DialFile(base_run_usd=0.001, heat=2.0))
    assert await half.reserve("a", 1_500) == Reserved()


async def test_a_free_call_is_made_where_nothing_may_be_spent(place: Place) -> None:
    write_dial(place.home, "ada", DialFile(base_run_usd=0))
    assert await place.half().reserve("a", 0) == Reserved()


async def test_her_day_is_a_cap_over_all_runs_and_says_when_it_opens_again(place: Place) -> None:
    with place.home.mind_file("ada").open("a") as file:
        file.write("[spend]\nday_usd = 0.0015\n")
    assert await place.half(run="one").reserve("a", 900) == Reserved()
    declined = await place.half("self", run="two").reserve("b", 700)
    assert isinstance(declined, Declined)
    assert declined.kind == "spend"
    assert declined.until is not None
    assert 0 < declined.until - now_ms() <= 25 * 3_600_000


async def test_a_limit_of_one_call_holds_every_call_with_that_credential_until_its_reset(place: Place) -> None:
    until = now_ms() + 700
    persona = place.half()
    await persona.reserve("a", 10)
    await persona.settle("a", Usage(), 0, trouble=Trouble("limited", until, "HTTP 429"))
    expected = Declined("limited", "HTTP 429", until)
    assert await persona.reserve("b", 10) == expected
    assert await place.half("self").reserve("c", 10) == expected, "the same secret for the same server, lent to her other half"
    await trio.sleep((until - now_ms()) / 1000 + 0.05)
    assert await persona.reserve("d", 10) == Reserved()


async def test_a_refused_credential_stops_every_call_until_somebody_changes_it(place: Place) -> None:
    half = place.half()
    await trio.sleep(0.01)
    await half.reserve("a", 10)
    await half.settle("a", Usage(), 0, trouble=Trouble("authentication", None, "HTTP 401"))
    assert await half.reserve("b", 10) == Declined("authentication", "HTTP 401")
    assert await half.reserve("c", 0) == Declined("authentication", "HTTP 401")
    await trio.sleep(0.01)
    write_secret(place.home.model_key("ada"), "sk-new")
    assert await half.reserve("d", 10) == Reserved()


@pytest.mark.parametrize("kind", ["overloaded", "payment"])
async def test_every_trouble_has_its_own_name(place: Place, kind: str) -> None:
    half, until = place.half(), now_ms() + 60_000 if kind == "overloaded" else None
    await half.reserve("a", 10)
    await half.settle("a", Usage(), 0, trouble=Trouble(kind, until, "because"))  # type: ignore[arg-type]
    assert await half.reserve("b", 10) == Declined(kind, "because", until)  # type: ignore[arg-type]


async def test_a_trouble_can_be_told_without_a_call_of_its_own(place: Place) -> None:
    half, until = place.half(), now_ms() + 60_000
    await half.tell("a.told", Trouble("limited", until, "the plan's"))
    assert await half.reserve("b", 10) == Declined("limited", "the plan's", until)


async def test_a_settlement_that_did_not_arrive_is_told_with_the_next_question(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mind_body.model.lease.SETTLE_S", 0.1)
    half = place.half()
    assert await half.reserve("a", 900) == Reserved()
    assert place.lease is not None
    place.lease.close()
    await half.settle("a", Usage(), 100)
    if isinstance(place.lease, _Stopping):
        place.lease.fake.start()
    else:
        place.start()
    assert await half.reserve("b", 900) == Reserved()


async def test_calls_side_by_side_do_not_pass_the_cap_together(place: Place) -> None:
    half, granted = place.half(), []

    async def ask(number: int) -> None:
        granted.append(isinstance(await half.reserve(str(number), 150), Reserved))

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(ask, number)
    assert sum(granted) == 6


amounts = st.integers(0, 600)


@pytest.mark.parametrize("kind", ["fake", "real"])
def test_what_was_let_through_never_passes_the_cap(tmp_path: Path, kind: str) -> None:
    with placed(tmp_path, kind) as place:
        runs = iter(range(1_000_000))

        async def play(calls: list[tuple[int, bool, int]]) -> int:
            run, committed = f"run-{next(runs)}", 0
            found = place.half(run=run)
            for number, (ceiling, settle, part) in enumerate(calls):
                if isinstance(await found.reserve(f"{run}.{number}", ceiling), Reserved):
                    cost = min(part, ceiling) if settle else ceiling
                    committed += cost
                    if settle:
                        await found.settle(f"{run}.{number}", Usage(), cost)
            return committed

        @settings(max_examples=20)
        @given(st.lists(st.tuples(amounts, st.booleans(), amounts), max_size=8))
        def holds(calls: list[tuple[int, bool, int]]) -> None:
            assert trio.run(play, calls) <= 1_000

        holds()
