"""Loop: what a run says in its room, put into the outbox: begun, how it goes, the end. Words by `room`, pace by `progress`.

Everything is queued by ids made from the run: a crash in between doubles nothing. The end goes into the transaction that ends the
run. How it goes is written down for the operator, too; that is telemetry, the newest alone. What holds up one run after the other
(a limit, a refused key) is said in the thread once, and not with every try.
"""

from dataclasses import replace

from mind_body.clock import now_ms
from mind_body.host.poke import send_poke
from mind_body.mind.follow_ups import thread_root_id
from mind_body.mind.outbox import admit_said, count_edits
from mind_body.mind.records import NewSaid, Room, Run
from mind_body.mind.rooms import read_room
from mind_body.mind.runs import DEAD
from mind_body.mind.self_runs import admit_compaction, recent_self_runs, write_progress
from mind_body.mind.work_records import Compaction, Progress
from mind_body.self_run.actions import Outcome
from mind_body.self_run.course import Course
from mind_body.self_run.gauge import show_run
from mind_body.self_run.place import Place, Work
from mind_body.self_run.progress import Edit, ProgressFacts, decide_edit
from mind_body.self_run.room import (
    Figures,
    progress_id,
    render_continues,
    render_edit,
    render_end,
    render_figures,
    render_progress,
    render_root,
    shows_cost,
)
from mind_body.self_run.room import Place as Thread
from mind_body.self_run.worker import mono_ms

LOOKED_BACK = 20
"""Runs among which the one before in this thread is looked for."""
HELD_UP = frozenset({Outcome.LIMITED, Outcome.OVERLOADED, Outcome.AUTHENTICATION, Outcome.PAYMENT, Outcome.SPEND})
"""Ends that are no doing of the work's, and may come again and again."""


class Teller:
    """For one run."""

    def __init__(self, place: Place, work: Work, course: Course) -> None:
        self._place = place
        self._work = work
        self._course = course
        self._thread = Thread(
            work.run.id, work.asked.room_id, work.run.thread_said or thread_root_id(work.run.id), place.config.persona.language
        )
        self._edits = 0
        self._edited_at = course.began_at
        self._shown = ""
        self._written: Progress | None = None
        self._compactions = 0
        self._room: Room | None = None
        self._before: Run | None = None
        """The run before this one in the thread."""

    def begin(self) -> None:
        """The thread's root, where it is not there yet; that the work goes on, where it was begun before; the message that is
        edited.
        """
        run, first = self._work.run, self._thread.thread_said == thread_root_id(self._work.run.id)
        figures = self._figures(0)
        rows = [render_root(self._thread, self._work.asked)]
        with self._place.mind.write() as tx:
            self._room = read_room(tx, self._thread.room_id)
            before = (one for one in recent_self_runs(tx, LOOKED_BACK) if one.thread_said == self._thread.thread_said)
            self._before = next(before, None)
            # Of a run that died, whoever found it dead has spoken already.
            if not first and not self._after(DEAD) and not self._after(*HELD_UP, in_vain=True):
                rows.append(render_continues(self._thread))
            admit_said(tx, [*rows, render_progress(self._thread, figures)], None, now_ms())
            self._edits = count_edits(tx, progress_id(run.id))
        self._shown = render_figures(figures)
        self._poke()

    def show(self, cost_micro_usd: int, turns: int) -> None:
        """How it goes now, if it is time to say so."""
        self._write(cost_micro_usd, turns)
        self._note_compactions()
        edit = self._plan(cost_micro_usd, over=False)
        if edit is not None:
            with self._place.mind.write() as tx:
                admit_said(tx, [edit], None, now_ms())
            self._poke()

    def end(self, outcome: Outcome, result: str, cost_micro_usd: int) -> tuple[NewSaid, ...]:
        """The rows that go into the run's end."""
        edit = self._plan(cost_micro_usd, over=True)
        again = outcome in HELD_UP and not cost_micro_usd and self._after(outcome, in_vain=True)
        return (*([edit] if edit else []), *([] if again else [render_end(self._thread, outcome, result)]))

    def _plan(self, cost_micro_usd: int, *, over: bool) -> NewSaid | None:
        figures, now = self._figures(cost_micro_usd), mono_ms()
        wanted = render_figures(figures) + (" (over)" if over else "")
        facts = ProgressFacts(now, self._course.began_at, self._edits, self._edited_at, self._shown, wanted, over)
        edit = decide_edit(facts)
        if not isinstance(edit, Edit):
            return None
        self._edits, self._edited_at, self._shown = edit.number, now, wanted
        return render_edit(self._thread, edit.number, figures, over=over)

    def _figures(self, cost_micro_usd: int) -> Figures:
        course, people = self._course, self._place.config.people
        shown = shows_cost(self._room, self._work.asked.asked_by, people)
        doing = course.doing or ("thinking" if course.given else "starting")
        elapsed = mono_ms() - course.began_at
        return Figures(doing, elapsed, course.meter.prefix_tokens, self._ceiling(), cost_micro_usd if shown else None)

    def _write(self, cost_micro_usd: int, turns: int) -> None:
        course = self._course
        window = course.seen.window_tokens or 0
        doing = course.doing or "starting"
        now = Progress(self._work.run.id, doing, course.meter.prefix_tokens, self._ceiling(), window, cost_micro_usd, turns, 0)
        if now != self._written:
            self._written = now
            with self._place.mind.write() as tx:
                write_progress(tx, replace(now, at=now_ms()))
            show_run(self._place, now, flushing=course.flush is not None)

    def _note_compactions(self) -> None:
        seen, run = self._course.seen, self._work.run
        for one in seen.compacted[self._compactions :]:
            now = now_ms() + self._compactions
            with self._place.mind.write() as tx:
                admit_compaction(tx, Compaction(seen.session_id, run.id, one.trigger, one.before_tokens, one.after_tokens, now))
            self._compactions += 1
            self._place.journal.note(
                "self.compacted",
                "The CLI shortened the session by itself.",
                level="warning",
                RUN=run.id,
                REASON=one.trigger,
                BEFORE_TOKENS=one.before_tokens,
                AFTER_TOKENS=one.after_tokens,
            )

    def _ceiling(self) -> int:
        """0 until the window is known."""
        window = self._course.seen.window_tokens
        return 0 if window is None else self._place.constants.ceiling(window)

    def _after(self, *outcomes: str, in_vain: bool = False) -> bool:
        """Whether the run before ended so; `in_vain`: and no call of it was answered."""
        before = self._before
        return before is not None and before.outcome in outcomes and not (in_vain and before.cost_micro_usd)

    def _poke(self) -> None:
        send_poke(self._place.post.home.mouth_socket)
