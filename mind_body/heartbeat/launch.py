"""Loop: one Mind's wake: observe, decide, write (T2), poke, tell.

1. What was decided on a snapshot is acted upon in the same transaction where nobody has written since, and decided again where
   somebody has: a dead run is closed and the next one opened together.
2. A scheduled wake is opened only for who was picked on a beat of the host; else she is offered as a contender (see `look`).
3. Whoever waits is told in the same transaction, and so are the operators of a cap that holds her back (see `tell`, `ask`).
4. An open run is poked until somebody holds it (see `rouse`).
5. One line for what was done, or for why it was not; the same reason is not told twice.
"""

from typing import Any

from mind_body.control.effective import Held, Released
from mind_body.control.files import read_control
from mind_body.control.govern import MENDABLE
from mind_body.control.loops import TurnedAway
from mind_body.crash import crash_point
from mind_body.heartbeat.ask import ask_open
from mind_body.heartbeat.observe import KIND, Observer, Seen
from mind_body.heartbeat.pick import Contender
from mind_body.heartbeat.rouse import Rouser
from mind_body.heartbeat.settle import Done, note_question
from mind_body.heartbeat.skips import SkipTeller
from mind_body.heartbeat.tell import Told
from mind_body.heartbeat.wake import Busy, Dead, Decision, Open, Unheld, Wait
from mind_body.home import Home
from mind_body.host.poke import send_poke
from mind_body.log import Journal
from mind_body.mind.acks import admit_ack
from mind_body.mind.outbox import admit_said
from mind_body.mind.questions import admit_question
from mind_body.mind.records import Run
from mind_body.mind.rooms import read_room
from mind_body.mind.runs import clear_apart, clear_pause, close_dead_run, open_run
from mind_body.mind.store import Mind, Transaction
from mind_body.mind.wakes import read_last_beat
from mind_body.settings import HostConfig, MindConfig

NEVER_SOONER_MS = 10
"""No wait is shorter: a rule that answered "until now" would otherwise spin."""


class Launcher:
    """What the heartbeat knows of one Mind's wakes between two looks."""

    __slots__ = (
        "_home",
        "_host",
        "_journal",
        "_name",
        "_observer",
        "_rouser",
        "_teller",
        "contender",
        "due",
        "last_beat",
        "live",
        "paused",
        "vote",
    )

    def __init__(self, name: str, home: Home, host: HostConfig, journal: Journal) -> None:
        self._name = name
        self._home = home
        self._host = host
        self._journal = journal
        self._observer = Observer(name, home, host)
        self._rouser = Rouser("Her persona", home.persona_socket(name), host)
        self._teller = SkipTeller(name, journal)
        self.due: int | None = None
        """Look again at this instant, though nothing may have changed."""
        self.live = False
        """A run is live: look in every round, since a process that died changes no file."""
        self.paused = False
        """There is a pause that a file may mend."""
        self.contender: Contender | None = None
        """She may speak unprompted, on a beat of the host."""
        self.vote: int | None = None
        """How far apart she would have the beats, in seconds."""
        self.last_beat: int | None = None
        """When her newest scheduled wake was opened."""

    def read_history(self, mind: Mind) -> None:
        """What is read once, when her mind is opened, and then kept."""
        with mind.read() as tx:
            self.last_beat = read_last_beat(tx)

    def look(self, mind: Mind, config: MindConfig, now: int, *, may_beat: bool = False) -> None:
        """Do what is to be done about this Mind now. `may_beat`: she was picked."""
        control = read_control(self._home, self._name)
        with mind.weigh() as weighing:
            seen = self._observer.see(weighing.tx, config, control, now)
            to_do = _is_to_do(seen, may_beat=may_beat)
            acts = to_do and weighing.act()
            seen, done = self._act(weighing.tx, seen, config, now, may_beat=may_beat) if acts else (seen, Done())
        if to_do and not acts:
            with mind.write() as tx:
                seen = self._observer.see(tx, config, control, now)
                seen, done = self._act(tx, seen, config, now, may_beat=may_beat)
        self._point_out(done)
        self._keep(seen, done, config)
        until = [one for one in (*_instants(seen), *self._rouse(seen, done.run, now)) if one]
        done.tell(self._journal.bind(MIND=self._name))
        self.due = max(min(until), now + NEVER_SOONER_MS) if until else None
        self._teller.tell(seen, opened=done.run is not None)

    def forget(self) -> None:
        """Nothing is known any more: her mind or her configuration could not be read."""
        self.due, self.live, self.contender, self.vote, self.last_beat = None, False, None, None, None
        self._teller.forget()

    def _act(self, tx: Transaction, seen: Seen, config: MindConfig, now: int, *, may_beat: bool) -> tuple[Seen, Done]:
        """T2. What is on record now, and what was done."""
        done, control = Done(), seen.control
        if _opens(seen.decision, may_beat=may_beat):
            crash_point("heartbeat.before-T2")
        if isinstance(control, Released) and not seen.acked:
            for cause in MENDABLE:
                clear_pause(tx, cause)
                clear_apart(tx, cause)
            seen = self._observer.see(tx, config, control, now)
        if isinstance(seen.verdict, Dead) and seen.facts.standing.live is not None:
            _close(tx, seen.facts.standing.live, seen.verdict, now, done)
        if _opens(seen.decision, may_beat=may_beat) and isinstance(seen.decision, Open):
            done.run = open_run(tx, KIND, seen.decision.conversations, seen.decision.cause, seen.decision.reason, now)
        _say(tx, seen, config, now, done)
        if admit_ack(tx, "heartbeat", control, now):
            words = f"held: {control.reason}" if isinstance(control, Held) else "released"
            done.note("control.seen", f"She is {words}.")
        return seen, done

    def _point_out(self, done: Done) -> None:
        """What is durable, to the mouth; who opens a run pokes for it (see `_rouse`)."""
        if done.run is not None:
            _note_opened(done, done.run)
            crash_point("heartbeat.T2")
        if done.asked:
            crash_point("heartbeat.asked")
        if done.said or done.asked:  # where there is no room to ask in, the mouth makes one
            send_poke(self._home.mouth_socket)

    def _keep(self, seen: Seen, done: Done, config: MindConfig) -> None:
        """What is known until the next look."""
        self.live = done.run is not None or isinstance(seen.verdict, Unheld | Busy)
        self.paused = bool(seen.facts.standing.pauses or seen.facts.standing.apart)
        self.vote = seen.facts.tempo_s if config.persona.beat else None
        since = seen.facts.standing.last_act_at
        may = isinstance(seen.decision, Open) and seen.decision.cause == "beat" and done.run is None
        self.contender = Contender(self._name, since, seen.facts.urgency) if may and since is not None else None
        if done.run is not None and done.run.cause == "beat":
            self.last_beat = done.run.opened_at

    def _rouse(self, seen: Seen, opened: Run | None, now: int) -> tuple[int, ...]:
        """Poke for the run that waits for its holder; when its grace is over, and when it is poked again."""
        if opened is not None:
            run, until = opened, now + round(self._host.start_grace_s * 1000)
        elif isinstance(seen.verdict, Unheld) and seen.facts.standing.live is not None:
            run, until = seen.facts.standing.live, seen.verdict.until
        else:
            return ()
        return until, self._rouser.poke(run, self._journal.bind(MIND=self._name), now)


def _opens(decision: Decision, *, may_beat: bool) -> bool:
    return isinstance(decision, Open) and (decision.cause != "beat" or may_beat)


def _is_to_do(seen: Seen, *, may_beat: bool) -> bool:
    """There is something to write."""
    opens = _opens(seen.decision, may_beat=may_beat)
    return opens or isinstance(seen.verdict, Dead) or not seen.acked or bool(seen.unsaid) or seen.question is not None


def _instants(seen: Seen) -> tuple[int | None, ...]:
    return (seen.decision.until if isinstance(seen.decision, Wait) else None, seen.day_ends, seen.again_at)


def _close(tx: Transaction, run: Run, dead: Dead, now: int, done: Done) -> None:
    close_dead_run(tx, run, dead.reason, now, dead.outcome)
    done.note("run.closed", f"Her run was closed: {dead.reason}.", RUN=run.id, OUTCOME=dead.outcome, REASON=dead.reason)


def _say(tx: Transaction, seen: Seen, config: MindConfig, now: int, done: Done) -> None:
    """Those who wait are told, and the operators asked."""
    for told in seen.unsaid:
        done.said += admit_said(tx, [told.row], None, now)
        if told.away is not None:
            _note_away(tx, told, told.away, done)
    if seen.question is not None and admit_question(tx, seen.question):
        note_question(done, seen.question)
        done.said += len(ask_open(tx, config, now))


def _note_away(tx: Transaction, told: Told, away: TurnedAway, done: Done) -> None:
    """The line of a spent place is the mouth's own, which tells it where it is the first to see it."""
    room, mail = read_room(tx, away.mail.room_id), away.mail
    where = room.handle if room is not None else mail.room_id
    fields: dict[str, Any] = {"ROOM": mail.room_id, "THREAD": mail.thread or None, "REASON": away.reason}
    if away.kind == "loop":
        sentence = f"She is silent in {where} until a person speaks there: {away.reason}."
        done.note("loop.spent", sentence, level="warning", TURNS=told.turns, **fields)
    else:
        done.note("loop.ceiling", f"{mail.sender} brings her no more turns today: {away.reason}.", level="warning", **fields)


def _note_opened(done: Done, run: Run) -> None:
    fields: dict[str, Any] = {"RUN": run.id, "CAUSE": run.cause, "CONVERSATIONS": ",".join(run.conversations)}
    done.note("run.opened", f"She is woken for {run.reason}.", **fields)
