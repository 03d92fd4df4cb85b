"""Pokes, holds and handed-over sockets: the machine's small doors."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio

from mind_body.host.activation import listen_fds
from mind_body.host.liveness import read_holder, take_hold
from mind_body.host.poke import Pokes, adopt_poke_socket, open_poke_socket, send_poke


@pytest.fixture
def place() -> Iterator[Path]:
    """Short enough for a socket's path."""
    with TemporaryDirectory(prefix="mind-") as directory:
        yield Path(directory) / "run" / "a.sock"


async def test_a_poke_is_taken_once_and_a_hundred_are_one(place: Path) -> None:
    pokes = Pokes(open_poke_socket(place))
    assert not await pokes.wait(0)
    for _ in range(100):
        assert send_poke(place) is None
    assert await pokes.wait(5)
    assert not await pokes.wait(0)
    pokes.close()


def test_a_poke_never_blocks_however_full_the_queue_is(place: Path) -> None:
    pokes = Pokes(open_poke_socket(place))
    assert [send_poke(place) for _ in range(2000)] == [None] * 2000
    assert pokes.drain()
    assert not pokes.drain()
    pokes.close()


def test_a_poke_at_nobody_is_refused_with_a_sentence(place: Path) -> None:
    assert str(place) in (send_poke(place) or "")
    open_poke_socket(place).close()
    assert "refused" in (send_poke(place) or "")


def test_a_socket_that_a_dead_process_left_is_taken_over(place: Path) -> None:
    open_poke_socket(place).close()
    pokes = Pokes(open_poke_socket(place))
    assert send_poke(place) is None
    assert pokes.drain()
    assert place.stat().st_mode & 0o777 == 0o660
    pokes.close()


async def test_a_poke_that_came_before_the_wait_ends_it_at_once(place: Path) -> None:
    pokes = Pokes(open_poke_socket(place))
    send_poke(place)
    with trio.fail_after(5):
        assert await pokes.wait(3600)
    pokes.close()


async def test_a_wait_with_its_instant_behind_it_returns(place: Path) -> None:
    pokes = Pokes(open_poke_socket(place))
    with trio.fail_after(5):
        assert not await pokes.wait(-7)
    pokes.close()


HOLDS = """
import sys
from pathlib import Path
from mind_body.host.liveness import take_hold
hold = take_hold(Path(sys.argv[1]), sys.argv[2])
print("held" if hold else "refused", flush=True)
sys.stdin.read()
"""


def start_holder(path: Path, holder: str) -> tuple[subprocess.Popen[str], str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path), holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    return child, child.stdout.readline().strip()


def finish(child: subprocess.Popen[str], number: signal.Signals = signal.SIGKILL) -> None:
    child.send_signal(number)
    child.communicate()


def test_a_hold_is_seen_from_outside_and_gone_with_its_process_also_by_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "run" / "persona@ada.lock"
    assert read_holder(path) is None
    child, answer = start_holder(path, "first")
    assert answer == "held"
    assert read_holder(path) == "first"
    assert take_hold(path, "second") is None
    assert read_holder(path) == "first"
    other, answer = start_holder(path, "third")
    assert answer == "refused"
    finish(other)
    assert read_holder(path) == "first"
    finish(child)
    assert read_holder(path) is None
    hold = take_hold(path, "2")
    assert hold is not None
    assert read_holder(path) == "2", "nothing of the longer id before it is left"
    hold.release()
    hold.release()
    assert read_holder(path) is None


def test_a_child_does_not_keep_its_parents_hold_alive(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    hold = take_hold(path, "me")
    assert hold is not None
    code = "print('here', flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, close_fds=False
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline()
        hold.release()
        assert read_holder(path) is None
    finally:
        finish(child)


ASKS = """
import sys
from pathlib import Path
from mind_body.host.liveness import read_holder
print("asking", flush=True)
while True:
    read_holder(Path(sys.argv[1]))
"""


def test_asking_who_holds_never_takes_the_lock_from_who_wants_it(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    path.touch()
    asker = subprocess.Popen([sys.executable, "-c", ASKS, str(path)], stdout=subprocess.PIPE, text=True)
    assert asker.stdout is not None
    assert asker.stdout.readline()
    try:
        for _ in range(500):
            hold = take_hold(path, "me")
            assert hold is not None
            assert read_holder(path) == "me"
            hold.release()
    finally:
        finish(asker)


def test_no_sockets_are_taken_that_were_passed_to_another_process() -> None:
    assert listen_fds({}) == {}
    assert listen_fds({"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid() + 1)}) == {}


TAKES = """
import os, sys
from mind_body.host.activation import listen_fds
from mind_body.host.poke import adopt_poke_socket
os.environ["LISTEN_PID"] = str(os.getpid())
handed = listen_fds(os.environ)
poked = adopt_poke_socket(handed["poke"])
print(sorted(handed), [os.get_inheritable(fd) for fd in handed.values()], len(poked.recv(16)))
"""


def test_a_handed_over_socket_keeps_the_poke_that_started_its_organ(place: Path) -> None:
    bound = open_poke_socket(place)
    send_poke(place)

    def put_at_three() -> None:
        os.dup2(bound.fileno(), 3)
        os.set_inheritable(3, True)

    done = subprocess.run(
        [sys.executable, "-c", TAKES],
        env=os.environ | {"LISTEN_FDS": "1", "LISTEN_FDNAMES": "poke"},
        preexec_fn=put_at_three,
        close_fds=False,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    bound.close()
    assert done.stdout.strip() == "['poke'] [False] 0"


def test_an_adopted_socket_never_blocks(place: Path) -> None:
    bound = open_poke_socket(place)
    pokes = Pokes(adopt_poke_socket(os.dup(bound.fileno())))
    assert not pokes.drain()
    pokes.close()
    bound.close()


RAISES = "from mind_body.host.limits import raise_descriptor_limit; print(raise_descriptor_limit())"


def test_the_descriptor_limit_is_the_hard_one() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -Sn 64; "$0" -c "$1"; ulimit -Hn', sys.executable, RAISES],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    raised, hard = done.stdout.split()
    assert raised == hard
