"""Loop: one run of a Self: gather facts, ask `decide`, do what it says, until it says Record.

1. The run is adopted already. Its child is taken (`opening`), and from then on its requests pass, up to the run's cap.
2. Nothing is ever waited for but the child's lines, the instant that `decide` names, and a look at brake, dial and what people say,
   with every poke and each second at most (`listen`).
3. Whatever happens, the run ends exactly once. Told to stop, the same table ends it as if she were held, in a twentieth of the
   time; a flush that is under way is let finish before, within a twentieth of its grace, where the manager grants that. What is
   not recorded is a run whose process died; the heartbeat finds it.
4. The manager's watchdog is fed by this loop's own rounds: facts were gathered, and an answer was given.
"""

import math

import trio

from mind_body.clock import now_ms, render_utc
from mind_body.control.effective import Dial
from mind_body.crash import crash_point
from mind_body.errors import MindBodyError
from mind_body.host.beside import background
from mind_body.ids import new_session_uuid
from mind_body.log import Level
from mind_body.mind.handoffs import admit_handoff
from mind_body.mind.rooms import read_room
from mind_body.mind.steers import mark_given
from mind_body.mind.work_records import Handoff
from mind_body.model.lines import ControlRequest, Event, Partial
from mind_body.model.seat import Grant
from mind_body.self_run.actions import (
    Action,
    CloseStdin,
    EndSession,
    Feed,
    Interrupt,
    Kill,
    Record,
    Reopen,
    StoreHandoff,
    Terminate,
    Wait,
    WriteFlush,
)
from mind_body.self_run.constants import Constants
from mind_body.self_run.course import Calls, Course, Message
from mind_body.self_run.decide import decide
from mind_body.self_run.figures import add_up, find_declined, find_limit
from mind_body.self_run.finish import Finish
from mind_body.self_run.left import read_left, render_record
from mind_body.self_run.listen import Listener
from mind_body.self_run.messages import Start, cut_handoff, render_flush, render_start
from mind_body.self_run.opening import HURRY
from mind_body.self_run.place import Place, Work
from mind_body.self_run.tell import Teller
from mind_body.self_run.worker import Worker, mono_ms

STOPPED = "its process was told to stop"
ROUND_S = 1.0
"""How often the loop goes round though nothing was seen."""
STEPS: dict[type, tuple[str, str]] = {
    Interrupt: ("self.interrupted", "It is interrupted."),
    EndSession: ("self.end-asked", "It is asked to end its session."),
    CloseStdin: ("self.stdin-closed", "Its stdin is closed."),
    Terminate: ("self.terminated", "It is told to end by SIGTERM."),
    Kill: ("self.killed", "Its sandbox is killed, and everything in it."),
}
"""Each step to its end, as the journal has it."""


class Driver:
    """Drives one run. Made by `begin_run`."""

    def __init__(self, place: Place, work: Work, dial: Dial, worker: Worker) -> None:
        self._place = place
        self._work = work
        self._dial = dial
        self._worker = worker
        self._journal = place.journal.bind(RUN=work.run.id)
        self._grant = Grant(work.run.id, place.lease, whole_run=True)
        self._course = Course(mono_ms(), worker.seen, worker.meter, worker.now)
        self._listener = Listener(place, work, self._course)
        self._teller = Teller(place, work, self._course)
        self._news = trio.Event()
        self._stopped: str | None = None
        self._fault: MindBodyError | None = None

    async def drive(self, how: str) -> None:
        """From the first message to the record."""
        lease, run, patience = self._place.lease, self._work.run, self._place.post.patience
        lease.open_run(run.id, self._work.asked.conversation)
        patience.under_way = lambda: self._course.flush is not None and not self._course.handoff_stored
        patience.most_s = self._place.constants.scaled(HURRY).flush_grace_ms / 1000
        try:
            self._seat()
            self._course.waiting.append(self._start_message(goes_on=how != "fresh"))
            crash_point("self.spawned")
            self._teller.begin()
            await self._work_on()
        finally:
            patience.most_s = 0.0
            lease.close_run()

    async def _work_on(self) -> None:
        try:
            async with background() as nursery:
                nursery.start_soon(self._listen)
                record = await self._go(self._place.constants)
        except BaseException:
            if trio.current_effective_deadline() > -math.inf:
                raise
            self._stopped, self._fault = STOPPED, None
            with trio.CancelScope(shield=True):
                record = await self._go(self._place.constants.scaled(HURRY))
                await self._end(record)
            raise
        with trio.CancelScope(shield=True):
            await self._end(record)

    async def _listen(self) -> None:
        try:
            await self._listener.run(self._show, self._wake)
        except MindBodyError as error:
            self._fault = error
            self._wake()

    async def _go(self, constants: Constants) -> Record:
        while True:
            self._news = trio.Event()
            self._gather()
            action = decide(self._course.facts(mono_ms()), constants)
            self._place.post.notify.progress()
            if isinstance(action, Record):
                return action
            if isinstance(action, Wait):
                until = math.inf if action.until is None else (action.until + 1) / 1000
                with trio.move_on_at(min(until, trio.current_time() + ROUND_S)):
                    await self._news.wait()
            else:
                await self._do(action)

    def _gather(self) -> None:
        """Raises MindBodyError where nobody can listen any more, which is no fault of the run's."""
        if self._fault is not None:
            raise self._fault
        self._worker.look()
        passed, seen, listener = self._grant.passed, self._course.seen, self._listener
        limit = find_limit(passed, now_ms()) or seen.limit_until
        if listener.held is not None:
            self._worker.seat.close_grant()  # what passes is broken off, whatever the child heeds
        self._course.calls = Calls(
            held=self._stopped or listener.held or find_declined(passed, "held"),
            stopped=listener.stopped,
            spent=find_declined(passed, "budget"),
            capped=find_declined(passed, "spend"),
            limited=None if limit is None else f"the plan's limit is reached, until {render_utc(limit)}",
        )

    async def _do(self, action: Action) -> None:
        match action:
            case Feed():
                self._feed(self._course.waiting[0])
            case WriteFlush():
                self._ask_flush(action)
            case StoreHandoff():
                self._store(action)
            case Reopen():
                await self._reopen(action)
            case Wait() | Record():
                raise AssertionError
            case _:
                self._tell(*STEPS[type(action)], action)
                self._worker.take(action, self._course)

    def _feed(self, message: Message) -> None:
        if message.steer_id is not None and not self._course.is_retold(message):
            with self._place.mind.write() as tx:
                if not mark_given(tx, message.steer_id):
                    self._course.waiting.remove(message)  # taken back just now
                    return
        self._worker.say(message.text, message.uuid)
        self._course.note_fed(message, mono_ms())
        self._tell("self.fed", "It was told what to do." if message.steer_id is None else "It was told what somebody says.")
        crash_point("self.fed")

    def _ask_flush(self, action: WriteFlush) -> None:
        uuid = new_session_uuid()
        self._worker.say(render_flush(action.ask, self._place.constants.handoff_max_bytes), uuid)
        self._course.note_flush(action, uuid, mono_ms())
        self._tell("self.flush-asked", "It is asked for its hand-off.", action)
        crash_point("self.flush-asked")

    def _store(self, action: StoreHandoff) -> None:
        course, most, now = self._course, self._place.constants.handoff_max_bytes, now_ms()
        if action.origin == "model":
            text = cut_handoff(course.kept_answer if action.kept else course.answer, most)
            handoff = Handoff(self._work.run.id, self._work.asked.workspace, text, "model", action.cut, now)
        else:
            reason = course.flush.reason if course.flush else "nobody knows why"
            handoff = render_record(self._work, course, reason, now)
        with self._place.mind.write() as tx:
            admit_handoff(tx, handoff)
        course.handoff_stored = True
        size = len(handoff.text.encode("utf-8", "replace"))
        self._journal.note("self.handed-off", "Its hand-off is stored.", ORIGIN=handoff.origin, BYTES=size, CUT=handoff.cut)
        crash_point("self.handoff-stored")

    async def _reopen(self, action: Reopen) -> None:
        self._tell("self.reopened", "Its child went before it answered; another is started.", action)
        place, course = self._place, self._course
        await place.bench.let_go()
        self._worker = place.bench.begin(self._work.asked, self._dial, action.reason)
        self._seat()
        course.note_reopened(self._worker.seen, self._worker.meter, self._worker.now)
        course.waiting[0] = self._start_message(goes_on=False)

    def _seat(self) -> None:
        """The child's lines come here from now on, and its requests pass."""
        before, worker = self._grant, self._worker
        self._grant = worker.seat.grant = Grant(
            before.call_id, before.purse, whole_run=True, passed=before.passed, asked=before.asked
        )
        if worker.child is not None:
            worker.child.on_event, worker.child.on_change = self._see, self._wake

    def _see(self, event: Event) -> None:
        self._course.see(event, mono_ms())
        if isinstance(event, ControlRequest):
            self._worker.decline(event.request_id)
        if not isinstance(event, Partial):
            self._wake()

    def _wake(self) -> None:
        self._news.set()

    def _show(self) -> None:
        totals = add_up(self._grant.passed)
        self._teller.show(totals.cost_micro_usd, totals.requests)

    def _start_message(self, *, goes_on: bool) -> Message:
        place, asked = self._place, self._work.asked
        with place.mind.read() as tx:
            room = read_room(tx, asked.room_id) if asked.asked_in is not None else None
            left = None if goes_on else read_left(tx, asked.workspace, asked.conversation)
        unfinished = asked.continues is not None or self._work.run.cause == "again"
        start = Start(place.name, asked, place.config.people, room, handoff=left, goes_on=goes_on, unfinished=unfinished)
        return Message("start", render_start(start), new_session_uuid())

    def _tell(self, kind: str, sentence: str, action: Action | None = None, level: Level = "info") -> None:
        reason = getattr(action, "reason", None)
        self._journal.note(kind, sentence, level=level, REASON=reason, PREFIX_TOKENS=self._course.meter.prefix_tokens or None)

    async def _end(self, record: Record) -> None:
        await Finish(self._place, self._work, self._course, self._worker, self._grant, self._teller).finish(record)
