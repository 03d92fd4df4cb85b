"""Loop: what reaches a run from outside while it works: the brake, and what people say. Looked at with every poke, and each second.

1. The brake is acknowledged when it was read, as every organ does.
2. What people say is read again each time, until the child was given it: it may be edited or taken back. A stop is for the driver,
   and on record as given at once.
3. How the run goes is shown with each look (`tell`).
"""

from collections.abc import Callable

import trio

from mind_body.clock import now_ms
from mind_body.control.effective import Control, Held
from mind_body.control.files import read_control
from mind_body.ids import new_session_uuid
from mind_body.mind.acks import admit_ack, is_acked
from mind_body.mind.steers import mark_given, read_queued_steers
from mind_body.mind.work_records import Steer
from mind_body.self_run.course import Course, Message
from mind_body.self_run.messages import render_steer
from mind_body.self_run.place import Place, Work

LOOK_S = 1.0
"""How long a hold, or a poke that was lost, may go unnoticed."""


class Listener:
    """For one run."""

    def __init__(self, place: Place, work: Work, course: Course) -> None:
        self._place = place
        self._work = work
        self._course = course
        self.held: str | None = None
        self.stopped: str | None = None

    async def run(self, show: Callable[[], None], wake: Callable[[], None]) -> None:
        """Until cancelled."""
        while True:
            self.look()
            show()
            wake()
            await self._place.post.pokes.wait(LOOK_S)
            await trio.lowlevel.checkpoint()

    def look(self) -> None:
        control = ask_brake(self._place)
        self.held = control.reason if isinstance(control, Held) else None
        with self._place.mind.read() as tx:
            queued = read_queued_steers(tx, self._work.run.id)
        for steer in queued:
            if steer.kind == "stop":
                self._stop(steer)
        people = self._place.config.people
        known = {one.steer_id: one for one in self._course.waiting}
        steers = [steer for steer in queued if steer.kind == "steer"]
        self._course.set_steers([_message(steer, render_steer(steer, people), known.get(steer.id)) for steer in steers])

    def _stop(self, steer: Steer) -> None:
        with self._place.mind.write() as tx:
            mark_given(tx, steer.id)
        self.stopped = self.stopped or steer.sender


def ask_brake(place: Place) -> Control:
    """Brake and dial as they are now, acknowledged."""
    control = read_control(place.post.home, place.name)
    with place.mind.read() as tx:
        known = is_acked(tx, "self", control)
    if not known:
        with place.mind.write() as tx:
            admit_ack(tx, "self", control, now_ms())
    return control


def _message(steer: Steer, text: str, known: Message | None) -> Message:
    """The one that waits already, unless it reads otherwise now."""
    return known if known is not None and known.text == text else Message(steer.id, text, new_session_uuid(), steer.id)
