"""Loop: one Mind in the heartbeat's rounds: her files, her open mind, her Persona's wakes and her work.

1. What tells that something changed is kept from round to round: stats of her files, and what her mind says of commits.
2. A mind whose database or configuration is another file is closed; what was read from it is forgotten.
3. Who has nothing to do gives her page cache back, and rests when nobody has written for a while.
"""

import os

from mind_body.config import read_mind_config
from mind_body.heartbeat.house import keys_of, words_of
from mind_body.heartbeat.launch import Launcher
from mind_body.heartbeat.work import Worker
from mind_body.home import Home
from mind_body.log import Journal
from mind_body.mind.records import RunKind
from mind_body.mind.store import REST_LOOKS, Mind, open_mind
from mind_body.settings import HostConfig, MindConfig

SOON_MS = 60_000
"""Who is due later than this may rest until then."""

Mark = tuple[int, int, int] | None


class Watched:
    """One Mind: its open file, and what tells that something about it changed."""

    __slots__ = (
        "config",
        "control_mark",
        "control_paths",
        "fault",
        "home",
        "idle_s",
        "launcher",
        "mind",
        "name",
        "settled_mark",
        "settled_paths",
        "worker",
    )

    def __init__(self, name: str, home: Home, host: HostConfig, journal: Journal) -> None:
        self.name = name
        self.home = home
        self.idle_s = REST_LOOKS * host.look_s
        self.launcher = Launcher(name, home, host, journal)
        self.worker = Worker(name, home, host, journal)
        # As text: making a thousand paths in every round costs more than asking about them.
        self.settled_paths = (str(home.mind_db(name)), str(home.mind_file(name)))
        self.config: MindConfig | None = None
        self.mind: Mind | None = None
        self.control_paths = self._control_paths()
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

    def open(self) -> None:
        """Read her configuration and open her mind. Raises MindBodyError."""
        self.config = read_mind_config(self.home, self.name)
        self.mind = open_mind(self.home.mind_db(self.name))
        self.control_paths = self._control_paths()
        self.control_mark = tuple(map(mark_file, self.control_paths))
        self.launcher.read_history(self.mind)

    def look(self, now: int) -> None:
        """Her work first: what becomes of it may be what wakes her Persona."""
        assert self.mind is not None
        assert self.config is not None
        self.worker.look(self.mind, self.config, now)
        self.launcher.look(self.mind, self.config, now)
        # Other paths than before count as changed: what was written since this look is seen in the next round.
        self.control_paths = self._control_paths()

    @property
    def resting(self) -> bool:
        return self.mind is None or self.mind.resting

    def rest(self, now: int) -> bool:
        """Whether she rests: nothing is due soon, and nobody has written. Raises MindFileError."""
        idle = not self.live and (self.due is None or self.due - now > SOON_MS)
        return idle and self.mind is not None and self.mind.rest(self.idle_s)

    def look_for_beat(self, now: int) -> None:
        """She was picked. What made her a contender may be over: then she is not woken, and another is picked."""
        assert self.mind is not None
        assert self.config is not None
        self.launcher.look(self.mind, self.config, now, may_beat=True)

    def take_marks(self) -> bool:
        """Whether one of her files is not what it was; what was read from it is forgotten. A commit is no such change."""
        database, config = mark_file(self.settled_paths[0]), mark_file(self.settled_paths[1])
        settled = (database[0] if database else None, config)
        control = tuple(map(mark_file, self.control_paths))
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

    def _control_paths(self) -> tuple[str, ...]:
        """Her words, too, while she pauses: writing them may be what mends it."""
        control, config = self.home.control_dir(self.name), self.config
        kind = RunKind.SELF_RUN if config is not None and config.self.enabled else RunKind.PERSONA_TURN
        words = words_of(self.home, self.name, config) if config is not None and self.launcher.paused else ()
        paths = (control, control / "brake.toml", control / "dial.toml", *keys_of(self.home, self.name, kind), *words)
        return tuple(map(str, paths))


def mark_file(path: str) -> Mark:
    """Changes whenever the file (or the one that a link leads to) is replaced or written, or its mode or owner changed."""
    try:
        found = os.stat(path)  # noqa: PTH116 - text, see `Watched`
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
