"""Wiring: one Mind's voice and presence on her seat; begun anew whenever she has signed in again."""

import math
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

    place = (seat.home, seat.name, seat.mind)
    voice = Voice(*place, identity=seat.identity, journal=seat.journal, account=account, look_s=look_s)
    presence = Presence(*place, identity=seat.identity, journal=seat.journal, account=account, look_s=look_s)
    seat.speaking = lambda: voice.speaking
    seat.settled = lambda: voice.settled and presence.settled
    faults: list[MindBodyError] = []

    async def until_fault(part: Callable[[], Awaitable[None]]) -> None:
        try:
            await part()
        except MindBodyError as error:
            faults.append(error)
            nursery.cancel_scope.cancel()

    async def pass_on_looks() -> None:
        while True:
            await seat.voice.wait(math.inf)  # each looks by itself, too
            voice.look()
            presence.look()

    async with trio.open_nursery() as nursery:
        for part in (voice.run, presence.run, pass_on_looks):
            nursery.start_soon(until_fault, part)
    return faults[0]
