"""Door: a child with what belongs to it: what it has shown, its seat at the gateway, and the steps that can be taken with it.

A step that cannot be taken, because nobody is there to take it with, is noted all the same (see `facts`).
"""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import trio

from mind_body.model.claude_launch import render_user
from mind_body.model.lines import Event
from mind_body.model.seat import Seat
from mind_body.self_run.actions import CloseStdin, EndSession, Interrupt, Kill, Terminate
from mind_body.self_run.child import SelfChild
from mind_body.self_run.course import ChildNow, Course
from mind_body.self_run.launch import render_control
from mind_body.self_run.meter import Meter
from mind_body.self_run.reuse import Binding
from mind_body.self_run.seen import END, INITIALIZE, WINDOW, Seen

Step: TypeAlias = Interrupt | EndSession | CloseStdin | Terminate | Kill


@dataclass(slots=True)
class Worker:
    """A child, and what belongs to it."""

    child: SelfChild | None
    """None where it could not be started."""
    seen: Seen
    meter: Meter
    seat: Seat
    binding: Binding
    now: ChildNow
    spent_micro_usd: int = 0
    """By the runs before, through this process."""
    _asked: int = field(default=0, repr=False)

    def begin_run(self) -> None:
        """Another run begins with the child that is there."""
        self.now.started_at = mono_ms()
        self.seen.limit_until = None
        self.seen.compacted.clear()
        self.meter.begin_run()

    def see(self, event: Event) -> None:
        """One event, while no run is live."""
        self.seen.see(event, mono_ms())
        self.meter.see(event)

    def decline(self, request_id: str) -> None:
        """It asks us something: nobody is there to answer."""
        answer = {"subtype": "error", "request_id": request_id, "error": "nobody is there to answer"}
        self._put({"type": "control_response", "response": answer})

    def greet(self) -> None:
        """What it is asked before anything is said to it."""
        self._put(render_control(INITIALIZE, "initialize"))
        self._put(render_control(WINDOW, "get_context_usage", detail="summary"))

    def say(self, text: str, uuid: str) -> None:
        self._put(render_user(text, uuid))

    def look(self) -> None:
        """See how the process stands."""
        if self.child is not None:
            self.now.gone, self.now.deaf, self.now.drained = self.child.exited, self.child.deaf, self.child.drained
            self.now.exit_code, self.now.words = self.child.exit_code, self.child.words

    def take(self, step: Step, course: Course) -> None:
        """One step of the ladder."""
        now, child = mono_ms(), self.child
        match step:
            case Interrupt():
                self._ask("interrupt", cancel_queued=True)
                course.note_interrupt(step, now)
            case EndSession():
                self._ask(END, subtype="end_session")
                course.note_end_session(step, now)
            case CloseStdin():
                if child is not None:
                    child.close_stdin()
                course.note_closed(now)
            case Terminate():
                if child is not None:
                    child.terminate()
                course.note_terminated(now)
            case Kill():
                if child is not None:
                    child.kill()
                course.note_killed(now)

    def _ask(self, kind: str, subtype: str = "", **fields: Any) -> None:
        self._asked += 1
        self._put(render_control(f"{kind}-{self._asked}", subtype or kind, **fields))

    def _put(self, value: dict[str, Any]) -> None:
        if self.child is not None:
            self.child.put(value)


def mono_ms() -> int:
    """The instants of `facts`."""
    return int(trio.current_time() * 1000)
