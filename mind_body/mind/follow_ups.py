"""Door: follow-ups, the work that somebody asked for (design §4): proposed → open → claimed → done or dropped.

1. A transition is a compare-and-set on the state that it leaves, and on the run where there is one: no row, no effect.
2. Claiming and opening the run are one call (`open_self_run`), so that no run of a Self is without its work, nor claimed work
   without its run. The thread's root gets its name there: the first run's id names it for all later ones.
3. What a run leaves that came to nothing is open again, under the same id and in its place; what a run leaves unfinished on purpose
   goes on as a new follow-up that `continues` the old one, in the same thread, behind those who wait already.
4. Oldest first is by row order, never by an instant: an id, too, is made from a clock.
"""

from typing import Any

from mind_body.ids import new_id
from mind_body.mind.records import Run, RunKind
from mind_body.mind.runs import open_run, run_from_row
from mind_body.mind.steers import carry_steers
from mind_body.mind.store import Transaction
from mind_body.mind.work_records import FollowUp, FollowUpState, NewFollowUp, Proposal

RESULT_BYTES = 800
"""Bytes of a result that stay on the run and on its follow-up (design §8)."""
_WAITING = "INDEXED BY follow_up_waiting WHERE state IN ('proposed', 'open', 'claimed')"
"""Told so, because the planner takes an order by row for a reason to read all work there ever was."""


def thread_root_id(run_id: str) -> str:
    """The said id of the message that begins the thread of a run, and of the later runs of the same work."""
    return f"self-{run_id}"


def admit_follow_up(
    tx: Transaction, new: NewFollowUp, now: int, *, follow_up_id: str | None = None, confirm_said: str | None = None
) -> FollowUp:
    """Open, or proposed where a confirmation is asked for. An id that is there already changes nothing."""
    one = follow_up_id or new_id()
    state = FollowUpState.OPEN if confirm_said is None else FollowUpState.PROPOSED
    columns = {
        "id": one,
        "conversation": new.conversation,
        "room_id": new.room_id,
        "asked_in": new.asked_in,
        "asked_by": new.asked_by,
        "brief": new.brief,
        "workspace": new.workspace,
        "campaign": new.campaign,
        "state": state,
        "confirm_said": confirm_said,
        "continues": new.continues,
        "thread_said": new.thread_said,
        "thread_root": new.thread_root,
        "opened_at": now,
    }
    tx.execute(
        f"INSERT INTO follow_up ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) ON CONFLICT (id) DO NOTHING",
        tuple(columns.values()),
    )
    found = read_follow_up(tx, one)
    assert found is not None
    return found


def read_follow_up(tx: Transaction, follow_up_id: str) -> FollowUp | None:
    row = tx.execute("SELECT * FROM follow_up WHERE id = ?", (follow_up_id,)).fetchone()
    return follow_up_from_row(row) if row else None


def read_follow_up_of_run(tx: Transaction, run_id: str) -> FollowUp | None:
    """What a run works or worked on."""
    row = tx.execute(
        "SELECT follow_up.* FROM run JOIN follow_up ON follow_up.id = run.follow_up_id WHERE run.id = ?", (run_id,)
    ).fetchone()
    return follow_up_from_row(row) if row else None


def read_open_follow_ups(tx: Transaction) -> list[FollowUp]:
    """Those that wait for a run, the oldest first."""
    rows = tx.execute(f"SELECT * FROM follow_up {_WAITING} AND state = 'open' ORDER BY rowid")
    return [follow_up_from_row(row) for row in rows]


def read_proposals(tx: Transaction) -> list[Proposal]:
    """Those that wait for a confirmation, with the event that asks for it."""
    rows = tx.execute(
        "SELECT waiting.*, said.event_id AS asked_event FROM ("
        f"SELECT rowid AS place, * FROM follow_up {_WAITING} AND state = 'proposed') AS waiting "
        "LEFT JOIN said ON said.id = waiting.confirm_said ORDER BY waiting.place"
    )
    return [Proposal(follow_up_from_row(row), row["asked_event"]) for row in rows]


def confirm_follow_up(tx: Transaction, follow_up_id: str) -> bool:
    """The asker has confirmed the brief."""
    return tx.execute("UPDATE follow_up SET state = 'open' WHERE id = ? AND state = 'proposed'", (follow_up_id,)).rowcount == 1


def open_self_run(tx: Transaction, follow_up: FollowUp, reason: str, now: int) -> Run | None:
    """T2 of work: claimed and its run open, together. None, and no effect, when it is not open any more."""
    cause = "again" if follow_up.run_id is not None or follow_up.continues is not None else "request"
    claimed = tx.execute("UPDATE follow_up SET state = 'claimed' WHERE id = ? AND state = 'open'", (follow_up.id,))
    if claimed.rowcount != 1:
        return None
    run = open_run(tx, RunKind.SELF_RUN, (follow_up.conversation,), cause, reason, now)
    thread = follow_up.thread_said or thread_root_id(run.id)
    tx.execute("UPDATE follow_up SET run_id = ?, thread_said = ? WHERE id = ?", (run.id, thread, follow_up.id))
    tx.execute("UPDATE run SET follow_up_id = ?, thread_said = ? WHERE id = ?", (follow_up.id, thread, run.id))
    carry_steers(tx, [one for one in (follow_up.id, follow_up.continues) if one is not None], run.id)
    found = tx.execute("SELECT * FROM run WHERE id = ?", (run.id,)).fetchone()
    return run_from_row(found)


def finish_follow_up(tx: Transaction, follow_up_id: str, run_id: str, result: str | None, now: int) -> bool:
    """The run that claimed it is through with it."""
    changed = tx.execute(
        "UPDATE follow_up SET state = 'done', ended_at = ?, result = ? WHERE id = ? AND run_id = ? AND state = 'claimed'",
        (now, None if result is None else first_bytes(result), follow_up_id, run_id),
    )
    return changed.rowcount == 1


def continue_follow_up(tx: Transaction, follow_up: FollowUp, run_id: str, why: str, now: int) -> FollowUp | None:
    """The run that claimed it leaves it unfinished: this one is done, and a new one goes on.

    None, and no effect, when the run has not claimed it any more.
    """
    if not finish_follow_up(tx, follow_up.id, run_id, None, now):
        return None
    tx.execute("UPDATE follow_up SET why = ? WHERE id = ?", (why, follow_up.id))
    root = read_thread_root(tx, follow_up)
    new = NewFollowUp(
        conversation=follow_up.conversation,
        room_id=follow_up.room_id,
        asked_in=follow_up.asked_in,
        asked_by=follow_up.asked_by,
        brief=follow_up.brief,
        workspace=follow_up.workspace,
        campaign=follow_up.campaign,
        continues=follow_up.id,
        thread_said=follow_up.thread_said,
        thread_root=root,
    )
    return admit_follow_up(tx, new, now)


def reopen_follow_up(tx: Transaction, run_id: str) -> FollowUp | None:
    """The run that claimed it came to nothing: it is open again. None when that run has none."""
    row = tx.execute("SELECT * FROM follow_up WHERE run_id = ? AND state = 'claimed'", (run_id,)).fetchone()
    if row is None:
        return None
    tx.execute("UPDATE follow_up SET state = 'open' WHERE id = ?", (row["id"],))
    return read_follow_up(tx, row["id"])


def drop_follow_up(tx: Transaction, follow_up_id: str, why: str, now: int) -> bool:
    """Nothing comes of it. False when it has ended already, or a run works on it."""
    changed = tx.execute(
        "UPDATE follow_up SET state = 'dropped', ended_at = ?, why = ? WHERE id = ? AND state IN ('proposed', 'open')",
        (now, why, follow_up_id),
    )
    return changed.rowcount == 1


def read_thread_root(tx: Transaction, follow_up: FollowUp) -> str | None:
    """The event id of its thread's root, from the receipt; kept on it, because a said row may go before its work does."""
    if follow_up.thread_root is not None or follow_up.thread_said is None:
        return follow_up.thread_root
    row = tx.execute("SELECT event_id FROM said WHERE id = ?", (follow_up.thread_said,)).fetchone()
    if row is None or row["event_id"] is None:
        return None
    tx.execute("UPDATE follow_up SET thread_root = ? WHERE id = ?", (row["event_id"], follow_up.id))
    return str(row["event_id"])


def follow_up_from_row(row: Any) -> FollowUp:
    columns: dict[str, Any] = {name: row[name] for name in FollowUp.__slots__}
    return FollowUp(**(columns | {"state": FollowUpState(row["state"])}))


def first_bytes(text: str) -> str:
    """What stays on record of a result."""
    return text.encode("utf-8", "replace")[:RESULT_BYTES].decode("utf-8", "ignore")
