"""Door: pokes. An empty datagram to another organ's unix socket that says only "look" (design §2).

It carries no fact, may be lost, and never blocks. One that is refused is a fact for the journal, so it is answered as a sentence.
"""

import os
import socket  # noqa: TID251 - its home
from pathlib import Path

import trio


def send_poke(path: Path) -> str | None:
    """Poke; None when it was taken (or is already waiting there), else why not."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as poker:
        try:
            poker.sendto(b"", str(path))
        except BlockingIOError:
            return None  # its queue is full of pokes: it will look
        except OSError as error:
            return f"{path}: {error.strerror}"
    return None


def open_poke_socket(path: Path) -> socket.socket:
    """Bind a datagram socket, in place of one that a dead process left behind. The caller holds the organ's lock."""
    path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    bound.bind(str(path))
    path.chmod(0o660)
    return bound


def adopt_poke_socket(descriptor: int) -> socket.socket:
    """A socket that systemd or `mind up` bound and handed over."""
    adopted = socket.socket(fileno=descriptor)
    adopted.setblocking(False)
    os.set_inheritable(descriptor, False)
    return adopted


class Pokes:
    """The receiving end: wait for a poke, at most so long. Drained first, looked after: never the other way round."""

    def __init__(self, bound: socket.socket) -> None:
        self._socket = bound

    def drain(self) -> bool:
        """Take every waiting poke; whether there was one."""
        any_waiting = False
        while True:
            try:
                self._socket.recv(16, socket.MSG_DONTWAIT)  # the flag on the socket is shared with who handed it over
                any_waiting = True
            except BlockingIOError:
                return any_waiting

    async def wait(self, timeout_s: float) -> bool:
        """True for a poke, False when `timeout_s` has passed. Returns with the socket drained."""
        with trio.move_on_after(max(timeout_s, 0)):
            await trio.lowlevel.wait_readable(self._socket.fileno())
        return self.drain()

    def close(self) -> None:
        self._socket.close()
