"""Door: how much she wants to speak, and how often she would be asked (design §9): one a turn at most, and the newest counts."""

from mind_body.mind.asking_records import Pulse
from mind_body.mind.store import Transaction


def admit_pulse(tx: Transaction, pulse: Pulse) -> None:
    """A turn's; again changes nothing."""
    tx.execute(
        "INSERT INTO pulse (turn_id, urgency, tempo_s, at) VALUES (?, ?, ?, ?) ON CONFLICT (turn_id) DO NOTHING",
        (pulse.turn_id, pulse.urgency, pulse.tempo_s, pulse.at),
    )


def read_pulse(tx: Transaction) -> Pulse | None:
    """The newest by row order; None before the first."""
    row = tx.execute("SELECT * FROM pulse WHERE rowid = (SELECT max(rowid) FROM pulse)").fetchone()
    return Pulse(row["turn_id"], row["urgency"], row["tempo_s"], row["at"]) if row else None
