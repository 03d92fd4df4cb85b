"""Door: one session of the `claude` CLI: its child, its seat at the gateway, its cursor (wire.md §5).

1. The child is started by the first turn, stays until `aclose`, and is started again, resumed, by a turn after that. Before every
   resume the transcript is looked at: its last entry is our last recorded turn, or SessionGone is raised.
2. The child's requests pass while `send` is under way, and under the reservation that `send` names.
3. A turn without an answer ends the session here: its cursor is None and its child is gone, because the transcript holds something
   that the record does not. So does a cancelled turn.
4. What the turn cost, how full the prefix is, and what went wrong are read at the gateway; the answer is read from the child.
"""

import json
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import trio

from mind_body.clock import now_ms
from mind_body.errors import MindBodyError, SessionGone
from mind_body.log import Journal
from mind_body.model.claude_files import ClaudeFiles, find_cli
from mind_body.model.claude_launch import Launch
from mind_body.model.claude_outcome import Shown, decide_outcome
from mind_body.model.claude_process import ClaudeProcess, TurnSeen, start_claude
from mind_body.model.gateway import Gateway
from mind_body.model.prefix import fingerprint
from mind_body.model.seat import Grant, Seat
from mind_body.model.session import FAULT_WAIT_MS, Failed, Limited, Outcome, Reply, SessionPlan, TurnResult, Unreadable, Usage
from mind_body.model.spend import Purse, Trouble
from mind_body.model.told import compare_costs
from mind_body.model.trouble import judge_passed
from mind_body.settings import ModelConfig

SETTLE_S = 5.0
"""For the gateway to note the end of a request whose answer the child has had."""


@dataclass(slots=True)
class Shared:
    """What all sessions of one provider share."""

    config: ModelConfig
    files: ClaudeFiles
    gateway: Gateway
    purse: Purse
    nursery: trio.Nursery
    journal: Journal
    model: str
    output_cap: int
    window: int | None = None
    """As the newest result told it."""
    taken: dict[str, "ClaudeSession"] = field(default_factory=dict)
    """The sessions that are open here, by id."""


class ClaudeSession:
    """One conversation."""

    def __init__(self, shared: Shared, plan: SessionPlan) -> None:
        self._shared = shared
        self._plan = plan
        self._leaf, self._sent = parse_cursor(plan.cursor)
        self._seat: Seat | None = None
        self._process: ClaudeProcess | None = None
        self._gone = False
        self._sending = trio.Lock()

    @property
    def pid(self) -> int | None:
        """The child's, while it runs."""
        return self._process.pid if self._process is not None and self._process.alive else None

    async def send(self, text: str, call_id: str) -> TurnResult:
        async with self._sending:
            if self._gone:
                return self._nothing(Failed("fault", now_ms(), "the session had a turn without an answer, and is begun anew"))
            first = self._leaf is None
            try:
                process = await self._reach()
            except SessionGone:
                await self._give_up()
                raise
            except MindBodyError as error:
                await self._give_up()
                return self._nothing(Failed("fault", now_ms() + FAULT_WAIT_MS, str(error)))
            rehydrated = f"{self._plan.rehydration}\n\n{text}" if first and self._plan.rehydration else text
            return await self._take(process, rehydrated, call_id)

    async def aclose(self) -> None:
        await self._close_process()
        self._shared.taken.pop(self._plan.session_id, None)

    async def _close_process(self, *, at_once: bool = False) -> None:
        process, seat = self._process, self._seat
        self._process = self._seat = None
        if seat is not None:
            self._sent = fingerprint(seat.main.blocks) if seat.main.blocks else self._sent
            self._shared.gateway.close_seat(seat)
        if process is not None:
            await (process.kill() if at_once else process.aclose())

    async def _take(self, process: ClaudeProcess, text: str, call_id: str) -> TurnResult:
        seat = self._seat
        assert seat is not None
        grant = seat.grant = Grant(call_id, self._shared.purse)
        answered = False
        try:
            seen = TurnSeen("", ended=f"claude gave no result within {self._patience_s:.0f} s")
            with trio.move_on_after(self._patience_s):
                seen = await process.take_turn(text)
            if seen.result is None:
                seat.close_grant()  # nobody is there to hear the rest
            with trio.move_on_after(SETTLE_S):
                async with grant.passing:
                    pass
            outcome = decide_outcome(grant.passed, Shown(seen.result, seen.said, seen.ended, seen.limit_until), now_ms())
            await self._tell_lease(outcome, grant, process)
            answered = isinstance(outcome, Reply | Unreadable) and seen.leaf is not None
            self._leaf = seen.leaf if answered else None
            return self._result(outcome, grant, seen, self._cursor(seat) if answered else None)
        finally:
            seat.close_grant()
            if not answered:
                await self._give_up()

    async def _tell_lease(self, outcome: Outcome, grant: Grant, process: ClaudeProcess) -> None:
        """What it cost by the CLI's own word; and a limit that no request of its own showed, or not how long it lasts."""
        costs = compare_costs(grant.passed, process.told)
        if costs is not None:
            self._shared.purse.report(*costs)
        shown = judge_passed(grant.passed[-1], now_ms()) if grant.passed else None
        if isinstance(outcome, Limited) and not (isinstance(shown, Limited) and shown.until == outcome.until):
            await self._shared.purse.tell(f"{grant.call_id}.told", Trouble("limited", outcome.until, outcome.reason))

    async def _reach(self) -> ClaudeProcess:
        """The running child, started where it is not. Raises MindBodyError."""
        if self._process is not None and self._process.alive:
            return self._process
        await self._close_process()
        shared = self._shared
        if self._leaf is not None:
            shared.files.check_resumable(self._plan.session_id, self._leaf)
        seat = self._seat = shared.gateway.open_seat()
        seat.main.resumed_from = self._sent
        process = self._process = start_claude(self._launch(seat), shared.journal)
        shared.nursery.start_soon(process.run)
        await process.initialize(self._plan.schema)
        return process

    def _launch(self, seat: Seat) -> Launch:
        shared, config = self._shared, self._shared.config
        return Launch(
            binary=str(find_cli(config.cli)),
            config_dir=str(shared.files.config_dir),
            work_dir=str(shared.files.work_dir),
            model=shared.model,
            session_id=self._plan.session_id,
            resume=self._leaf is not None,
            prompt_file=shared.files.prepare(self._plan.session_id, self._plan.instructions),
            output_cap=shared.output_cap,
            gateway_url=shared.gateway.url,
            key_kind=config.credential,
            key=seat.key,
            sandboxed=config.sandbox,
        )

    async def _give_up(self) -> None:
        self._gone = True
        await self._close_process(at_once=True)
        self._shared.taken.pop(self._plan.session_id, None)

    @property
    def _patience_s(self) -> float:
        """Two tries of a request that may each be silent so long, and the CLI's own second between them."""
        return 2 * self._shared.config.timeout_s + 60

    def _cursor(self, seat: Seat) -> str:
        return json.dumps({"leaf": self._leaf, "sent": fingerprint(seat.main.blocks)})

    def _result(self, outcome: Outcome, grant: Grant, seen: TurnSeen, cursor: str | None) -> TurnResult:
        shared = self._shared
        usages = [one.metered.usage for one in grant.passed]
        whole = [one.metered for one in grant.passed if one.metered.complete]
        window = seen.result.window_tokens if seen.result else None
        shared.window = window or shared.window
        return TurnResult(
            outcome,
            usage=reduce(Usage.plus, usages, Usage()),
            last_request=whole[-1].usage if whole else Usage(),
            cost_micro_usd=sum(one.cost_micro_usd for one in grant.passed),
            cursor=cursor,
            api_calls=sum(one.sent for one in grant.passed),
            received=tuple(seen.blocks),
            model=whole[-1].model if whole else shared.model,
            window_tokens=None if shared.config.window_tokens else window,
        )

    def _nothing(self, outcome: Outcome) -> TurnResult:
        return TurnResult(outcome, Usage(), Usage(), 0, None, 0, model=self._shared.model)


def parse_cursor(cursor: str | None) -> tuple[str | None, str | None]:
    """Where the transcript ends, and the fingerprint of what was sent last."""
    try:
        found: Any = json.loads(cursor) if cursor else {}
    except ValueError:
        found = {}
    return (found.get("leaf"), found.get("sent")) if isinstance(found, dict) else (None, None)
