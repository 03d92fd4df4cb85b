"""Loop: adopt the open run, drive it, look again; keep the child for the next one while its cache is warm; leave.

1. Pokes are drained before the mind is looked at, never after, so that nothing is left unread when it leaves.
2. What is open is adopted where brake and dial allow it; held, it is left, and the heartbeat closes it.
3. Found no run at the start: it leaves at once. After one, it stays as long as its child is worth it.
"""

from typing import Literal, TypeAlias

import trio

from mind_body.clock import now_ms
from mind_body.config import read_mind_config
from mind_body.control.effective import Held
from mind_body.crash import crash_point
from mind_body.errors import MindBodyError
from mind_body.mind.follow_ups import read_follow_up_of_run
from mind_body.mind.records import Run, RunKind
from mind_body.mind.runs import adopt_run, live_run, read_pauses, set_pause
from mind_body.mind.self_runs import end_self_run
from mind_body.mind.store import Mind
from mind_body.mind.work_records import SELF_PAUSE, SelfRunEnd
from mind_body.model.pausing import plan_fault
from mind_body.self_run.actions import Outcome
from mind_body.self_run.gauge import show_waiting
from mind_body.self_run.listen import ask_brake
from mind_body.self_run.place import Place, Work
from mind_body.self_run.run import Driver

Look: TypeAlias = Literal["worked", "nothing", "changed"]


async def stay(place: Place) -> bool:
    """True when the configuration has changed and is to be read again; False when it may leave."""
    leave_at = 0.0
    while True:
        place.post.pokes.drain()
        found = await look(place)
        if found == "changed":
            return True
        if found == "worked":
            leave_at = trio.current_time() + place.bench.linger_left_s()
            continue
        left = leave_at - trio.current_time()
        if left <= 0 or place.bench.linger_left_s() <= 0:
            return False
        place.post.notify.progress()
        show_waiting(place)
        await place.post.pokes.wait(min(left, place.post.look_s))


async def look(place: Place) -> Look:
    """One look: is there an open run, and may it be taken?"""
    control = ask_brake(place)
    if place.post.patience.over or isinstance(control, Held) or not has_open_run(place.mind):
        return "nothing"
    if read_mind_config(place.post.home, place.name) != place.config:
        return "changed"
    work = adopt_open_run(place.mind, place.holder, now_ms())
    if work is None:
        return "nothing"
    taken = await place.bench.take(work.asked, control.dial)
    place.journal.note(
        "self.began",
        f"It works on what {work.asked.asked_by} asked for: a {taken.how} session.",
        RUN=work.run.id,
        WORKSPACE=work.asked.workspace,
        CONVERSATION=work.asked.conversation,
        SESSION=taken.worker.seen.session_id,
        SESSION_CHOICE=taken.how,
        REASON=taken.reason,
    )
    await Driver(place, work, control.dial, taken.worker).drive(taken.how)
    return "worked"


def has_open_run(mind: Mind) -> bool:
    with mind.read() as tx:
        found = live_run(tx, RunKind.SELF_RUN)
    return found is not None and found.holder is None


def adopt_open_run(mind: Mind, holder: str, now: int) -> Work | None:
    """The open run, held by us from now on; None where there is none for us."""
    with mind.write() as tx:
        run = live_run(tx, RunKind.SELF_RUN)
        asked = read_follow_up_of_run(tx, run.id) if run is not None else None
        if run is None or asked is None or not adopt_run(tx, run.id, holder, now):
            return None
    crash_point("self.adopted")
    return Work(run, asked)


def give_back(mind: Mind, holder: str, error: MindBodyError) -> Run | None:
    """It cannot work: the open run is ended in order, so that the reason stands on it and the heartbeat backs off.

    What an operator must mend is a pause: it is not poked again before it may be mended.
    """
    now, reason = now_ms(), str(error)
    with mind.write() as tx:
        pause = plan_fault(error, read_pauses(tx), now, SELF_PAUSE)
        if pause is not None:
            set_pause(tx, pause)
        run = live_run(tx, RunKind.SELF_RUN)
        if run is None or not (run.holder == holder or adopt_run(tx, run.id, holder, now)):
            return None
        end_self_run(tx, run, holder, SelfRunEnd(Outcome.REFUSED, reason, None, "again"), now)
    return run
