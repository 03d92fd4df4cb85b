"""Loop: answering invites, and following a room that goes on as another one.

1. The brake is read before every answer: a Mind that is held joins nothing and declines nothing; the invite waits in the mind.
2. Who may invite is `decline_reason`'s to say. A declined invite is told in the journal and to nobody else.
3. That she is in a room is what /sync says, not what /join answers: everything about it comes with T1.
4. What the homeserver cannot do now (429, 5xx, an account that is locked) is asked for again, with waits that are told; what it
   will not do ends the matter.
"""

from collections.abc import Awaitable, Callable

import trio

from mind_body.control.effective import Held
from mind_body.control.files import read_control
from mind_body.errors import MatrixError, MatrixRefused
from mind_body.matrix.client import Account
from mind_body.mind.records import Membership, Room
from mind_body.mind.rooms import read_room, set_membership
from mind_body.mouth.attempt import asked_s, attempt
from mind_body.mouth.room import decline_reason
from mind_body.mouth.seat import Seat


async def answer_invite(seat: Seat, room_id: str) -> None:
    """Until it is answered, gone, or she is held."""
    tries = 0
    while True:
        with seat.mind.read() as tx:
            room = read_room(tx, room_id)
        control = read_control(seat.home, seat.name)
        if room is None or room.membership is not Membership.INVITED:
            return
        if isinstance(control, Held):
            seat.journal.note(
                "room.invite-waits", f"The invite to {room.handle} waits: {control.reason}.", ROOM=room_id, REASON=control.reason
            )
            return
        account = await seat.account()
        try:
            why = await attempt(seat, account, _answering(seat, account, room))
        except MatrixRefused as error:
            seat.journal.note(
                "room.invite-gone", f"The invite to {room.handle} is worth nothing: {error}.", level="warning", ROOM=room_id
            )
            with seat.mind.write() as tx:
                set_membership(tx, room_id, Membership.LEFT)
            return
        if why is None:
            return
        seat.journal.note("room.invite-waits", f"The invite to {room.handle} waits: {why}.", level="warning", ROOM=room_id)
        await seat.wait_out(tries, asked_s(why))
        tries += 1


async def follow_upgrade(seat: Seat, room: Room) -> None:
    """Until she is in the room that this one goes on as, or may not be: a private room's upgrade usually invites her as well."""
    tries = 0
    while room.upgraded_to:
        with seat.mind.read() as tx:
            if read_room(tx, room.upgraded_to) is not None:
                return
        if isinstance(read_control(seat.home, seat.name), Held):
            await trio.sleep(seat.host.look_s)
            continue
        account = await seat.account()
        try:
            why = await attempt(seat, account, _following(account, room, room.upgraded_to))
        except MatrixRefused as error:
            seat.journal.note("room.upgrade-refused", f"{_could_not_follow(room)}: {error}.", level="warning", ROOM=room.room_id)
            return
        if why is None:
            return
        seat.journal.note("room.upgrade-waits", f"{_could_not_follow(room)} yet: {why}.", level="warning", ROOM=room.room_id)
        await seat.wait_out(tries, asked_s(why))
        tries += 1


def _answering(seat: Seat, account: Account, room: Room) -> Callable[[], Awaitable[None]]:
    return lambda: _answer(seat, account, room)


def _following(account: Account, room: Room, successor: str) -> Callable[[], Awaitable[None]]:
    async def follow() -> None:
        # The old room's server is in the new one, hers perhaps not yet. From room version 12 on ids name no server.
        await account.join(successor, via=room.room_id.partition(":")[2])

    return follow


def _could_not_follow(room: Room) -> str:
    return f"She could not follow {room.handle} to {room.upgraded_to}"


async def _remember_direct(seat: Seat, account: Account, room_id: str, inviter: str) -> None:
    """On the homeserver, where a lost mind finds it again. The mind itself knows it from the invite."""
    try:
        await account.mark_direct(seat.user_id, inviter, room_id)
    except MatrixError as error:
        seat.journal.note("room.direct-not-kept", f"The account's list of DMs could not be written: {error}.", ROOM=room_id)


async def _answer(seat: Seat, account: Account, room: Room) -> None:
    reason = decline_reason(room, seat.config.people)
    if reason is None:
        await account.join(room.room_id)
        seat.journal.note("room.invite-accepted", f"Accepted {room.invited_by}'s invite to {room.handle}.", ROOM=room.room_id)
        if room.direct and room.invited_by:
            await _remember_direct(seat, account, room.room_id, room.invited_by)
        return
    await account.leave(room.room_id)
    with seat.mind.write() as tx:
        set_membership(tx, room.room_id, Membership.DECLINED)
    seat.journal.note(
        "room.invite-declined",
        f"Declined {room.invited_by}'s invite to {room.handle}, because {reason}.",
        ROOM=room.room_id,
        REASON=reason,
    )
