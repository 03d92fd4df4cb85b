"""Wiring: what every organ stands on, made the same way under systemd, under `mind up`, and by hand.

The lock is taken first, then the poke socket: handed over (LISTEN_FDS) or bound here. Of two that are handed over, LISTEN_FDNAMES
says which is which (`FileDescriptorName=` of the socket units): `poke`, and the lease's `stream`. Crash points are armed and the
journal configured before anything else can happen.

Who cannot serve takes the pokes with it: one that is left unread starts it again at once, for ever. No fact is lost, since whoever
leaves, and however, pokes the heartbeat.
"""

import math
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import trio

from mind_body import crash, log
from mind_body.config import environment, read_host_config
from mind_body.errors import MindBodyError
from mind_body.home import Home
from mind_body.host.activation import listen_fds
from mind_body.host.journal_native import find_journal
from mind_body.host.liveness import Hold, take_hold
from mind_body.host.notify import Notify
from mind_body.host.poke import Pokes, adopt_poke_socket, open_poke_socket, send_poke
from mind_body.host.tether import die_with_parent
from mind_body.ids import new_id
from mind_body.settings import HostConfig

EXTEND_S = 15.0
"""How much longer the manager is asked to wait, again and again while it is worth it; enough for the end that follows, too."""
EXTEND_EVERY_S = 0.5


@dataclass(slots=True)
class Patience:
    """What the end of this process waits for, where a manager grants the time."""

    under_way: Callable[[], bool] = lambda: False
    most_s: float = 0.0
    over: bool = False
    """It was told to stop: what is under way may be finished, and nothing more is begun."""


@dataclass(frozen=True, slots=True)
class Post:
    """One organ's place on this host."""

    home: Home
    host: HostConfig
    journal: log.Journal
    pokes: Pokes
    notify: Notify
    hold: Hold
    """Its holder id is this process's identity as a holder of runs."""
    stream: int | None = None
    """The listening stream socket, where one was handed over. The lease's alone."""
    patience: Patience = field(default_factory=Patience)

    @property
    def look_s(self) -> float:
        """How often to look though nothing happens: as often as the operator says, and as the manager wants to hear of it."""
        return min(self.host.look_s, (self.notify.watchdog_s or math.inf) / 2)


def open_post(organ: str, home: Home, mind: str | None = None) -> Post:
    """Raises MindBodyError when another process is this organ already, ConfigError for a file that cannot be used."""
    handed = listen_fds(environment)
    stream = handed.pop("stream", None)
    poke = handed.get("poke", next(iter(handed.values()), None))
    adopted = None if poke is None else Pokes(adopt_poke_socket(poke))
    try:
        return _take_post(organ, home, mind, adopted, stream)
    except MindBodyError:
        if adopted is not None:
            adopted.drain()
        raise


def _take_post(organ: str, home: Home, mind: str | None, adopted: Pokes | None, stream: int | None) -> Post:
    host = read_host_config(home)
    log.configure(host.log_level, host.log_format, find_journal(environment))
    parent = environment.get("MIND_PARENT", "")
    if parent.isdigit():
        die_with_parent(int(parent))  # `mind up`: its organs end with it, also by kill -9
    crash.arm(environment.get("MIND_CRASH_AT"), environment.get("MIND_CRASH_MARK"))
    hold = take_hold(home.lock_file(organ, mind), new_id())
    if hold is None:
        whose = f"{organ} of '{mind}'" if mind else organ
        raise MindBodyError(f"another process is the {whose} already ({home.lock_file(organ, mind)} is locked)")
    pokes = adopted or Pokes(open_poke_socket(home.socket_of(organ, mind)))
    return Post(home, host, log.Journal(organ, mind), pokes, Notify(environment), hold, stream)


async def keep_half(half: str, home: Home, name: str, serve: Callable[[Post, str], Awaitable[None]]) -> int:
    """Half of a Mind at its post, until there is nothing to do, or SIGTERM; 0. Raises MindBodyError for what an operator must mend.

    Whoever leaves, and however, pokes the heartbeat. Told to stop, what `post.patience` names is finished first.
    """
    post = open_post(half, home, name)
    fault: MindBodyError | None = None
    try:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_at, signals, nursery.cancel_scope, post)
                try:
                    await serve(post, name)
                except MindBodyError as error:
                    fault = error
                    post.pokes.drain()
                nursery.cancel_scope.cancel()
    finally:
        post.notify.stopping()
        post.pokes.close()
        post.hold.release()
        send_poke(home.heartbeat_socket)
    if fault is not None:
        raise fault
    return 0


async def _cancel_at(signals: AsyncIterator[int], scope: trio.CancelScope, post: Post) -> None:
    async for _ in signals:
        post.notify.stopping()
        await _let_finish(post)
        scope.cancel()
        return


async def _let_finish(post: Post) -> None:
    """Nobody but a manager would wait: `mind up` kills after a few seconds, and Ctrl-C is meant at once."""
    post.patience.over = True
    until = trio.current_time() + post.patience.most_s
    while post.notify.listened and post.patience.under_way() and trio.current_time() < until:
        post.notify.extend(EXTEND_S)
        await trio.sleep(EXTEND_EVERY_S)
