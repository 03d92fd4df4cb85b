"""Door: where the loop budget holds a Mind off (`mind status`, `mind why`). Reads only, for one Mind at a time."""

from mind_body.mind.places import read_place
from mind_body.mind.store import Transaction
from mind_body.mind.wake_facts import Place


def read_busy_places(tx: Transaction, least: int) -> list[Place]:
    """Rooms that she has joined, and their threads, in which she has had at least so many turns since a person spoke.

    A room of which that is true as a whole stands for its threads.
    """
    found: list[Place] = []
    rows = tx.execute("SELECT room_id FROM room WHERE membership = 'joined' ORDER BY number")
    for room_id in [row["room_id"] for row in rows]:
        outside = read_place(tx, room_id, "")
        if max(outside.turns_here, outside.turns_room) >= least:
            found.append(outside)
        else:
            threads = (read_place(tx, room_id, thread) for thread in _threads(tx, room_id, least))
            found += [place for place in threads if place.turns_here >= least]
    return found


def _threads(tx: Transaction, room_id: str, least: int) -> list[str]:
    rows = tx.execute(
        "SELECT thread FROM turn_place WHERE room_id = ? AND thread <> '' GROUP BY thread HAVING count(*) >= ? ORDER BY thread",
        (room_id, least),
    )
    return [row["thread"] for row in rows]
