"""Shapes: a stand-in for journald's socket that reads entries as https://systemd.io/JOURNAL_NATIVE_PROTOCOL/ says."""

import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
LARGEST = 16 << 20
Entry = list[tuple[str, str]]


class Journald:
    """Listens at `path`; nothing is read before it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = 0
        """Entries that came as a file."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(str(path))

    def take(self) -> Entry | None:
        """The next entry, or None where there is none."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._socket, LARGEST, 4)
        except BlockingIOError:
            return None
        if descriptors:
            assert not data
            (descriptor,) = descriptors
            with os.fdopen(descriptor, "rb") as file:
                assert fcntl.fcntl(file, fcntl.F_GET_SEALS) == SEALS
                file.seek(0)
                data = file.read()
                self.files += 1
        return parse_entry(data)

    def take_all(self) -> list[Entry]:
        return list(iter(self.take, None))

    def close(self) -> None:
        self._socket.close()
        self.path.unlink(missing_ok=True)


def parse_entry(data: bytes) -> Entry:
    found: Entry = []
    while data:
        line, _, data = data.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            (size,) = struct.unpack("<Q", data[:8])
            value, end, data = data[8 : 8 + size], data[8 + size : 9 + size], data[9 + size :]
            assert end == b"\n"
        found.append((name.decode(), value.decode()))
    return found


@contextmanager
def open_journald() -> Iterator[Journald]:
    """In a directory that is short enough for a socket's path."""
    with TemporaryDirectory(prefix="mind-") as directory:
        journald = Journald(Path(directory) / "socket")
        try:
            yield journald
        finally:
            journald.close()
