"""Loop: the heartbeat's rounds over all Minds of a host.

1. A round asks every Mind whether its file changed (`data_version`) and whether its configuration, brake, dial or a key did (six
   stats, seven with a Self): some 25 µs each. Only then is a mind read.
2. A Mind with a live run is looked at in every round. One that could not be read is tried again when one of its files changes, and
   in every thorough round, which comes each `look_s`.
3. After that comes the host's beat, where one is due: of those who may speak unprompted one is picked, and looked at again. When
   the last beat was is in their minds, so that restarts change nothing, and a machine that slept catches up with one beat.
4. One Mind's fault is told once and stops no other Mind.
5. The host's configuration is read anew when it changes, as the lease does: a cap and a time zone are the same for both.
"""

import contextlib
import os
from collections.abc import Callable, Iterator

import trio

from mind_body.clock import now_ms
from mind_body.config import list_minds, read_host_config, read_mind_config
from mind_body.crash import crash_point
from mind_body.errors import MindBodyError
from mind_body.heartbeat.house import keys_of, words_of
from mind_body.heartbeat.launch import Launcher
from mind_body.heartbeat.pick import pick
from mind_body.heartbeat.tempo import next_beat, tempo
from mind_body.heartbeat.work import Worker
from mind_body.home import Home
from mind_body.host.post import Post
from mind_body.log import Journal
from mind_body.mind.records import RunKind
from mind_body.mind.store import Mind, open_mind
from mind_body.settings import HostConfig, MindConfig

SPACING_MAX_S = 0.1
"""Between two rounds at most; it grows with what a round takes, so that a storm of pokes costs at most a third of a core."""
STATEMENTS = 28
"""Prepared ones kept for each Mind: what a look and the deed after it use, so that the second time they are there."""
SOON_MS = 60_000
"""Who is due later than this gives its memory back until then."""

Mark = tuple[int, int, int] | None


class Watched:
    """One Mind: its open file, and what tells that something about it changed."""

    __slots__ = (
        "config",
        "control_mark",
        "control_paths",
        "fault",
        "home",
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
        self.mind = open_mind(self.home.mind_db(self.name), statements=STATEMENTS)
        self.control_paths = self._control_paths()
        self.control_mark = tuple(map(_mark, self.control_paths))
        self.launcher.read_history(self.mind)

    def look(self, now: int) -> None:
        """Her work first: what becomes of it may be what wakes her Persona."""
        assert self.mind is not None
        assert self.config is not None
        self.worker.look(self.mind, self.config, now)
        self.launcher.look(self.mind, self.config, now)
        # Other paths than before count as changed: what was written since this look is seen in the next round.
        self.control_paths = self._control_paths()
        if not self.live and (self.due is None or self.due - now > SOON_MS):
            self.mind.shrink()

    def look_for_beat(self, now: int) -> None:
        """She was picked. What made her a contender may be over: then she is not woken, and another is picked."""
        assert self.mind is not None
        assert self.config is not None
        self.launcher.look(self.mind, self.config, now, may_beat=True)

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

    def _control_paths(self) -> tuple[str, ...]:
        """Her words, too, while she pauses: writing them may be what mends it."""
        control, config = self.home.control_dir(self.name), self.config
        kind = RunKind.SELF_RUN if config is not None and config.self.enabled else RunKind.PERSONA_TURN
        words = words_of(self.home, self.name, config) if config is not None and self.launcher.paused else ()
        paths = (control, control / "brake.toml", control / "dial.toml", *keys_of(self.home, self.name, kind), *words)
        return tuple(map(str, paths))


class Heartbeat:
    """All Minds of a host."""

    def __init__(self, home: Home, host: HostConfig, journal: Journal, progress: Callable[[], None] = lambda: None) -> None:
        self._home = home
        self._host = host
        self._journal = journal
        self._progress = progress
        """Called for every Mind that was looked after: a long round is no hang."""
        self._watched: dict[str, Watched] = {}
        self._listed: Mark = None
        self._host_mark = _mark(str(home.config_file))
        self._latest = 0
        """The instant of the last round; an earlier one after it means that the clock was set back."""

    async def look_round(self, now: int, *, thorough: bool) -> int | None:
        """Look where there is something to see; the next instant at which something is due, or None."""
        crash_point("heartbeat.look")
        self._reread_host()
        self._list_minds(thorough=thorough)
        stepped_back, self._latest = now < self._latest, now
        for watched in list(self._watched.values()):
            with self._contained(watched):
                if self._has_news(watched, now, thorough=thorough, stepped_back=stepped_back):
                    watched.look(now)
                    self._recovered(watched)
                    self._progress()
                    await trio.lowlevel.checkpoint()
        due = [self._beat(now), *(w.due for w in self._watched.values())]
        return min((one for one in due if one is not None), default=None)

    def render_status(self) -> str:
        live = sum(w.live for w in self._watched.values())
        faulty = sum(w.fault is not None for w in self._watched.values())
        minds = "1 Mind" if len(self._watched) == 1 else f"{len(self._watched)} Minds"
        return f"{minds}, {live} awake" + (f", {faulty} with a fault" if faulty else "")

    def close(self) -> None:
        for watched in self._watched.values():
            watched.close()

    def _beat(self, now: int) -> int | None:
        """The host's beat, if one is due; when the next one is, where somebody would speak on it."""
        contending = {w.name: w for w in self._watched.values() if w.launcher.contender is not None}
        if not contending:
            return None
        beat_s = tempo(w.launcher.vote for w in self._watched.values())
        while contending:
            at = next_beat((w.launcher.last_beat for w in self._watched.values()), beat_s, now)
            if at > now:
                return at
            found = pick([w.launcher.contender for w in contending.values() if w.launcher.contender], beat_s * 1000, now)
            assert found is not None
            watched = contending.pop(found.name)
            with self._contained(watched):
                watched.look_for_beat(now)
        return None

    def _reread_host(self) -> None:
        """Every Mind is looked at anew: whatever held her up may be over."""
        mark = _mark(str(self._home.config_file))
        if mark == self._host_mark:
            return
        self._host_mark = mark
        try:
            self._host = read_host_config(self._home)
        except MindBodyError as error:
            self._journal.note("host.fault", f"The host's configuration is as it was before: {error}.", level="error")
            return
        self.close()
        self._watched, self._listed = {}, None
        self._journal.note("host.changed", "The host's configuration was changed, and counts from now on.")

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

    def _has_news(self, watched: Watched, now: int, *, thorough: bool, stepped_back: bool) -> bool:
        """Whether to look; opens what is not open. In a faulty Mind there is news when one of its files changed.

        What was due by a clock that was set back since is asked for anew.
        """
        changed = watched.take_marks()
        if watched.config is None or watched.mind is None:
            if not (changed or thorough):
                return False
            watched.open()
        assert watched.mind is not None
        wrote = watched.mind.changed()
        due = watched.due
        return changed or wrote or watched.live or (due is not None and (due <= now or stepped_back))

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


def look_interval_s(post: Post) -> float:
    """How often it looks though nothing happens: as often as the operator says, and as the manager wants to hear of it."""
    return min(post.host.look_s, (post.notify.watchdog_s or 120.0) / 2)


async def keep_looking(heartbeat: Heartbeat, post: Post, ready: trio.Event, progress: Callable[[], None]) -> None:
    """Rounds, for ever: at a poke, when something is due, and at least every `look_s`. `ready` once the first is over."""
    look_s = look_interval_s(post)
    next_thorough, status = trio.current_time(), ""
    while True:
        began = trio.current_time()
        thorough = began >= next_thorough
        if thorough:
            next_thorough = began + look_s
        due = await heartbeat.look_round(now_ms(), thorough=thorough)
        progress()
        post.notify.progress()
        if heartbeat.render_status() != status:
            status = heartbeat.render_status()
            post.notify.status(status)
        ready.set()
        await trio.sleep(min(2 * (trio.current_time() - began), SPACING_MAX_S))
        until_due = look_s if due is None else (due - now_ms()) / 1000
        await post.pokes.wait(min(next_thorough - trio.current_time(), until_due))


def _mark(path: str) -> Mark:
    """Changes whenever the file (or the one that a link leads to) is replaced or written, or its mode or owner changed."""
    try:
        found = os.stat(path)  # noqa: PTH116 - text, see `Watched`
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
