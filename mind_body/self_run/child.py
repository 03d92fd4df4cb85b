"""Door: one running `claude` child of a Self: its lines read, its stderr drained, messages put to it, each step of its end.

1. Both readers run before the first write and are held up by nobody: what they see goes to a callback that never waits. A CLI
   whose stdout is not read exits 0 after some seconds, one whose stderr fills hangs (wire.md §2).
2. Writing never waits either: lines are queued, and a task of their own carries them. A child that does not read holds up nothing.
3. Which step of its end is taken is not decided here. SIGTERM goes to what runs in the sandbox, SIGKILL to the sandbox: its pid
   namespace ends with it, and with that every shell in a session of its own.
4. After its exit what is left is read for so long as the driver allows: a grandchild may hold the pipe.
"""

import contextlib
import signal
from collections import deque
from collections.abc import Callable
from typing import Any

import trio

from mind_body.host.process import Child, drain_lines, start_child
from mind_body.model.lines import Event
from mind_body.model.stream import NEED_DATA, StreamCodec, render_line
from mind_body.self_run.launch import SelfLaunch, render_argv, render_env

_READ = 262_144
WORDS_KEPT, WORD_MAX = 5, 300
"""Last lines of stderr, and characters of each, that are kept to say why it went."""


class SelfChild:
    """Made by `start_self`; `run` reads it until it has ended."""

    def __init__(self, child: Child, *, sandboxed: bool) -> None:
        self._child = child
        self._sandboxed = sandboxed
        self._codec = StreamCodec()
        self._queue: deque[bytes] = deque()
        self._queued = trio.Event()
        self._streams = 2
        self._words: deque[str] = deque(maxlen=WORDS_KEPT)
        self.on_event: Callable[[Event], None] = lambda _: None
        self.on_change: Callable[[], None] = lambda: None
        """It exited, or one of its streams ended."""
        self.exited = False
        self.gone = trio.Event()
        """Set when it exits."""
        self.reaped = trio.Event()
        """`run` is over: nothing of it is left."""
        self.deaf = False
        """It lives, and its stdout is closed, or it closed its stdin: nothing more can be asked of it."""
        self._closed = False
        self._reading = trio.CancelScope()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        return self._child.returncode

    @property
    def drained(self) -> bool:
        return self._streams == 0

    @property
    def skipped(self) -> int:
        """Lines that were no JSON object, or over the cap."""
        return self._codec.skipped

    @property
    def words(self) -> str:
        return " / ".join(self._words)

    async def run(self) -> None:
        """Until it has exited and was drained or given up; then nothing of it is left. Never raises what a child can cause.

        Shielded: who started it ends it, in order, also when the organ is told to stop.
        """
        try:
            with trio.CancelScope(shield=True):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write)
                    with self._reading:
                        async with trio.open_nursery() as readers:
                            readers.start_soon(self._read_stdout)
                            readers.start_soon(self._read_stderr)
                            await self._child.wait()
                            self._exit()
                    nursery.cancel_scope.cancel()
        finally:
            await self._child.aclose()
            self._streams = 0
            self.reaped.set()
            self._exit()

    def put(self, value: dict[str, Any]) -> None:
        """One line for its stdin, when it takes it."""
        self._queue.append(render_line(value))
        self._queued.set()

    def close_stdin(self) -> None:
        """Nothing more will be said. What it has not taken yet is not said either."""
        self._closed = True
        if self._child.stdin is not None:
            self._child.stdin.close()

    def terminate(self) -> None:
        """SIGTERM to the CLI itself."""
        if self._sandboxed:
            self._child.signal_inside(signal.SIGTERM)
        else:
            self._child.terminate()

    def kill(self) -> None:
        """SIGKILL to the sandbox, and so to everything in it."""
        self._child.kill()

    def give_up_reading(self) -> None:
        """It has exited, and what is left of its streams is not waited for."""
        if self.exited:
            self._reading.cancel()

    async def aclose(self) -> None:
        """Kill it if it still runs, and wait until nothing of it is left. Finishes even when cancelled."""
        with trio.CancelScope(shield=True):
            self._child.kill()
            await self._child.wait()
            self._reading.cancel()
            await self.reaped.wait()

    def _exit(self) -> None:
        self.exited = True
        self.gone.set()
        self.on_change()

    async def _write(self) -> None:
        stdin = self._child.stdin
        assert stdin is not None
        while True:
            await self._queued.wait()
            self._queued = trio.Event()
            while self._queue:
                try:
                    await stdin.send_all(self._queue.popleft())
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    self._lost_touch()
                    return

    async def _read_stdout(self) -> None:
        stream = self._child.stdout
        assert stream is not None
        while data := await _receive(stream):
            self._codec.feed(data)
            while (event := self._codec.next_event()) is not NEED_DATA:
                self.on_event(event)
        self._lost_touch()
        self._end_stream()

    async def _read_stderr(self) -> None:
        assert self._child.stderr is not None
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await drain_lines(self._child.stderr, self._hear)
        self._end_stream()

    def _hear(self, line: str) -> None:
        if line.strip():
            self._words.append(line.strip()[:WORD_MAX])

    def _lost_touch(self) -> None:
        self.deaf = self.deaf or not (self._closed or self.exited)
        self.on_change()

    def _end_stream(self) -> None:
        self._streams -= 1
        self.on_change()


def start_self(launch: SelfLaunch) -> SelfChild:
    """Start it; nothing is read until `run`. From the main thread alone. Raises ChildError."""
    cwd = None if launch.sandboxed else launch.work_dir
    child = start_child(render_argv(launch), env=render_env(launch), cwd=cwd, stdin="pipe", stdout="pipe", stderr="pipe")
    return SelfChild(child, sandboxed=launch.sandboxed)


async def _receive(stream: trio.lowlevel.FdStream) -> bytes:
    try:
        return bytes(await stream.receive_some(_READ))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return b""
