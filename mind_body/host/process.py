"""Door: child processes, and what the process table says. The one home of spawning, waiting, signalling, and of psutil.

1. A child is spawned on the calling thread, which must be the main one: PR_SET_PDEATHSIG and `bwrap --die-with-parent` fire when
   the *thread* that forked ends, and trio's worker threads end after 10 idle seconds (wire.md §10). So never
   trio.lowlevel.open_process.
2. Its environment is given whole. Nothing is inherited but what is named here: every other descriptor is made close-on-exec,
   also one that our own parent left open in us.
3. Its end is waited for by pidfd, its signals go by pidfd: a number that was used again is never hit.
4. Ending is a ladder with bounds: SIGTERM, so many seconds, SIGKILL. `aclose` ends at once and always reaps.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import psutil  # noqa: TID251 - its home
import trio

from mind_body.errors import ChildError
from mind_body.host import tether
from mind_body.host.activation import FIRST_FD

Plug = Literal["pipe", "null", "inherit"]
LINE_CAP = 4096
"""Bytes of one line of a child's stderr that anybody will read."""
die_with_parent = tether.die_with_parent
"""What a child of ours calls at its start; here for who has this door open already."""
_GATE = "the gate"
"""The descriptor that a child waits at until it is announced: after its sockets, closed before its program begins."""
_HIGH_FD = 256
"""Sources of placed descriptors are first moved above every place (F_DUPFD), so that no placing overwrites the next source."""


class Child:
    """A running child. Streams are None where they were not asked to be pipes."""

    def __init__(self, pid: int, streams: Mapping[int, int]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        """Exit code; minus the signal's number for a child that was killed; None while it runs."""
        self.stdin = _stream(streams.get(0))
        self.stdout = _stream(streams.get(1))
        self.stderr = _stream(streams.get(2))
        self._pidfd = os.pidfd_open(pid)
        self._reaping = trio.Lock()

    async def wait(self) -> int:
        """Until it has ended; its exit code. Any number of tasks may wait."""
        async with self._reaping:
            if self.returncode is None:
                await trio.lowlevel.wait_readable(self._pidfd)
                _, status = os.waitpid(self.pid, 0)  # noqa: ASYNC222 - it has ended: this only reaps
                self.returncode = os.waitstatus_to_exitcode(status)
                os.close(self._pidfd)
            return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """To the child alone; nothing happens once it has ended."""
        if self.returncode is None:
            try:
                signal.pidfd_send_signal(self._pidfd, number)
            except ProcessLookupError:
                return

    def signal_inside(self, number: signal.Signals) -> None:
        """To the program that a bubblewrap child runs: below bwrap's own process and the first one of its pid namespace."""
        if self.returncode is None:
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                # Either may have gone meanwhile: then there is nobody to signal.
                for first in psutil.Process(self.pid).children()[:1]:
                    for program in sorted(first.children(), key=lambda one: one.pid)[:1]:
                        program.send_signal(number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def end(self, grace_s: float) -> int:
        """The ladder: SIGTERM, at most `grace_s` seconds, SIGKILL. Its exit code."""
        self.terminate()
        with trio.move_on_after(grace_s):
            await self.wait()
        self.kill()
        return await self.wait()

    async def aclose(self) -> None:
        """Kill it if it still runs, reap it, close our ends of its pipes. Finishes even when cancelled."""
        self.kill()
        with trio.CancelScope(shield=True):
            await self.wait()
            for stream in (self.stdin, self.stdout, self.stderr):
                if stream is not None:
                    await stream.aclose()


def start_child(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    stdin: Plug = "null",
    stdout: Plug = "inherit",
    stderr: Plug = "inherit",
    pass_fds: Sequence[int] = (),
    sockets: Mapping[str, int] | None = None,
    new_session: bool = False,
    announce: Callable[[int], None] | None = None,
) -> Child:
    """Start `argv` with exactly `env`. Raises ChildError when it cannot be started.

    `pass_fds` keep their numbers. `sockets` (name → descriptor) are placed from 3 on and announced by LISTEN_PID, LISTEN_FDS and
    LISTEN_FDNAMES, as systemd does it (sd_listen_fds(3)); the two are not used together. `announce` is told the pid before the
    program begins; where that raises, the program never does.
    """
    if threading.current_thread() is not threading.main_thread():
        raise ChildError("a child may be started from the main thread alone: it dies with the thread that forked it")
    program = shutil.which(argv[0], path=env.get("PATH", os.defpath))
    if program is None:
        raise ChildError(f"{argv[0]} is not there, or not executable")
    ours: dict[int, int] = {}
    theirs: list[int] = []
    named, gate = dict(sockets or {}), None
    if announce is not None:
        named[_GATE], gate = os.pipe2(os.O_CLOEXEC)
        theirs.append(named[_GATE])
    wrapped, environ = _wrap([program, *argv[1:]], dict(env), cwd, named)
    try:
        actions = _plug({0: stdin, 1: stdout, 2: stderr}, ours, theirs)
        actions += _place(pass_fds, named, theirs)
        _keep_private()
        # Python ignores SIGPIPE and SIGXFSZ; a child must not inherit that. Nor a blocked signal.
        pid = os.posix_spawn(
            wrapped[0],
            wrapped,
            environ,
            file_actions=actions,
            setsid=new_session,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )
        if announce is not None and gate is not None:
            _announce(pid, announce, gate)
    except BaseException as error:
        for descriptor in ours.values():
            os.close(descriptor)
        if isinstance(error, OSError):
            raise ChildError(f"{argv[0]} could not be started: {error.strerror}") from error
        raise
    finally:
        for descriptor in [*theirs, *([] if gate is None else [gate])]:
            os.close(descriptor)
    return Child(pid, ours)


async def drain_lines(stream: trio.abc.ReceiveStream, on_line: Callable[[str], None], cap: int = LINE_CAP) -> None:
    """Read to the end, always, so that the child never waits for us; each line's first `cap` bytes go to `on_line`."""
    line = bytearray()
    async for chunk in stream:
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            line += part[: cap - len(line)]
            on_line(line.decode(errors="replace"))
            line.clear()
        line += rest[: max(cap - len(line), 0)]
    if line:
        on_line(line.decode(errors="replace"))


def resident_mb(pid: int) -> float | None:
    """Resident megabytes of a process; None when it is gone or not ours to see."""
    try:
        return float(psutil.Process(pid).memory_info().rss) / 1e6
    except psutil.Error:
        return None


def list_descendants(pid: int) -> list[int]:
    """Every living process below `pid`, as far as we may see."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def _stream(descriptor: int | None) -> trio.lowlevel.FdStream | None:
    return None if descriptor is None else trio.lowlevel.FdStream(descriptor)


def _announce(pid: int, announce: Callable[[int], None], gate: int) -> None:
    """Tell who it is, then let it begin."""
    try:
        announce(pid)
        os.write(gate, b"\n")
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _wrap(argv: list[str], env: dict[str, str], cwd: str | None, named: Mapping[str, int]) -> tuple[list[str], dict[str, str]]:
    """A line of shell before exec for what posix_spawn cannot do: change directory, know the pid, wait at the gate."""
    steps = []
    if cwd is not None:
        steps.append('cd -- "$0" || exit 126')
    sockets = [name for name in named if name != _GATE]
    if _GATE in named:
        place = FIRST_FD + list(named).index(_GATE)
        steps.append(f"read -r go <&{place} || exit 126; exec {place}<&-")
    if sockets:
        steps.append("export LISTEN_PID=$$")
        env |= {"LISTEN_FDS": str(len(sockets)), "LISTEN_FDNAMES": ":".join(sockets)}
    if not steps:
        return argv, env
    return ["/bin/sh", "-c", "; ".join([*steps, 'exec "$@"']), cwd or "sh", *argv], env


def _plug(plugs: Mapping[int, Plug], ours: dict[int, int], theirs: list[int]) -> list[tuple[int, int, int]]:
    """The file actions for 0, 1 and 2; fills in our ends of the pipes, and what is to be closed here after the spawn."""
    actions = []
    for place, plug in plugs.items():
        if plug == "pipe":
            reading, writing = os.pipe2(os.O_CLOEXEC)
            ours[place], end = (writing, reading) if place == 0 else (reading, writing)
        elif plug == "null":
            end = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        else:
            continue
        theirs.append(end)
        actions.append((os.POSIX_SPAWN_DUP2, end, place))
    return actions


def _keep_private() -> None:
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the listing's own descriptor is closed by now
            if int(entry.name) >= FIRST_FD:
                os.set_inheritable(int(entry.name), False)


def _place(pass_fds: Sequence[int], named: Mapping[str, int], theirs: list[int]) -> list[tuple[int, int, int]]:
    # dup2 onto itself clears close-on-exec in posix_spawn (glibc 2.29, POSIX.1-2024), which is how a number is kept.
    actions = [(os.POSIX_SPAWN_DUP2, fd, fd) for fd in pass_fds]
    for place, fd in enumerate(named.values(), FIRST_FD):
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD)
        theirs.append(high)
        actions.append((os.POSIX_SPAWN_DUP2, high, place))
    return actions
