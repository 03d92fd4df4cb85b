"""Loop: tell every organ that brakes or dials were written, and wait until each one that runs has acted on them.

1. Every file is written before anybody is poked or waited for: a hundred Minds are held as soon as their files are there, since
   every organ reads them before every consequence.
2. All are poked, then all are waited for together, for one bounded time. Who has acted says so by an acknowledgement in the mind
   that names what the files come to now. The lease keeps none: it reads the brake anew at every call.
3. The halves of a Mind are poked where they run: a poke is what starts them, and nobody is to be started to read a brake.
4. One Mind's fault is told by her name, and holds up no other.
"""

import contextlib
from collections.abc import Callable, Sequence

import trio

from mind_body.cli.render import list_words
from mind_body.control.files import read_control
from mind_body.errors import MindBodyError, StorageError
from mind_body.home import Home
from mind_body.host.liveness import read_holder
from mind_body.host.poke import send_poke
from mind_body.mind.acks import is_acked
from mind_body.mind.store import Mind, open_mind

ASK_AGAIN_S = 0.05
"""Between two looks at the acknowledgements; an organ that was poked takes a few milliseconds."""
WRITERS = 16
"""Files written at once: the disk makes many durable together in the time of one."""
DAEMONS = ("mouth", "heartbeat", "lease")
ACKNOWLEDGING = ("mouth", "heartbeat")
HALVES = ("persona", "self")

Faults = dict[str, MindBodyError]
"""By Mind's name; who is not in it is as she was meant to be."""


async def carry_out(
    home: Home, names: Sequence[str], write: Callable[[str], None], wait_s: float, done: Callable[[str], None]
) -> Faults:
    """Write for every Mind, poke, and wait. `done` is told of each Mind as soon as all of hers have acted."""
    faults = await _write_all(names, write)
    written = [name for name in names if name not in faults]
    poke_all(home, written)
    with contextlib.ExitStack() as stack:
        waits = [_Wait(home, name, stack) for name in written]
        return faults | await _wait_for(waits, wait_s, done)


def poke_all(home: Home, names: Sequence[str]) -> None:
    """Every daemon, and every half of these Minds that runs."""
    for organ in DAEMONS:
        send_poke(home.socket_of(organ))  # refused where nobody runs, which is what the locks are for
    for name in names:
        for half in HALVES:
            if read_holder(home.lock_file(half, name)) is not None:
                send_poke(home.socket_of(half, name))


async def _write_all(names: Sequence[str], write: Callable[[str], None]) -> Faults:
    faults: Faults = {}
    writers = trio.CapacityLimiter(WRITERS)

    async def write_one(name: str) -> None:
        try:
            await trio.to_thread.run_sync(write, name, limiter=writers)
        except MindBodyError as error:
            faults[name] = error
        except OSError as error:
            faults[name] = StorageError(f"{name}'s files could not be written: {error.strerror}")

    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(write_one, name)
    return faults


async def _wait_for(waits: Sequence["_Wait"], wait_s: float, done: Callable[[str], None]) -> Faults:
    """What has not happened, or cannot be seen, when the time is over."""
    faults: Faults = {}
    late = {wait.name: wait for wait in waits}
    with trio.move_on_after(wait_s):
        while late:
            for name, wait in tuple(late.items()):
                try:
                    if not wait.look():
                        done(late.pop(name).name)
                except MindBodyError as error:
                    faults[late.pop(name).name] = error
            await trio.sleep(ASK_AGAIN_S if late else 0)
    return faults | {name: _too_late(wait, wait_s) for name, wait in late.items()}


class _Wait:
    """For one Mind. Her file is opened when there is somebody to wait for, and stays open until all have acted."""

    def __init__(self, home: Home, name: str, stack: contextlib.ExitStack) -> None:
        self._home = home
        self._stack = stack
        self._mind: Mind | None = None
        self.name = name
        self.late: list[str] = []

    def look(self) -> list[str]:
        """The organs that run and have not acknowledged what the files come to now. Who has ended meanwhile has acted, too."""
        self.late = [organ for organ in ACKNOWLEDGING if read_holder(self._home.lock_file(organ)) is not None]
        self.late += [half for half in HALVES if read_holder(self._home.lock_file(half, self.name)) is not None]
        if self.late:
            control = read_control(self._home, self.name)
            with self._opened().read() as tx:
                self.late = [organ for organ in self.late if not is_acked(tx, organ, control)]
        return self.late

    def _opened(self) -> Mind:
        if self._mind is None:
            self._mind = open_mind(self._home.mind_db(self.name))
            self._stack.callback(self._mind.close)
        return self._mind


def _too_late(wait: _Wait, wait_s: float) -> MindBodyError:
    late = list_words([f"the {organ}" for organ in wait.late])
    return MindBodyError(
        f"{wait.name}'s files are written and hold, but {late} did not tell within {wait_s:g} s that they were "
        "read; `mind status` shows what runs, and the journal what it does"
    )
