"""Door: what is said to a Self while it works (design §8): queued at T1 or T3b, given in order, dropped with the run's end.

1. An event is a steer once: its id is unique.
2. A steer belongs to the live run. What that was not given goes on to the next run of the same work. Where there is none it is
   dropped, and what somebody wrote is then mail, as it would have been without the run: nobody's words are lost because a run ended
   just then. A stop is for one run alone, and for its work: what a person stopped is over, also where the run died of something
   else before it could say so.
3. The thread of the live run is known from the receipt of its first message, or from the room, which may be quicker: until one of
   them has come, nobody can have written in it.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal

from mind_body.ids import new_id
from mind_body.mind.records import RunKind
from mind_body.mind.store import Transaction
from mind_body.mind.work_records import LiveThread, Steer


def read_live_thread(tx: Transaction) -> LiveThread | None:
    """The thread of the run that is live, if it has one that people can see."""
    row = tx.execute(
        "SELECT run.id, run.conversations, said.room_id, said.event_id FROM run JOIN said ON said.id = run.thread_said "
        "WHERE run.kind = ? AND run.ended_at IS NULL AND said.event_id IS NOT NULL",
        (RunKind.SELF_RUN,),
    ).fetchone()
    return LiveThread(row["id"], json.loads(row["conversations"])[0], row["room_id"], row["event_id"]) if row else None


def admit_steer(  # noqa: PLR0917 - a record's columns, in their order
    tx: Transaction, run_id: str, event_id: str | None, kind: Literal["steer", "stop"], sender: str, text: str, now: int
) -> str | None:
    """Its id; None, and no effect, where this event is known already or the run is not live."""
    steer_id = new_id()
    done = tx.execute(
        "INSERT INTO steer (id, run_id, event_id, kind, sender, text, at) SELECT ?, ?, ?, ?, ?, ?, ? "
        "WHERE EXISTS (SELECT 1 FROM run WHERE id = ? AND ended_at IS NULL) ON CONFLICT (event_id) DO NOTHING",
        (steer_id, run_id, event_id, kind, sender, text, now, run_id),
    )
    return steer_id if done.rowcount == 1 else None


def revise_steer(tx: Transaction, event_id: str, kind: Literal["steer", "stop"], text: str) -> bool:
    """Edited before it was given; False where it was."""
    changed = tx.execute("UPDATE steer SET kind = ?, text = ? WHERE event_id = ? AND state = 'queued'", (kind, text, event_id))
    return changed.rowcount == 1


def learn_root(tx: Transaction, said_id: str, event_id: str) -> bool:
    """The root of the live run's thread has been seen in the room: its receipt, where that was not stored yet."""
    changed = tx.execute(
        "UPDATE said SET state = 'sent', event_id = ?, not_before = 0, reason = NULL WHERE id = ? AND state = 'attempted' "
        "AND EXISTS (SELECT 1 FROM run WHERE kind = ? AND ended_at IS NULL AND thread_said = said.id)",
        (event_id, said_id, RunKind.SELF_RUN),
    )
    return changed.rowcount == 1


def read_queued_steers(tx: Transaction, run_id: str) -> list[Steer]:
    """What the run was not given yet, in the order in which it came."""
    rows = tx.execute("SELECT * FROM steer WHERE run_id = ? AND state = 'queued' ORDER BY rowid", (run_id,))
    return [_steer(row) for row in rows]


def mark_given(tx: Transaction, steer_id: str) -> bool:
    """It is in the child's hands."""
    return tx.execute("UPDATE steer SET state = 'given' WHERE id = ? AND state = 'queued'", (steer_id,)).rowcount == 1


def withdraw_steer(tx: Transaction, event_id: str) -> bool:
    """Redacted before it was given."""
    changed = tx.execute("UPDATE steer SET state = 'dropped', text = '' WHERE event_id = ? AND state = 'queued'", (event_id,))
    return changed.rowcount == 1


def carry_steers(tx: Transaction, follow_up_ids: Sequence[str], run_id: str) -> int:
    """What earlier runs of this work were not given is for this run; how many."""
    changed = tx.execute(
        "UPDATE steer SET run_id = ? WHERE state = 'queued' AND kind = 'steer' AND run_id IN "
        "(SELECT id FROM run WHERE follow_up_id IN (SELECT value FROM json_each(?)))",
        (run_id, json.dumps(list(follow_up_ids))),
    )
    return changed.rowcount


def read_stopper(tx: Transaction, run_id: str) -> str | None:
    """Who has asked this run to stop, the first of them."""
    row = tx.execute(
        "SELECT sender FROM steer WHERE run_id = ? AND kind = 'stop' AND state <> 'dropped' ORDER BY rowid LIMIT 1", (run_id,)
    ).fetchone()
    return str(row["sender"]) if row else None


def read_given_steers(tx: Transaction, run_id: str) -> list[Steer]:
    """What the run was given, in order: a run that died has told nobody of it."""
    rows = tx.execute("SELECT * FROM steer WHERE run_id = ? AND kind = 'steer' AND state = 'given' ORDER BY rowid", (run_id,))
    return [_steer(row) for row in rows]


def drop_stops(tx: Transaction, run_id: str) -> None:
    """The run is over: nobody need stop it any more."""
    tx.execute("UPDATE steer SET state = 'dropped' WHERE run_id = ? AND kind = 'stop' AND state = 'queued'", (run_id,))


def drop_steers(tx: Transaction, run_id: str) -> int:
    """The work is over: what its run was not given is dropped, and is mail again where it was a message; how many."""
    tx.execute(
        "UPDATE heard SET standing = 'mail', state = 'pending', closed_how = NULL, "
        "reason = 'the run that it was for ended before it was given' WHERE closed_how = 'self' AND event_id IN "
        "(SELECT event_id FROM steer WHERE run_id = ? AND state = 'queued' AND kind = 'steer')",
        (run_id,),
    )
    return tx.execute("UPDATE steer SET state = 'dropped' WHERE run_id = ? AND state = 'queued'", (run_id,)).rowcount


def _steer(row: Any) -> Steer:
    return Steer(**{name: row[name] for name in Steer.__slots__})
