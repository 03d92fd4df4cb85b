"""Loop: from mail to an open turn (T3a).

Everything is read, decided and written in one transaction: what the batch was chosen from is what the turn is opened with. In it,
in this order: is the run still ours; may she go on; which mail; which session; what is put before her; the record.

A run of a scheduled wake begins with a turn without mail: her home room is all that she sees and speaks into. Whoever spoke before
it or meanwhile is answered first, or next.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from mind_body.control.effective import Released
from mind_body.control.govern import Skip
from mind_body.control.loops import HOME_SPENT, is_spent
from mind_body.crash import crash_point
from mind_body.home import Home
from mind_body.ids import digest, new_id
from mind_body.log import Journal
from mind_body.matrix.notices import NoticeKey, render_notice
from mind_body.mind.campaigns import admit_told_campaigns, read_campaigns
from mind_body.mind.changes import MISSED
from mind_body.mind.news import read_awaited
from mind_body.mind.outbox import admit_said
from mind_body.mind.places import read_place, read_spoke_at
from mind_body.mind.records import Heard, Room, Run, Session
from mind_body.mind.runs import end_run, holds_run
from mind_body.mind.sessions import admit_persona, end_session, read_open_session
from mind_body.mind.store import Mind, Transaction
from mind_body.mind.turning import NewTurn
from mind_body.mind.turns import close_as_failed, open_turn, read_conversation_rooms, read_mail
from mind_body.mind.work_records import RunNews
from mind_body.model.session import Provider, SessionPlan
from mind_body.persona.allowed import Allowed, ask_again
from mind_body.persona.batch import Batch, Kills, charged, next_batch
from mind_body.persona.campaigns import fitting_campaigns
from mind_body.persona.plan import Refresh, Resume, plan_session
from mind_body.persona.prompt import Persona
from mind_body.persona.scene import Made, Scheduled, Staging, read_tellable_news
from mind_body.persona.seat import Seat
from mind_body.persona.words import Words
from mind_body.settings import HostConfig, MindConfig

NO_MAIL = "no eligible mail"


@dataclass(frozen=True, slots=True)
class Place:
    """What all turns of this process share."""

    home: Home
    me: Persona
    config: MindConfig
    host: HostConfig
    provider: Provider
    mind: Mind
    journal: Journal
    holder: str
    words: Words


@dataclass(frozen=True, slots=True)
class Opened:
    """T3a is committed."""

    turn_id: str
    run: Run
    batch: Batch
    rooms: tuple[Room, ...]
    """Where she may speak."""
    news: tuple[RunNews, ...]
    """What of her own work is told in it."""
    plan: SessionPlan
    input: str
    why_session: str
    """`continue`, `resume`, or why it is a fresh one."""
    scheduled: bool = False
    """Nobody called her."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is no turn to take; the run has ended in the same transaction."""

    outcome: str = "done"
    reason: str = NO_MAIL


@dataclass(frozen=True, slots=True)
class NotOurs:
    """Somebody has ended the run: no effect."""


@dataclass(frozen=True, slots=True)
class ClosedAsFailed:
    """A message that killed its turns was closed; there may be others."""

    heard: Heard


Opening: TypeAlias = Opened | Nothing | NotOurs | ClosedAsFailed


def open_next(place: Place, run: Run, control: Released, *, turns: int, is_alive: Callable[[str], bool], now: int) -> Opening:
    """T3a, or why there is no turn. `turns`: how many this run has had; `is_alive`: whether a session id is open here."""
    with place.mind.write() as tx:
        seat = Seat(tx, place.me, place.provider, place.words, now)
        opening = _Desk(tx, place, run, control, turns, is_alive, now, seat).open()
    if isinstance(opening, Nothing):
        crash_point("persona.run-ended")
    elif isinstance(opening, Opened):
        crash_point("persona.T3a")
    return opening


@dataclass(frozen=True, slots=True)
class _Desk:
    """The one transaction, and what is decided in it."""

    tx: Transaction
    place: Place
    run: Run
    control: Released
    turns: int
    is_alive: Callable[[str], bool]
    now: int
    seat: Seat

    def open(self) -> Opening:
        if not holds_run(self.tx, self.run.id, self.place.holder):
            return NotOurs()
        allowed = ask_again(self.tx, self.place.config, self.place.host, self.control, self.now)
        if isinstance(allowed, Skip):
            return self._end(allowed.kind, allowed.reason)
        mail = read_mail(self.tx, self.run.conversations, apart=allowed.turned_away)
        batch = next_batch(mail, self.run.conversations, window_tokens=self.place.provider.window_tokens)
        if isinstance(batch, Kills):
            return self._close_killer(batch.mail.heard)
        batch = batch or self._next_news()
        if batch is not None:
            return self._open_turn(batch, allowed)
        home = self._home()
        if not isinstance(home, Room):
            return self._end("done", home)
        spoke_at = read_spoke_at(self.tx, home.room_id)
        scheduled = Scheduled(home, self.now - spoke_at if spoke_at is not None else None)
        return self._open_turn(Batch(home.conversation, ()), allowed, scheduled)

    def _end(self, outcome: str, reason: str) -> Nothing:
        end_run(self.tx, self.run.id, self.place.holder, outcome, reason, self.now)
        return Nothing(outcome, reason)

    def _home(self) -> Room | str:
        """Where this run's turn without mail is held; else why there is none."""
        if self.run.cause != "beat" or self.turns > 0:
            return NO_MAIL
        rooms = [room for one in self.run.conversations for room in read_conversation_rooms(self.tx, one)]
        home = next((room for room in rooms if room.room_id == self.place.config.persona.home_room), None)
        if home is None:
            return "her home room is not one of this run"
        if home.encrypted:
            return "her home room is encrypted, and she could not read an answer"
        return HOME_SPENT if is_spent(read_place(self.tx, home.room_id, ""), self.place.config) else home

    def _next_news(self) -> Batch | None:
        """A turn without mail for the first conversation whose work is over."""
        for conversation in self.run.conversations:
            if conversation in read_awaited(self.tx) and any(
                one.told == "ended" for one in read_tellable_news(self.tx, conversation, None)
            ):
                return Batch(conversation, ())
        return None

    def _close_killer(self, heard: Heard) -> ClosedAsFailed:
        close_as_failed(self.tx, heard.seq, self.run.id, self.place.holder)
        notice = render_notice(
            self.place.config.persona.language,
            NoticeKey.FAILED_MESSAGE,
            heard.event_id,
            heard.room_id,
            thread=heard.thread,
            reply_to=heard.event_id if heard.kind != MISSED else None,
        )
        admit_said(self.tx, [notice], None, self.now)
        return ClosedAsFailed(heard)

    def _open_turn(self, batch: Batch, allowed: Allowed, scheduled: Scheduled | None = None) -> Opened:
        crash_point("persona.before-T3a")
        tx, words, seat = self.tx, self.place.words, self.seat
        rooms = tuple(read_conversation_rooms(tx, batch.conversation))
        campaigns, provider = read_campaigns(tx, open_only=True), self.place.provider
        shown = fitting_campaigns(campaigns, small=provider.small, window_tokens=provider.window_tokens)
        again = self.turns > 0 and bool(batch.mail) and self.run.cause != "beat"
        cause = self._cause(batch, scheduled)
        staging = Staging(seat, self.place.config, batch, rooms, allowed, campaigns, shown, cause, again, scheduled)
        session = read_open_session(tx, batch.conversation)
        made = staging.make(session)
        alive = session is not None and self.is_alive(session.id)
        choice = plan_session(seat.facts(session, charged(made.text), alive=alive))
        if isinstance(choice, Refresh) or session is None:
            reason = choice.reason if isinstance(choice, Refresh) else "no session"
            made = staging.make(None)
            if session is not None:
                end_session(tx, session.id, reason, self.now)
            session = seat.begin(batch.conversation, made.scene, shown)
        else:
            reason = "resume" if isinstance(choice, Resume) else "continue"
        turn_id = self._record(batch, session, made)
        admit_persona(tx, self.place.me.name, words.persona, digest(words.persona), self.now)
        plan = seat.plan(session, with_past=isinstance(choice, Resume))
        news, speaks_in = tuple(made.scene.news), (scheduled.home,) if scheduled else rooms
        return Opened(turn_id, self.run, batch, speaks_in, news, plan, made.text, reason, scheduled=scheduled is not None)

    def _record(self, batch: Batch, session: Session, made: Made) -> str:
        turn = NewTurn(
            new_id(),
            self.run.id,
            session.id,
            session.turns + 1,
            batch.conversation,
            made.text,
            mail=tuple(heard.seq for heard in batch.mail),
            context=tuple(heard.seq for heard in made.context),
            rooms=tuple((room.room_id, room.name) for room in made.new_rooms),
            runs=tuple((one.run.id, one.told) for one in made.scene.news),
        )
        open_turn(self.tx, turn, self.place.holder, self.now)
        admit_told_campaigns(self.tx, turn.id, made.campaigns)
        return turn.id

    def _cause(self, batch: Batch, scheduled: Scheduled | None) -> str:
        if not batch.mail:
            return "beat" if scheduled else "self_run"
        return self.run.cause if self.run.cause not in {"self_run", "beat"} else "mail"
