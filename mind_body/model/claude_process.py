"""Door: one running `claude` child: its lines read, its stderr drained, a turn put to it, its end.

1. Both readers run before the first write and are never held up by whoever waits for a turn: a CLI whose stdout is not read exits
   0 after some seconds and its last words are lost, one whose stderr fills hangs (wire.md §2).
2. A turn is told apart by the id of its message, never by "the next result". A message that is done without a result is a turn
   without one.
3. Ending it: its stdin is closed, which lets an idle CLI write its transcript and go; then SIGTERM; then the kill, which takes the
   sandbox's whole pid namespace along. Each step is bounded.
"""

from dataclasses import dataclass, field
from typing import Any

import trio

from mind_body.errors import ChildError
from mind_body.host.process import Child, drain_lines, start_child
from mind_body.ids import new_session_uuid
from mind_body.log import Journal
from mind_body.model.claude_launch import Launch, render_argv, render_env, render_initialize, render_user
from mind_body.model.lines import Assistant, ControlResponse, Event, Init, Lifecycle, RateLimit, Result, User
from mind_body.model.stream import NEED_DATA, StreamCodec, render_line
from mind_body.model.told import Told

START_S = 60.0
"""For the answer to `initialize`; usually half a second."""
GO_S = 1.5
"""For an idle CLI to go after its stdin was closed, and again after SIGTERM."""
_READ = 262_144


@dataclass(slots=True)
class TurnSeen:
    """What the child's lines said of one turn."""

    uuid: str
    blocks: list[dict[str, Any]] = field(default_factory=list)
    said: str = ""
    """The newest answer's text, or its tool input as far as it came."""
    leaf: str | None = None
    """The id of the newest message of the main thread: where the transcript ends."""
    result: Result | None = None
    ended: str | None = None
    """Why there is no result, where there is none."""
    limit_until: int | None = None
    """When a limit of the plan ends, as it told (ms)."""
    done: trio.Event = field(default_factory=trio.Event)


class ClaudeProcess:
    """Started by `start_claude`; `run` reads it until it has ended."""

    def __init__(self, child: Child, journal: Journal, *, resumed: bool = False) -> None:
        self.told = Told(resumed)
        """Of the newest turn."""
        self._child = child
        self._journal = journal
        self._codec = StreamCodec()
        self._turn: TurnSeen | None = None
        self._ready = trio.Event()
        self._refused: str | None = None
        self._ended = trio.Event()
        self._words = ""
        self.version = ""

    @property
    def alive(self) -> bool:
        return not self._ended.is_set()

    @property
    def pid(self) -> int:
        return self._child.pid

    async def run(self) -> None:
        """Read until the end of both streams, then reap. Never raises what a child can cause."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read_stderr)
                await self._read_stdout()
                nursery.cancel_scope.deadline = trio.current_time() + GO_S  # a grandchild may hold the pipe
            with trio.move_on_after(GO_S):
                await self._child.wait()
        finally:
            await self._child.aclose()
            self._end(self._why_ended())

    async def initialize(self, schema: dict[str, Any]) -> None:
        """Give the session its schema. Raises ChildError where the child does not come up."""
        await self._write(render_initialize("initialize", schema))
        with trio.move_on_after(START_S):
            await self._ready.wait()
        if not self._ready.is_set() or self._refused is not None or not self.alive:
            raise ChildError(f"claude did not start: {self._refused or self._words or 'it said nothing'}")

    async def take_turn(self, text: str) -> TurnSeen:
        """Put a turn to it and wait for its end. Cancelled, the child is in no known state: end it."""
        turn = TurnSeen(new_session_uuid())
        self.told.begin()
        self._turn = turn
        try:
            await self._write(render_user(text, turn.uuid))
            await turn.done.wait()
        except ChildError as error:
            turn.ended = str(error)
        finally:
            self._turn = None
        return turn

    async def kill(self) -> None:
        """At once, for a child whose session is given up: nobody will read its transcript. Finishes even when cancelled."""
        with trio.CancelScope(shield=True):
            await self._child.aclose()

    async def aclose(self) -> None:
        """The ladder; finishes even when cancelled."""
        with trio.CancelScope(shield=True):
            if self.alive and self._child.stdin is not None:
                await self._child.stdin.aclose()
            with trio.move_on_after(GO_S):
                await self._ended.wait()
            if self.alive:
                self._child.terminate()
            with trio.move_on_after(GO_S):
                await self._ended.wait()
            await self._child.aclose()

    async def _write(self, value: dict[str, Any]) -> None:
        if self._child.stdin is None:
            raise ChildError("claude has no stdin")
        try:
            await self._child.stdin.send_all(render_line(value))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            with trio.move_on_after(GO_S):
                await self._ended.wait()
            raise ChildError(self._why_ended()) from error

    async def _read_stdout(self) -> None:
        stream = self._child.stdout
        while stream is not None:
            try:
                data = await stream.receive_some(_READ)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return
            if not data:
                return
            self._codec.feed(data)
            while (event := self._codec.next_event()) is not NEED_DATA:
                self._see(event)

    async def _read_stderr(self) -> None:
        if self._child.stderr is not None:
            try:
                await drain_lines(self._child.stderr, self._hear)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return

    def _hear(self, line: str) -> None:
        if line.strip():
            self._words = line.strip()[:300]
            self._journal.note("claude.stderr", self._words, level="debug", PID=self.pid)

    def _see(self, event: Event) -> None:
        if isinstance(event, ControlResponse):
            self._refused = None if event.ok else event.error or "initialize was refused"
            self._ready.set()
        elif isinstance(event, Init):
            self._see_version(event.version)
            return
        if isinstance(event, Result):
            self.told.add(event)
        if self._turn is not None:
            self._see_in_turn(self._turn, event)

    def _see_in_turn(self, turn: TurnSeen, event: Event) -> None:
        match event:
            case Assistant(parent=None):
                turn.blocks += event.blocks
                turn.leaf = event.uuid
                turn.said = _said(event.blocks) or turn.said
            case User(parent=None):
                turn.leaf = event.uuid
            case RateLimit(status="rejected", resets_at=int(at)):
                turn.limit_until = at * 1000
            case Result() if not event.user_uuids or turn.uuid in event.user_uuids:
                turn.result = event
                turn.done.set()
            case Lifecycle(user_uuid=turn.uuid, state="completed" | "cancelled" | "failed") if not turn.done.is_set():
                turn.ended = "claude finished the message without a result"
                turn.done.set()

    def _see_version(self, version: str) -> None:
        if version != self.version:
            self.version = version
            self._journal.note("claude.started", f"claude {version} answers.", PID=self.pid, VERSION=version)

    def _end(self, why: str) -> None:
        self._ended.set()
        self._ready.set()
        if self._turn is not None and not self._turn.done.is_set():
            self._turn.ended = why
            self._turn.done.set()

    def _why_ended(self) -> str:
        code = self._child.returncode
        return f"claude ended (exit {code})" + (f": {self._words}" if self._words else "")


def start_claude(launch: Launch, journal: Journal) -> ClaudeProcess:
    """Start the child; nothing is read until `run`. From the main thread alone. Raises ChildError."""
    cwd = None if launch.sandboxed else launch.work_dir
    argv, env = render_argv(launch), render_env(launch)
    child = start_child(argv, env=env, cwd=cwd, stdin="pipe", stdout="pipe", stderr="pipe")
    return ClaudeProcess(child, journal, resumed=launch.resume)


def _said(blocks: tuple[dict[str, Any], ...]) -> str:
    said = [block.get("text") or str(block.get("input") or "") for block in blocks if block.get("type") in {"text", "tool_use"}]
    return "\n".join(word for word in said if isinstance(word, str))
