"""Loop: a Self without a child, as a process: holds the lock, adopts the run, speaks in its thread, and prints what it is given.

It stands in for the organ in scenes that are about the room: the same rows by the same rule, an edit every `pace` seconds. Prints
one JSON object per line: `adopted`, `given`, `ended`. "finish: TEXT" as a steer ends the run with that result; a stop ends it, too.
"""

import json
import select
import sys
import time
from typing import Any

from mind_body.clock import now_ms
from mind_body.config import find_home, read_mind_config
from mind_body.home import Home
from mind_body.host.liveness import take_hold
from mind_body.host.poke import open_poke_socket, send_poke
from mind_body.mind.follow_ups import read_follow_up_of_run
from mind_body.mind.outbox import admit_said, count_edits
from mind_body.mind.records import NewSaid, Run, RunKind
from mind_body.mind.rooms import read_room
from mind_body.mind.runs import adopt_run, live_run
from mind_body.mind.self_runs import end_self_run
from mind_body.mind.steers import mark_given, read_queued_steers
from mind_body.mind.store import Mind, Transaction, open_mind
from mind_body.mind.work_records import FollowUp, SelfRunEnd
from mind_body.self_run import room
from mind_body.self_run.actions import Outcome

LOOK_S = 0.2


def tell(what: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"what": what, "at": time.monotonic(), **fields}) + "\n")
    sys.stdout.flush()


class FakeSelf:
    """One run, from adopting to its end."""

    def __init__(self, home: Home, name: str, pace_s: float) -> None:
        self.home, self.name, self.pace_s = home, name, pace_s
        hold = take_hold(home.lock_file("self", name), f"fake-{now_ms()}")
        assert hold is not None, "another process is this Self"
        self.hold = hold
        self.pokes = open_poke_socket(home.self_socket(name))
        self.mind: Mind = open_mind(home.mind_db(name))
        self.config = read_mind_config(home, name)

    def wait_poke(self, timeout_s: float) -> None:
        if select.select([self.pokes], [], [], timeout_s)[0]:
            self.pokes.recv(16)

    def run(self) -> None:
        while (taken := self.adopt()) is None:
            self.wait_poke(LOOK_S)
        run, work, place = taken
        begun = next_at = time.monotonic()
        while True:
            self.wait_poke(min(LOOK_S, max(next_at - time.monotonic(), 0)))
            with self.mind.read() as tx:
                steers = read_queued_steers(tx, run.id)
            for steer in steers:
                with self.mind.write() as tx:
                    mark_given(tx, steer.id)
                tell("given", kind=steer.kind, text=steer.text, sender=steer.sender)
                if steer.kind == "stop" or steer.text.startswith("finish: "):
                    self.end(run, work, place, steer.kind, steer.text.removeprefix("finish: "), self.figures(work, begun))
                    return
            if time.monotonic() >= next_at:
                next_at += self.pace_s
                figures = self.figures(work, begun)
                with self.mind.write() as tx:
                    admit_said(tx, [self.edit(tx, place, figures)], None, now_ms())
                send_poke(self.home.mouth_socket)

    def adopt(self) -> tuple[Run, FollowUp, room.Place] | None:
        with self.mind.write() as tx:
            run = live_run(tx, RunKind.SELF_RUN)
            work = read_follow_up_of_run(tx, run.id) if run else None
            if run is None or work is None or run.thread_said is None or not adopt_run(tx, run.id, self.hold.holder, now_ms()):
                return None
            place = room.Place(run.id, work.room_id, run.thread_said, self.config.persona.language)
            begins = room.render_progress(place, room.Figures("begins", 0, 0, 300_000))
            admit_said(tx, [room.render_root(place, work), begins], None, now_ms())
        send_poke(self.home.mouth_socket)
        tell("adopted", run=run.id)
        return run, work, place

    def figures(self, work: FollowUp, begun: float) -> room.Figures:
        with self.mind.read() as tx:
            costly = room.shows_cost(read_room(tx, work.room_id), work.asked_by, self.config.people)
        elapsed_ms = int((time.monotonic() - begun) * 1000)
        return room.Figures(f"tool {elapsed_ms}", elapsed_ms, elapsed_ms, 300_000, 420_000 if costly else None)

    @staticmethod
    def edit(tx: Transaction, place: room.Place, figures: room.Figures, *, over: bool = False) -> NewSaid:
        number = count_edits(tx, room.progress_id(place.run_id)) + 1
        return room.render_edit(place, number, figures, over=over)

    def end(self, run: Run, work: FollowUp, place: room.Place, kind: str, text: str, figures: room.Figures) -> None:
        outcome, result = (Outcome.INTERRUPTED, "") if kind == "stop" else (Outcome.RESULT, text)
        with self.mind.write() as tx:
            end = SelfRunEnd(outcome, "a fake", result, "done")
            assert end_self_run(tx, run, self.hold.holder, end, now_ms()) is not None
            rows = [room.render_end(place, outcome, result), self.edit(tx, place, figures, over=True)]
            admit_said(tx, rows, None, now_ms())
        send_poke(self.home.mouth_socket)
        send_poke(self.home.heartbeat_socket)
        tell("ended", outcome=outcome)


if __name__ == "__main__":
    FakeSelf(find_home(sys.argv[1]), sys.argv[2], float(sys.argv[3])).run()
