"""Loop: the one child that a Self has, kept between runs: taken over, resumed or begun anew, and let go.

1. What is done is `reuse`'s answer. A session that cannot be resumed is ended with its reason, in the transaction that opens the
   next one; its directory goes with the next start.
2. A child is started from the main thread, behind a seat of its own at the gateway. It is asked for `initialize` and for its window
   before anything else is said.
3. Letting go takes the ladder, with a twentieth of its bounds: nobody waits for what an idle child still has to say.
"""

from dataclasses import dataclass

import trio

from mind_body.clock import now_ms
from mind_body.control.effective import Dial
from mind_body.errors import MindBodyError, SessionGone
from mind_body.ids import digest, new_session_uuid
from mind_body.mind.records import Session
from mind_body.mind.sessions import end_session, open_session, read_open_session
from mind_body.mind.store import Mind
from mind_body.mind.work_records import FollowUp
from mind_body.model.claude import ANTHROPIC
from mind_body.model.claude_files import check_sandbox, find_cli
from mind_body.model.claude_session import parse_cursor
from mind_body.model.gateway import Gateway
from mind_body.model.seat import Seat
from mind_body.model.told import Told
from mind_body.self_run.actions import CloseStdin, EndSession, Interrupt, Kill, Terminate, Wait
from mind_body.self_run.child import SelfChild, start_self
from mind_body.self_run.constants import Constants
from mind_body.self_run.course import ChildNow, Course
from mind_body.self_run.files import SelfFiles
from mind_body.self_run.ladder import decide_leave
from mind_body.self_run.launch import SelfLaunch
from mind_body.self_run.meter import Meter
from mind_body.self_run.reuse import Binding, Bounds, Fresh, Idle, Keep, Resume, linger_ms, plan_opening, warm_ms
from mind_body.self_run.seen import Seen
from mind_body.self_run.worker import Worker, mono_ms
from mind_body.settings import SelfConfig

PROVIDER = "self"
HURRY = 20
"""The ladder's bounds are divided by this for a child that no run wants: all of it within two seconds."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The child for a run, and how it came."""

    worker: Worker
    how: str
    """`kept`, `resumed` or `fresh`."""
    reason: str


class Bench:
    """Made by wiring; `nursery` reads the children."""

    def __init__(  # noqa: PLR0917 - what it is made of
        self,
        config: SelfConfig,
        constants: Constants,
        files: SelfFiles,
        gateway: Gateway,
        mind: Mind,
        nursery: trio.Nursery,
    ) -> None:
        self._config = config
        self._constants = constants
        self._files = files
        self._gateway = gateway
        self._mind = mind
        self._nursery = nursery
        self.worker: Worker | None = None

    async def take(self, asked: FollowUp, dial: Dial) -> Taken:
        """The child for this work. Never raises what a child can cause: one that could not be started says why."""
        binding, now = self._bind(asked), now_ms()
        with self._mind.read() as tx:
            session = read_open_session(tx, work_conversation(asked.workspace, asked.conversation))
        bounds = Bounds(
            self._constants.ceiling(session.window_tokens if session and session.window_tokens else None),
            dial.run_cap,
            warm_ms(self._config.credential),
        )
        opening = plan_opening(binding, self._idle(), session, bounds, now)
        if isinstance(opening, Keep) and self.worker is not None:
            self.worker.begin_run()
            return Taken(self.worker, "kept", "its child is still warm")
        await self.let_go()
        if isinstance(opening, Resume):
            leaf, sent = parse_cursor(opening.session.cursor)
            try:
                self._files.check_resumable(opening.session.id, leaf or "")
            except SessionGone as error:
                return Taken(self.begin(asked, dial, str(error)), "fresh", str(error))
            worker = self._start(opening.session.id, binding, dial, resume=True, sent=sent)
            worker.meter.prefix_tokens = opening.session.prefix_tokens
            return Taken(worker, "resumed", "at its cursor")
        reason = opening.reason if isinstance(opening, Fresh) else "its child is gone"
        return Taken(self.begin(asked, dial, reason), "fresh", reason)

    def begin(self, asked: FollowUp, dial: Dial, reason: str) -> Worker:
        """A session of its own, and its child."""
        binding, now, session_id = self._bind(asked), now_ms(), new_session_uuid()
        with self._mind.write() as tx:
            before = read_open_session(tx, work_conversation(asked.workspace, asked.conversation))
            if before is not None:
                end_session(tx, before.id, reason, now)
            open_session(tx, self._record(session_id, binding, now))
        return self._start(session_id, binding, dial, resume=False, sent=None)

    def rest(self, cost_micro_usd: int) -> None:
        """The run is over, and its child stays: what it still prints is read, and nothing of it passes."""
        worker = self.worker
        if worker is not None and worker.child is not None:
            worker.spent_micro_usd += cost_micro_usd
            worker.child.on_event, worker.child.on_change = worker.see, lambda: None

    def linger_left_s(self) -> float:
        """How long the child that rests may stay: until its cache is cold, and no longer than it was configured. 0 for none."""
        worker = self.worker
        if worker is None or worker.child is None or worker.child.exited:
            return 0.0
        whole = linger_ms(self._config.credential, self._config.linger_s)
        return min(max(whole - (now_ms() - (worker.seat.main.answered_at or 0)), 0), whole) / 1000

    async def let_go(self) -> None:
        """End the child that is there, in order. Finishes even when cancelled."""
        worker, self.worker = self.worker, None
        if worker is None:
            return
        worker.seat.close_grant()
        with trio.CancelScope(shield=True):
            if worker.child is not None:
                await self._leave(worker, worker.child)
            self._gateway.close_seat(worker.seat)

    async def _leave(self, worker: Worker, child: SelfChild) -> None:
        course = Course(mono_ms(), worker.seen, worker.meter, worker.now)
        child.on_event = lambda event: course.see(event, mono_ms())
        constants = self._constants.scaled(HURRY)
        while not child.exited:
            worker.look()
            action = decide_leave(course.facts(mono_ms()), constants)
            if isinstance(action, Wait):
                if action.until is None:
                    break
                with trio.move_on_at(action.until / 1000):
                    await child.gone.wait()
            elif isinstance(action, Interrupt | EndSession | CloseStdin | Terminate | Kill):
                worker.take(action, course)
        await child.aclose()

    def _start(self, session_id: str, binding: Binding, dial: Dial, *, resume: bool, sent: str | None) -> Worker:
        now, seat = mono_ms(), self._gateway.open_seat()
        seat.main.resumed_from = sent
        worker = self.worker = Worker(
            None, Seen(session_id, now), Meter(Told(resumed=resume)), seat, binding, ChildNow(now, gone=True, drained=True)
        )
        try:
            worker.child = start_self(self._launch(session_id, binding, dial, seat, resume=resume))
        except MindBodyError as error:
            worker.now.words = str(error)
            return worker
        self._nursery.start_soon(worker.child.run)
        worker.look()
        worker.greet()
        return worker

    def _launch(self, session_id: str, binding: Binding, dial: Dial, seat: Seat, *, resume: bool) -> SelfLaunch:
        """Raises MindBodyError."""
        config, workspace = self._config, binding.workspace
        check_sandbox(wanted=config.sandbox)
        readable, writable = self._files.find_binds()
        return SelfLaunch(
            binary=str(find_cli(config.cli)),
            config_dir=str(self._files.prepare(session_id)),
            work_dir=str(self._files.find_workspace(workspace)),
            workspace=workspace,
            model=config.model,
            session_id=session_id,
            resume=resume,
            max_turns=config.max_turns,
            run_cap_usd=dial.run_cap / 1e6,
            gateway_url=self._gateway.url,
            key_kind=config.credential,
            key=seat.key,
            readable=readable,
            writable=writable,
            sandboxed=config.sandbox,
        )

    def _bind(self, asked: FollowUp) -> Binding:
        server = (self._config.base_url or ANTHROPIC).rstrip("/").partition("//")[2]
        return Binding(asked.workspace, asked.conversation, f"self:{server}", self._config.model)

    def _idle(self) -> Idle | None:
        worker = self.worker
        if worker is None or worker.child is None:
            return None
        worker.look()
        fit = worker.seen.ready and not (worker.now.gone or worker.now.deaf or worker.seen.busy or worker.seen.background)
        used_at = worker.seat.main.answered_at or 0
        return Idle(worker.binding, worker.seen.session_id, fit, worker.meter.prefix_tokens, worker.spent_micro_usd, used_at)

    def _record(self, session_id: str, binding: Binding, now: int) -> Session:
        empty = digest("")
        return Session(
            id=session_id,
            conversation=work_conversation(binding.workspace, binding.conversation),
            provider=binding.provider,
            model=binding.model,
            instructions="",
            instructions_digest=empty,
            schema_json="",
            schema_digest=empty,
            rehydration="",
            cursor=None,
            opened_at=now,
            ended_at=None,
            end_reason=None,
            prefix_tokens=0,
            ceiling_tokens=0,
            window_tokens=0,
            rehydration_tokens=0,
            last_used_at=now,
            last_turn_id=None,
            turns=0,
        )


def work_conversation(workspace: str, conversation: str) -> str:
    """Whose the session of this work is: a workspace's, for those who may know what was said there (design §5)."""
    return f"work:{workspace}:{conversation}"
