"""Loop: one Mind's wake: observe, decide, write (T2), poke, tell.

1. What is decided on a snapshot is decided again inside the transaction that acts on it: a dead run is closed and the next one
   opened together.
2. An open run is poked until somebody holds it (see `rouse`).
3. One line for what was done, or for why it was not; the same reason is not told twice.
"""

import contextlib
from dataclasses import dataclass
from typing import Any

from mind_body.clock import render_utc
from mind_body.control.effective import Control, Held, Released
from mind_body.control.files import read_control
from mind_body.crash import crash_point
from mind_body.heartbeat.rouse import Rouser
from mind_body.heartbeat.wake import MENDABLE, Busy, Dead, Decision, Open, Rest, Unheld, Wait, bury, decide_wake, judge_run
from mind_body.home import Home
from mind_body.host.liveness import read_holder
from mind_body.log import Journal
from mind_body.mind.acks import admit_ack, is_acked
from mind_body.mind.records import Run, RunKind
from mind_body.mind.runs import clear_pause, close_dead_run, open_run
from mind_body.mind.store import Mind, Transaction
from mind_body.mind.wake_facts import WakeFacts
from mind_body.mind.wakes import read_wake_facts
from mind_body.settings import HostConfig, MindConfig

KIND = RunKind.PERSONA_TURN
NEVER_SOONER_MS = 10
"""No wait is shorter: a rule that answered "until now" would otherwise spin."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One Mind at one instant."""

    facts: WakeFacts
    control: Control
    verdict: Dead | Unheld | Busy | None
    """About its live run, if it has one."""
    decision: Decision
    acked: bool


class Launcher:
    """What the heartbeat knows of one Mind's wakes between two looks."""

    __slots__ = ("_home", "_host", "_journal", "_name", "_rouser", "_told", "due", "live")

    def __init__(self, name: str, home: Home, host: HostConfig, journal: Journal) -> None:
        self._name = name
        self._home = home
        self._host = host
        self._journal = journal
        self._told: tuple[str, int] | None = None
        self._rouser = Rouser("Her persona", home.persona_socket(name), host)
        self.due: int | None = None
        """Look again at this instant, though nothing may have changed."""
        self.live = False
        """A run is live: look in every round, since a process that died changes no file."""

    def look(self, mind: Mind, config: MindConfig, now: int) -> None:
        """Do what is to be done about this Mind now."""
        control = read_control(self._home, self._name)
        with mind.read() as tx:
            seen = self._see(tx, config, control, now)
        opened = None
        if isinstance(seen.decision, Open) or isinstance(seen.verdict, Dead) or not seen.acked:
            seen, opened = self._act(mind, config, control, now, opening=isinstance(seen.decision, Open))
            self._tell_acted(seen, opened)
        unheld = self._unheld(seen, opened, now)
        poke_at = self._rouser.poke(unheld[0], self._journal.bind(MIND=self._name), now) if unheld is not None else now
        self.live = opened is not None or isinstance(seen.verdict, Unheld | Busy)
        until = seen.decision.until if isinstance(seen.decision, Wait) else None
        if unheld is not None:
            until = min(unheld[1], poke_at)
        self.due = None if until is None else max(until, now + NEVER_SOONER_MS)
        self._tell_waiting(seen)

    def forget(self) -> None:
        """Nothing is known any more: her mind or her configuration could not be read."""
        self.due, self.live, self._told = None, False, None

    def _see(self, tx: Transaction, config: MindConfig, control: Control, now: int) -> Seen:
        facts = read_wake_facts(tx, KIND, beat=config.persona.beat)
        # The lock is read after the row: who holds a run has had the lock since before the row said so.
        locked_by = read_holder(self._home.lock_file("persona", self._name)) if facts.live else None
        verdict = judge_run(facts.live, locked_by, control, self._host, now) if facts.live else None
        after = bury(facts, verdict, now) if isinstance(verdict, Dead) else facts
        mended_at = self._mended_at() if facts.pauses else 0
        decision = decide_wake(after, control, config, self._host, now, mended_at=mended_at)
        return Seen(facts, control, verdict, decision, is_acked(tx, "heartbeat", control))

    def _mended_at(self) -> int:
        """When her configuration or her model's key was last changed; by ctime, which no copying tool sets back."""
        found = 0
        for path in (self._home.mind_file(self._name), self._home.model_key(self._name)):
            with contextlib.suppress(OSError):
                found = max(found, path.lstat().st_ctime_ns // 1_000_000)
        return found

    def _act(self, mind: Mind, config: MindConfig, control: Control, now: int, *, opening: bool) -> tuple[Seen, Run | None]:
        """T2: what was seen is seen again under the write lock, and acted upon."""
        opened = None
        if opening:
            crash_point("heartbeat.before-T2")
        with mind.write() as tx:
            if isinstance(control, Released) and not is_acked(tx, "heartbeat", control):
                for cause in MENDABLE:
                    clear_pause(tx, cause)
            seen = self._see(tx, config, control, now)
            if isinstance(seen.verdict, Dead) and seen.facts.live is not None:
                close_dead_run(tx, seen.facts.live, seen.verdict.reason, now, seen.verdict.outcome)
            if isinstance(seen.decision, Open):
                opened = open_run(tx, KIND, seen.decision.conversations, seen.decision.cause, seen.decision.reason, now)
            admit_ack(tx, "heartbeat", control, now)
        if opened is not None:
            crash_point("heartbeat.T2")
        return seen, opened

    def _unheld(self, seen: Seen, opened: Run | None, now: int) -> tuple[Run, int] | None:
        """The run that waits for its holder, and when its grace is over."""
        if opened is not None:
            return opened, now + round(self._host.start_grace_s * 1000)
        if isinstance(seen.verdict, Unheld) and seen.facts.live is not None:
            return seen.facts.live, seen.verdict.until
        return None

    def _tell_acted(self, seen: Seen, opened: Run | None) -> None:
        if isinstance(seen.verdict, Dead) and seen.facts.live is not None:
            self._note(
                "run.closed",
                f"Her run was closed: {seen.verdict.reason}.",
                RUN=seen.facts.live.id,
                OUTCOME=seen.verdict.outcome,
                REASON=seen.verdict.reason,
            )
        if not seen.acked:
            words = f"held: {seen.control.reason}" if isinstance(seen.control, Held) else "released"
            self._note("control.seen", f"She is {words}.")
        if opened is not None:
            self._note(
                "run.opened",
                f"She is woken for {opened.reason}.",
                RUN=opened.id,
                CAUSE=opened.cause,
                CONVERSATIONS=",".join(opened.conversations),
            )

    def _tell_waiting(self, seen: Seen) -> None:
        decision, count = seen.decision, sum(mail.count for mail in seen.facts.pending)
        if isinstance(decision, Open) or not count:
            self._told = None
            return
        if self._told == (decision.reason, count):
            return
        self._told = (decision.reason, count)
        self._note(
            "wake.skipped" if isinstance(decision, Rest) else "wake.queued",
            f"{count} message{'s wait' if count > 1 else ' waits'}: {decision.reason}.",
            REASON=decision.reason,
            PENDING=count,
            UNTIL=render_utc(decision.until) if isinstance(decision, Wait) and decision.until else None,
        )

    def _note(self, kind: str, sentence: str, **fields: Any) -> None:
        self._journal.bind(MIND=self._name).note(kind, sentence, **fields)
