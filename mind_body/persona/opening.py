"""Loop: from mail to an open turn (T3a).

Everything is read, decided and written in one transaction: what the batch was chosen from is what the turn is opened with. In it,
in this order: is the run still ours; which mail; which session; what is put before her; the record.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from mind_body.crash import crash_point
from mind_body.home import Home
from mind_body.ids import digest, new_id, new_session_uuid
from mind_body.log import Journal
from mind_body.matrix.notices import NoticeKey, render_notice
from mind_body.mind.changes import MISSED
from mind_body.mind.news import forget_news, read_awaited, read_news
from mind_body.mind.outbox import admit_said
from mind_body.mind.records import Heard, Room, Run, Session
from mind_body.mind.runs import end_run, holds_run
from mind_body.mind.sessions import (
    admit_persona,
    count_dialogue,
    end_session,
    open_session,
    read_dialogue,
    read_exchanges,
    read_last_state,
    read_open_session,
    read_told_rooms,
)
from mind_body.mind.store import Mind, Transaction
from mind_body.mind.turning import NewTurn, Relation
from mind_body.mind.turns import close_as_failed, open_turn, read_context, read_conversation_rooms, read_mail, read_relations
from mind_body.mind.work_records import RunNews
from mind_body.model.session import Exchange, Provider, SessionPlan
from mind_body.persona.batch import LOST_MAX, Batch, Kills, charged, fitting_context, next_batch
from mind_body.persona.plan import Binding, Refresh, Resume, SessionFacts, ceiling_tokens, plan_session
from mind_body.persona.prompt import Persona, Scene, render_input
from mind_body.persona.rehydrate import MESSAGES_MAX, render_rehydration
from mind_body.persona.words import Words
from mind_body.settings import MindConfig

CONTEXT_LINES = 20
CONTEXT_BYTES = 16 * 1024
NO_MAIL = "no eligible mail"


@dataclass(frozen=True, slots=True)
class Place:
    """What all turns of this process share."""

    home: Home
    me: Persona
    config: MindConfig
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
    news: tuple[RunNews, ...]
    """What of her own work is told in it."""
    plan: SessionPlan
    input: str
    why_session: str
    """`continue`, `resume`, or why it is a fresh one."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """No eligible mail; the run has ended in the same transaction."""


@dataclass(frozen=True, slots=True)
class NotOurs:
    """Somebody has ended the run: no effect."""


@dataclass(frozen=True, slots=True)
class ClosedAsFailed:
    """A message that killed its turns was closed; there may be others."""

    heard: Heard


Opening: TypeAlias = Opened | Nothing | NotOurs | ClosedAsFailed


@dataclass(frozen=True, slots=True)
class _Input:
    text: str
    context: tuple[Heard, ...]
    new_rooms: tuple[Room, ...]
    scene: Scene


def open_next(place: Place, run: Run, *, turns: int, is_alive: Callable[[str], bool], now: int) -> Opening:
    """T3a, or why there is no turn. `turns`: how many this run has had; `is_alive`: whether a session id is open here."""
    with place.mind.write() as tx:
        opening = _Desk(tx, place, run, turns, is_alive, now).open()
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
    turns: int
    is_alive: Callable[[str], bool]
    now: int

    def open(self) -> Opening:
        if not holds_run(self.tx, self.run.id, self.place.holder):
            return NotOurs()
        mail = read_mail(self.tx, self.run.conversations)
        beat = self.run.cause == "beat" and self.turns == 0
        batch = next_batch(mail, self.run.conversations, beat=beat, window_tokens=self.place.provider.window_tokens)
        if batch is None or (not isinstance(batch, Kills) and not batch.mail):
            batch = self._next_news() or batch
        if batch is None:
            end_run(self.tx, self.run.id, self.place.holder, "done", NO_MAIL, self.now)
            return Nothing()
        if isinstance(batch, Kills):
            return self._close_killer(batch.mail.heard)
        crash_point("persona.before-T3a")
        return self._open_turn(batch)

    def _next_news(self) -> Batch | None:
        """A turn without mail for the first conversation whose work is over."""
        for conversation in self.run.conversations:
            if conversation in read_awaited(self.tx) and any(one.told == "ended" for one in self._read_news(conversation, None)):
                return Batch(conversation, ())
        return None

    def _read_news(self, conversation: str, session: Session | None) -> tuple[RunNews, ...]:
        """What this turn tells. What ended her process again and again, as a message can, is let go."""
        news = read_news(self.tx, conversation, session.id if session else None)
        for one in news:
            if one.lost >= LOST_MAX:
                forget_news(self.tx, one.run.id)
        return tuple(one for one in news if one.lost < LOST_MAX)

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

    def _open_turn(self, batch: Batch) -> Opened:
        tx, words = self.tx, self.place.words
        rooms = tuple(read_conversation_rooms(tx, batch.conversation))
        session = read_open_session(tx, batch.conversation)
        made = self._make_input(batch, rooms, session)
        choice = plan_session(self._facts(session, charged(made.text)))
        if isinstance(choice, Refresh) or session is None:
            reason = choice.reason if isinstance(choice, Refresh) else "no session"
            made = self._make_input(batch, rooms, None)
            if session is not None:
                end_session(tx, session.id, reason, self.now)
            session = self._begin_session(batch.conversation, made.scene)
        else:
            reason = "resume" if isinstance(choice, Resume) else "continue"
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
        open_turn(tx, turn, self.place.holder, self.now)
        admit_persona(tx, self.place.me.name, words.persona, digest(words.persona), self.now)
        plan = self._plan_of(session, with_past=isinstance(choice, Resume))
        return Opened(turn.id, self.run, batch, rooms, tuple(made.scene.news), plan, made.text, reason)

    def _make_input(self, batch: Batch, rooms: Sequence[Room], session: Session | None) -> _Input:
        tx, window = self.tx, self.place.provider.window_tokens
        by_id = {room.room_id: room for room in rooms}
        heard_in = list(dict.fromkeys(heard.room_id for heard in batch.mail)) or list(by_id)
        before = batch.mail[-1].seq if batch.mail else None
        unseen = read_context(tx, session.id if session else None, heard_in, before, CONTEXT_LINES)
        context = fitting_context(unseen, lines_max=CONTEXT_LINES, bytes_max=min(CONTEXT_BYTES, window // 8))
        told = read_told_rooms(tx, session.id) if session else {}
        new_rooms = tuple(by_id[one] for one in heard_in if one in by_id and told.get(one) != by_id[one].name)
        news = self._read_news(batch.conversation, session)
        scene = Scene(
            rooms=by_id,
            relations=self._relate((*batch.mail, *context)),
            new_rooms=new_rooms,
            cause=self._cause(batch, news),
            again=self.turns > 0 and bool(batch.mail),
            mail=batch.mail,
            context=context,
            now=self.now,
            news=news,
        )
        return _Input(render_input(self.place.me, scene), context, new_rooms, scene)

    def _cause(self, batch: Batch, news: Sequence[RunNews]) -> str:
        if not batch.mail and any(one.told == "ended" for one in news):
            return "self_run"
        return self.run.cause if self.run.cause != "self_run" else "mail"

    def _facts(self, session: Session | None, incoming: int) -> SessionFacts:
        provider, words = self.place.provider, self.place.words
        return SessionFacts(
            session=session,
            last_turn=read_last_state(self.tx, session.id) if session else None,
            binding=Binding(provider.instance, provider.model, words.instructions_digest, words.schema_digest),
            alive=session is not None and self.is_alive(session.id),
            keeps_transcript=provider.keeps_transcript,
            window_tokens=provider.window_tokens,
            output_cap=provider.output_cap,
            incoming=incoming,
        )

    def _begin_session(self, conversation: str, scene: Scene) -> Session:
        rehydration = self._rehydrate(conversation, scene)
        words, provider = self.place.words, self.place.provider
        session = Session(
            id=new_session_uuid(),
            conversation=conversation,
            provider=provider.instance,
            model=provider.model,
            instructions=words.instructions,
            instructions_digest=words.instructions_digest,
            schema_json=words.schema_json,
            schema_digest=words.schema_digest,
            rehydration=rehydration,
            cursor=None,
            opened_at=self.now,
            ended_at=None,
            end_reason=None,
            prefix_tokens=0,
            ceiling_tokens=ceiling_tokens(provider.window_tokens, provider.output_cap),
            window_tokens=provider.window_tokens,
            rehydration_tokens=charged(rehydration),
            last_used_at=self.now,
            last_turn_id=None,
            turns=0,
        )
        open_session(self.tx, session)
        return session

    def _rehydrate(self, conversation: str, scene: Scene) -> str:
        dialogue = read_dialogue(self.tx, conversation, MESSAGES_MAX)
        answered = [one.heard for one in dialogue if one.heard is not None]
        rooms = {one.room.room_id: one.room for one in dialogue} | dict(scene.rooms)
        past = replace(scene, rooms=rooms, relations=self._relate(answered), new_rooms=(), mail=(), context=(), news=())
        more = count_dialogue(self.tx, conversation) > len(answered)
        return render_rehydration(self.place.me, dialogue, past, self.place.provider.window_tokens, more=more)

    def _relate(self, messages: Sequence[Heard]) -> dict[str, Relation]:
        return read_relations(self.tx, [event for heard in messages for event in (heard.reply_to, heard.thread) if event])

    def _plan_of(self, session: Session, *, with_past: bool) -> SessionPlan:
        recorded = read_exchanges(self.tx, session.id) if with_past else []
        past = tuple(Exchange(asked, answered) for asked, answered in recorded)
        schema = self.place.words.schema
        return SessionPlan(session.id, session.instructions, schema, session.rehydration, cursor=session.cursor, past=past)
