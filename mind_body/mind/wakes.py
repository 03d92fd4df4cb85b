"""Door: what the heartbeat looks at before it decides (design §9), read in one snapshot.

Mail counts where she can answer it: pending, in a room that she has joined.
"""

from mind_body.mind.news import read_awaited
from mind_body.mind.records import RunKind
from mind_body.mind.runs import live_run, read_pauses, recent_runs
from mind_body.mind.store import Transaction
from mind_body.mind.wake_facts import PendingMail, WakeFacts

HISTORY = 16
"""Ended runs that are looked back on; more fruitless ones in a row than this change no back-off."""


def read_wake_facts(tx: Transaction, kind: RunKind = RunKind.PERSONA_TURN, *, beat: bool = False) -> WakeFacts:
    """What matters to a beat alone is read for a Mind that has one."""
    first = tx.execute("SELECT heard_at FROM heard ORDER BY seq LIMIT 1").fetchone()
    return WakeFacts(
        pending=read_pending_mail(tx),
        live=live_run(tx, kind),
        pauses=read_pauses(tx),
        recent=tuple(recent_runs(tx, kind, HISTORY)),
        awaited=read_awaited(tx),
        first_heard_at=first["heard_at"] if first else None,
        active_conversation=_active_conversation(tx) if beat else None,
    )


def read_pending_mail(tx: Transaction) -> tuple[PendingMail, ...]:
    """Per conversation, the one with the oldest mail first."""
    found: dict[str, PendingMail] = {}
    for row in tx.execute(
        "SELECT room.conversation, heard.sender, count(*) AS count, min(heard.heard_at) AS oldest, max(heard.heard_at) AS newest "
        "FROM heard JOIN room USING (room_id) "
        "WHERE heard.standing = 'mail' AND heard.state = 'pending' AND room.membership = 'joined' "
        "GROUP BY room.conversation, heard.sender ORDER BY heard.sender"
    ):
        one = PendingMail(row["conversation"], row["count"], row["oldest"], row["newest"], (row["sender"],))
        found[one.conversation] = _joined(found[one.conversation], one) if one.conversation in found else one
    return tuple(sorted(found.values(), key=lambda mail: (mail.oldest_at, mail.conversation)))


def _joined(a: PendingMail, b: PendingMail) -> PendingMail:
    return PendingMail(
        a.conversation,
        a.count + b.count,
        min(a.oldest_at, b.oldest_at),
        max(a.newest_at, b.newest_at),
        (*a.senders, *b.senders),
    )


def _active_conversation(tx: Transaction) -> str | None:
    turned = (
        "SELECT conversation FROM turn WHERE conversation IN (SELECT conversation FROM room WHERE membership = 'joined') "
        "ORDER BY ended_at DESC LIMIT 1"
    )
    heard = (
        "SELECT room.conversation FROM heard JOIN room USING (room_id) "
        "WHERE room.membership = 'joined' ORDER BY heard.seq DESC LIMIT 1"
    )
    row = tx.execute(turned).fetchone() or tx.execute(heard).fetchone()
    return row["conversation"] if row else None
