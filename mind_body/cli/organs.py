"""Loop: the organs of one home as children of this process: started, started again, ended (`mind up`).

1. The sockets are bound here and handed on, as systemd does it: a poke that comes while an organ is away waits for it, and so does
   a question to the lease.
2. lease, mouth and heartbeat run at once. A half of a Mind, persona or self, runs from the first poke on, which is left in the
   socket for it to take. While her brake is held its pokes are dropped instead, and a running one is asked to end. Both halves are
   kept for every Mind: one whose Self is not enabled is never poked there, and a socket costs nothing.
3. Who dies is started again after a wait that doubles (`restart`); one that ended with 78 only when a file of its has changed.
4. An organ that ended, however, pokes the heartbeat.
5. The lease takes a process for a half of a Mind because it was registered here, before its program began. It is forgotten at its
   end. The lease ends after all others, so that what they settle at the last is written down.
"""

import os
import select
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import trio

from mind_body.cli.restart import Again, WaitForOperator, decide_restart, render_end
from mind_body.config import environment, list_minds
from mind_body.control.effective import Held
from mind_body.control.files import read_control
from mind_body.errors import ChildError, StorageError
from mind_body.home import Home
from mind_body.host.handover import bind_stream_socket
from mind_body.host.peers import forget_ended_peers, forget_peer, register_peer
from mind_body.host.poke import Pokes, open_poke_socket, send_poke
from mind_body.host.process import Child, start_child
from mind_body.log import Journal
from mind_body.settings import HostConfig

END_GRACE_S = 3.5
"""SIGTERM, this long, SIGKILL."""
LEASE_GRACE_S = 1.0
"""The same for the lease, after all others: together within the 5 s that `mind up` promises."""
LOOK_S = 1.0
"""How often the list of Minds, the brakes of running personas and the files of stopped organs are looked at."""
AT_ONCE_S = 1.0
"""A half that ends sooner than this and leaves a poke unread has failed, whatever its exit code."""
HALVES = ("persona", "self")
NOT_HANDED_ON = frozenset(
    {"MIND_HOME", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}
)

Command = Callable[[Home, str, str | None], Sequence[str]]
"""Home, organ, Mind → argv."""


def organ_command(home: Home, organ: str, mind: str | None) -> list[str]:
    """The same program that systemd's units start."""
    whose = ["--mind", mind] if mind else []
    return [sys.executable, "-m", "mind_body", "--home", str(home.root), "organ", organ, *whose]


class Organs:
    """The process tree of one home."""

    def __init__(self, home: Home, host: HostConfig, journal: Journal, command: Command = organ_command) -> None:
        self._home = home
        self._host = host
        self._journal = journal
        self._command = command
        self._minds: dict[str, trio.CancelScope] = {}

    async def run(self) -> None:
        """Until cancelled; then every organ is ended before it returns, the lease last."""
        forget_ended_peers(self._home)
        lease_scope = trio.CancelScope(shield=True)
        async with trio.open_nursery() as outer:
            outer.start_soon(self._keep_lease, lease_scope)
            try:
                async with trio.open_nursery() as nursery:
                    for organ, path in (("mouth", self._home.mouth_socket), ("heartbeat", self._home.heartbeat_socket)):
                        nursery.start_soon(self._keep_daemon, organ, path)
                    while True:
                        self._follow_minds(nursery)
                        await trio.sleep(min(LOOK_S, self._host.look_s))
            finally:
                lease_scope.cancel()

    def _follow_minds(self, nursery: trio.Nursery) -> None:
        names = list_minds(self._home)
        for gone in set(self._minds) - set(names):
            self._minds.pop(gone).cancel()
        for name in names:
            if name not in self._minds:
                self._minds[name] = trio.CancelScope()
                nursery.start_soon(self._keep_mind, name, self._minds[name])

    async def _keep_lease(self, scope: trio.CancelScope) -> None:
        path = self._home.lease_socket
        with scope, bind_stream_socket(path) as stream:
            try:
                await self._keep_daemon("lease", self._home.socket_of("lease"), {"stream": stream.fileno()})
            finally:
                path.unlink(missing_ok=True)

    async def _keep_daemon(self, organ: str, path: Path, further: Mapping[str, int] | None = None) -> None:
        strikes = 0
        with open_poke_socket(path) as socket:
            while True:
                code, lived_s = await self._run_child(organ, None, {"poke": socket.fileno(), **(further or {})})
                restart = decide_restart(code, lived_s, strikes, self._host, may_end=False)
                strikes = await self._wait_after(organ, None, restart, code)

    async def _keep_mind(self, name: str, scope: trio.CancelScope) -> None:
        with scope:
            async with trio.open_nursery() as nursery:
                for half in HALVES:
                    nursery.start_soon(self._keep_half, half, name)

    async def _keep_half(self, half: str, name: str) -> None:
        path = self._home.socket_of(half, name)
        try:
            await self._serve_pokes(half, name, path)
        finally:
            path.unlink(missing_ok=True)

    async def _serve_pokes(self, half: str, name: str, path: Path) -> None:
        with open_poke_socket(path) as socket:
            pokes, strikes = Pokes(socket), 0
            while True:
                await trio.lowlevel.wait_readable(socket.fileno())
                if isinstance(read_control(self._home, name), Held):
                    pokes.drain()  # no fact is lost: whoever releases her pokes again
                    continue
                code, lived_s = await self._run_child(half, name, {"poke": socket.fileno()})
                may_end = lived_s >= AT_ONCE_S or not _is_readable(socket.fileno())
                restart = decide_restart(code, lived_s, strikes, self._host, may_end=may_end)
                strikes = await self._wait_after(half, name, restart, code)

    async def _run_child(self, organ: str, name: str | None, sockets: Mapping[str, int]) -> tuple[int, float]:
        """Start it, wait for its end; its exit code and how many seconds it lived. Ended here when this is cancelled."""
        began = trio.current_time()
        try:
            argv = self._command(self._home, organ, name)
            announce = None if name is None else partial(register_peer, self._home, organ=organ, mind=name)
            child = start_child(argv, env=_organ_environment(), sockets=sockets, new_session=True, announce=announce)
        except (ChildError, StorageError) as error:
            self._note(name, "organ.not-started", f"The {organ} could not be started: {error}.", ABOUT=organ)
            return 1, 0.0
        self._note(name, "organ.started", f"The {organ} is started.", ABOUT=organ, PID=child.pid)
        try:
            async with trio.open_nursery() as nursery:
                if name is not None:
                    nursery.start_soon(self._end_when_held, name, child)
                code = await child.wait()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await child.end(LEASE_GRACE_S if organ == "lease" else END_GRACE_S)
                await child.aclose()
            forget_peer(self._home, child.pid)
        if organ != "heartbeat":
            send_poke(self._home.heartbeat_socket)
        return code, trio.current_time() - began

    async def _end_when_held(self, name: str, child: Child) -> None:
        while not isinstance(read_control(self._home, name), Held):  # noqa: ASYNC110 - files have no event
            await trio.sleep(LOOK_S)
        await child.end(END_GRACE_S)

    async def _wait_after(self, organ: str, name: str | None, restart: Again | WaitForOperator, code: int) -> int:
        """Until it may be started again; its strikes."""
        if isinstance(restart, WaitForOperator):
            sentence = f"The {organ} {render_end(code)}: an operator must act; it is started again when its files have changed."
            self._note(name, "organ.given-up", sentence, ABOUT=organ)
            before = self._read_marks(name)
            while self._read_marks(name) == before:  # noqa: ASYNC110 - files have no event
                await trio.sleep(LOOK_S)
            return 0
        if restart.after_s:
            sentence = f"The {organ} {render_end(code)}; it may start again in {restart.after_s:g} s."
            self._note(name, "organ.died", sentence, ABOUT=organ, STRIKES=restart.strikes)
            await trio.sleep(restart.after_s)
        return restart.strikes

    def _read_marks(self, name: str | None) -> tuple[object, ...]:
        """Changes when an operator has changed a file that this organ is made from."""
        minds = [name] if name else list_minds(self._home)
        files = [self._home.config_file, self._home.credentials, self._home.minds_dir, *self._home.credentials.glob("*")]
        for mind in minds:
            files += [self._home.mind_file(mind), self._home.persona_file(mind), self._home.mind_db(mind)]
        return tuple(_mark(path) for path in sorted(files))

    def _note(self, name: str | None, kind: str, sentence: str, **fields: object) -> None:
        journal = self._journal.bind(MIND=name) if name else self._journal
        journal.bind(**fields).note(kind, sentence)


def _organ_environment() -> Mapping[str, str]:
    """Ours, but for what speaks of this process alone: an organ is our own program, and needs what the shell told us."""
    ours = {key: value for key, value in environment.items() if key not in NOT_HANDED_ON}
    return ours | {"MIND_PARENT": str(os.getpid())}


def _is_readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def _mark(path: Path) -> tuple[str, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (str(path), found.st_ino, found.st_mtime_ns)
