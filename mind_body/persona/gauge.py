"""Loop: what she is at, for her unit's status line."""

from mind_body.clock import now_ms
from mind_body.control.govern import window_of
from mind_body.host.gauge import Gauge, render_gauge
from mind_body.host.notify import Notify
from mind_body.mind.records import Session
from mind_body.mind.sessions import read_open_session
from mind_body.mind.spent import read_spent
from mind_body.model.passage import TTL_1H_MS, TTL_5M_MS
from mind_body.persona.opening import Opened, Place
from mind_body.settings import ModelConfig


def show_turn(notify: Notify, place: Place, opened: Opened) -> None:
    """A turn begins."""
    count = len(opened.batch.mail)
    doing = f"Answering {count} message{'' if count == 1 else 's'}" if count else "Speaking unprompted"
    _show(notify, place, doing, opened.batch.conversation, under_way=True)


def show_waiting(notify: Notify, place: Place, conversation: str | None) -> None:
    """She lingers, with the session of this conversation open."""
    _show(notify, place, "Waiting for the next message", conversation, under_way=False)


def _show(notify: Notify, place: Place, doing: str, conversation: str | None, *, under_way: bool) -> None:
    if not notify.listened:
        return
    now = now_ms()
    with place.mind.read() as tx:
        session = read_open_session(tx, conversation) if conversation is not None else None
        today = read_spent(tx, window_of(place.host, now).day_start)
    if session is None:
        notify.status(render_gauge(Gauge(doing, today_micro_usd=today)))
        return
    turn = session.turns + under_way
    warm = 0 if under_way else _warm_ms(session, place.config.model, now)
    notify.status(render_gauge(Gauge(doing, turn, session.prefix_tokens, session.ceiling_tokens, warm, today)))


def _warm_ms(session: Session, model: ModelConfig, now: int) -> int:
    """How long its cache lives by the provider's word: the kind of the key decides which marks the CLI sends (wire.md §1)."""
    if model.provider != "claude" or not session.turns:
        return 0
    return session.last_used_at + (TTL_1H_MS if model.credential == "oauth-token" else TTL_5M_MS) - now
