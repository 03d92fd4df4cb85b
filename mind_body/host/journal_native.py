"""Door: journald's native protocol. The one home of its socket.

1. A line is one datagram of `NAME=value` lines; a value with a newline follows its name by length
   (https://systemd.io/JOURNAL_NATIVE_PROTOCOL/). Only values are from outside: a name that journald would not take is left out.
2. What is too large for a datagram goes as a sealed memfd, and the datagram carries nothing but that.
3. Nobody waits for the journal. The socket does not block; where journald's queue is full it is given PATIENCE_MS, and nothing more
   until a line has gone through again. A line that is not taken is the caller's: `write` answers whether it was.
4. The socket is connected, because only then poll(2) sees journald's queue; where journald's socket was made anew, so is ours.
"""

import contextlib
import errno
import fcntl
import os
import re
import select
import socket  # noqa: TID251 - its home
import struct
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SOCKET = Path("/run/systemd/journal/socket")
NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
"""Beginning with an underscore are journald's own, which it takes from nobody."""
PATIENCE_MS = 100
SEND_BYTES = 8 << 20
"""What libsystemd asks for; the kernel gives an unprivileged process less (net.core.wmem_max), and a memfd takes over there."""
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_TOO_LARGE = (errno.EMSGSIZE, errno.ENOBUFS)


def find_journal(environment: Mapping[str, str], stderr: int = 2) -> "NativeJournal | None":
    """The journal, exactly where it is what reads our stderr; None elsewhere."""
    return NativeJournal(stderr=stderr) if reads_stderr(environment, stderr) else None


def reads_stderr(environment: Mapping[str, str], stderr: int = 2) -> bool:
    """Whether the journal does.

    JOURNAL_STREAM has the device and the inode of the stream that systemd made (systemd.exec(5)). That it is set says nothing by
    itself: whoever started us may have put something else in the stream's place.
    """
    device, _, inode = environment.get("JOURNAL_STREAM", "").partition(":")
    if not (device.isdecimal() and inode.isdecimal()):
        return False
    try:
        found = os.fstat(stderr)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (int(device), int(inode))


class NativeJournal:
    """Where lines go as fields, and its stderr for what it does not take."""

    def __init__(self, path: Path = SOCKET, stderr: int = 2) -> None:
        self._path = path
        self._stderr = socket.socket(fileno=os.dup(stderr))
        self._socket: socket.socket | None = None
        self._patient = True

    def write(self, fields: Mapping[str, object]) -> bool:
        """One line; whether journald has it."""
        entry = render_entry(fields)
        for _ in range(2):  # the second time to a socket that was made anew
            try:
                self._offer(entry)
            except BlockingIOError:
                return False
            except OSError:
                self._hang_up()
            else:
                self._patient = True
                return True
        return False

    def write_plain(self, text: str) -> None:
        """To stderr, which journald reads as well; lost where it would have to wait."""
        with contextlib.suppress(OSError):
            self._stderr.send(text.encode(errors="backslashreplace"), socket.MSG_DONTWAIT)

    def close(self) -> None:
        self._hang_up()
        self._stderr.close()

    def _offer(self, entry: bytes) -> None:
        try:
            self._send([entry])
        except OSError as error:
            if error.errno not in _TOO_LARGE:
                raise
            with _sealed(entry) as file:
                self._send([], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [file]))])

    def _send(self, data: list[bytes], beside: list[tuple[int, int, Any]] | None = None) -> None:
        connected = self._connect()
        try:
            connected.sendmsg(data, beside or [])
        except BlockingIOError:
            if not self._wait(connected):
                raise
            connected.sendmsg(data, beside or [])

    def _connect(self) -> socket.socket:
        if self._socket is None:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            try:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
                made.connect(str(self._path))
            except OSError:
                made.close()
                raise
            self._socket = made
        return self._socket

    def _wait(self, connected: socket.socket) -> bool:
        """For journald to catch up; whether it has."""
        if not self._patient:
            return False
        self._patient = False
        queue = select.poll()
        queue.register(connected, select.POLLOUT)
        return bool(queue.poll(PATIENCE_MS))

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def render_entry(fields: Mapping[str, object]) -> bytes:
    """The fields as journald reads them."""
    return b"".join(_render_field(name, str(value)) for name, value in fields.items() if NAME.fullmatch(name))


def _render_field(name: str, value: str) -> bytes:
    data = value.encode(errors="backslashreplace")
    if b"\n" in data:
        return b"%s\n%s%s\n" % (name.encode(), struct.pack("<Q", len(data)), data)
    return b"%s=%s\n" % (name.encode(), data)


@contextlib.contextmanager
def _sealed(entry: bytes) -> Iterator[int]:
    """A file in memory that nobody can change any more: journald reads no other."""
    descriptor = os.memfd_create("mind-journal", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(entry)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        yield descriptor
    finally:
        os.close(descriptor)
