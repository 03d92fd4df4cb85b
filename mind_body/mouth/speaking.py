"""Wiring: one Mind's voice and presence on her seat; begun anew whenever she has signed in again."""

from collections.abc import Awaitable, Callable

import trio

from mind_body.errors import MatrixUnauthorised, MindBodyError
from mind_body.matrix.client import Account
from mind_body.mouth.presence import Presence
from mind_body.mouth.seat import Seat
from mind_body.mouth.voice import Voice


async def run_voice(seat: Seat) -> None:
    """Until cancelled. Raises StorageError or MindFileError from the mind."""
    while True:
        account = await seat.account()
        fault = await _speak(seat, account)
        if not isinstance(fault, MatrixUnauthorised):
            raise fault
        seat.refuse(account)


async def _speak(seat: Seat, account: Account) -> MindBodyError:
    """Speak until something ends it, and say what."""
    assert seat.identity is not None
    look_s = seat.host.look_s

    place = (seat.home, seat.name, seat.mind, seat.identity, seat.journal)
    voice, presence = Voice(*place, account, look_s), Presence(*place, account, look_s)
    seat.speaking = lambda: voice.speaking
    faults: list[MindBodyError] = []

    async def until_fault(part: Callable[[], Awaitable[None]]) -> None:
        try:
            await part()
        except MindBodyError as error:
            faults.append(error)
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(until_fault, voice.run)
        nursery.start_soon(until_fault, presence.run)
        while True:
            await seat.voice.wait(look_s)
            voice.look()
            presence.look()
    return faults[0]
