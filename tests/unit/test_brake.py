"""`mind brake` on many Minds at once: all are held before anybody is waited for, and one that is broken holds up no other."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from mind_body.cli.acted import carry_out
from mind_body.control.effective import BrakeFile, Held, Released
from mind_body.control.files import read_control, write_brake
from mind_body.home import Home
from mind_body.host.liveness import take_hold
from mind_body.host.poke import Pokes, open_poke_socket
from mind_body.mind.acks import admit_ack
from mind_body.mind.store import open_mind
from tests import builders
from tests.homes import call, make_home

DEADLINE_S = 20.0


def runs(home: Home, stack: ExitStack, organ: str, name: str | None = None) -> Pokes:
    """Somebody stands at this organ's post, until the stack is closed."""
    hold = take_hold(home.lock_file(organ, name), f"a-{organ}")
    assert hold is not None
    stack.callback(hold.release)
    return stack.enter_context(closing(Pokes(open_poke_socket(home.socket_of(organ, name)))))


def acts(home: Home, organ: str, name: str) -> None:
    with closing(open_mind(home.mind_db(name))) as mind, mind.write() as tx:
        admit_ack(tx, organ, read_control(home, name), 1)


def hold_all(home: Home, names: list[str]) -> Callable[[str], None]:
    return lambda name: write_brake(home, name, BrakeFile(state="held", reason=f"all {len(names)}"))


async def test_every_brake_is_written_before_anybody_is_poked_or_waited_for(tmp_path: Path) -> None:
    names = [f"mind-{number}" for number in range(30)]
    home = builders.make_home(tmp_path, *names)
    done: list[str] = []
    with ExitStack() as stack:
        pokes = runs(home, stack, "heartbeat")

        async def look() -> None:
            assert await pokes.wait(DEADLINE_S)
            assert all(isinstance(read_control(home, name), Held) for name in names)
            for name in reversed(names):
                acts(home, "heartbeat", name)

        with trio.fail_after(DEADLINE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(look)
                assert await carry_out(home, names, hold_all(home, names), DEADLINE_S, done.append) == {}
    assert sorted(done) == sorted(names)


async def test_they_are_waited_for_together_and_the_slow_one_is_named(tmp_path: Path, autojump_clock: MockClock) -> None:
    names = ["ada", "bea", "cleo"]
    home = builders.make_home(tmp_path, *names)
    done: list[str] = []
    with ExitStack() as stack:
        runs(home, stack, "self", "bea")
        runs(home, stack, "persona", "cleo")
        began = autojump_clock.current_time()
        faults = await carry_out(home, names, hold_all(home, names), 10.0, done.append)
    assert done == ["ada"], "nobody acts for her"
    assert sorted(faults) == ["bea", "cleo"]
    assert "the self did not tell within 10 s" in str(faults["bea"])
    assert autojump_clock.current_time() - began == pytest.approx(10.0), "one wait for all of them"


@pytest.mark.parametrize("half", ["persona", "self"])
async def test_a_half_that_runs_is_poked_and_one_that_does_not_run_is_not_started(tmp_path: Path, half: str) -> None:
    home = builders.make_home(tmp_path, "ada", "bea")
    with ExitStack() as stack:
        running = runs(home, stack, half, "ada")
        resting = stack.enter_context(closing(Pokes(open_poke_socket(home.socket_of(half, "bea")))))
        lease = runs(home, stack, "lease")
        await carry_out(home, ["ada", "bea"], hold_all(home, ["ada", "bea"]), 0.0, lambda _: None)
        assert running.drain()
        assert lease.drain(), "the lease is poked, and keeps no acknowledgement"
        assert not resting.drain()


def test_a_half_that_ends_meanwhile_has_acted(tmp_path: Path) -> None:
    home = builders.make_home(tmp_path, "ada")
    stack = ExitStack()
    runs(home, stack, "self", "ada")

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ends)
            assert await carry_out(home, ["ada"], hold_all(home, ["ada"]), DEADLINE_S, lambda _: None) == {}

    async def ends() -> None:
        await trio.sleep(0.1)
        stack.close()

    trio.run(main)


@pytest.mark.parametrize("broken", ["mind", "control", "dial"])
def test_one_broken_mind_is_named_and_the_others_are_held(tmp_path: Path, broken: str) -> None:
    home = make_home(tmp_path, "ada", "bea", "cleo", released=True)
    if broken == "mind":
        home.mind_db("bea").write_bytes(b"\0" * 8192)
    elif broken == "control":
        for file in home.control_dir("bea").iterdir():
            file.unlink()
        home.control_dir("bea").rmdir()
        home.control_dir("bea").write_text("a file in its place")
    else:
        (home.control_dir("bea") / "dial.toml").write_text("heat = 99.0\n")
    with ExitStack() as stack:
        runs(home, stack, "mouth")
        for name in ("ada", "cleo"):
            write_brake(home, name, BrakeFile(state="held", reason="stop"))
            acts(home, "mouth", name)
            write_brake(home, name, BrakeFile(state="released"))
        told = call(home, "brake", "hold", "--all", "--reason", "stop", "--wait", "0.2")
    assert told.stdout.splitlines() == ["ada is held: stop.", "cleo is held: stop."]
    assert told.stderr.startswith("mind: bea: ")
    assert len(told.stderr.splitlines()) == 1
    assert told.exit_code == (78 if broken == "mind" else 1)
    assert all(isinstance(read_control(home, name), Held) for name in ("ada", "bea", "cleo"))


def test_a_release_of_all_releases_whom_it_can_and_names_the_rest(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada", "bea", "cleo")
    (home.control_dir("bea") / "dial.toml").write_text("heat = 99.0\n")
    told = call(home, "brake", "release", "--all")
    assert told.exit_code == 78
    assert told.stdout.splitlines() == ["ada is released.", "cleo is released."]
    assert "bea: bea is still held" in told.stderr
    assert isinstance(read_control(home, "cleo"), Released)
