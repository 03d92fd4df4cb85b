"""Door: a TCP relay in front of a server, that keeps every byte which the clients sent."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Relay:
    """Listens on loopback; each connection is passed on to `target`."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._sent: list[bytearray] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def sent(self) -> list[bytes]:
        """What each connection's client has sent so far."""
        with self._lock:
            return [bytes(one) for one in self._sent]

    def close(self) -> None:
        for one in (self._listener, *self._open):
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            kept = bytearray()
            with self._lock:
                self._open += [client, server]
                self._sent.append(kept)
            threading.Thread(target=self._pass_on, args=(client, server, kept), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(server, client, None), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, kept: bytearray | None) -> None:
        try:
            while data := source.recv(65_536):
                if kept is not None:
                    with self._lock:
                        kept += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return


@contextmanager
def open_relay(base_url: str) -> Iterator[Relay]:
    """In front of an `http://host:port`."""
    host, _, port = base_url.removeprefix("http://").rstrip("/").partition(":")
    relay = Relay((host, int(port)))
    try:
        yield relay
    finally:
        relay.close()
