"""The lease's asking side: what may be called, and what it comes to."""

from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from mind_body.control.effective import BrakeFile, DialFile
from mind_body.control.files import write_brake, write_dial
from mind_body.errors import CredentialError
from mind_body.home import Home
from mind_body.host.secrets import write_secret
from mind_body.log import Journal
from mind_body.model.lease import Lease
from mind_body.model.session import Usage
from mind_body.model.spend import Declined, Reserved
from tests.builders import make_home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = make_home(tmp_path, "ada")
    write_brake(found, "ada", BrakeFile(state="released"))
    write_dial(found, "ada", DialFile(base_run_usd=0.001))  # a run may cost 1,000 micro-USD
    return found


def lease(home: Home, settled: int | None = 0) -> Lease:
    found = Lease(home, "ada", Journal("persona", "ada"))
    if settled is not None:
        found.open_run("run", settled)
    return found


async def test_without_a_run_nothing_may_be_called(home: Home) -> None:
    assert await lease(home, None).reserve("a", 1) == Declined("held", "no run is granted")
    ended = lease(home)
    ended.close_run()
    assert isinstance(await ended.reserve("a", 0), Declined)


async def test_a_held_brake_declines_the_very_next_call(home: Home) -> None:
    found = lease(home)
    assert await found.reserve("a", 1) == Reserved()
    write_brake(home, "ada", BrakeFile(state="held", reason="enough"))
    assert await found.reserve("b", 1) == Declined("held", "enough")


async def test_a_control_file_that_cannot_be_read_holds(home: Home) -> None:
    (home.control_dir("ada") / "dial.toml").unlink()
    assert isinstance(await lease(home).reserve("a", 0), Declined)


async def test_open_reservations_count_whole_until_they_are_settled(home: Home) -> None:
    found = lease(home)
    assert await found.reserve("a", 900) == Reserved()
    declined = await found.reserve("b", 200)
    assert isinstance(declined, Declined)
    assert (declined.kind, declined.until) == ("budget", None)
    assert "$0.000200" in declined.reason
    await found.settle("a", Usage(), 100)
    assert await found.reserve("b", 900) == Reserved()
    assert isinstance(await found.reserve("c", 1), Declined)


async def test_what_the_run_has_cost_before_counts(home: Home) -> None:
    assert isinstance(await lease(home, 950).reserve("a", 100), Declined)
    assert await lease(home, 900).reserve("a", 100) == Reserved()


async def test_reserving_and_settling_are_idempotent_by_call_id(home: Home) -> None:
    found = lease(home)
    assert await found.reserve("a", 600) == Reserved()
    assert await found.reserve("a", 600) == Reserved()
    await found.settle("a", Usage(), 400)
    await found.settle("a", Usage(), 400)
    assert isinstance(await found.reserve("a", 1), Declined), "a call that was made is not made again"
    assert await found.reserve("b", 600) == Reserved()


async def test_settling_what_was_never_reserved_changes_nothing(home: Home) -> None:
    found = lease(home)
    await found.settle("x", Usage(), 1_000)
    assert await found.reserve("a", 1_000) == Reserved()


async def test_the_dial_is_read_anew_at_every_call(home: Home) -> None:
    found = lease(home)
    assert isinstance(await found.reserve("a", 1_500), Declined)
    write_dial(home, "ada", DialFile(base_run_usd=0.001, heat=2.0))
    assert await found.reserve("a", 1_500) == Reserved()


async def test_a_free_call_is_made_where_nothing_may_be_spent(home: Home) -> None:
    write_dial(home, "ada", DialFile(base_run_usd=0))
    assert await lease(home).reserve("a", 0) == Reserved()


def test_a_credential_is_borrowed_and_hidden(home: Home) -> None:
    found = lease(home)
    with pytest.raises(CredentialError, match=r"ada\.model-key"):
        found.borrow()
    write_secret(home.credentials / "ada.model-key", "sk-secret")
    credential = found.borrow()
    assert credential.secret == "sk-secret"
    assert "sk-secret" not in repr(credential) + str(credential)


amounts = st.integers(0, 600)


@settings(max_examples=30)
@given(st.lists(st.tuples(amounts, st.booleans(), amounts), max_size=8))
def test_what_was_let_through_never_passes_the_cap(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[int, bool, int]]
) -> None:
    root = tmp_path_factory.getbasetemp() / "cap"
    home = make_home(root, "ada")
    write_brake(home, "ada", BrakeFile(state="released"))
    write_dial(home, "ada", DialFile(base_run_usd=0.001))

    async def play() -> int:
        found, committed = lease(home), 0
        for number, (ceiling, settle, part) in enumerate(calls):
            if isinstance(await found.reserve(str(number), ceiling), Reserved):
                cost = min(part, ceiling) if settle else ceiling
                committed += cost
                if settle:
                    await found.settle(str(number), Usage(), cost)
        return committed

    assert trio.run(play) <= 1_000
