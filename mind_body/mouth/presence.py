"""Loop: one Mind's presence in her rooms: typing while a turn runs, a read receipt when a batch is closed (cases X3).

1. Typing is on in a room while a turn answers its mail and whoever holds the run lives; it is renewed before it ends.
2. It is stopped when the turn is over, however it ended, when she is held, and in a `finally` when this loop ends.
3. One task says all of it, so that "typing" never overtakes "not typing". None of it matters enough to be tried again.
"""

import contextlib
from typing import Protocol

import trio

from mind_body.control.effective import Held
from mind_body.control.files import read_control
from mind_body.errors import MatrixError, MatrixRefused, MatrixUnauthorised
from mind_body.home import Home
from mind_body.host.liveness import read_holder
from mind_body.log import Journal
from mind_body.mind.hearing import mark_receipt, read_receipts_due
from mind_body.mind.records import Identity
from mind_body.mind.store import Mind
from mind_body.mind.turns import read_typing
from mind_body.mouth.nudge import Nudge

TYPING_S = 30.0
"""How long the homeserver shows it by itself, should we die."""
RENEW_S = 20.0
CHECK_S = 5.0
"""While she types: how soon a persona that was killed is noticed."""
FAREWELL_S = 2.0
"""How long the last "not typing" may take when the mouth leaves, which it must within 5 s."""


class Company(Protocol):
    """What presence needs of the homeserver; `matrix.client.Account` is one."""

    async def typing(self, room_id: str, user_id: str, timeout_s: float | None) -> None: ...

    async def read_receipt(self, room_id: str, event_id: str, thread: str | None = None) -> None: ...


class Presence:
    """`run` until cancelled; `look` whenever a turn may have begun or ended."""

    def __init__(
        self,
        home: Home,
        name: str,
        mind: Mind,
        *,
        identity: Identity,
        journal: Journal,
        account: Company,
        look_s: float,
    ) -> None:
        self._home, self._name, self._mind = home, name, mind
        self._account, self._identity, self._journal = account, identity, journal
        self._look_s = look_s
        self._nudge = Nudge()
        self._typing: dict[str, float] = {}
        """Room → when it was last said (trio's clock)."""
        self._receipts_after = 0.0
        self.settled = False
        """Nobody was thinking at the last look, and everything that was read was said to be."""

    def look(self) -> None:
        self._nudge.set()

    async def run(self) -> None:
        """Raises MatrixUnauthorised, and StorageError or MindFileError from the mind."""
        try:
            while True:
                self._nudge.clear()
                self.settled = True
                await self._show_typing(self._rooms_thought_about())
                await self._send_receipts()
                look_s = min(CHECK_S, self._look_s) if self._typing else self._look_s
                await self._nudge.wait(look_s, lambda: self.settled and self._mind.resting)
        finally:
            with trio.move_on_after(FAREWELL_S, shield=True), contextlib.suppress(MatrixError):
                await self._show_typing(set())

    def _held(self) -> bool:
        return isinstance(read_control(self._home, self._name), Held)

    def _rooms_thought_about(self) -> set[str]:
        with self._mind.read() as tx:
            thinking = read_typing(tx)
        self.settled &= not thinking
        if not thinking or self._held():
            return set()
        holder = read_holder(self._home.lock_file("persona", self._name))
        return {room_id for room_id, held_by in thinking if held_by == holder}

    async def _show_typing(self, rooms: set[str]) -> None:
        for room_id in sorted(self._typing.keys() - rooms):
            del self._typing[room_id]
            await self._say_typing(room_id, None)
        for room_id in sorted(rooms):
            said_at = self._typing.get(room_id)
            if said_at is None or trio.current_time() - said_at >= RENEW_S:
                self._typing[room_id] = trio.current_time()
                await self._say_typing(room_id, TYPING_S)

    async def _say_typing(self, room_id: str, timeout_s: float | None) -> None:
        try:
            await self._account.typing(room_id, self._identity.user_id, timeout_s)
        except MatrixUnauthorised:
            raise
        except MatrixError as error:
            self._journal.note("typing.failed", f"Typing in {room_id} was not shown: {error}.", level="debug", ROOM=room_id)

    async def _send_receipts(self) -> None:
        if trio.current_time() < self._receipts_after:
            self.settled = False
            return
        with self._mind.read() as tx:
            due = read_receipts_due(tx)
        self.settled &= not due
        if due and self._held():
            return
        for room_id, seq, event_id, thread in due:
            try:
                await self._account.read_receipt(room_id, event_id, thread)
            except MatrixUnauthorised:
                raise
            except MatrixRefused as error:
                # An event that is gone, or a room that she has left: the next receipt will do.
                self._journal.note(
                    "receipt.refused", f"A read receipt in {room_id} was refused: {error}.", level="debug", ROOM=room_id
                )
            except MatrixError as error:
                self._receipts_after = trio.current_time() + self._look_s
                self._journal.note("receipt.failed", f"A read receipt in {room_id} waits: {error}.", level="debug", ROOM=room_id)
                return
            with self._mind.write() as tx:
                mark_receipt(tx, room_id, seq)
