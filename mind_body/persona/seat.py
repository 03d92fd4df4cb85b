"""Loop: the model session that a turn goes into, as part of T3a: what it is planned from, how one begins, what it is told again.

A session holds what it was opened with, for good: its system part with the campaigns in force, its schema, its rehydration.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mind_body.ids import new_session_uuid
from mind_body.mind.asking_records import Campaign
from mind_body.mind.records import Heard, Session
from mind_body.mind.sessions import count_dialogue, open_session, read_dialogue, read_exchanges, read_last_state
from mind_body.mind.store import Transaction
from mind_body.mind.turning import Relation
from mind_body.mind.turns import read_relations
from mind_body.model.session import Exchange, Provider, SessionPlan
from mind_body.persona.batch import charged
from mind_body.persona.campaigns import with_campaigns
from mind_body.persona.plan import Binding, SessionFacts, ceiling_tokens
from mind_body.persona.prompt import Persona, Scene
from mind_body.persona.rehydrate import MESSAGES_MAX, render_rehydration
from mind_body.persona.words import Words


@dataclass(frozen=True, slots=True)
class Seat:
    """One transaction's view of it."""

    tx: Transaction
    me: Persona
    provider: Provider
    words: Words
    now: int

    def facts(self, session: Session | None, incoming: int, *, alive: bool) -> SessionFacts:
        provider, words = self.provider, self.words
        return SessionFacts(
            session=session,
            last_turn=read_last_state(self.tx, session.id) if session else None,
            binding=Binding(provider.instance, provider.model, words.instructions_digest, words.schema_digest),
            alive=alive,
            keeps_transcript=provider.keeps_transcript,
            window_tokens=provider.window_tokens,
            output_cap=provider.output_cap,
            incoming=incoming,
        )

    def begin(self, conversation: str, scene: Scene, campaigns: Sequence[Campaign]) -> Session:
        """On record from now on. The binding is to what it is made from without the campaigns: theirs are no reason for another."""
        rehydration = self._rehydrate(conversation, scene)
        words, provider = self.words, self.provider
        session = Session(
            id=new_session_uuid(),
            conversation=conversation,
            provider=provider.instance,
            model=provider.model,
            instructions=with_campaigns(words.instructions, campaigns, small=self.me.small),
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

    def plan(self, session: Session, *, with_past: bool) -> SessionPlan:
        recorded = read_exchanges(self.tx, session.id) if with_past else []
        past = tuple(Exchange(asked, answered) for asked, answered in recorded)
        return SessionPlan(
            session.id, session.instructions, self.words.schema, session.rehydration, cursor=session.cursor, past=past
        )

    def relate(self, messages: Sequence[Heard]) -> dict[str, Relation]:
        return read_relations(self.tx, [event for heard in messages for event in (heard.reply_to, heard.thread) if event])

    def _rehydrate(self, conversation: str, scene: Scene) -> str:
        dialogue = read_dialogue(self.tx, conversation, MESSAGES_MAX)
        answered = [one.heard for one in dialogue if one.heard is not None]
        rooms = {one.room.room_id: one.room for one in dialogue} | dict(scene.rooms)
        past = replace(scene, rooms=rooms, relations=self.relate(answered), new_rooms=(), mail=(), context=(), news=())
        more = count_dialogue(self.tx, conversation) > len(answered)
        return render_rehydration(self.me, dialogue, past, self.provider.window_tokens, more=more)
