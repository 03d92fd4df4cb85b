"""Loop: the heartbeat's rounds over all Minds of a host.

1. A round asks every Mind whether its file changed (`data_version`) and whether its configuration, brake, dial or model's key did
   (six stats): some 20 µs each. Only then is a mind read.
2. A Mind with a live run is looked at in every round. One that could not be read is tried again when one of its files changes, and
   in every thorough round, which comes each `look_s`.
3. One Mind's fault is told once and stops no other Mind.
"""

import contextlib
import os
from collections.abc import Iterator

import trio

from mind_body.clock import now_ms
from mind_body.config import list_minds, read_mind_config
from mind_body.errors import MindBodyError
from mind_body.heartbeat.launch import Launcher
from mind_body.heartbeat.work import Worker
from mind_body.home import Home
from mind_body.host.post import Post
from mind_body.log import Journal
from mind_body.mind.store import Mind, open_mind
from mind_body.settings import HostConfig, MindConfig

SPACING_MAX_S = 0.1
"""Between two rounds at most; it grows with what a round takes, so that a storm of pokes costs at most a third of a core."""

Mark = tuple[int, int, int] | None


class Watched:
    """One Mind: its open file, and what tells that something about it changed."""

    __slots__ = (
        "config",
        "control_mark",
        "control_paths",
        "fault",
        "launcher",
        "mind",
        "name",
        "settled_mark",
        "settled_paths",
        "worker",
    )

    def __init__(self, name: str, home: Home, host: HostConfig, journal: Journal) -> None:
        self.name = name
        self.launcher = Launcher(name, home, host, journal)
        self.worker = Worker(name, home, host, journal)
        # As text: making a thousand paths in every round costs more than asking about them.
        control = home.control_dir(name)
        self.settled_paths = (str(home.mind_db(name)), str(home.mind_file(name)))
        self.control_paths = (str(control), str(control / "brake.toml"), str(control / "dial.toml"), str(home.model_key(name)))
        self.config: MindConfig | None = None
        self.mind: Mind | None = None
        self.settled_mark: tuple[int | None, Mark] | None = None
        self.control_mark: tuple[Mark, ...] = ()
        self.fault: str | None = None

    @property
    def due(self) -> int | None:
        """The next instant at which to look, though nothing may have changed."""
        return min((one.due for one in (self.launcher, self.worker) if one.due is not None), default=None)

    @property
    def live(self) -> bool:
        """A run of hers is live."""
        return self.launcher.live or self.worker.live

    def look(self, now: int) -> None:
        """Her work first: what becomes of it may be what wakes her Persona."""
        assert self.mind is not None
        assert self.config is not None
        self.worker.look(self.mind, self.config, now)
        self.launcher.look(self.mind, self.config, now)
        if self.due is None and not self.live:
            self.mind.shrink()

    def take_marks(self) -> bool:
        """Whether one of her files is not what it was; what was read from it is forgotten. A commit is no such change."""
        database, config = _mark(self.settled_paths[0]), _mark(self.settled_paths[1])
        settled = (database[0] if database else None, config)
        control = tuple(map(_mark, self.control_paths))
        if settled != self.settled_mark:
            self.close()
        changed = (settled, control) != (self.settled_mark, self.control_mark)
        self.settled_mark, self.control_mark = settled, control
        return changed

    def close(self) -> None:
        if self.mind is not None:
            self.mind.close()
        self.mind, self.config = None, None
        self.launcher.forget()
        self.worker.forget()


class Heartbeat:
    """All Minds of a host."""

    def __init__(self, home: Home, host: HostConfig, journal: Journal) -> None:
        self._home = home
        self._host = host
        self._journal = journal
        self._watched: dict[str, Watched] = {}
        self._listed: Mark = None

    async def look_round(self, now: int, *, thorough: bool) -> int | None:
        """Look where there is something to see; the next instant at which something is due, or None."""
        self._list_minds(thorough=thorough)
        for watched in list(self._watched.values()):
            with self._contained(watched):
                if self._has_news(watched, now, thorough=thorough):
                    watched.look(now)
                    self._recovered(watched)
                    await trio.lowlevel.checkpoint()
        return min((w.due for w in self._watched.values() if w.due is not None), default=None)

    def render_status(self) -> str:
        live = sum(w.live for w in self._watched.values())
        faulty = sum(w.fault is not None for w in self._watched.values())
        return f"{len(self._watched)} Minds, {live} awake" + (f", {faulty} with a fault" if faulty else "")

    def close(self) -> None:
        for watched in self._watched.values():
            watched.close()

    def _list_minds(self, *, thorough: bool) -> None:
        mark = _mark(str(self._home.minds_dir))
        if mark == self._listed and not thorough:
            return
        self._listed = mark
        names = list_minds(self._home)
        for gone in set(self._watched) - set(names):
            self._watched.pop(gone).close()
            self._journal.bind(MIND=gone).note("mind.left", "Her configuration is gone; she is looked after no more.")
        for name in names:
            if name not in self._watched:
                self._watched[name] = Watched(name, self._home, self._host, self._journal)

    def _has_news(self, watched: Watched, now: int, *, thorough: bool) -> bool:
        """Whether to look; opens what is not open. In a faulty Mind there is news when one of its files changed."""
        changed = watched.take_marks()
        if watched.config is None or watched.mind is None:
            if not (changed or thorough):
                return False
            watched.config = read_mind_config(self._home, watched.name)
            watched.mind = open_mind(self._home.mind_db(watched.name))
        wrote = watched.mind.changed()
        due = watched.due
        return changed or wrote or watched.live or (due is not None and due <= now)

    def _recovered(self, watched: Watched) -> None:
        if watched.fault is not None:
            watched.fault = None
            self._journal.bind(MIND=watched.name).note("mind.recovered", "She can be looked after again.")

    @contextlib.contextmanager
    def _contained(self, watched: Watched) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - one Mind's fault, of whatever kind, must not stop the others
            sentence = str(error) if isinstance(error, MindBodyError) else f"{type(error).__name__}: {error}"
            watched.close()
            if watched.fault != sentence:
                watched.fault = sentence
                self._journal.bind(MIND=watched.name).note("mind.fault", f"She is left alone: {sentence}.", level="error")


async def keep_looking(heartbeat: Heartbeat, post: Post, ready: trio.Event) -> None:
    """Rounds, for ever: at a poke, when something is due, and at least every `look_s`. `ready` once the first is over."""
    look_s = min(post.host.look_s, (post.notify.watchdog_s or 120.0) / 2)
    next_thorough, status = trio.current_time(), ""
    while True:
        began = trio.current_time()
        thorough = began >= next_thorough
        if thorough:
            next_thorough = began + look_s
        due = await heartbeat.look_round(now_ms(), thorough=thorough)
        post.notify.progress()
        if heartbeat.render_status() != status:
            status = heartbeat.render_status()
            post.notify.status(status)
        ready.set()
        await trio.sleep(min(2 * (trio.current_time() - began), SPACING_MAX_S))
        until_due = look_s if due is None else (due - now_ms()) / 1000
        await post.pokes.wait(min(next_thorough - trio.current_time(), until_due))


def _mark(path: str) -> Mark:
    """Changes whenever the file is replaced or written, or its mode or owner changed."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
