"""Child processes, with real children: a few lines of Python or shell that do what a real one did."""

import os
import signal
import socket
import sys
from pathlib import Path

import pytest
import trio
import trio.testing

from mind_body.errors import ChildError, StorageError
from mind_body.host.process import Child, drain_lines, list_descendants, resident_mb, start_child

ENV = {"PATH": os.defpath, "LANG": "C.UTF-8"}
HERE = {**ENV, "PYTHONPATH": str(Path(__file__).parents[2])}


async def read_all(stream: trio.abc.ReceiveStream | None) -> bytes:
    assert stream is not None
    return b"".join([bytes(chunk) async for chunk in stream])


async def output_of(child: Child) -> bytes:
    try:
        with trio.fail_after(10):
            printed = await read_all(child.stdout)
            assert await child.wait() == 0
            return printed
    finally:
        await child.aclose()


async def test_a_child_has_exactly_the_environment_it_was_given() -> None:
    printed = await output_of(start_child(["env"], env={**ENV, "X": "1"}, stdout="pipe"))
    assert set(printed.decode().split()) == {f"PATH={os.defpath}", "LANG=C.UTF-8", "X=1"}


async def test_what_is_written_to_a_child_is_read_by_it() -> None:
    child = start_child(["cat"], env=ENV, stdin="pipe", stdout="pipe")
    assert child.stdin is not None
    await child.stdin.send_all(b"hello")
    await child.stdin.aclose()
    assert await output_of(child) == b"hello"


async def test_a_child_starts_in_the_directory_it_was_given(tmp_path: Path) -> None:
    printed = await output_of(start_child(["pwd"], env=ENV, cwd=str(tmp_path), stdout="pipe"))
    assert printed.decode().strip() == str(tmp_path)


async def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(ChildError, match="no-such-program"):
        start_child(["no-such-program"], env=ENV)


async def test_a_child_is_never_started_from_another_thread() -> None:
    with pytest.raises(ChildError, match="main thread"):
        await trio.to_thread.run_sync(lambda: start_child(["true"], env=ENV))


async def test_nothing_of_ours_is_open_in_a_child_but_what_was_passed() -> None:
    reading, writing = os.pipe()
    child = start_child(["ls", "/proc/self/fd"], env=ENV, stdout="pipe", pass_fds=[writing])
    printed = await output_of(child)
    os.close(reading)
    os.close(writing)
    # The one more is ls's own view of the directory.
    assert set(printed.decode().split()) >= {"0", "1", "2", str(writing)}
    assert len(printed.split()) == 5


@pytest.mark.parametrize("crossed", [False, True])
async def test_sockets_are_handed_over_from_descriptor_3_on_in_the_manner_of_systemd(crossed: bool) -> None:
    first, second = socket.socketpair()
    names = {"mouth.socket": second, "other.socket": first} if crossed else {"mouth.socket": first, "other.socket": second}
    code = (
        "import os;from mind_body.host.activation import listen_fds;f=listen_fds(os.environ);"
        "print(list(f), [os.fstat(x).st_ino for x in f.values()])"
    )
    with first, second:
        child = start_child(
            [sys.executable, "-c", code], env=HERE, stdout="pipe", sockets={name: one.fileno() for name, one in names.items()}
        )
        printed = await output_of(child)
        inodes = [os.fstat(one.fileno()).st_ino for one in names.values()]
    assert printed.decode().strip() == f"['mouth.socket', 'other.socket'] {inodes}"


@pytest.mark.parametrize("sockets", [{}, {"poke": 0}, {"poke": 0, "stream": 0}])
async def test_a_child_is_announced_before_its_program_begins_and_finds_nothing_of_that(
    tmp_path: Path, sockets: dict[str, int]
) -> None:
    began, announced = tmp_path / "began", []

    def announce(pid: int) -> None:
        signal.sigtimedwait([], 0.2)  # long enough for a program that would not wait
        announced.append((pid, began.exists()))

    script = 'echo $$ >"$0"; exec ls /proc/self/fd'
    child = start_child(["sh", "-c", script, str(began)], env=ENV, stdout="pipe", sockets=sockets, announce=announce)
    assert announced == [(child.pid, False)]
    assert len((await output_of(child)).split()) == 3 + len(sockets) + 1, "the listing's own"
    assert began.read_text().strip() == str(child.pid)


async def test_a_child_that_cannot_be_announced_never_runs(tmp_path: Path) -> None:
    began, pids = tmp_path / "began", []

    def announce(pid: int) -> None:
        pids.append(pid)
        raise StorageError("no room")

    before = sorted(entry.name for entry in Path("/proc/self/fd").iterdir())
    with pytest.raises(StorageError, match="no room"):
        start_child(["touch", str(began)], env=ENV, stdout="pipe", announce=announce)
    assert sorted(entry.name for entry in Path("/proc/self/fd").iterdir()) == before
    assert not Path(f"/proc/{pids[0]}").exists(), "it is reaped"
    assert not began.exists()


async def test_several_tasks_may_wait_for_one_child() -> None:
    child = start_child(["cat"], env=ENV, stdin="pipe")
    codes: list[int] = []

    async def waiter() -> None:
        codes.append(await child.wait())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiter)
        nursery.start_soon(waiter)
        await trio.testing.wait_all_tasks_blocked()
        child.terminate()
    assert codes == [-signal.SIGTERM, -signal.SIGTERM]
    await child.aclose()


async def test_a_child_that_ignores_sigterm_is_killed_after_its_grace() -> None:
    child = start_child(["sh", "-c", "trap '' TERM; echo ready; while :; do read x; done"], env=ENV, stdin="pipe", stdout="pipe")
    assert child.stdout is not None
    await child.stdout.receive_some()
    with trio.fail_after(5):
        assert await child.end(0.05) == -signal.SIGKILL
    await child.aclose()
    child.terminate()


async def test_closing_reaps_even_when_cancelled() -> None:
    child = start_child(["sleep", "60"], env=ENV)
    with trio.CancelScope() as scope:
        scope.cancel()
        await child.aclose()
    assert child.returncode == -signal.SIGKILL
    assert not Path(f"/proc/{child.pid}").exists()


async def test_stderr_is_drained_line_by_line_and_long_lines_are_cut() -> None:
    lines: list[str] = []
    child = start_child(
        ["sh", "-c", "echo one >&2; head -c 300000 /dev/zero | tr '\\0' x >&2; echo >&2; printf last >&2"], env=ENV, stderr="pipe"
    )
    assert child.stderr is not None
    with trio.fail_after(10):
        await drain_lines(child.stderr, lines.append, cap=100)
        await child.wait()
    await child.aclose()
    assert lines == ["one", "x" * 100, "last"]


async def test_a_child_that_asked_for_it_dies_with_its_parent_also_by_kill_9() -> None:
    grandchild = (
        "import os,time;from mind_body.host.process import die_with_parent;die_with_parent(os.getppid());"
        "print(os.getpid(),flush=True);time.sleep(60)"
    )
    parent = (
        "import sys,trio\nfrom mind_body.host.process import start_child\n"
        f"async def main():\n c=start_child([sys.executable,'-c',{grandchild!r}],env={HERE!r});await c.wait()\ntrio.run(main)"
    )
    child = start_child([sys.executable, "-c", parent], env=HERE, stdout="pipe")
    assert child.stdout is not None
    with trio.fail_after(20):
        pid = int(bytes(await child.stdout.receive_some()))
        assert pid in list_descendants(child.pid)
        assert (resident_mb(pid) or 0) > 1
        child.kill()
        await child.wait()
        while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]:
            await trio.sleep(0.01)
    await child.aclose()
    assert resident_mb(2**22 + 1) is None
