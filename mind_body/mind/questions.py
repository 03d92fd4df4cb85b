"""Door: what the operators are asked (design §9): asked → answered.

1. A question is asked once: its id is made from its cause. It is answered once: the first answer counts.
2. The order of questions is row order. What the breaker asked about is counted from the newest run that it had when it was
   answered, so that is read in the transaction of the answer.
3. A question waits on record while there is no room in which it could be asked.
4. A purse that is reopened ends the pauses that its being empty began, in the transaction of the answer: no clock has a say in it.
   One about a day or a month that is over is no question any more.
"""

from typing import Any

from mind_body.mind.asking_records import Answer, Question
from mind_body.mind.runs import clear_pause
from mind_body.mind.store import Transaction
from mind_body.mind.wake_facts import Window
from mind_body.mind.work_items import newest_run_about
from mind_body.mind.work_records import SELF_PAUSE

SPEND_PAUSES = ("spend", f"{SELF_PAUSE}spend")


def admit_question(tx: Transaction, question: Question) -> bool:
    """Whether it is new."""
    done = tx.execute(
        "INSERT INTO question (id, kind, about, text, asked_at, room_id, said_id) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO NOTHING",
        (
            question.id,
            question.kind,
            question.about,
            question.text,
            question.asked_at,
            question.room_id,
            question.said_id,
        ),
    )
    return done.rowcount == 1


def read_question(tx: Transaction, question_id: str) -> Question | None:
    row = tx.execute("SELECT * FROM question WHERE id = ?", (question_id,)).fetchone()
    return _question(row) if row else None


def read_open_questions(tx: Transaction) -> list[Question]:
    """Those that nobody has answered, the oldest first."""
    return [_question(row) for row in tx.execute("SELECT * FROM question WHERE state = 'asked' ORDER BY rowid")]


def read_questions(tx: Transaction) -> list[Question]:
    """All, the newest first."""
    return [_question(row) for row in tx.execute("SELECT * FROM question ORDER BY rowid DESC")]


def mark_asked(tx: Transaction, question_id: str, room_id: str, said_id: str) -> None:
    """It is being asked in this room, by this said row."""
    tx.execute("UPDATE question SET room_id = ?, said_id = ? WHERE id = ? AND state = 'asked'", (room_id, said_id, question_id))


def answer_question(  # noqa: PLR0917 - a record's columns, in their order
    tx: Transaction, question_id: str, answer: Answer, by: str, now: int, after_run: str | None = None
) -> bool:
    """False, and no effect, where it is answered already or there is none. `after_run` is read where it is not given."""
    question = read_question(tx, question_id)
    if question is None or question.answer is not None:
        return False
    changed = tx.execute(
        "UPDATE question SET state = 'answered', answer = ?, answered_by = ?, answered_at = ?, after_run = ? "
        "WHERE id = ? AND state = 'asked'",
        (answer, by, now, after_run or newest_run_about(tx, question.about), question_id),
    )
    if question.kind == "purse" and answer == "reopen":
        for cause in SPEND_PAUSES:
            clear_pause(tx, cause)
    return changed.rowcount == 1


def read_newest_about(tx: Transaction, about: str, *, answered: bool = False) -> Question | None:
    """The newest question about something; `answered`: among those that were."""
    row = tx.execute(
        "SELECT * FROM question WHERE about = ? AND (state = 'answered' OR NOT ?) ORDER BY rowid DESC LIMIT 1", (about, answered)
    ).fetchone()
    return _question(row) if row else None


def read_newest_reopened(tx: Transaction, about: str) -> Question | None:
    """The newest that was answered with "reopen"."""
    row = tx.execute(
        "SELECT * FROM question WHERE about = ? AND answer = 'reopen' ORDER BY rowid DESC LIMIT 1", (about,)
    ).fetchone()
    return _question(row) if row else None


def has_open_question(tx: Transaction, about: str) -> bool:
    return tx.execute("SELECT 1 FROM question WHERE about = ? AND state = 'asked'", (about,)).fetchone() is not None


def read_over(tx: Transaction, window: Window) -> list[Question]:
    """Open ones about a day or a month that is over: there is nothing left to decide."""
    rows = tx.execute(
        "SELECT * FROM question WHERE state = 'asked' AND kind = 'purse' AND ((about LIKE 'day:%' AND about < ?) "
        "OR (about LIKE 'month:%' AND about < ?)) ORDER BY rowid",
        (f"day:{window.day}", f"month:{window.month}"),
    )
    return [_question(row) for row in rows]


def read_question_events(tx: Transaction) -> dict[str, str]:
    """Event id → id of the open question that it asks, where it was sent."""
    rows = tx.execute(
        "SELECT question.id, said.event_id FROM question JOIN said ON said.id = question.said_id "
        "WHERE question.state = 'asked' AND said.event_id IS NOT NULL ORDER BY question.rowid"
    )
    return {row["event_id"]: row["id"] for row in rows}


def read_extensions(tx: Transaction, about: str) -> int:
    """How often an operator has allowed the purse of this window once more."""
    row = tx.execute("SELECT count(*) FROM question WHERE about = ? AND kind = 'purse' AND answer = 'reopen'", (about,)).fetchone()
    return int(row[0])


def _question(row: Any) -> Question:
    return Question(**{name: row[name] for name in Question.__slots__})
