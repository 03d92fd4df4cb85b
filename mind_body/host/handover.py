"""Door: one line each way over a unix stream socket, with an open descriptor beside the answer (unix(7), SCM_RIGHTS).

1. One question and one answer per connection. Neither end waits for the other without a bound: deadlines are the callers'.
2. A line has a cap. What is longer, is cut off before its end or comes from nobody is a sentence, not an exception: the other end
   is another process, and may be anything.
3. Of what is handed over, one descriptor is kept, close-on-exec; it comes with the line's first byte and is closed where the line
   comes to nothing.
"""

import array
import contextlib
import os
import select
import socket  # noqa: TID251 - its home
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import trio

_READ = 65_536
BACKLOG = 128


@dataclass(frozen=True, slots=True)
class Handed:
    """A line without its end, and what came with it."""

    line: bytes
    descriptor: int | None = None
    """The receiver's own to close."""


def open_stream_socket(path: Path) -> trio.SocketListener:
    """Bind and listen, in place of a socket that a dead process left behind. The caller holds the organ's lock."""
    return listen_stream(bind_stream_socket(path))


def bind_stream_socket(path: Path) -> socket.socket:
    """Bound and listening: for who hands it on."""
    path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bound.bind(str(path))
    path.chmod(0o660)
    bound.listen(BACKLOG)
    return bound


def adopt_stream_socket(descriptor: int) -> trio.SocketListener:
    """A listening socket that systemd or `mind up` bound and handed over."""
    adopted = socket.socket(fileno=descriptor)
    os.set_inheritable(descriptor, False)
    return listen_stream(adopted)


def listen_stream(bound: socket.socket) -> trio.SocketListener:
    bound.setblocking(False)
    return trio.SocketListener(trio.socket.from_stdlib_socket(bound))


async def ask_line(path: Path, question: bytes, cap: int) -> Handed | str:
    """Send one line to who listens at `path`; the answer, or why there is none. The caller bounds how long that may take.

    An empty `question` asks nothing, and says at once that nothing will come.
    """
    try:
        stream = await trio.open_unix_socket(str(path))
    except OSError as error:
        return f"nobody answers at {path} ({error.strerror or error})"
    return await _ask_on(stream, question, cap)


class Caller:
    """Asks who listens at a path, and may come early: then it is known there who calls before there is a question."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._early: trio.SocketStream | None = None

    async def come_early(self) -> None:
        """Connect. Where nobody listens, that shows when something is asked."""
        if self._early is None:
            with contextlib.suppress(OSError):
                self._early = await trio.open_unix_socket(str(self._path))

    def leave(self) -> None:
        """There is no question."""
        early, self._early = self._early, None
        if early is not None:
            early.socket.close()

    async def ask(self, question: bytes, cap: int) -> Handed | str:
        """As `ask_line`. Who came too early was sent away, and comes again: a question may arrive twice."""
        early, self._early = self._early, None
        handed = "" if early is None else await _ask_on(early, question, cap)
        return handed if isinstance(handed, Handed) else await ask_line(self._path, question, cap)


async def receive_line(stream: trio.SocketStream, cap: int) -> Handed | str:
    """The first line, and the descriptor that came with it; what follows it is not read."""
    line, kept = b"", None
    handed: Handed | None = None
    try:
        while b"\n" not in line:
            chunk, came = await _receive(stream)
            kept = _keep_one(kept, came)
            if not chunk:
                return "the other end hung up before the end of its line" if line else "the other end said nothing"
            line += chunk
            if len(line.partition(b"\n")[0]) > cap:
                return f"a line of more than {cap} bytes"
        handed = Handed(line.partition(b"\n")[0], kept)
    except OSError as error:
        return f"the other end is gone ({error.strerror or error})"
    finally:
        if handed is None and kept is not None:
            os.close(kept)
    return handed


async def will_ask_nothing(stream: trio.SocketStream) -> bool:
    """Whether the other end has closed its way to us without a byte, once it has done either. Nothing is read."""
    try:
        return await stream.socket.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return False


def has_hung_up(stream: trio.SocketStream) -> bool:
    """Whether nobody waits for an answer any more."""
    look = select.poll()
    look.register(stream.socket.fileno(), 0)  # POLLHUP comes unasked
    return bool(look.poll(0))


async def send_line(stream: trio.SocketStream, line: bytes, descriptor: int | None = None) -> str | None:
    """None when the kernel has taken it, else why not. `descriptor` stays the sender's to close."""
    beside = [] if descriptor is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
    try:
        sent = await stream.socket.sendmsg([line], beside)
        if sent < len(line):
            await stream.send_all(line[sent:])
    except (OSError, trio.BrokenResourceError) as error:
        return f"the other end is gone ({getattr(error, 'strerror', None) or error})"
    return None


async def _ask_on(stream: trio.SocketStream, question: bytes, cap: int) -> Handed | str:
    try:
        with contextlib.suppress(trio.BrokenResourceError):  # it may have answered before it read all of the question
            await (stream.send_all(question) if question else stream.send_eof())
        return await receive_line(stream, cap)
    finally:
        await trio.aclose_forcefully(stream)


async def _receive(stream: trio.SocketStream) -> tuple[bytes, list[int]]:
    chunk, beside, _, _ = await stream.socket.recvmsg(_READ, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
    return chunk, [descriptor for level, kind, data in beside for descriptor in _descriptors(level, kind, data)]


def _descriptors(level: int, kind: int, data: bytes) -> Sequence[int]:
    if (level, kind) != (socket.SOL_SOCKET, socket.SCM_RIGHTS):
        return ()
    found = array.array("i")
    found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return found


def _keep_one(kept: int | None, handed: Sequence[int]) -> int | None:
    for descriptor in handed:
        if kept is None:
            kept = descriptor
        else:
            os.close(descriptor)
    return kept
