"""Door: the lease organ as a process of a test's own, for who runs a half of a Mind outside `mind up`."""

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Literal

from mind_body.home import Home
from mind_body.host.peers import forget_peer, register_peer
from tests.real.parts.organ import Organ
from tests.real.parts.scene import wait_until

_started: list[Organ] = []


def start_lease(home: Home) -> Organ:
    """It answers when this returns. Ended by the caller, or with the test (`close_leases`)."""
    assert home.root is not None
    organ = Organ("lease", home.root)
    organ.start()
    _started.append(organ)
    wait_until("the lease to answer", lambda: _is_there(home, organ), 20)
    return organ


@contextmanager
def leased(home: Home, half: Literal["persona", "self"], mind: str = "ada") -> Iterator[Organ]:
    """A lease, and this process as one half of a Mind before it."""
    organ = start_lease(home)
    register_peer(home, os.getpid(), half, mind)
    try:
        yield organ
    finally:
        forget_peer(home, os.getpid())
        organ.close()


def close_leases() -> None:
    """Those of the test that ends."""
    while _started:
        _started.pop().close()


def read_ledger(home: Home, sql: str) -> list[dict[str, Any]]:
    """What it has on record, read from outside as a witness."""
    with closing(sqlite3.connect(f"file:{home.ledger}?mode=ro", uri=True, timeout=10)) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(sql)]


def _is_there(home: Home, organ: Organ) -> bool:
    assert organ.process is not None
    assert organ.process.poll() is None, organ.journal()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asker:
        return asker.connect_ex(str(home.lease_socket)) == 0
