"""Door: what the heartbeat looks at before it decides (design §9), read in one snapshot.

Mail counts where she can answer it: pending, in a room that she has joined. Everything here is asked for by an index, however long
the history is: a host looks at a thousand Minds.
"""

from collections.abc import Sequence
from dataclasses import replace

from mind_body.mind.news import read_awaited
from mind_body.mind.pulses import read_pulse
from mind_body.mind.questions import read_extensions
from mind_body.mind.records import Pause, RunKind
from mind_body.mind.runs import live_run, read_pauses, recent_runs
from mind_body.mind.spent import read_spent
from mind_body.mind.store import Transaction
from mind_body.mind.wake_facts import PendingMail, Standing, WaitingMail, WakeFacts, Window
from mind_body.mind.work_records import SELF_PAUSE

HISTORY = 16
"""Ended runs that are looked back on; more fruitless ones in a row than this change no back-off."""


def read_waiting_mail(tx: Transaction) -> tuple[WaitingMail, ...]:
    """What one account wrote in one place, as a person or not; the oldest first."""
    rows = tx.execute(
        "SELECT found.*, oldest.event_id AS oldest_event, newest.event_id AS newest_event FROM ("
        "SELECT room.conversation, heard.room_id, coalesce(heard.thread, '') AS place, heard.sender, heard.person, "
        "count(*) AS count, min(heard.heard_at) AS oldest_at, max(heard.heard_at) AS newest_at, "
        "min(heard.seq) AS oldest_seq, max(heard.seq) AS newest_seq FROM heard JOIN room ON room.room_id = heard.room_id "
        "WHERE heard.standing = 'mail' AND heard.state = 'pending' AND room.membership = 'joined' "
        "GROUP BY heard.room_id, place, heard.sender, heard.person) AS found "
        "JOIN heard AS oldest ON oldest.seq = found.oldest_seq JOIN heard AS newest ON newest.seq = found.newest_seq "
        "ORDER BY found.oldest_seq"
    )
    return tuple(
        WaitingMail(
            conversation=row["conversation"],
            room_id=row["room_id"],
            thread=row["place"],
            sender=row["sender"],
            person=bool(row["person"]),
            count=row["count"],
            oldest_at=row["oldest_at"],
            newest_at=row["newest_at"],
            oldest_event=row["oldest_event"],
            newest_event=row["newest_event"],
        )
        for row in rows
    )


def read_standing(tx: Transaction, kind: RunKind, window: Window) -> Standing:
    """What the governor asks of one half."""
    recent = tuple(recent_runs(tx, kind, HISTORY))
    pauses, apart = pauses_of(read_pauses(tx), kind)
    return Standing(
        live=live_run(tx, kind),
        pauses=pauses,
        apart=apart,
        recent=recent,
        spent_day=read_spent(tx, window.day_start, window.day_end),
        spent_month=read_spent(tx, window.month_start, window.month_end),
        extensions_day=read_extensions(tx, f"day:{window.day}"),
        extensions_month=read_extensions(tx, f"month:{window.month}"),
        silent_beats=_silent_beats(tx),
        last_act_at=recent[0].ended_at if recent else _first_heard_at(tx),
    )


def read_wake_facts(tx: Transaction, pending: tuple[PendingMail, ...], standing: Standing, home_room: str) -> WakeFacts:
    """The rest of what a wake depends on; `pending` is what the loop budget has left."""
    pulse = read_pulse(tx)
    home, fault = _home(tx, home_room)
    return WakeFacts(
        pending=pending,
        standing=standing,
        awaited=read_awaited(tx),
        home=home,
        home_fault=fault,
        urgency=pulse.urgency if pulse else 0,
        tempo_s=pulse.tempo_s if pulse else None,
    )


def read_last_beat(tx: Transaction) -> int | None:
    """When her newest scheduled wake was opened, by row order."""
    row = tx.execute("SELECT opened_at FROM run WHERE cause = 'beat' ORDER BY after_seq DESC, rowid DESC LIMIT 1").fetchone()
    return int(row["opened_at"]) if row else None


def pauses_of(pauses: Sequence[Pause], kind: RunKind) -> tuple[tuple[Pause, ...], tuple[tuple[str, Pause], ...]]:
    """Those of one half, without the beginning that tells them apart; and those of one conversation, by it."""
    if kind is RunKind.SELF_RUN:
        own = [replace(one, cause=one.cause.removeprefix(SELF_PAUSE)) for one in pauses if one.cause.startswith(SELF_PAUSE)]
    else:
        own = [one for one in pauses if not one.cause.startswith(SELF_PAUSE)]
    named = [(one, *one.cause.partition(":")) for one in own]
    return (
        tuple(one for one, _, colon, _ in named if not colon),
        tuple((conversation, replace(one, cause=cause)) for one, cause, colon, conversation in named if colon),
    )


def _silent_beats(tx: Transaction) -> int:
    row = tx.execute(
        "SELECT count(*) FROM run WHERE cause = 'beat' AND after_seq >= coalesce((SELECT max(seq) FROM spoke), 0)"
    ).fetchone()
    return int(row[0])


def _first_heard_at(tx: Transaction) -> int | None:
    row = tx.execute("SELECT heard_at FROM heard WHERE seq = (SELECT min(seq) FROM heard)").fetchone()
    return int(row["heard_at"]) if row else None


def _home(tx: Transaction, home_room: str) -> tuple[str | None, str]:
    row = tx.execute("SELECT * FROM room WHERE room_id = ? AND membership = 'joined'", (home_room,)).fetchone()
    if row is None:
        return None, ""
    return (None, "her home room is encrypted, and she could not read an answer") if row["encrypted"] else (row["conversation"], "")
