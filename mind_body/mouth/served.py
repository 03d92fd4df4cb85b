"""Loop: one Mind in the mouth: her ear, her voice and her presence, started, kept apart from the other Minds, started again.

1. Her fault is hers alone: whatever ends here is told once, waited out, and begun again; no other Mind notices.
2. The brake and dial are acknowledged when what was on its way has arrived: then she is really held.
3. Her loops look by themselves, too, but not while her mind rests: then nothing was written since they last looked, and `look` sees
   what is.
"""

import traceback
from collections.abc import Callable

import trio

from mind_body.clock import now_ms
from mind_body.config import read_mind_config
from mind_body.control.effective import Control, Held
from mind_body.control.files import read_control
from mind_body.errors import MindBodyError
from mind_body.home import Home
from mind_body.log import Journal
from mind_body.matrix.client import MatrixClient
from mind_body.mind.acks import admit_ack, is_acked
from mind_body.mind.store import REST_LOOKS, open_mind
from mind_body.mouth.ear import Ear
from mind_body.mouth.seat import Seat
from mind_body.mouth.sign_in import keep_signed_in
from mind_body.mouth.speaking import run_voice
from mind_body.mouth.standing import Standing
from mind_body.mouth.waits import MOST_S, wait_s
from mind_body.settings import HostConfig

SETTLED_S = 60.0
"""Who has been up for so long has not failed in a row."""


class Served:
    """One Mind. `run` until cancelled; `look` at a poke."""

    def __init__(
        self,
        name: str,
        *,
        home: Home,
        host: HostConfig,
        client: MatrixClient,
        poke_heartbeat: Callable[[], None],
        progress: Callable[[], None],
    ) -> None:
        self.name = name
        self.started = trio.Event()
        """Her loops run, or it has been told why they do not."""
        self.scope = trio.CancelScope()
        self._home, self._host, self._client = home, host, client
        self._poke_heartbeat, self._progress = poke_heartbeat, progress
        self._journal = Journal("mouth", name)
        self._seat: Seat | None = None
        self._fault = ""

    @property
    def trouble(self) -> str | None:
        """Why she neither hears nor speaks, in words; None when all is well."""
        return self._seat.trouble if self._seat else self._fault or None

    @property
    def standing(self) -> Standing:
        seat = self._seat
        if self.trouble:
            return Standing.OUT
        if seat is None or not seat.signed_in:
            return Standing.SIGNING_IN
        return Standing.UNANSWERED if seat.deaf else Standing.SYNCING

    async def run(self) -> None:
        with self.scope:
            tries = 0
            while True:
                begun = trio.current_time()
                await self._once()
                self.started.set()
                tries = 0 if trio.current_time() - begun > SETTLED_S else tries
                await trio.sleep(max(wait_s(tries, 0.5), min(1.0, MOST_S)))
                self._progress()
                tries += 1

    def look(self, *, control_moved: bool) -> bool:
        """See what was queued, and what the brake and dial came to. False where that must be looked at again at once."""
        seat = self._seat
        if seat is None:
            return True
        try:
            changed = seat.mind.changed()
            if changed or control_moved:
                seat.voice.ring()
                seat.chores.set()
            return not control_moved or self._acknowledge(seat, read_control(self._home, self.name))
        except MindBodyError as error:
            self._journal.note("mouth.look-failed", f"A look at '{self.name}' failed: {error}.", level="error")
            return True

    def rest(self) -> bool:
        """Give her connection back where nothing happens (see `mind.store`); whether that was done."""
        seat = self._seat
        if seat is None or seat.mind.resting or seat.open_chores or not seat.settled():
            return False
        try:
            return seat.mind.rest(REST_LOOKS * seat.host.look_s)
        except MindBodyError as error:
            self._journal.note("mouth.look-failed", f"A look at '{self.name}' failed: {error}.", level="error")
            return False

    def _acknowledge(self, seat: Seat, control: Control) -> bool:
        if isinstance(control, Held) and seat.speaking():
            return False  # what is on its way was not held back; she is held when it has arrived
        with seat.mind.read() as tx:
            if is_acked(tx, "mouth", control):
                return True
        with seat.mind.write() as tx:
            admit_ack(tx, "mouth", control, now_ms())
        words = f"held ({control.reason})" if isinstance(control, Held) else "released"
        self._journal.note("control.noticed", f"'{self.name}' is {words}.")
        return True

    async def _once(self) -> None:
        """Up, until something of hers fails."""
        begun = trio.current_time()
        try:
            config = read_mind_config(self._home, self.name)
            mind = open_mind(self._home.mind_db(self.name))
            try:
                self._seat = Seat(
                    name=self.name,
                    home=self._home,
                    host=self._host,
                    config=config,
                    mind=mind,
                    client=self._client,
                    journal=self._journal,
                    poke_heartbeat=self._poke_heartbeat,
                    progress=self._progress,
                )
                self._acknowledge(self._seat, read_control(self._home, self.name))
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(keep_signed_in, self._seat)
                    nursery.start_soon(Ear(self._seat).run, self.started.set)
                    nursery.start_soon(run_voice, self._seat)
            finally:
                self._seat = None
                mind.close()
        except Exception as error:  # noqa: BLE001 - rule 1: a fault of our own in one Mind must not stop the others
            if trio.current_time() - begun > SETTLED_S:
                self._fault = ""  # what she has recovered from is told again when it comes again
            self._tell(_sentence(error))

    def _tell(self, sentence: str) -> None:
        if sentence != self._fault:
            self._journal.note("mouth.mind-failed", f"'{self.name}' neither hears nor speaks: {sentence}.", level="error")
        self._fault = sentence


def _sentence(error: Exception) -> str:
    """The first of what came together."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MindBodyError):
        return str(error)
    where = traceback.extract_tb(error.__traceback__)[-1:]
    at = f" at {where[0].name}:{where[0].lineno}" if where else ""
    return f"a fault of the mouth itself ({type(error).__name__}{at})"
