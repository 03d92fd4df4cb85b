"""Loop: adopt the open run, take its turns, end it; linger for the next; leave.

1. Pokes are drained before the mind is looked at, never after, so that nothing is left unread when she leaves.
2. Before each turn the governor is asked again: brake and dial, the run's cost against the dial's cap; then, with the batch, the
   caps of spending and the loop budget.
3. A run has at most `max_turns` turns. It ends in order, whatever happened; what is left is the heartbeat's to open anew.
4. After a run she lingers without one, session open and no call made; at a poke she adopts the next. Found no run at the start:
   she leaves at once.
"""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import trio

from mind_body.clock import now_ms
from mind_body.control.effective import Held, Released
from mind_body.crash import crash_point
from mind_body.host.beside import background
from mind_body.host.poke import send_poke
from mind_body.host.post import Post
from mind_body.mind.records import Run, RunKind
from mind_body.mind.runs import adopt_run, end_run, live_run, read_run
from mind_body.mind.store import Mind
from mind_body.model.lease import Lease
from mind_body.persona.closing import STOPPED
from mind_body.persona.gauge import show_turn, show_waiting
from mind_body.persona.open_sessions import OpenSessions
from mind_body.persona.opening import ClosedAsFailed, Nothing, NotOurs, Opened, open_next
from mind_body.persona.turn import TurnTaker, is_cancellation

TYPING_S = 0.02
"""What lies between a turn's record and its request takes less, where nobody else wants the processor."""


class Sitter:
    """One persona at her post."""

    def __init__(self, post: Post, taker: TurnTaker, sessions: OpenSessions, lease: Lease) -> None:
        self._post = post
        self._taker = taker
        self._sessions = sessions
        self._lease = lease
        self._conversation: str | None = None

    async def sit(self, run: Run) -> None:
        """Take the adopted run's turns and end it."""
        self._lease.open_run(run.id)
        try:
            await self._take_turns(run)
        except BaseException as error:
            if is_cancellation(error):
                why = self._taker.read_stop()
                self._end(run, "stopped" if why == STOPPED else "held", why)
            raise
        finally:
            self._lease.close_run()
            self._poke_others()

    def show(self) -> None:
        """What she is at between two runs."""
        show_waiting(self._post.notify, self._taker.place, self._conversation)

    async def _take_turns(self, run: Run) -> None:
        place, most = self._taker.place, self._taker.place.config.persona.max_turns
        taken = 0
        while taken < most:
            self._post.notify.progress()
            control = self._may_go_on(run)
            if control is None:
                return
            await self._lease.expect()
            opening = open_next(place, run, control, turns=taken, is_alive=self._sessions.is_alive, now=now_ms())
            if not isinstance(opening, Opened):
                self._tell(run, opening)
                if isinstance(opening, ClosedAsFailed):
                    continue
                return
            self._conversation = opening.batch.conversation
            self._lease.turn_to(opening.batch.conversation)
            show_turn(self._post.notify, place, opening)
            async with background() as beside:
                beside.start_soon(self._show_typing)
                taken_turn = await self._taker.take(opening)
            taken += 1
            self._post.notify.progress()
            self._poke_others()  # the outbox; work, a pulse, a pause
            if taken_turn.work.told:
                send_poke(place.home.self_socket(place.me.name))
            if taken_turn.run_over:
                if taken_turn.outcome is not None:
                    self._tell_over(run)
                return
        self._end(run, "done", f"{most} turns are the most of one run")

    async def _show_typing(self) -> None:
        """The mouth looks for it a moment later: what it does then would be in the call's way where there are two cores."""
        await trio.sleep(TYPING_S)
        send_poke(self._taker.place.home.mouth_socket)

    def _may_go_on(self, run: Run) -> Released | None:
        control = self._taker.ask_brake()
        if isinstance(control, Held):
            self._end(run, "held", control.reason)
            return None
        return control if self._may_spend(run, control) else None

    def _may_spend(self, run: Run, control: Released) -> bool:
        with self._taker.place.mind.read() as tx:
            spent = run_now.cost_micro_usd if (run_now := read_run(tx, run.id)) else 0
        if spent and spent >= control.dial.run_cap:
            self._end(run, "budget", f"the run has cost {spent} of {control.dial.run_cap} micro-USD")
            return False
        return True

    def _end(self, run: Run, outcome: str, reason: str) -> None:
        place = self._taker.place
        with place.mind.write() as tx:
            ended = end_run(tx, run.id, place.holder, outcome, reason, now_ms())
        if ended:
            crash_point("persona.run-ended")
            place.journal.note("run.ended", f"Her run ended: {reason}.", RUN=run.id, OUTCOME=outcome, REASON=reason)

    def _tell_over(self, run: Run) -> None:
        """It ended with its last turn."""
        with self._taker.place.mind.read() as tx:
            over = read_run(tx, run.id) or run
        words = f"Her run ended with that: {over.outcome}."
        self._taker.place.journal.note("run.ended", words, RUN=run.id, OUTCOME=over.outcome, REASON=over.end_reason)

    def _tell(self, run: Run, opening: ClosedAsFailed | Nothing | NotOurs) -> None:
        journal = self._taker.place.journal
        match opening:
            case ClosedAsFailed(heard):
                journal.note(
                    "message.failed",
                    "A message that every attempt failed with was closed; its room is told.",
                    level="error",
                    RUN=run.id,
                    MESSAGES=heard.handle,
                )
            case Nothing(outcome, reason):
                journal.note("run.ended", f"Her run ended: {reason}.", RUN=run.id, OUTCOME=outcome, REASON=reason)
            case NotOurs():
                journal.note("run.lost", "Her run was ended by somebody else.", level="warning", RUN=run.id)

    def _poke_others(self) -> None:
        home = self._taker.place.home
        for path in (home.mouth_socket, home.heartbeat_socket):
            refused = send_poke(path)
            if refused:
                self._taker.place.journal.note("poke.refused", f"Nobody looks yet: {refused}.", level="debug")


def adopt_open_run(mind: Mind, holder: str, now: int) -> Run | None:
    """The open run, held by us from now on; None where there is none for us."""
    with mind.read() as tx:
        run = live_run(tx, RunKind.PERSONA_TURN)
    if run is None or run.holder is not None:
        return None
    with mind.write() as tx:
        adopted = adopt_run(tx, run.id, holder, now)
    if not adopted:
        return None
    crash_point("persona.adopted")
    return run


Look: TypeAlias = Literal["worked", "nothing", "changed"]


async def stay(
    post: Post, linger_s: float, look: Callable[[], Awaitable[Look]], show: Callable[[], None] = lambda: None, *, worked: bool
) -> bool:
    """Look; after a run look again at once; else linger for a poke. True when her configuration changed, False when she may leave.

    `worked`: there was a run before, so that she lingers from now on. `show` tells what she is at while she does.
    """
    leave_at = trio.current_time() + linger_s if worked else 0.0
    while True:
        post.pokes.drain()
        found = await look()
        if found == "changed":
            return True
        if found == "worked":
            leave_at = trio.current_time() + linger_s
            continue
        left = leave_at - trio.current_time()
        if left <= 0:
            return False
        post.notify.progress()
        show()
        await post.pokes.wait(min(left, post.look_s))
