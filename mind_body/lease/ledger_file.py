"""Door: the ledger's SQLite file: made once, opened, migrated, transactions.

1. It is made only where there never was one; the file `begun` beside it says that there was. Who loses it decides what then: an
   empty one would forget every cap.
2. WAL with `synchronous=FULL`: a reservation that somebody was told of is there after a power cut.
3. What the disk refuses is a StorageError: the transaction did not happen. What the file is (newer, corrupt, not ours, gone) is a
   LedgerError that leaves it untouched.
4. One process writes, the organ; anybody who may read the file reads beside it.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from mind_body import sqlite_file
from mind_body.errors import LedgerError
from mind_body.lease.ledger_schema import MIGRATIONS, NEWEST
from mind_body.sqlite_file import FileKind, SqliteFile, apply_migrations, read_mark

APPLICATION_ID = 0x4D494E4C
"""'MINL' in the file's header."""
KIND = FileKind(
    "ledger",
    APPLICATION_ID,
    LedgerError,
    when_unreadable="put a good one in its place",
    when_newer="install the newer release",
)
BEGUN = "begun"

Transaction = sqlite_file.Transaction
"""What `read` and `write` hand out. SQL is written in `lease/ledger*.py` alone."""


class Ledger(SqliteFile):
    """An open ledger. Not shared between threads or across a fork."""

    kind = KIND

    def __init__(self, connection: Transaction, path: Path) -> None:
        super().__init__(connection, path)
        self._identity = _identify(path)

    def is_in_place(self) -> bool:
        """False when its file was moved away or replaced: what is written then is written nowhere."""
        return _identify(self.path) == self._identity


def open_ledger(path: Path, *, begin: bool = False) -> Ledger:
    """Open and, where needed, migrate; with `begin`, make it where there never was one. Raises LedgerError or StorageError."""
    begun = path.with_name(BEGUN)
    with KIND.translated(path):
        if not path.exists():
            if not begin or begun.exists():
                raise LedgerError(f"{path} is gone; put it back, or remove {path.parent} to begin with nothing spent")
            _begin(path)
        with sqlite_file.kept(sqlite_file.connect(path)) as db:
            _refuse_others(db, path)
            sqlite_file.enter_wal(db)
            _migrate(db, path)
            begun.touch(mode=0o600)
            return Ledger(db, path)


class LedgerPlace:
    """Where the ledger lies, for as long as the organ lives: kept open, and tried anew where it could not be."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: Ledger | None = None
        self._was_open = False

    def open(self) -> Ledger:
        """Raises LedgerError or StorageError. One that was here is never begun anew by this process."""
        if self._open is not None and not self._open.is_in_place():
            self.close()
        if self._open is None:
            self._open = open_ledger(self._path, begin=not self._was_open)
            self._was_open = True
        return self._open

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = None


@contextlib.contextmanager
def open_reader(path: Path) -> Iterator[Transaction]:
    """One snapshot of a ledger that somebody else may be writing; nothing can be changed. Raises LedgerError or StorageError."""
    with KIND.translated(path):
        if not path.exists():
            raise LedgerError(f"{path} does not exist; the lease makes it when it starts for the first time")
        with contextlib.closing(sqlite_file.connect(path, read_only=True)) as db:
            _refuse_others(db, path)
            db.execute("BEGIN")
            yield db


def _begin(path: Path) -> None:
    """Complete or absent: made under another name first."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    sqlite_file.remove_database(part)
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    with contextlib.closing(sqlite_file.connect(part)) as db:
        apply_migrations(db, KIND, MIGRATIONS)
    sqlite_file.put_in_place(part, path)


def _refuse_others(db: Transaction, path: Path) -> None:
    mark = read_mark(db)
    if mark.application_id != APPLICATION_ID or not mark.version:
        raise LedgerError(f"{path} is not a ledger; it is untouched: put the ledger back in its place")
    KIND.refuse_newer(path, mark.version, NEWEST)


def _migrate(db: Transaction, path: Path) -> None:
    """Apply what is missing, with the file copied first. Nobody else does: who migrates holds the organ's lock."""
    version = read_mark(db).version
    missing = [migration for migration in MIGRATIONS if migration[0] > version]
    if not missing:
        return
    sqlite_file.copy_database(db, path.with_name(f"{path.name}.before-{missing[0][0]}"))
    for migration in missing:
        apply_migrations(db, KIND, [migration])


def _identify(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)
