"""`mind up` with organs of a few lines: started, poked, started again, held, given up, ended."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from mind_body.cli.organs import Organs
from mind_body.cli.restart import Again, WaitForOperator, decide_restart
from mind_body.cli.up import run_organs
from mind_body.control.effective import Control
from mind_body.control.files import read_control
from mind_body.errors import ConfigError, MindBodyError
from mind_body.home import Home, directory_home, system_home
from mind_body.host.handover import ask_line
from mind_body.host.liveness import take_hold
from mind_body.host.peers import Peer, read_peer
from mind_body.host.poke import send_poke
from mind_body.log import Journal
from mind_body.settings import HostConfig
from tests.builders import add_mind, hold, make_home, release

HOST = HostConfig(restart_min_s=0.05, restart_max_s=0.2)

FAKE = """
import json, os, signal, socket, sys, time
diary, organ, deed = sys.argv[1:]
def note(what):
    with open(diary, "a") as file:
        file.write(json.dumps([organ, what, os.getpid(), time.monotonic()]) + "\\n")
def leave(*_):
    note("term")
    sys.exit(0)
if deed == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
else:
    signal.signal(signal.SIGTERM, leave)
names = os.environ["LISTEN_FDNAMES"].split(":")
assert os.environ["LISTEN_PID"] == str(os.getpid()) and os.environ["LISTEN_FDS"] == str(len(names))
assert names == (["poke", "stream"] if organ == "lease" else ["poke"])
assert len(os.listdir("/proc/self/fd")) == 3 + len(names) + 1, "nothing else is handed on"
poked = socket.socket(fileno=3)
poked.setblocking(True)
note("start")
if deed.startswith("exit"):
    sys.exit(int(deed[4:]))
while True:
    poked.recv(16)
    note("poke")
    if deed == "once":
        sys.exit(0)
"""


class Yard:
    """A home, fake organs, and the diary that they write."""

    def __init__(self, root: Path) -> None:
        self.home: Home = make_home(root, "ada")
        self.diary = root / "diary"
        self.deeds: dict[str, str] = {"lease": "stay", "mouth": "stay", "heartbeat": "stay", "persona": "once", "self": "once"}

    def command(self, _home: Home, organ: str, mind: str | None) -> Sequence[str]:
        who = f"{organ}@{mind}" if mind else organ
        return [sys.executable, "-S", "-c", FAKE, str(self.diary), who, self.deeds[organ]]

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Organs(self.home, HOST, Journal("up"), self.command).run)
            await self.until(lambda: all(self.count(organ, "start") > 0 for organ in ("lease", "mouth", "heartbeat")))
            await self.until(lambda: self.home.persona_socket("ada").exists() and self.home.self_socket("ada").exists())
            yield
            nursery.cancel_scope.cancel()

    def lines(self) -> list[tuple[str, str, int, float]]:
        text = self.diary.read_text() if self.diary.exists() else ""
        return [tuple(json.loads(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def count(self, organ: str, what: str) -> int:
        return sum(line[0] == organ and line[1] == what for line in self.lines())

    def pids(self) -> set[int]:
        return {line[2] for line in self.lines()}

    def newest(self, organ: str) -> int:
        return [line[2] for line in self.lines() if line[0] == organ][-1]

    async def until(self, condition: Callable[[], bool], seconds: float = 15.0) -> None:
        with trio.fail_after(seconds):
            while not condition():
                await trio.sleep(0.01)


@pytest.fixture
def yard() -> Iterator[Yard]:
    with TemporaryDirectory(prefix="mind-") as directory:
        made = Yard(Path(directory))
        yield made
        assert not [pid for pid in made.pids() if is_running(pid)], "nothing is left running"


def is_running(pid: int) -> bool:
    try:
        return f"{pid} (" in Path(f"/proc/{pid}/stat").read_text() and ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


async def test_daemons_start_at_once_and_a_persona_at_her_first_poke_which_she_takes_herself(yard: Yard) -> None:
    async with yard.up():
        assert yard.count("persona@ada", "start") == 0
        assert send_poke(yard.home.persona_socket("ada")) is None
        await yard.until(lambda: yard.count("persona@ada", "poke") == 1)
        await yard.until(lambda: yard.count("heartbeat", "poke") == 1)
        assert send_poke(yard.home.persona_socket("ada")) is None
        await yard.until(lambda: yard.count("persona@ada", "poke") == 2)
    assert yard.count("mouth", "term") == yard.count("heartbeat", "term") == yard.count("lease", "term") == 1


async def test_the_lease_ends_after_all_others_so_that_they_can_settle(yard: Yard) -> None:
    yard.deeds["persona"] = "stay"
    async with yard.up():
        send_poke(yard.home.persona_socket("ada"))
        await yard.until(lambda: yard.count("persona@ada", "start") == 1)
    ends = [line[0] for line in yard.lines() if line[1] == "term"]
    assert ends[-1] == "lease"
    assert sorted(ends) == ["heartbeat", "lease", "mouth", "persona@ada"]
    assert not yard.home.lease_socket.exists()


async def test_a_half_is_registered_while_it_runs_and_forgotten_after_and_no_daemon_ever_is(yard: Yard) -> None:
    yard.deeds["persona"] = "stay"
    yard.home.peers_dir.mkdir(parents=True)
    left = yard.home.peers_dir / "999999999"
    left.write_text("{}")
    async with yard.up():
        assert not left.exists(), "of a process that nobody lived to forget"
        send_poke(yard.home.persona_socket("ada"))
        await yard.until(lambda: yard.count("persona@ada", "start") == 1)
        pid = yard.newest("persona@ada")
        assert read_peer(yard.home, pid) == Peer("persona", "ada")
        assert [path.name for path in yard.home.peers_dir.iterdir()] == [str(pid)]
        os.kill(pid, signal.SIGKILL)
        await yard.until(lambda: not list(yard.home.peers_dir.iterdir()))


async def test_a_half_that_cannot_be_registered_is_not_started_and_tried_again(yard: Yard) -> None:
    yard.home.peers_dir.write_text("in the way")
    async with yard.up():
        send_poke(yard.home.persona_socket("ada"))
        await trio.sleep(0.3)
        assert yard.count("persona@ada", "start") == 0
        yard.home.peers_dir.unlink()
        await yard.until(lambda: yard.count("persona@ada", "start") == 1)


async def test_a_question_to_the_lease_waits_for_it_while_it_is_away(yard: Yard) -> None:
    async with yard.up():
        os.kill(yard.newest("lease"), signal.SIGKILL)
        with socket.socket(socket.AF_UNIX) as asker:
            asker.connect(str(yard.home.lease_socket))
            asker.send(b"a question")
            await yard.until(lambda: yard.count("lease", "start") == 2)


async def test_each_half_has_its_own_socket_and_a_self_starts_at_its_first_poke_alone(yard: Yard) -> None:
    async with yard.up():
        assert send_poke(yard.home.self_socket("ada")) is None
        await yard.until(lambda: yard.count("self@ada", "poke") == 1)
        await yard.until(lambda: yard.count("heartbeat", "poke") == 1)
        assert yard.count("persona@ada", "start") == 0
        yard.deeds["self"] = "stay"
        assert send_poke(yard.home.self_socket("ada")) is None
        await yard.until(lambda: yard.count("self@ada", "start") == 2)
        hold(yard.home, "ada")
        await yard.until(lambda: yard.count("self@ada", "term") == 1)


async def test_a_daemon_that_dies_is_started_again_and_keeps_the_pokes_that_came_meanwhile(yard: Yard) -> None:
    async with yard.up():
        first = yard.newest("mouth")
        os.kill(first, signal.SIGKILL)
        await yard.until(lambda: not is_running(first))
        assert send_poke(yard.home.mouth_socket) is None
        await yard.until(lambda: yard.count("mouth", "start") == 2 and yard.count("mouth", "poke") == 1)
        await yard.until(lambda: yard.count("heartbeat", "poke") == 1)


async def test_a_persona_that_keeps_dying_with_her_poke_unread_backs_off(yard: Yard) -> None:
    yard.deeds["persona"] = "exit1"
    async with yard.up():
        send_poke(yard.home.persona_socket("ada"))
        await yard.until(lambda: yard.count("persona@ada", "start") == 5)
        starts = [line[3] for line in yard.lines() if line[:2] == ("persona@ada", "start")]
        assert all(later - earlier >= 0.05 * 2**i for i, (earlier, later) in enumerate(pairwise(starts[:4])))


async def test_a_persona_that_leaves_her_poke_unread_is_not_started_without_end(yard: Yard) -> None:
    yard.deeds["persona"] = "exit0"
    async with yard.up():
        send_poke(yard.home.persona_socket("ada"))
        await yard.until(lambda: yard.count("persona@ada", "start") == 4)
        starts = [line[3] for line in yard.lines() if line[:2] == ("persona@ada", "start")]
        assert starts[3] - starts[0] >= 0.05 + 0.1 + 0.2


async def test_an_organ_that_needs_its_operator_is_said_once_and_started_again_when_a_file_has_changed(yard: Yard) -> None:
    yard.deeds["persona"] = "exit78"
    async with yard.up():
        send_poke(yard.home.persona_socket("ada"))
        await yard.until(lambda: yard.count("persona@ada", "start") == 1)
        await trio.sleep(0.5)
        assert yard.count("persona@ada", "start") == 1
        yard.deeds["persona"] = "once"
        yard.home.persona_file("ada").parent.mkdir()
        yard.home.persona_file("ada").write_text("You are Ada.")
        await yard.until(lambda: yard.count("persona@ada", "poke") == 1)


async def test_a_held_minds_socket_starts_nobody_and_her_running_persona_is_asked_to_end(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.deeds["persona"] = "stay"
    async with yard.up():
        send_poke(yard.home.persona_socket("ada"))
        await yard.until(lambda: yard.count("persona@ada", "start") == 1)
        hold(yard.home, "ada")
        await yard.until(lambda: yard.count("persona@ada", "term") == 1)
        await yard.until(lambda: not is_running(yard.newest("persona@ada")))
        send_poke(yard.home.persona_socket("ada"))
        asked = 0

        def counted(home: Home, name: str) -> Control:
            nonlocal asked
            asked += 1
            return read_control(home, name)

        monkeypatch.setattr("mind_body.cli.organs.read_control", counted)
        send_poke(yard.home.persona_socket("ada"))
        await trio.sleep(0.3)
        assert asked < 10, "a poke that is not acted on is asked about once"
        assert yard.count("persona@ada", "start") == 1
        release(yard.home, "ada")
        send_poke(yard.home.persona_socket("ada"))
        await yard.until(lambda: yard.count("persona@ada", "start") == 2)


async def test_minds_come_and_go_while_it_runs(yard: Yard) -> None:
    async with yard.up():
        add_mind(yard.home, "eve")
        await yard.until(yard.home.persona_socket("eve").exists)
        send_poke(yard.home.persona_socket("eve"))
        await yard.until(lambda: yard.count("persona@eve", "poke") == 1)
        yard.home.mind_file("eve").unlink()
        await yard.until(lambda: not yard.home.persona_socket("eve").exists() and not yard.home.self_socket("eve").exists())


async def test_it_ends_within_five_seconds_also_when_an_organ_will_not(yard: Yard) -> None:
    yard.deeds |= {"lease": "stubborn", "mouth": "stubborn", "persona": "stubborn"}
    async with yard.up():
        send_poke(yard.home.persona_socket("ada"))
        await yard.until(lambda: yard.count("persona@ada", "start") == 1)
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert yard.count("heartbeat", "term") == 1


async def test_sigterm_ends_it_and_a_second_one_on_the_same_home_is_refused(yard: Yard) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_organs, yard.home, yard.command)
        await yard.until(lambda: yard.count("mouth", "start") == 1)
        with pytest.raises(MindBodyError, match="another `mind up`"):
            await run_organs(yard.home, yard.command)
        os.kill(os.getpid(), signal.SIGTERM)
    lock = take_hold(yard.home.lock_file("up"), "free again")
    assert lock is not None
    lock.release()


async def test_a_home_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"does not exist; `mind --home .* new NAME`"):
        await run_organs(directory_home(tmp_path / "nowhere", tmp_path / "r"))
    assert not (tmp_path / "r").exists()
    with pytest.raises(ConfigError, match="--home DIR"):
        await run_organs(system_home())


async def test_its_organs_die_with_it_also_by_kill_9(yard: Yard) -> None:
    """With the real heartbeat and lease, which tie themselves to their parent; the mouth has none of its own here."""
    locks = [yard.home.lock_file("heartbeat"), yard.home.lock_file("lease"), yard.home.lock_file("up")]
    up = subprocess.Popen(
        [sys.executable, "-m", "mind_body", "--home", str(yard.home.root), "up"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await yard.until(lambda: all(is_locked(path) for path in locks))
        with trio.fail_after(10):
            answer = await ask_line(yard.home.lease_socket, b"\n", 1000)
        assert "which nobody registered" in str(answer), "the lease listens where `mind up` has bound"
    finally:
        up.kill()
        up.wait()
    await yard.until(lambda: not any(is_locked(path) for path in yard.home.run.glob("*.lock")))


def is_locked(path: Path) -> bool:
    taken = take_hold(path, "")
    if taken is not None:
        taken.release()
    return taken is None


@given(st.integers(-15, 255), st.floats(0, 1000), st.integers(0, 100), st.booleans())
def test_what_fails_again_and_again_is_started_ever_more_seldom_and_never_never(
    code: int, lived: float, strikes: int, may_end: bool
) -> None:
    decision = decide_restart(code, lived, strikes, HOST, may_end=may_end)
    if isinstance(decision, WaitForOperator):
        assert code == 78
    elif may_end and code == 0:
        assert decision == Again(0.0, 0)
    else:
        assert HOST.restart_min_s <= decision.after_s <= HOST.restart_max_s
        assert lived < 60 or decision.after_s == HOST.restart_min_s
