"""Wiring: `mind organ mouth`, one process for all Minds of the host.

Files of Minds that change are picked up every `look_s`, however many pokes come; Minds that appear in `minds/` or go from it, and
brakes and dials, at a poke, too. A poke makes voices look.
"""

import signal
from pathlib import Path

import trio

from mind_body.config import list_minds
from mind_body.home import Home
from mind_body.host.limits import raise_descriptor_limit
from mind_body.host.memory import return_memory
from mind_body.host.poke import send_poke
from mind_body.host.post import Post, open_post
from mind_body.matrix.client import MatrixClient
from mind_body.mouth.nudge import Nudge
from mind_body.mouth.served import Served
from mind_body.mouth.standing import render_status
from mind_body.settings import HostConfig

SPACING_MAX_S = 0.1
"""Between two rounds at most; it grows with what a round takes, so that a storm of pokes costs at most a third of a core."""
REST_MAX_S = 0.05
"""How long one round may take to let Minds rest: closing a file may wait for the disk."""
AGAIN_S = 0.1
"""How soon a brake that has not quite taken hold is looked at again."""

TELL_S = 1.0
"""Between two signs of life to the manager."""

Mark = tuple[int, int, int] | None


class Mouth:
    """All Minds of a host."""

    def __init__(self, home: Home, post: Post, client: MatrixClient) -> None:
        self._home, self._post, self._client = home, post, client
        self._host = _bounded(post)
        self._served: dict[str, Served] = {}
        self._settled: dict[str, tuple[Mark, ...]] = {}
        self._control: dict[str, tuple[Mark, ...]] = {}
        self._listed: Mark = None
        self._refused_poke: str | None = None
        self._progressed = Nudge()

    async def run(self, nursery: trio.Nursery) -> None:
        """Until cancelled. READY when every Mind's loops have started."""
        next_thorough = trio.current_time() + self._post.look_s
        self._list(nursery)
        for served in list(self._served.values()):
            await served.started.wait()
        self._post.notify.ready(self._say_status())
        nursery.start_soon(self._keep_telling)
        minds = "1 Mind" if len(self._served) == 1 else f"{len(self._served)} Minds"
        self._post.journal.note("mouth.started", f"The mouth hears and speaks for {minds}.")
        while True:
            begun = trio.current_time()
            thorough = begun >= next_thorough
            if thorough or _mark(self._home.minds_dir) != self._listed:
                next_thorough = begun + self._post.look_s
                self._list(nursery)
            settled = self._look()
            if thorough:
                self._rest()
            await trio.sleep(min(2 * (trio.current_time() - begun), SPACING_MAX_S))
            await self._post.pokes.wait(next_thorough - trio.current_time() if settled else AGAIN_S)

    def _list(self, nursery: trio.Nursery) -> None:
        """Begin with who is new, end with who is gone, begin again with whose files are others now."""
        self._listed = _mark(self._home.minds_dir)
        names = set(list_minds(self._home))
        marks = {name: _marks(self._home.mind_file(name)) for name in names}
        for name in [name for name in self._served if marks.get(name) != self._settled[name]]:
            self._served.pop(name).scope.cancel()
            self._control.pop(name, None)
            self._post.journal.note("mouth.mind-changed", f"The file of '{name}' is another one, or gone.", MIND=name)
        for name in sorted(names - self._served.keys()):
            self._settled[name] = marks[name]
            self._served[name] = served = Served(
                name,
                home=self._home,
                host=self._host,
                client=self._client,
                poke_heartbeat=self._poke_heartbeat,
                progress=self._progress,
            )
            nursery.start_soon(served.run)
        if not names:
            self._post.notify.progress()
        self._post.notify.status(self._say_status())

    def _rest(self) -> None:
        """Those for whom nothing happens, as many as there is time for."""
        begun, rested = trio.current_time(), False
        for served in self._served.values():
            if trio.current_time() - begun > REST_MAX_S:
                break
            rested |= served.rest()
        if rested:
            return_memory()

    def _look(self) -> bool:
        """Whether every Mind has come to rest."""
        settled = True
        for name, served in self._served.items():
            control = self._home.control_dir(name)
            marks = _marks(control, control / "brake.toml", control / "dial.toml")
            moved = marks != self._control.get(name)
            if served.look(control_moved=moved):
                self._control[name] = marks
            else:
                settled = False
        return settled

    def _say_status(self) -> str:
        return render_status({name: served.standing for name, served in self._served.items()})

    def _poke_heartbeat(self) -> None:
        refused = send_poke(self._home.heartbeat_socket)
        if refused and refused != self._refused_poke:
            self._post.journal.note("poke.refused", f"The heartbeat could not be poked ({refused}); it looks by itself.")
        self._refused_poke = refused

    def _progress(self) -> None:
        self._progressed.set()

    async def _keep_telling(self) -> None:
        """The manager, of every progress, once a second: a thousand Minds make some at any instant."""
        while True:
            if await self._progressed.wait(self._post.look_s):
                self._progressed.clear()
                self._post.notify.progress()
                self._post.notify.status(self._say_status())
            await trio.sleep(TELL_S)


async def run(home: Home) -> int:
    """Until SIGTERM or SIGINT; 0."""
    raise_descriptor_limit()
    post = open_post("mouth", home)
    try:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with MatrixClient() as client, trio.open_nursery() as nursery:
                nursery.start_soon(Mouth(home, post, client).run, nursery)
                async for _ in signals:
                    break
                post.notify.stopping()
                nursery.cancel_scope.cancel()
    finally:
        post.pokes.close()
        post.hold.release()
    post.journal.note("mouth.stopped", "The mouth ended.")
    return 0


def _bounded(post: Post) -> HostConfig:
    """The manager wants to hear of a /sync in time, also where the homeserver may hold one open for longer."""
    most_s = post.notify.watchdog_s
    if most_s is None or post.host.sync_timeout_s <= most_s / 3:
        return post.host
    return post.host.model_copy(update={"sync_timeout_s": most_s / 3})


def _marks(*paths: Path) -> tuple[Mark, ...]:
    return tuple(map(_mark, paths))


def _mark(path: Path) -> Mark:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns
