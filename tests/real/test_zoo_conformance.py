"""The fake `claude` of the zoo and the real CLI show a driver the same: one test body, both children, through a Self's own door."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import trio

from mind_body.ids import new_session_uuid
from mind_body.model.claude_files import check_transcript, find_cli
from mind_body.model.claude_launch import SETTINGS, render_user
from mind_body.model.lines import Assistant, ControlResponse, Event, Init, Lifecycle, Partial, Result, Status, Unknown, User
from mind_body.self_run.child import SelfChild, start_self
from mind_body.self_run.launch import SETTINGS_FILE, SelfLaunch, render_control
from mind_body.self_run.meter import Meter
from mind_body.self_run.seen import DONE, INITIALIZE, WINDOW, Seen
from tests.parts_present import require_part
from tests.real.parts.messages_api import Calls, Held, MessagesApi, Prose, call, prefix, scripted_messages_api
from tests.real.parts.zoo_claude import install_zoo

pytestmark = pytest.mark.real

DEADLINE_S = 30


@dataclass(frozen=True)
class Kind:
    """One of the two, and what makes it behave alike."""

    name: str
    directory: Path
    api: MessagesApi

    def binary(self, **options: Any) -> str:
        if self.name == "real":
            return str(find_cli(""))
        place = self.directory / new_session_uuid()
        place.mkdir()
        return str(install_zoo(place, window=200_000, **options))


@pytest.fixture(params=["fake", "real"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kind]:
    require_part("bubblewrap")
    if request.param == "real":
        require_part("claude")
    with scripted_messages_api(Prose("The work is done.")) as api:
        yield Kind(request.param, tmp_path, api)


class Bed:
    """A child, what it showed, and what a driver makes of it."""

    def __init__(self, child: SelfChild, launch: SelfLaunch) -> None:
        self.child = child
        self.launch = launch
        self.events: list[Event] = []
        self.seen = Seen(launch.session_id, 0)
        self.meter = Meter()
        self.said: set[str] = set()
        self._news = trio.Event()
        child.on_event, child.on_change = self._see, self._wake

    def _see(self, event: Event) -> None:
        self.events.append(event)
        self.seen.see(event, 1)
        self.meter.see(event)
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = trio.Event()

    async def until(self, what: str, check: Callable[[], Any]) -> Any:
        with trio.move_on_after(DEADLINE_S):
            while not (found := check()) and not self.child.reaped.is_set():
                await self._news.wait()
            if found or (found := check()):
                return found
        raise AssertionError(f"waited in vain for {what}: {self.shown()}, {self.child.words}")

    async def greet(self) -> None:
        self.child.put(render_control(INITIALIZE, "initialize"))
        self.child.put(render_control(WINDOW, "get_context_usage", detail="summary"))
        await self.until("its window", lambda: self.seen.window_tokens)

    def say(self, text: str) -> str:
        uuid = new_session_uuid()
        self.said.add(uuid)
        self.seen.wrote(uuid)
        self.child.put(render_user(text, uuid))
        return uuid

    async def result(self, count: int = 1) -> Result:
        found = await self.until("a result", lambda: results if len(results := self.of(Result)) >= count else None)
        await self.until("its end", lambda: not self.seen.busy and self._done() >= self.said)
        assert isinstance(found[-1], Result)
        return found[-1]

    async def answer(self, request_id: str) -> ControlResponse:
        found: ControlResponse = await self.until(
            request_id, lambda: next((one for one in self.of(ControlResponse) if one.request_id == request_id), None)
        )
        return found

    def _done(self) -> set[str]:
        return {one.user_uuid for one in self.of(Lifecycle) if one.state in DONE}

    def of(self, shape: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, shape)]

    def shown(self) -> list[str]:
        """The order of things, without what only the real one adds."""
        named = [f"{type(e).__name__} {e.state}" if isinstance(e, Lifecycle) else type(e).__name__ for e in self.events]
        return [one for one, event in zip(named, self.events, strict=True) if not isinstance(event, Partial | Unknown)]


@asynccontextmanager
async def started(kind: Kind, launch: SelfLaunch | None = None, **options: Any) -> AsyncIterator[Bed]:
    for place in ("config", "work"):
        (kind.directory / place).mkdir(exist_ok=True)
    (kind.directory / "config" / SETTINGS_FILE).write_text(SETTINGS)
    launch = launch or SelfLaunch(
        binary=kind.binary(**options),
        config_dir=str(kind.directory / "config"),
        work_dir=str(kind.directory / "work"),
        workspace="garden",
        model="claude-sonnet-4-5",
        session_id=new_session_uuid(),
        resume=False,
        max_turns=500,
        run_cap_usd=5.0,
        gateway_url=kind.api.url,
        key_kind="api-key",
        key="made-up",
    )
    async with trio.open_nursery() as nursery:
        bed = Bed(start_self(launch), launch)
        nursery.start_soon(bed.child.run)
        try:
            yield bed
        finally:
            await bed.child.aclose()


async def test_it_tells_its_window_before_it_is_told_anything(kind: Kind) -> None:
    async with started(kind) as bed:
        await bed.greet()
        assert (bed.seen.ready, bed.seen.window_tokens, bed.seen.busy) == (True, 200_000, False)
        assert kind.api.requests == []


async def test_a_turn_shows_the_same_in_the_same_order(kind: Kind) -> None:
    kind.api.script(
        Calls((("Bash", {"command": "true"}),), text="Looking.", usage=prefix(20_000)), Prose("Done.", usage=prefix(30_000))
    )
    async with started(kind) as bed:
        await bed.greet()
        bed.events.clear()
        uuid = bed.say("work")
        result = await bed.result()
        assert (result.well, result.user_uuids) == (True, (uuid,))
        assert bed.shown() == [
            "Lifecycle queued", "Lifecycle started", "Init", "Status", "Assistant", "Assistant", "User", "Status", "Assistant",
            "Result", "Lifecycle completed",
        ]  # fmt: skip
        assert (bed.meter.prefix_tokens, bed.meter.requests) == (30_000, 2)
        assert result.window_tokens == 200_000
        check_transcript(kind.directory / "config", bed.launch.session_id, bed.seen.leaf or "")


async def test_an_interrupt_ends_the_turn_and_not_the_session(kind: Kind) -> None:
    gate = threading.Event()
    kind.api.script(Held(gate, Prose("too late")), Prose("Again."))
    async with started(kind, pace=30) as bed:
        await bed.greet()
        bed.say("work")
        await bed.until("its request", lambda: bed.of(Status))
        bed.child.put(render_control("interrupt-1", "interrupt", cancel_queued=True))
        assert (await bed.answer("interrupt-1")).ok
        result = await bed.result()
        gate.set()
        assert (result.well, result.subtype) == (False, "error_during_execution")
        assert [one.state for one in bed.of(Lifecycle)] == ["queued", "started", "cancelled"]
        assert not bed.child.exited


async def test_a_message_during_a_tool_is_read_at_its_end_without_a_result_of_its_own(kind: Kind) -> None:
    kind.api.script(call("Bash", command="sleep 1"), Prose("Both."))
    async with started(kind, pace=1) as bed:
        await bed.greet()
        first = bed.say("work")
        await bed.until("its tool", lambda: bed.meter.tool_limit_ms)
        second = bed.say("and the roses")
        result = await bed.result()
        assert set(result.user_uuids) == {first, second}
        assert len(bed.of(Result)) == 1
        assert [one.state for one in bed.of(Lifecycle) if one.user_uuid == second] == ["queued", "started", "completed"]


async def test_it_goes_when_it_is_asked_to(kind: Kind) -> None:
    async with started(kind) as bed:
        await bed.greet()
        bed.child.put(render_control("end-1", "end_session"))
        await bed.until("its end", lambda: bed.child.exited)
        assert (await bed.answer("end-1")).ok
        assert (bed.child.exit_code, bed.seen.end_refused) == (0, False)


async def test_it_goes_when_nobody_will_say_anything_more(kind: Kind) -> None:
    async with started(kind) as bed:
        await bed.greet()
        bed.child.close_stdin()
        await bed.until("its end", lambda: bed.child.exited)
        assert (bed.child.exit_code, bed.child.deaf) == (0, False)


async def test_it_goes_at_a_sigterm_inside_the_sandbox(kind: Kind) -> None:
    async with started(kind) as bed:
        await bed.greet()
        bed.child.terminate()
        await bed.until("its end", lambda: bed.child.exited)
        assert bed.child.exit_code == 143


async def test_what_it_does_not_know_is_answered_with_an_error(kind: Kind) -> None:
    async with started(kind) as bed:
        await bed.greet()
        bed.child.put(render_control("odd-1", "make_tea"))
        answer = await bed.answer("odd-1")
        assert not answer.ok
        assert "make_tea" in answer.error


async def test_a_session_is_resumed_where_it_is_known_and_refused_where_it_is_not(kind: Kind) -> None:
    async with started(kind) as bed:
        await bed.greet()
        bed.say("work")
        await bed.result()
    launch = bed.launch
    async with started(kind, replace(launch, resume=True)) as bed:
        await bed.greet()
        bed.say("more work")
        assert (await bed.result()).well
    async with started(kind, launch) as bed:
        await bed.until("its end", lambda: bed.child.exited)
        assert (bed.child.exit_code, bed.of(Result)) == (1, [])
        assert "already in use" in bed.child.words
    async with started(kind, replace(launch, resume=True, session_id=new_session_uuid())) as bed:
        bed.say("work")
        await bed.until("its end", lambda: bed.child.exited and bed.child.drained)
        assert (bed.child.exit_code, [one.subtype for one in bed.of(Result)]) == (1, ["error_during_execution"])
        assert not bed.of(Init) + bed.of(User) + bed.of(Assistant)
