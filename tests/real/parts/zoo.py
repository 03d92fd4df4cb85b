"""The fault zoo: every way in which the fake `claude` goes wrong, what a run over it has to come to, and within which time.

A scenario is served by the real organ in this process, over its real sandbox, gateway and mind, with the constants' seconds divided
by 100. Only the time to start is not: it measures this machine and nothing that the zoo does. Afterwards everything is counted.
"""

import contextlib
import math
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import structlog.testing
import trio

from mind_body import log
from mind_body.clock import now_ms
from mind_body.mind.records import Run
from mind_body.model import lease
from mind_body.self_run import main
from mind_body.self_run.constants import Constants
from mind_body.self_run.meter import limit_of
from tests.real.parts.self_bed import NAME, SelfBed
from tests.real.parts.zoo_claude import BASH, install_zoo

DIVISOR = 100
START_MS = 20_000
SLACK_S = 12.0
"""Over the sum of the constants: two starts of real processes on a busy machine."""
SCALED = replace(Constants().scaled(DIVISOR), start_ms=START_MS)
STALL_S, GRACE_S = SCALED.stall_ms / 1000, SCALED.flush_grace_ms / 1000
TOOL_S = limit_of({"name": "Bash", "input": BASH}) / DIVISOR / 1000
LADDER_S = 5 * SCALED.escalate_flush_ms / 1000
"""The patient one, to its last step."""
GONE_S = 5.0
"""For the kernel to end a pid namespace that was killed."""


@dataclass(frozen=True)
class Scenario:
    """What the fake does, and what is right."""

    options: dict[str, Any]
    outcome: str
    reason: str = ""
    """What the run's reason has to contain."""
    work: tuple[str, ...] = ("done",)
    """The states of its follow-ups, in their order."""
    handoff: str | None = None
    """The origin of the run's hand-off."""
    takes_s: float = 0.0
    """What the constants allow it, beside the slack."""
    prefix: int | None = None
    """The size that the run's last line tells."""
    settings: dict[str, Any] = field(default_factory=dict)
    again: str | None = None
    """A second run on the same workspace follows, and comes to this."""
    stop_after: str | None = None
    """A journal line after which somebody says stop."""


AGAIN, GOES_ON = ("open",), ("done", "open")
FULL = {"prefixes": [250_000, 290_000, 310_000], "grow": 200, "pace": 0.05}
NARROW = {"prefixes": [120_000, 135_000, 145_000], "grow": 200, "pace": 0.05, "window": 200_000}
LOGIN = {
    "subtype": "success",
    "is_error": True,
    "terminal_reason": "api_error",
    "api_error_status": 401,
    "error": "authentication_failed",
}
LIMIT = {"subtype": "success", "is_error": True, "terminal_reason": "api_error", "api_error_status": 429, "error": "rate_limit"}
FAULT = {"subtype": "success", "is_error": True, "terminal_reason": "api_error", "api_error_status": 500, "error": "server_error"}

SCENARIOS: dict[str, Scenario] = {
    "works": Scenario({}, "result", "done", prefix=30_000),
    "works twice, in a resumed session": Scenario({}, "result", again="result"),
    "flushes at the ceiling": Scenario(FULL, "flushed", "ceiling is 300000", GOES_ON, "model"),
    "flushes at the ceiling of a small window": Scenario(NARROW, "flushed", "ceiling is 140000", GOES_ON, "model"),
    "flushes, and the work goes on": Scenario(FULL, "flushed", "", GOES_ON, "model", again="flushed"),
    "flushes at length, and shorter when asked": Scenario(
        {**FULL, "handoff_kb": 40, "shortens": True}, "flushed", "", GOES_ON, "model"
    ),
    "flushes at length, and again": Scenario({**FULL, "handoff_kb": 40}, "flushed", "", GOES_ON, "model"),
    "ignores the flush and grows": Scenario(
        {**FULL, "heeds_flush": False, "grow": 15_000}, "flushed", "", GOES_ON, "record", takes_s=2 * GRACE_S
    ),
    "ignores the flush for ever": Scenario(
        {**FULL, "heeds_flush": False, "pace": 0.3}, "flushed", "", GOES_ON, "record", takes_s=2 * GRACE_S + LADDER_S
    ),
    "ignores the flush and everything else": Scenario(
        {**FULL, "heeds_flush": False, "pace": 0.3, "deaf": True, "iron": True},
        "flushed", "had to be killed", GOES_ON, "record", takes_s=2 * GRACE_S + 2 * LADDER_S,
    ),
    "falls silent in a turn": Scenario({"hang": "request"}, "interrupted", "no line came", AGAIN, takes_s=STALL_S + LADDER_S),
    "falls silent and heeds nobody": Scenario(
        {"hang": "request", "deaf": True}, "interrupted", "SIGTERM", AGAIN, takes_s=STALL_S + LADDER_S
    ),
    "falls silent and heeds no signal": Scenario(
        {"hang": "request", "deaf": True, "iron": True}, "killed", "had to be killed", AGAIN, takes_s=STALL_S + LADDER_S
    ),
    "hangs after the result": Scenario({"hang": "result"}, "result", "done", settings={"linger_s": 0.2}, takes_s=1.0),
    "hangs after the result and heeds no signal": Scenario({"hang": "result", "deaf": True, "iron": True}, "result", "done"),
    "hangs in a tool": Scenario({"hang": "tool"}, "interrupted", "no line came", AGAIN, takes_s=TOOL_S + LADDER_S),
    "never answers": Scenario({"hang": "start"}, "refused", "did not come up", AGAIN, takes_s=START_MS / 1000 + LADDER_S),
    "stops in a tool": Scenario({"hang": "tool"}, "interrupted", "stopped by", stop_after="self.fed"),
    "is stopped and heeds nobody": Scenario(
        {"hang": "tool", "deaf": True, "iron": True}, "killed", "stopped by", stop_after="self.fed", takes_s=LADDER_S
    ),
    "prints half a line and dies": Scenario({"half": True}, "died", "exit 1", AGAIN),
    "prints half a line and dies, once": Scenario({"half": True, "deaths": 1}, "result", "done"),
    "exits without a result": Scenario({"exit": 0}, "no-result", "exit 0", AGAIN),
    "exits with 3": Scenario({"exit": 3}, "died", "exit 3", AGAIN),
    "prints lines of 50 MB": Scenario({"line_mb": 50}, "result", "done", takes_s=10.0),
    "prints a line over the cap": Scenario({"line_mb": 70}, "result", "done", takes_s=10.0),
    "prints garbage between the lines": Scenario({"garbage": True}, "result", "done", prefix=30_000),
    # In the sandbox bwrap holds its stdout open, too: it only falls silent. Without one the end of the stream is seen.
    "closes stdout and lives on": Scenario({"mute": True}, "interrupted", "no line came", AGAIN, takes_s=STALL_S + LADDER_S),
    "closes stdout and heeds nothing": Scenario(
        {"mute": True, "deaf": True, "iron": True}, "killed", "no line came", AGAIN, takes_s=STALL_S + LADDER_S
    ),
    "closes stdout and lives on, without a sandbox": Scenario(
        {"mute": True}, "no-result", "lived on", AGAIN, takes_s=LADDER_S, settings={"sandbox": False}
    ),
    "closes stdout and heeds nothing, without a sandbox": Scenario(
        {"mute": True, "deaf": True, "iron": True}, "killed", "lived on", AGAIN, takes_s=LADDER_S, settings={"sandbox": False}
    ),
    "floods stderr": Scenario({"stderr_mb": 30}, "result", "done"),
    "leaves grandchildren": Scenario({"grandchildren": True}, "result", "done"),
    "leaves grandchildren and dies": Scenario({"grandchildren": True, "half": True}, "died", "exit 1", AGAIN),
    "leaves grandchildren and heeds nothing": Scenario(
        {"grandchildren": True, "hang": "request", "deaf": True, "iron": True}, "killed", "", AGAIN, takes_s=STALL_S + LADDER_S
    ),
    "refuses to resume": Scenario({"refuse": "resume"}, "result", "done", again="result"),
    "refuses the session's id": Scenario({"refuse": "session-id"}, "refused", "already in use", AGAIN),
    "tells its usage twice": Scenario({"usage": "twice"}, "result", "done", prefix=30_000),
    "tells a usage of zero": Scenario({"usage": "zero"}, "result", "done", prefix=0),
    "tells no usage": Scenario({"usage": "null"}, "result", "done", prefix=0),
    "tells a subagent's usage": Scenario({"usage": "subagent"}, "result", "done", prefix=30_000),
    "has a window too small": Scenario({"window": 100_000}, "refused", "window is too small", AGAIN),
    "uses up its turns": Scenario({"result": {"subtype": "error_max_turns", "is_error": True}}, "no-result", "turns", AGAIN),
    "uses up its budget": Scenario(
        {"result": {"subtype": "error_max_budget_usd", "is_error": True}}, "budget", "budget", GOES_ON, "record"
    ),
    "meets an API error": Scenario({"result": FAULT}, "no-result", "500", AGAIN),
    "is not logged in": Scenario({"result": LOGIN}, "authentication", "credential", AGAIN),
    "meets a limit": Scenario({"result": LIMIT, "limit": "in an hour"}, "limited", "", GOES_ON, "record"),
    "changes its wire": Scenario({"future": True}, "result", "done", prefix=30_000),
    "changes its wire and prints garbage": Scenario({"future": True, "garbage": True, "usage": "twice"}, "result", prefix=30_000),
}  # fmt: skip


@dataclass
class Report:
    """What was seen of one scenario."""

    name: str
    took_s: float = 0.0
    wrong: list[str] = field(default_factory=list)
    late: bool = False
    leaked: list[str] = field(default_factory=list)


class Stage:
    """One scenario on a home of its own."""

    def __init__(self, name: str, directory: Path) -> None:
        self.before = _descriptors()
        self.scenario = SCENARIOS[name]
        options = dict(self.scenario.options)
        if "limit" in options:
            options["limit"] = now_ms() // 1000 + 3600
        fake = install_zoo(directory, **options)
        nowhere: Any = SimpleNamespace(url="http://127.0.0.1:9", requests=[])
        settings = {"model": "", "credential": "none", "cli": str(fake), **self.scenario.settings}
        self.bed = SelfBed(directory / "home", nowhere, leased=False, **settings)
        self.report = Report(name)
        self.places = set(_places())

    async def play(self) -> Report:
        """Serve it, then look at what is on record and at what is left."""
        scenario, report = self.scenario, self.report
        run = self.bed.claim()
        began = trio.current_time()
        lines = await self._serve(scenario.takes_s)
        report.took_s = round(trio.current_time() - began, 2)
        self._check(run, lines)
        if scenario.again is not None and not report.wrong:
            later = self._claim_again()
            lines = await self._serve(scenario.takes_s)
            self._expect("the second outcome", self.bed.read(later).outcome, scenario.again)
        await self._count_leaks()
        return report

    async def _serve(self, takes_s: float) -> list[Any]:
        unscaled = patch.object(main, "make_constants", lambda _: _Scaled)
        # No call of the zoo's is real: nobody keeps a ledger, and nobody waits for one.
        alone = patch.multiple(lease, ASK_S=0.05, LAST_S=0.05)
        with structlog.testing.capture_logs() as lines, unscaled, alone, patch.object(log, "configure"):
            with trio.move_on_after(takes_s + SLACK_S) as scope:
                async with trio.open_nursery() as nursery:
                    if self.scenario.stop_after is not None:
                        nursery.start_soon(self._stop, lines, self.scenario.stop_after)
                    await self.bed.serve(within_s=math.inf)
                    nursery.cancel_scope.cancel()
            self.report.late |= scope.cancelled_caught
        return list(lines)

    async def _stop(self, lines: list[Any], after: str) -> None:
        while not any(line["kind"] == after for line in lines):
            await trio.sleep(0.01)
        (run,) = self.bed.rows("SELECT id FROM run WHERE ended_at IS NULL")
        found = self.bed.read(_named(run["id"]))
        self.bed.say(found, "stop", "stop")
        await trio.sleep_forever()

    def _claim_again(self) -> Run:
        if self.bed.rows("SELECT 1 FROM follow_up WHERE state = 'open'"):
            return self.bed.claim_next()
        return self.bed.claim("And the next thing.")

    def _check(self, run: Run, lines: list[Any]) -> None:
        scenario, ended = self.scenario, self.bed.read(run)
        self._expect("the outcome", ended.outcome, scenario.outcome)
        if scenario.reason not in (ended.end_reason or ""):
            self.report.wrong.append(f"the reason is '{ended.end_reason}', without '{scenario.reason}'")
        states = tuple(row["state"] for row in self.bed.rows("SELECT state FROM follow_up ORDER BY id"))
        self._expect("the work", states, scenario.work)
        handoffs = self.bed.rows("SELECT * FROM handoff WHERE run_id = ?", run.id)
        # Work that is open again after nothing may be helped by what is on record; nobody waits for that.
        if scenario.handoff is not None or scenario.work != AGAIN:
            self._expect("the hand-off", [one["origin"] for one in handoffs], [scenario.handoff] if scenario.handoff else [])
        if any(len(one["text"].encode()) > SCALED.handoff_max_bytes for one in handoffs):
            self.report.wrong.append("the hand-off is too long")
        ends = [line for line in lines if line["kind"] == "self.ended"]
        self._expect("the run's last lines", len(ends), 1)
        flushes = [line for line in lines if line["kind"] == "self.handed-off"]
        if len(flushes) > 1:
            self.report.wrong.append(f"{len(flushes)} hand-offs were stored")
        if scenario.prefix is not None and ends:
            self._expect("its size", ends[0].get("PREFIX_TOKENS"), scenario.prefix)

    def _expect(self, what: str, found: Any, right: Any) -> None:
        if found != right:
            self.report.wrong.append(f"{what}: {found!r}, not {right!r}")

    async def _count_leaks(self) -> None:
        """The kernel ends a killed namespace in its own moment."""
        with trio.move_on_after(GONE_S):
            while list(self._processes()):
                await trio.sleep(0.02)
        known = {row["id"] for row in self.bed.rows("SELECT id FROM session")}
        self.bed.mind.close()
        places = self.bed.home.self_dir(NAME)
        here = {path.name for path in places.iterdir()} if places.exists() else set()
        self.report.leaked += [f"process {one}" for one in self._processes()]
        self.report.leaked += [f"descriptor {one}" for one in _surplus(_descriptors(), self.before)]
        self.report.leaked += [f"directory {one}" for one in (here - known) | (set(_places()) - self.places)]

    def _processes(self) -> Iterator[str]:
        """Children of ours, and whatever still has this Mind's directories mounted, whoever its parent is by now."""
        mine = str(self.bed.home.mind_dir(NAME))
        ours = set(self.bed.children())
        for pid in ours:
            yield f"{pid} {' '.join(self.bed.command(pid))[:80]}"
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and int(entry.name) not in ours and mine in (entry / "mountinfo").read_text():
                    yield f"{entry.name} in {(entry / 'ns/pid').readlink()}: {' '.join(self.bed.command(int(entry.name)))[:80]}"


class _Scaled:
    @staticmethod
    def scaled(_divisor: int) -> Constants:
        return SCALED


async def play(name: str, directory: Path) -> Report:
    return await Stage(name, directory).play()


def pick(runs: int, seed: int) -> list[str]:
    """So many scenarios at random, each as often as another as far as it goes."""
    chance, names = random.Random(seed), sorted(SCENARIOS)
    rounds = -(-runs // len(names))
    return [name for _ in range(rounds) for name in chance.sample(names, len(names))][:runs]


def _named(run_id: str) -> Any:
    return SimpleNamespace(id=run_id)


def _places() -> list[str]:
    """What the CLI, the doctor or a test of ours could leave where everybody may write."""
    return [str(path) for path in Path(tempfile.gettempdir()).iterdir() if path.name.startswith(("claude-", "mind-doctor-"))]


def _descriptors() -> list[str]:
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(entry.readlink()).partition(":")[0])
    return sorted(found)


def _surplus(after: list[str], before: list[str]) -> list[str]:
    left = list(after)
    for one in before:
        with contextlib.suppress(ValueError):
            left.remove(one)
    return left
