"""Loop: filling the gaps of one room from /messages (design §3), lowest first.

1. The rows of a page and the cursor of the next one are one transaction; the last page also lets go what waited behind the gap.
2. It holds up only its own room. A wait is kept in the mind, so that a restart does not begin it anew.
3. A homeserver that refuses ends the gap: what she may not see she has missed, and the room goes on.
"""

from mind_body.clock import now_ms
from mind_body.crash import crash_point
from mind_body.errors import MatrixLimited, MatrixRefused, MatrixUnauthorised, MatrixUnreachable
from mind_body.matrix.wire import MessagesPage
from mind_body.mind.hearing import delay_gap, read_gap
from mind_body.mind.records import Gap
from mind_body.mouth.gap import Caps
from mind_body.mouth.rouse import rouse
from mind_body.mouth.seat import Seat
from mind_body.mouth.take_in import TakeIn, Taken
from mind_body.mouth.tell import tell_taken
from mind_body.mouth.waits import MOST_S

DAY_MS = 86_400_000


async def fill_gaps(seat: Seat, room_id: str) -> None:
    """Until this room has no gap."""
    while True:
        with seat.mind.read() as tx:
            gap = read_gap(tx, room_id)
        if gap is None:
            return
        await seat.wait_until(min(gap.not_before, now_ms() + int(MOST_S * 1000)))
        account = await seat.account()
        try:
            page = await account.messages_before(room_id, gap.cursor, until=gap.until)
        except MatrixUnauthorised:
            seat.refuse(account)
        except (MatrixLimited, MatrixUnreachable) as error:
            await _delay(seat, gap, error)
        except MatrixRefused as error:
            seat.journal.note("ear.gap-refused", f"The gap in {room_id} stays: {error}.", level="warning", ROOM=room_id)
            _end(seat, gap)
        else:
            _take(seat, gap, page)


def _take(seat: Seat, gap: Gap, page: MessagesPage) -> None:
    now = now_ms()
    caps = Caps(seat.host.gap_max_events, now - int(seat.host.gap_max_days * DAY_MS))
    with seat.mind.write() as tx:
        plan, taken = TakeIn(tx, seat.user_id, seat.config, now).page(gap, page, caps)
    crash_point("ear.gap-page")
    seat.journal.note(
        "ear.gap-page",
        f"A page of the gap in {gap.room_id}: {len(plan.kept)} taken in, {plan.missed} beyond the cap.",
        ROOM=gap.room_id,
        DONE=plan.done,
    )
    _after(seat, taken)


def _end(seat: Seat, gap: Gap) -> None:
    with seat.mind.write() as tx:
        taken = TakeIn(tx, seat.user_id, seat.config, now_ms()).gap(gap, cut_off=True)
    _after(seat, taken)


def _after(seat: Seat, taken: Taken | None) -> None:
    seat.progress()
    if taken is None:
        return
    tell_taken(seat, taken)
    rouse(seat, taken)


async def _delay(seat: Seat, gap: Gap, error: MatrixLimited | MatrixUnreachable) -> None:
    asked_ms = error.retry_after_ms if isinstance(error, MatrixLimited) else 0
    wait_ms = max(asked_ms, int(seat.wait_s(gap.tries) * 1000))
    seat.journal.note(
        "ear.gap-waits", f"The gap in {gap.room_id} waits {wait_ms / 1000:.1f} s: {error}.", level="warning", ROOM=gap.room_id
    )
    with seat.mind.write() as tx:
        delay_gap(tx, gap, now_ms() + wait_ms)
