"""Loop: who has to look now that a transaction of the ear is durable. Each would look by itself, too."""

from mind_body.crash import crash_point
from mind_body.host.poke import send_poke
from mind_body.mouth.seat import Seat
from mind_body.mouth.take_in import Taken


def rouse(seat: Seat, taken: Taken) -> None:
    """The heartbeat for mail, the Self for what was said to it, the voice for what was queued, the ear's own chores."""
    if taken.for_self:
        crash_point("ear.steer")
        refused = send_poke(seat.home.self_socket(seat.name))
        if refused:
            seat.journal.note("poke.refused", f"The Self could not be poked ({refused}); it looks by itself.")
    if taken.for_heartbeat:
        seat.poke_heartbeat()
    if taken.for_voice:
        seat.voice.ring()
    if taken.invites or taken.gaps or taken.upgraded:
        seat.chores.set()
