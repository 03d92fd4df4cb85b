"""Loop: what one Mind's wake depends on, read in one snapshot, and what it comes to. Nothing is written here.

It is asked on a snapshot, to see whether there is anything to do, and again inside the transaction that does it where somebody has
written in between.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from mind_body.clock import next_day
from mind_body.control.effective import Control, Released
from mind_body.control.govern import Skip, find_apart, window_of
from mind_body.control.loops import HOME_SPENT, Budget, Sifted, TurnedAway, is_spent, sift_mail
from mind_body.heartbeat.house import read_house
from mind_body.heartbeat.purse import plan_purse
from mind_body.heartbeat.tell import Told, plan_tell, plan_turned_away
from mind_body.heartbeat.wake import Busy, Dead, Decision, Unheld, Wait, bury, decide_wake, judge_run
from mind_body.home import Home
from mind_body.host.liveness import read_holder
from mind_body.mind.acks import is_acked
from mind_body.mind.asking_records import Question
from mind_body.mind.outbox import read_said
from mind_body.mind.places import read_place, read_places, read_turns_today
from mind_body.mind.questions import read_question
from mind_body.mind.records import RunKind
from mind_body.mind.store import Transaction
from mind_body.mind.wake_facts import Place, WaitingMail, WakeFacts, Window
from mind_body.mind.wakes import read_standing, read_waiting_mail, read_wake_facts
from mind_body.settings import HostConfig, MindConfig

KIND = RunKind.PERSONA_TURN


@dataclass(frozen=True, slots=True)
class Seen:
    """One Mind at one instant."""

    facts: WakeFacts
    control: Control
    verdict: Dead | Unheld | Busy | None
    """About its live run, if it has one."""
    decision: Decision
    acked: bool
    turned_away: tuple[TurnedAway, ...] = ()
    unsaid: tuple[Told, ...] = ()
    """Notices that are due and not queued yet."""
    question: Question | None = None
    """What the operators are to be asked, and is not on record yet."""
    day_ends: int = 0
    """When those who have had their turns of the day get new ones."""
    again_at: int = 0
    """When the first of the conversations that are held up by themselves may go on, where something waits there."""


@dataclass(frozen=True, slots=True)
class _Mail:
    """What waits, and what the loop budget makes of it."""

    waiting: tuple[WaitingMail, ...] = ()
    places: dict[tuple[str, str], Place] = field(default_factory=dict)
    sifted: Sifted = field(default_factory=lambda: Sifted((), ()))


@dataclass(frozen=True, slots=True)
class Observer:
    """Whose wake it is, and where it is judged."""

    name: str
    home: Home
    host: HostConfig

    def see(self, tx: Transaction, config: MindConfig, control: Control, now: int) -> Seen:
        """Everything about her, and the one answer."""
        window = window_of(self.host, now)
        standing = read_standing(tx, KIND, window)
        paused = bool(standing.pauses or standing.apart)
        house = read_house(self.home, self.name, KIND, config, self.host, paused=paused)
        acked = is_acked(tx, "heartbeat", control)
        # What an operator has just said "try now" to is forgotten by whoever acts on this.
        held = find_apart(standing, house, now) if acked or not isinstance(control, Released) else {}
        mail = _read_mail(tx, config, window, held)
        everything = read_wake_facts(tx, mail.sifted.pending, standing, config.persona.home_room)
        facts = _may_speak(tx, _without(everything, held), config)
        verdict = self._judge_live(facts, control, now)
        after = bury(facts, verdict, now) if isinstance(verdict, Dead) else facts
        decision = decide_wake(after, control, house, now)
        # A turn under way counts already, while the mail that it answers still waits: that is not turned away.
        turned_away = mail.sifted.turned_away if verdict is None else ()
        day_ends = next_day(now, self.host.time_zone) if any(one.until is None for one in turned_away) else 0
        told = plan_turned_away(turned_away, mail.places, config, window.day, day_ends)
        question = None
        if isinstance(decision, Wait) and decision.skip is not None and (facts.pending or facts.awaited):
            away = {one.mail for one in mail.sifted.turned_away}
            held_back = [one for one in mail.waiting if one not in away]
            told += plan_tell(held_back, decision.skip, facts.standing.pauses, config, now)
            question = plan_purse(decision.skip, facts.standing, house, now)
        return Seen(
            facts=facts,
            control=control,
            verdict=verdict,
            decision=decision,
            acked=acked,
            turned_away=turned_away,
            unsaid=tuple(one for one in told if read_said(tx, one.row.id) is None),
            question=question if question is not None and read_question(tx, question.id) is None else None,
            day_ends=day_ends,
            again_at=min(_instants(mail, everything, held), default=0),
        )

    def _judge_live(self, facts: WakeFacts, control: Control, now: int) -> Dead | Unheld | Busy | None:
        live = facts.standing.live
        if live is None:
            return None
        # The lock is read after the row: who holds a run has had the lock since before the row said so.
        locked_by = read_holder(self.home.lock_file("persona", self.name))
        return judge_run(live, locked_by, control, self.host, now)


def _without(facts: WakeFacts, held: Mapping[str, Skip]) -> WakeFacts:
    """The facts of the conversations that are not held up by themselves."""
    if not held:
        return facts
    awaited = tuple(one for one in facts.awaited if one not in held)
    skip = held.get(facts.home or "")
    return replace(facts, awaited=awaited) if skip is None else replace(facts, awaited=awaited, home=None, home_fault=skip.reason)


def _may_speak(tx: Transaction, facts: WakeFacts, config: MindConfig) -> WakeFacts:
    """A scheduled wake is for who may say something: no run is opened to find out that she may not."""
    room_id = config.persona.home_room
    if facts.home is None or not config.persona.beat or not is_spent(read_place(tx, room_id, ""), config):
        return facts
    return replace(facts, home=None, home_fault=HOME_SPENT)


def _instants(mail: _Mail, facts: WakeFacts, held: Mapping[str, Skip]) -> Iterator[int]:
    yield from (one.until for one in mail.sifted.turned_away if one.until is not None)
    yield from (held[one].look_again_at for one in (*facts.awaited, facts.home or "") if one in held)


def _read_mail(tx: Transaction, config: MindConfig, window: Window, held: Mapping[str, Skip]) -> _Mail:
    waiting = read_waiting_mail(tx)
    if not waiting:
        return _Mail()
    places = read_places(tx, [(one.room_id, one.thread) for one in waiting])
    return _Mail(waiting, places, sift_mail(waiting, Budget(places, read_turns_today(tx, window), config, held)))
