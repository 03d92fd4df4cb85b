"""Door: who is at the other end of a unix socket: whose Mind's half it is, and as which user (design §2, "the lease").

1. Nobody is asked. The kernel says which process and user connected (SO_PEERCRED).
2. Under systemd the process's cgroup says which unit it is in. Only what stands below slices alone is a unit of the system's own
   manager: below a user's manager, a session or a container anybody may name a cgroup as he likes. The lease needs to see other
   users' processes for this: no `ProtectProc=` in its unit.
3. Under `--home` whoever starts a half registers its process in `run/peers`, before it can ask, and forgets it at its end. The
   file holds when that process started, so that a number that is used again is nobody; and whoever asks must be the home's owner
   (or root). A process that a half starts is another process, and no peer.
"""

import contextlib
import json
import os
import re
import socket  # noqa: TID251 - its home
import stat
import struct
from dataclasses import dataclass
from pathlib import Path

import trio

from mind_body.errors import StorageError
from mind_body.home import NAME_PATTERN, Home

HALVES = ("persona", "self")
_UNIT = re.compile(rf"mind-({'|'.join(HALVES)})@({NAME_PATTERN.pattern})\.service")
_CREDENTIALS = struct.Struct("3i")
_FILE_MAX = 4096


@dataclass(frozen=True, slots=True)
class Peer:
    """One half of a Mind."""

    organ: str
    """`persona` or `self`."""
    mind: str


def read_pid(stream: trio.SocketStream) -> int:
    """The process that has connected; 0 where it is not known."""
    return _read_credentials(stream)[0]


def find_peer(home: Home, stream: trio.SocketStream) -> Peer | str:
    """Who has connected, or who that is instead of a half of a Mind."""
    pid, uid = _read_credentials(stream)
    if pid == 0:
        return "a process that is not known here"
    if home.root is None:
        return read_unit(pid)
    if uid not in _owners(home):
        return f"process {pid} of user {uid}, who is not the owner of {home.root}"
    return read_peer(home, pid) or f"process {pid}, which nobody registered in {home.peers_dir}"


def read_unit(pid: int) -> Peer | str:
    """By the unit that a process is in."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text(errors="replace")
    except OSError as error:
        return f"process {pid}, whose unit cannot be seen ({error.strerror})"
    return parse_unit(text) or f"process {pid}, which is in no unit of a Mind"


def parse_unit(cgroup: str) -> Peer | None:
    """The half that a /proc/PID/cgroup names (cgroups(7)): of version 2, or the named hierarchy of systemd's."""
    for line in cgroup.splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers in {"", "name=systemd"}:
            parts = path.strip("/").split("/")
            unit = next((part for part in parts if not part.endswith(".slice")), "")
            if found := _UNIT.fullmatch(unit):
                return Peer(found[1], found[2])
    return None


def register_peer(home: Home, pid: int, organ: str, mind: str) -> None:
    """From now on, and while it lives, this process is that half. Raises StorageError."""
    started = _read_start(pid)
    if started is None:
        raise StorageError(f"process {pid} is gone: it cannot be registered")
    path = _file(home, pid)
    part = path.with_suffix(".part")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            json.dump({"organ": organ, "mind": mind, "started": started}, file)
        part.rename(path)
    except OSError as error:
        raise StorageError(f"{path} could not be written ({error.strerror}); see that the disk has room and is writable") from error


def forget_peer(home: Home, pid: int) -> None:
    """It has ended. Never raises: a file that stays names a process that is gone."""
    with contextlib.suppress(OSError):
        _file(home, pid).unlink(missing_ok=True)


def forget_ended_peers(home: Home) -> None:
    """What is left of processes that nobody lived to forget."""
    with contextlib.suppress(OSError):
        for path in home.peers_dir.iterdir():
            pid = int(path.stem) if path.stem.isdigit() else 0
            if pid and (_read_start(pid) is None or (not path.suffix and read_peer(home, pid) is None)):
                path.unlink(missing_ok=True)


def read_peer(home: Home, pid: int) -> Peer | None:
    """Which half a process is registered as, if it is that very process still."""
    try:
        descriptor = os.open(_file(home, pid), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if found.st_uid not in _owners(home) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
            told = json.loads(file.read(_FILE_MAX))
        peer = Peer(str(told["organ"]), str(told["mind"]))
        started = str(told["started"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return peer if started == _read_start(pid) and peer.organ in HALVES else None


def _read_credentials(stream: trio.SocketStream) -> tuple[int, int]:
    """Process and user. The process is 0 outside our own namespace, and once the connection is gone."""
    try:
        pid, uid, _ = _CREDENTIALS.unpack(stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    except OSError:
        return 0, -1
    return pid, uid


def _file(home: Home, pid: int) -> Path:
    return home.peers_dir / str(pid)


def _owners(home: Home) -> set[int]:
    try:
        return {0} if home.root is None else {0, home.root.stat().st_uid}
    except OSError:
        return {0}


def _read_start(pid: int) -> str | None:
    """When a process started: in clock ticks of this boot (proc_pid_stat(5), field 22). None when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    return f"{boot}:{fields[19]}" if fields[0] not in {"Z", "X"} else None
