"""Loop: what is put before her in one turn, read from the mind as part of T3a.

A scheduled turn shows her home room alone. What a session has been told (rooms, runs, campaigns) is not told again in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mind_body.mind.asking_records import Campaign
from mind_body.mind.campaigns import read_told_campaigns
from mind_body.mind.news import forget_news, read_news
from mind_body.mind.records import Heard, Room, Session
from mind_body.mind.sessions import read_told_rooms
from mind_body.mind.store import Transaction
from mind_body.mind.turns import read_context
from mind_body.mind.work_records import RunNews
from mind_body.persona.allowed import Allowed, is_among_operators
from mind_body.persona.batch import LOST_MAX, Batch, fitting_context
from mind_body.persona.burn import render_burn
from mind_body.persona.campaigns import NO_NEWS, campaign_news
from mind_body.persona.prompt import Scene, render_input
from mind_body.persona.seat import Seat
from mind_body.settings import MindConfig

CONTEXT_LINES = 20
CONTEXT_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The turn of a scheduled wake."""

    home: Room
    silent_ms: int | None
    """How long nobody has spoken there; None where nobody ever did."""


@dataclass(frozen=True, slots=True)
class Made:
    """The input of a turn, and what of it is to be recorded."""

    text: str
    context: tuple[Heard, ...]
    new_rooms: tuple[Room, ...]
    campaigns: tuple[tuple[str, bool], ...]
    """Slug, and whether it is told as open."""
    scene: Scene


@dataclass(frozen=True, slots=True)
class Staging:
    """Everything but the session that a turn's input depends on."""

    seat: Seat
    config: MindConfig
    batch: Batch
    rooms: Sequence[Room]
    """Of the conversation."""
    allowed: Allowed
    campaigns: Sequence[Campaign]
    """In force."""
    shown: Sequence[Campaign]
    """Those of them there is room for."""
    cause: str
    again: bool
    scheduled: Scheduled | None

    def make(self, session: Session | None) -> Made:
        """For this session, or for one that begins with it."""
        seat, batch = self.seat, self.batch
        by_id = {room.room_id: room for room in self.rooms}
        heard_in = self._heard_in()
        context = self._context(heard_in, session)
        told = read_told_rooms(seat.tx, session.id) if session else {}
        new_rooms = tuple(by_id[one] for one in heard_in if one in by_id and told.get(one) != by_id[one].name)
        told_open = read_told_campaigns(seat.tx, session.id) if session else {}
        changes = campaign_news(told_open, self.campaigns, self.shown) if session else NO_NEWS
        for_operator = is_among_operators(seat.tx, self.config, batch.conversation, by_id, batch.mail)
        scene = Scene(
            rooms=by_id,
            relations=seat.relate((*batch.mail, *context)),
            new_rooms=new_rooms,
            cause=self.cause,
            again=self.again,
            mail=batch.mail,
            context=context,
            now=seat.now,
            news=read_tellable_news(seat.tx, batch.conversation, session),
            campaigns=changes,
            burn=render_burn(self.allowed.burn, for_operator=for_operator),
            silent_ms=self.scheduled.silent_ms if self.scheduled else None,
        )
        opened = changes.opened if session else self.shown  # one that begins has them in its system part
        told_now = (*((one.slug, True) for one in opened), *((slug, False) for slug in changes.closed))
        return Made(render_input(seat.me, scene), context, new_rooms, told_now, scene)

    def _heard_in(self) -> list[str]:
        if self.scheduled:
            return [self.scheduled.home.room_id]
        return list(dict.fromkeys(heard.room_id for heard in self.batch.mail)) or [room.room_id for room in self.rooms]

    def _context(self, heard_in: Sequence[str], session: Session | None) -> tuple[Heard, ...]:
        before = self.batch.mail[-1].seq if self.batch.mail else None
        unseen = read_context(self.seat.tx, session.id if session else None, heard_in, before, CONTEXT_LINES)
        bytes_max = min(CONTEXT_BYTES, self.seat.provider.window_tokens // 8)
        return fitting_context(unseen, lines_max=CONTEXT_LINES, bytes_max=bytes_max)


def read_tellable_news(tx: Transaction, conversation: str, session: Session | None) -> tuple[RunNews, ...]:
    """What a turn tells of her work. What ended her process again and again, as a message can, is let go."""
    news = read_news(tx, conversation, session.id if session else None)
    for one in news:
        if one.lost >= LOST_MAX:
            forget_news(tx, one.run.id)
    return tuple(one for one in news if one.lost < LOST_MAX)
