"""Loop: one Mind's work: observe, decide, write (T2), poke, tell. Beside `launch`, which does the same for her Persona's wakes.

1. What is decided on a snapshot is decided again inside the transaction that acts on it (see `settle`).
2. An open run is poked until somebody holds it (see `rouse`).
3. What only her operators can decide is asked here, whoever put it on record, as soon as there is a room for it (see `ask`).
4. One line for what was done, or for why it was not; the same reason is not told twice.
"""

from dataclasses import dataclass

from mind_body.clock import next_day, render_utc
from mind_body.control.effective import Control, Released
from mind_body.control.files import read_control
from mind_body.control.govern import window_of
from mind_body.crash import crash_point
from mind_body.heartbeat.ask import has_unasked
from mind_body.heartbeat.breaker import plan_breaker
from mind_body.heartbeat.claim import Asked, Claim, Decision, decide_claim, judge_proposal
from mind_body.heartbeat.house import read_house
from mind_body.heartbeat.purse import plan_purse
from mind_body.heartbeat.rouse import Rouser
from mind_body.heartbeat.settle import Desk, Done
from mind_body.heartbeat.wake import Busy, Dead, Rest, Unheld, Wait, judge_run
from mind_body.home import Home
from mind_body.host.liveness import read_holder
from mind_body.host.poke import send_poke
from mind_body.log import Journal
from mind_body.mind.acks import is_acked
from mind_body.mind.asking_records import Question
from mind_body.mind.claims import is_without_work, read_work_facts
from mind_body.mind.questions import read_open_questions, read_over, read_question
from mind_body.mind.records import RunKind
from mind_body.mind.store import Mind, Transaction
from mind_body.mind.work_records import WorkFacts
from mind_body.settings import HostConfig, MindConfig

NEVER_SOONER_MS = 10
"""No wait is shorter: a rule that answered "until now" would otherwise spin."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One Mind's work at one instant."""

    facts: WorkFacts
    verdict: Dead | Unheld | Busy | None
    """About its live run, if it has one."""
    decision: Decision
    mended: bool
    """An operator has just said "try now", and something waits for that."""
    question: Question | None
    """What the operators are to be asked about her purse, and is not on record yet."""
    to_do: bool
    """There is something to write."""
    day_ends: int | None = None
    """When a question about this day or month may be over, where one is open."""


class Worker:
    """What the heartbeat knows of one Mind's work between two looks."""

    __slots__ = ("_home", "_host", "_journal", "_name", "_rouser", "_told", "due", "live")

    def __init__(self, name: str, home: Home, host: HostConfig, journal: Journal) -> None:
        self._name = name
        self._home = home
        self._host = host
        self._journal = journal
        self._rouser = Rouser("Her Self", home.self_socket(name), host)
        self._told: str | None = None
        self.due: int | None = None
        """Look again at this instant, though nothing may have changed."""
        self.live = False
        """A run is live: look in every round, since a process that died changes no file."""

    def look(self, mind: Mind, config: MindConfig, now: int) -> None:
        """Do what is to be done about this Mind's work now. For most Minds there is none, which costs one question."""
        with mind.read() as tx:
            if is_without_work(tx):
                self.forget()
                return
            control = read_control(self._home, self._name)
            seen = self._see(tx, config, control, now)
        done = Done()
        if seen.to_do:
            seen, done = self._act(mind, config, control, now, claiming=isinstance(seen.decision, Claim))
            self._tell_acted(done)
        until = [one for one in (self._until(seen, config, now), self._rouse(seen, done, now)) if one is not None]
        self.live = done.run is not None or isinstance(seen.verdict, Unheld | Busy)
        self.due = max(min(until), now + NEVER_SOONER_MS) if until else None
        self._tell_waiting(seen)

    def forget(self) -> None:
        """There is nothing to know: no work, or her mind or her configuration could not be read."""
        self.due, self.live, self._told = None, False, None

    def _see(self, tx: Transaction, config: MindConfig, control: Control, now: int) -> Seen:
        window = window_of(self._host, now)
        facts = read_work_facts(tx, window)
        # The lock is read after the row: who holds a run has had the lock since before the row said so.
        locked_by = read_holder(self._home.lock_file("self", self._name)) if facts.live else None
        verdict = judge_run(facts.live, locked_by, control, self._host, now) if facts.live else None
        paused = bool(facts.standing.pauses or facts.standing.apart)
        house = read_house(self._home, self._name, RunKind.SELF_RUN, config, self._host, paused=paused)
        decision = decide_claim(facts, control, house, now)
        question = plan_purse(decision.skip, facts.standing, house, now) if isinstance(decision, Wait) else None
        if question is not None and read_question(tx, question.id) is not None:
            question = None
        answered = any(not isinstance(judge_proposal(one, facts.reactions, config.people, now), Asked) for one in facts.proposals)
        # Acknowledging it is `launch`'s, which looks after this.
        mended = paused and isinstance(control, Released) and not is_acked(tx, "heartbeat", control)
        tripped = bool(plan_breaker(facts.open, now))
        to_do = isinstance(verdict, Dead) or isinstance(decision, Claim) or answered or tripped or mended
        to_do = to_do or question is not None or has_unasked(tx, config) or bool(read_over(tx, window))
        asked = any(one.kind == "purse" for one in read_open_questions(tx))
        day_ends = next_day(now, self._host.time_zone) if asked else None
        return Seen(facts, verdict, decision, mended, question, to_do, day_ends)

    def _act(self, mind: Mind, config: MindConfig, control: Control, now: int, *, claiming: bool) -> tuple[Seen, Done]:
        """T2: what was seen is seen again under the write lock, and acted upon."""
        if claiming:
            crash_point("heartbeat.before-claim")
        with mind.write() as tx:
            desk = Desk(tx, config, now)
            seen = self._see(tx, config, control, now)
            if seen.mended:
                desk.mend()
            if isinstance(seen.verdict, Dead) and seen.facts.live is not None:
                desk.bury(seen.facts.live, seen.verdict)
            desk.settle(seen.facts, window_of(self._host, now))
            seen = self._see(tx, config, control, now)
            if seen.question is not None:
                desk.ask(seen.question)
            desk.close_over(window_of(self._host, now))
            desk.ask_open()
            if isinstance(seen.decision, Claim):
                desk.claim(seen.decision)
        if desk.done.asked:
            crash_point("heartbeat.asked")
        if desk.done.run is not None:
            crash_point("heartbeat.claimed")
        if desk.done.said or desk.done.asked:  # where there is no room to ask in, the mouth makes one
            send_poke(self._home.mouth_socket)
        return seen, desk.done

    def _rouse(self, seen: Seen, done: Done, now: int) -> int | None:
        """Poke for the run that waits for its holder; when to look at it again."""
        if done.run is not None:
            run, until = done.run, now + round(self._host.start_grace_s * 1000)
        elif isinstance(seen.verdict, Unheld) and seen.facts.live is not None:
            run, until = seen.facts.live, seen.verdict.until
        else:
            return None
        return min(until, self._rouser.poke(run, self._journal.bind(MIND=self._name), now))

    def _until(self, seen: Seen, config: MindConfig, now: int) -> int | None:
        answers = [judge_proposal(one, seen.facts.reactions, config.people, now) for one in seen.facts.proposals]
        found = [one.until for one in answers if isinstance(one, Asked)]
        found += [] if seen.day_ends is None else [seen.day_ends]
        if isinstance(seen.decision, Wait):
            found.append(seen.decision.until)
        return min(found, default=None)

    def _tell_acted(self, done: Done) -> None:
        journal = self._journal.bind(MIND=self._name)
        done.tell(journal)
        if done.run is not None:
            journal.note(
                "run.opened",
                f"Her Self is woken for {done.run.reason}.",
                RUN=done.run.id,
                CAUSE=done.run.cause,
                CONVERSATIONS=",".join(done.run.conversations),
                FOLLOW_UP=done.run.follow_up_id,
            )

    def _tell_waiting(self, seen: Seen) -> None:
        decision, count = seen.decision, len(seen.facts.open)
        if isinstance(decision, Claim) or not count:
            self._told = None
            return
        if self._told == decision.reason:
            return
        self._told = decision.reason
        self._journal.bind(MIND=self._name).note(
            "work.skipped" if isinstance(decision, Rest) else "work.queued",
            f"{count} piece{'s' if count > 1 else ''} of work {'wait' if count > 1 else 'waits'}: {decision.reason}.",
            REASON=decision.reason,
            WAITING=count,
            UNTIL=render_utc(decision.until) if isinstance(decision, Wait) else None,
        )
