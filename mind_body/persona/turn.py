"""Loop: one turn of hers: T3a, one model call, T3b.

1. The brake is asked before the turn and again while the model answers: at every poke, and each second at most. Held means that
   the call is cancelled; its rows stay pending.
2. An answer that cannot be read is worth one repair, with the error, in the same session; so is silence where the Mind is never to
   be silent when addressed. One repair in all.
3. Whatever ends a turn is recorded, also when this process is told to stop. What is not recorded is a turn whose process died; the
   heartbeat finds it and marks it lost.
4. An answer that was paid for is not thrown away because the disk is full for a minute: T3b is tried again, for about two.
5. One journal line per turn, with its figures. Never a word of what was said.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio

from mind_body.clock import now_ms
from mind_body.control.effective import Control, Held
from mind_body.control.files import read_control
from mind_body.errors import CredentialError, MindBodyError, OperatorError, SessionGone, StorageError
from mind_body.mind.acks import admit_ack, is_acked
from mind_body.mind.places import read_places
from mind_body.mind.turns import read_shown
from mind_body.model.session import Failed, ModelSession, Outcome, Reply, TurnResult, Unreadable
from mind_body.persona.closing import STOPPED, Course, close_with, ends_run
from mind_body.persona.open_sessions import OpenSessions
from mind_body.persona.opening import Opened, Place
from mind_body.persona.outcomes import answered_text
from mind_body.persona.places import keep_back, place_of
from mind_body.persona.reply import Read, Shown, Unread, named_messages, read_reply
from mind_body.persona.starting import NOTHING_ASKED, Asked
from mind_body.persona.telling import tell_turn
from mind_body.persona.work_acts import acts_of

BRAKE_S = 1.0
"""How long a hold may go unnoticed while the model answers."""
WHY_MAX = 500
"""Characters of a fault that a repair quotes."""
OPEN_FAULT_MS = 15_000
RECORD_AGAIN_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 30.0, 30.0)
"""Waits between two tries of a T3b that the disk refuses."""
SILENT = "you were addressed, so say something"


@dataclass(frozen=True, slots=True)
class Taken:
    """What a turn came to."""

    outcome: Outcome | None
    """None when the run was not ours any more and the reply was discarded."""
    run_over: bool
    """The run has ended: with this turn, or before it."""
    work: Asked = NOTHING_ASKED
    """What her Self is asked."""


class TurnTaker:
    """Takes turns for one place; model sessions stay open between them."""

    def __init__(
        self,
        place: Place,
        sessions: OpenSessions,
        wait_for_poke: Callable[[float], Awaitable[bool]],
        progress: Callable[[], None],
    ) -> None:
        self.place = place
        self._sessions = sessions
        self._wait_for_poke = wait_for_poke
        self._progress = progress

    async def take(self, opened: Opened) -> Taken:
        """The turn, recorded or discarded."""
        unanswered = Failed("held", None, STOPPED)
        course = Course(unanswered)
        try:
            await self._talk(opened, course)
        except BaseException as error:
            # Told to stop: what is known is recorded, without waiting for anything. A fault of our own is a lost turn instead.
            if is_cancellation(error):
                if course.outcome is unanswered:
                    course.outcome = Failed("held", None, self.read_stop())
                self._record(opened, course)
            raise
        recorded = await self._record_when_possible(opened, course)
        if not recorded or course.gone or not self._is_in_step(course):
            await self._sessions.drop(opened.plan.session_id)
        return Taken(course.outcome, ends_run(course), course.work) if recorded else Taken(None, run_over=True)

    def ask_brake(self) -> Control:
        """Brake and dial as they are now, acknowledged."""
        control = read_control(self.place.home, self.place.me.name)
        with self.place.mind.read() as tx:
            known = is_acked(tx, "persona", control)
        if not known:
            with self.place.mind.write() as tx:
                admit_ack(tx, "persona", control, now_ms())
        return control

    def read_stop(self) -> str:
        """Why this process is told to stop. Whoever holds a Mind's brake may stop her process before she has seen it."""
        control = read_control(self.place.home, self.place.me.name)
        return control.reason if isinstance(control, Held) else STOPPED

    def _is_in_step(self, course: Course) -> bool:
        """Whether the open session is what the record says it is."""
        if len(course.results) < len(course.asked) or not course.results:
            return False
        last = course.results[-1]
        return answered_text(last) is not None and (last.cursor is not None or not self.place.provider.keeps_transcript)

    async def _talk(self, opened: Opened, course: Course) -> None:
        try:
            session = await self._sessions.take(opened.batch.conversation, opened.plan)
        except MindBodyError as error:
            course.outcome, course.gone = _unopened(error), isinstance(error, SessionGone)
            return
        verdict = await self._ask(session, opened, course, opened.input, opened.turn_id)
        why = self._repair_reason(opened, verdict)
        if why is None or not self._is_in_step(course):
            return
        silent = course.outcome if isinstance(verdict, Read) else None
        before = course.outcome
        text = f"Your answer could not be used: {why[:WHY_MAX]}. Answer again, with one JSON object that fits the schema."
        await self._ask(session, opened, course, text, f"{opened.turn_id}-repair")
        failed = course.outcome if isinstance(course.outcome, Failed) else None
        if silent is not None and not isinstance(course.outcome, Reply):
            course.outcome = silent
        elif failed is not None and failed.kind == "budget":
            course.outcome = before

    async def _ask(self, session: ModelSession, opened: Opened, course: Course, text: str, call_id: str) -> Read | Unread | None:
        """One call, watched; what it came to is in the course."""
        course.asked.append(text)
        held: list[str] = []
        results: list[TurnResult] = []
        began = trio.current_time()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch_brake, nursery.cancel_scope, held)
                try:
                    results.append(await session.send(text, call_id))
                except SessionGone as error:
                    course.outcome, course.gone = _unopened(error), True
                nursery.cancel_scope.cancel()
        finally:
            course.model_ms += round((trio.current_time() - began) * 1000)
        if course.gone:
            return None
        if not results:
            course.outcome = Failed("held", None, held[0] if held else STOPPED)
            return None
        result = results[0]
        course.results.append(result)
        verdict = self._read(opened, result)
        course.outcome = result.outcome
        if isinstance(verdict, Unread):
            course.outcome = Unreadable(verdict.why, answered_text(result) or "")
        elif isinstance(verdict, Read):
            course.read = verdict
        return verdict

    def _read(self, opened: Opened, result: TurnResult) -> Read | Unread | None:
        if isinstance(result.outcome, Unreadable):
            return Unread(result.outcome.why)
        if not isinstance(result.outcome, Reply):
            return None
        text = result.outcome.text
        with self.place.mind.read() as tx:
            messages = read_shown(tx, opened.batch.conversation, named_messages(text))
            shown = Shown(opened.rooms, messages, opened.batch.mail, opened.scheduled)
            found = read_reply(text, acts_of(self.place.config), shown, small=self.place.me.small)
            if isinstance(found, Unread):
                return found
            return keep_back(found, read_places(tx, map(place_of, found.say)), opened.batch.mail, self.place.config)

    def _repair_reason(self, opened: Opened, verdict: Read | Unread | None) -> str | None:
        if isinstance(verdict, Unread):
            return verdict.why
        persona = self.place.config.persona
        never_silent = persona.silence == "never-when-addressed" and "say" in persona.acts
        if isinstance(verdict, Read) and not verdict.say and not verdict.kept_back and opened.batch.mail and never_silent:
            return SILENT
        return None

    async def _record_when_possible(self, opened: Opened, course: Course) -> bool:
        for wait_s in RECORD_AGAIN_S:
            try:
                return self._record(opened, course)
            except StorageError as error:
                self.place.journal.note(
                    "turn.not-recorded", f"A turn could not be recorded yet: {error}.", level="error", TURN=opened.turn_id
                )
            await trio.sleep(wait_s)
            self._progress()
        return self._record(opened, course)

    def _record(self, opened: Opened, course: Course) -> bool:
        recorded = close_with(self.place, opened, course, now_ms())
        tell_turn(self.place, opened, course, recorded=recorded)
        return recorded

    async def _watch_brake(self, scope: trio.CancelScope, held: list[str]) -> None:
        while True:
            await self._wait_for_poke(BRAKE_S)
            self._progress()
            control = self.ask_brake()
            if isinstance(control, Held):
                held.append(control.reason)
                scope.cancel()
                return


def _unopened(error: MindBodyError) -> Failed:
    if isinstance(error, CredentialError):
        return Failed("authentication", None, str(error))
    return Failed("fault", None if isinstance(error, OperatorError) else now_ms() + OPEN_FAULT_MS, str(error))


def is_cancellation(error: BaseException) -> bool:
    """Whether this is trio's cancellation and nothing else, in a group or not."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1] is None
    return isinstance(error, trio.Cancelled)
