"""Loop: the one transaction in which the heartbeat acts on a Mind's work (T2).

In it, in this order: pauses that an operator mended; a dead run is buried, its work open again unless a person has stopped it;
proposals that were answered; work that its operators retire, and questions about work that came to nothing; the claim with its run.
Who was told that work began is told that it broke off, once per run, and that it is given up, in its thread.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from mind_body.control.govern import MENDABLE
from mind_body.heartbeat.ask import ask_open
from mind_body.heartbeat.breaker import Retired, count_tries, plan_breaker
from mind_body.heartbeat.claim import Asked, Claim, Confirmed, Refused, judge_proposal, make_handoff
from mind_body.heartbeat.wake import Dead
from mind_body.log import Journal
from mind_body.matrix.notices import NoticeKey, render_notice
from mind_body.mind.asking_records import Question
from mind_body.mind.campaigns import close_campaign
from mind_body.mind.claims import bury_self_run, read_work_facts
from mind_body.mind.follow_ups import confirm_follow_up, drop_follow_up, open_self_run, read_follow_up_of_run, read_thread_root
from mind_body.mind.outbox import admit_said, read_said
from mind_body.mind.questions import admit_question, answer_question, read_over
from mind_body.mind.records import Run
from mind_body.mind.runs import clear_apart, clear_pause
from mind_body.mind.self_runs import read_progress
from mind_body.mind.steers import drop_steers, read_given_steers, read_stopper
from mind_body.mind.store import Transaction
from mind_body.mind.wake_facts import Window
from mind_body.mind.work_records import SELF_PAUSE, FollowUp, WorkFacts
from mind_body.settings import MindConfig

OVER = "nobody: its time is over"
"""Who has answered what nobody answered in time."""


@dataclass(slots=True)
class Done:
    """What the transaction came to."""

    run: Run | None = None
    """The run that was opened."""
    said: int = 0
    """Notices that were queued."""
    asked: int = 0
    """Questions that are new on record."""
    lines: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    """For the journal, once it is committed."""

    def note(self, kind: str, sentence: str, **fields: Any) -> None:
        self.lines.append((kind, sentence, fields))

    def tell(self, journal: Journal) -> None:
        """Once it is committed."""
        for kind, sentence, fields in self.lines:
            journal.note(kind, sentence, **fields)


@dataclass(frozen=True, slots=True)
class Desk:
    """The transaction, and what is done in it."""

    tx: Transaction
    config: MindConfig
    now: int
    done: Done = field(default_factory=Done)

    def mend(self) -> None:
        """Forget the pauses of the Self that an operator mends."""
        for cause in MENDABLE:
            clear_pause(self.tx, SELF_PAUSE + cause)
            clear_apart(self.tx, SELF_PAUSE + cause)

    def bury(self, run: Run, dead: Dead) -> None:
        """Its work is open again; with a hand-off from the record, where somebody had begun."""
        follow_up = read_follow_up_of_run(self.tx, run.id) if run.holder is not None else None
        progress = read_progress(self.tx, run.id)
        told, stopper = read_given_steers(self.tx, run.id), read_stopper(self.tx, run.id)
        handoff = make_handoff(run, follow_up, progress, told, dead.reason, self.now) if follow_up is not None else None
        reopened = bury_self_run(self.tx, run, dead.outcome, dead.reason, self.now, handoff=handoff)
        if reopened is not None and stopper is not None:
            self._stop(run, reopened, f"{stopper} stopped it")
            reopened = None
        elif reopened is not None and follow_up is not None:
            self._say(NoticeKey.SELF_INTERRUPTED, run.id, reopened)
        sentence = f"Her Self's run was closed: {dead.reason}." + (" Its work is open again." if reopened else "")
        self.done.note("run.closed", sentence, RUN=run.id, OUTCOME=dead.outcome, REASON=dead.reason, FOLLOW_UP=run.follow_up_id)

    def settle(self, facts: WorkFacts, window: Window) -> None:
        """Proposals that were answered, and work that came to nothing again and again."""
        for proposal in facts.proposals:
            self._answer(proposal.follow_up, judge_proposal(proposal, facts.reactions, self.config.people, self.now))
        for todo in plan_breaker(read_work_facts(self.tx, window).open, self.now):
            if isinstance(todo, Question):
                self.ask(todo)
            else:
                self._retire(todo)

    def ask(self, question: Question) -> None:
        """It is on record; asked it is with everything else that waits for a room to be asked in."""
        if admit_question(self.tx, question):
            note_question(self.done, question)

    def close_over(self, window: Window) -> None:
        """A question about a day that is over would stand beside today's, so that "yes" could mean either."""
        for one in read_over(self.tx, window):
            if answer_question(self.tx, one.id, "retire", OVER, self.now):
                span, _, when = one.about.partition(":")
                words = f"Nobody answered in time: the {span} {when} is over."
                self.done.note("question.over", words, QUESTION=one.id, ABOUT=one.about)

    def ask_open(self) -> None:
        self.done.said += len(ask_open(self.tx, self.config, self.now))

    def claim(self, claim: Claim) -> None:
        self.done.run = open_self_run(self.tx, claim.follow_up, claim.reason, self.now)

    def _answer(self, follow_up: FollowUp, answer: Confirmed | Refused | Asked) -> None:
        if isinstance(answer, Confirmed) and confirm_follow_up(self.tx, follow_up.id):
            self.done.note("work.confirmed", f"{follow_up.asked_by} confirmed the brief.", FOLLOW_UP=follow_up.id)
        elif isinstance(answer, Refused) and drop_follow_up(self.tx, follow_up.id, answer.why, self.now):
            self.done.note("work.dropped", f"Work is dropped: {answer.why}.", FOLLOW_UP=follow_up.id, REASON=answer.why)

    def _stop(self, run: Run, follow_up: FollowUp, why: str) -> None:
        """The run died before it could end as it was asked to; its work is over all the same."""
        if drop_follow_up(self.tx, follow_up.id, why, self.now):
            drop_steers(self.tx, run.id)
            self._say(NoticeKey.SELF_ENDED_INTERRUPTED, run.id, follow_up)
            self.done.note("work.dropped", f"Work is over: {why}.", FOLLOW_UP=follow_up.id, REASON=why)

    def _retire(self, retired: Retired) -> None:
        """An operator leaves it at that: a campaign is closed, and its work waits for ever; other work is dropped."""
        slug = retired.work.follow_up.campaign
        if retired.work.about.startswith("campaign:") and slug:
            if close_campaign(self.tx, slug, self.now):
                self.done.note("campaign.closed", f"The campaign {slug} is closed: {retired.why}.", REASON=retired.why)
            return
        follow_up = retired.work.follow_up
        if drop_follow_up(self.tx, follow_up.id, retired.why, self.now):
            drop_steers(self.tx, follow_up.run_id or "")
            self._say(NoticeKey.SELF_DROPPED, follow_up.id, follow_up, count=count_tries(retired.work.past))
            self.done.note(
                "work.dropped", f"Work is given up: {retired.why}.", level="warning", FOLLOW_UP=follow_up.id, REASON=retired.why
            )

    def _say(self, key: NoticeKey, cause: str, follow_up: FollowUp, count: int = 0) -> None:
        """A notice in the thread of the work, for those who saw it begin."""
        if follow_up.thread_said is None or read_said(self.tx, follow_up.thread_said) is None:
            return
        root = read_thread_root(self.tx, follow_up)
        notice = render_notice(self.config.persona.language, key, cause, follow_up.room_id, thread=root, count=count)
        if root is None:
            notice = replace(notice, thread_said=follow_up.thread_said)
        self.done.said += admit_said(self.tx, [notice], None, self.now)


def note_question(done: Done, question: Question) -> None:
    """The one line about a question that is new."""
    done.asked += 1
    sentence = f"A question for her operators: {question.text}"
    done.note("question.asked", sentence, level="warning", QUESTION=question.id, ABOUT=question.about)
