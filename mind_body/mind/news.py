"""Door: what a conversation is to hear of her own runs of work: one that began, one that ended (design §6, §9).

1. The end of a run is told once, by the first answered turn of the conversation that asked, and of no other. A lost or failed turn
   tells nothing.
2. It wakes her only when the work is over: what goes on by itself is told in the turn that comes anyway. All runs of one work share
   the root of its thread.
3. A run that is under way is told once per session, because that is what forgets it.
"""

from typing import Any

from mind_body.mind.follow_ups import read_follow_up_of_run
from mind_body.mind.runs import run_from_row
from mind_body.mind.store import Transaction
from mind_body.mind.work_records import RunNews

_UNTOLD = "run.kind = 'self_run' AND run.ended_at IS NOT NULL AND run.told_turn IS NULL"


def read_awaited(tx: Transaction) -> tuple[str, ...]:
    """Conversations that are to be woken by the end of their work, where she can speak."""
    rows = tx.execute(
        "SELECT DISTINCT follow_up.conversation FROM run INDEXED BY run_untold "
        f"JOIN follow_up ON follow_up.id = run.follow_up_id WHERE {_UNTOLD} "
        "AND NOT EXISTS (SELECT 1 FROM follow_up AS on_it WHERE on_it.thread_said = follow_up.thread_said "
        "AND on_it.state IN ('proposed', 'open', 'claimed')) AND EXISTS (SELECT 1 FROM room "
        "WHERE room.conversation = follow_up.conversation AND room.membership = 'joined') ORDER BY follow_up.conversation"
    )
    return tuple(row["conversation"] for row in rows)


def read_news(tx: Transaction, conversation: str, session_id: str | None) -> list[RunNews]:
    """What the next turn of a conversation tells; `session_id` is None where it begins a session. In the order of the runs."""
    ended = tx.execute(
        "SELECT run.*, (SELECT count(*) FROM turn_run JOIN turn ON turn.id = turn_run.turn_id WHERE turn_run.run_id = run.id "
        "AND turn_run.told = 'ended' AND turn.state = 'lost') AS lost FROM run INDEXED BY run_untold "
        f"JOIN follow_up ON follow_up.id = run.follow_up_id WHERE {_UNTOLD} AND follow_up.conversation = ? ORDER BY run.rowid",
        (conversation,),
    ).fetchall()
    under_way = tx.execute(
        "SELECT run.*, 0 AS lost FROM run JOIN follow_up ON follow_up.id = run.follow_up_id "
        "WHERE run.kind = 'self_run' AND run.ended_at IS NULL AND follow_up.conversation = ? AND NOT EXISTS ("
        "SELECT 1 FROM turn_run JOIN turn ON turn.id = turn_run.turn_id WHERE turn_run.run_id = run.id "
        "AND turn.session_id = ? AND turn.received <> '[]')",
        (conversation, session_id or ""),
    ).fetchall()
    return [_news(tx, row) for row in (*ended, *under_way)]


def forget_news(tx: Transaction, run_id: str) -> None:
    """Its end is told by no turn: each that was to do so was lost."""
    tx.execute("UPDATE run SET told_turn = 'none' WHERE id = ? AND told_turn IS NULL", (run_id,))


def _news(tx: Transaction, row: Any) -> RunNews:
    run, follow_up = run_from_row(row), read_follow_up_of_run(tx, row["id"])
    assert follow_up is not None
    asked = tx.execute("SELECT seq FROM heard WHERE event_id = ?", (follow_up.asked_in,)).fetchone()
    goes_on = tx.execute(
        "SELECT 1 FROM follow_up WHERE thread_said = ? AND state IN ('proposed', 'open', 'claimed')", (follow_up.thread_said,)
    ).fetchone()
    return RunNews(
        run=run,
        follow_up=follow_up,
        told="started" if run.ended_at is None else "ended",
        asked_seq=asked["seq"] if asked else None,
        goes_on=run.ended_at is not None and goes_on is not None,
        lost=row["lost"],
    )
