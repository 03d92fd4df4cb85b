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
import sqlite3  # noqa: TID251 - its home
from collections.abc import Iterator, Sequence
from pathlib import Path

from mind_body.errors import LedgerError, StorageError
from mind_body.lease.ledger_schema import MIGRATIONS, NEWEST

APPLICATION_ID = 0x4D494E4C
"""'MINL' in the file's header."""
BUSY_TIMEOUT_MS = 5_000
BEGUN = "begun"

Transaction = sqlite3.Connection
"""What `read` and `write` hand out. SQL is written in `lease/ledger*.py` alone."""


class Ledger:
    """An open ledger. Not shared between threads or across a fork."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._db = connection
        self._path = path
        self._identity = _identify(path)

    @contextlib.contextmanager
    def read(self) -> Iterator[Transaction]:
        """One consistent snapshot."""
        with _translated(self._path):
            self._db.execute("BEGIN")
            try:
                yield self._db
            finally:
                self._db.execute("ROLLBACK")

    @contextlib.contextmanager
    def write(self) -> Iterator[Transaction]:
        """All or nothing; durable when the block has ended."""
        with _translated(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                # SQLite has already rolled back after some errors (a full disk): then there is nothing to undo.
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def is_in_place(self) -> bool:
        """False when its file was moved away or replaced: what is written then is written nowhere."""
        return _identify(self._path) == self._identity

    def close(self) -> None:
        self._db.close()


def open_ledger(path: Path, *, begin: bool = False) -> Ledger:
    """Open and, where needed, migrate; with `begin`, make it where there never was one. Raises LedgerError or StorageError."""
    begun = path.with_name(BEGUN)
    with _translated(path):
        if not path.exists():
            if not begin or begun.exists():
                raise LedgerError(f"{path} is gone; put it back, or remove {path.parent} to begin with nothing spent")
            _begin(path)
        db = _connect(path)
        try:
            _migrate(db, path)
            begun.touch(mode=0o600)
            return Ledger(db, path)
        except BaseException:
            db.close()
            raise


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
    with _translated(path):
        if not path.exists():
            raise LedgerError(f"{path} does not exist; the lease makes it when it starts for the first time")
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1000)
        try:
            db.row_factory = sqlite3.Row
            _refuse_others(db, path)
            db.execute("BEGIN")
            yield db
        finally:
            db.close()


def _begin(path: Path) -> None:
    """Complete or absent: made under another name first."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    for suffix in ("", "-journal", "-wal", "-shm"):
        part.with_name(part.name + suffix).unlink(missing_ok=True)
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(part, isolation_level=None)
    try:
        _apply(db, MIGRATIONS)
    finally:
        db.close()
    _fsync(part)
    part.rename(path)
    _fsync(path.parent)


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1000)
    try:
        db.row_factory = sqlite3.Row
        _refuse_others(db, path)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
    except BaseException:
        db.close()
        raise
    return db


def _refuse_others(db: sqlite3.Connection, path: Path) -> None:
    version, ours = (int(db.execute(f"PRAGMA {word}").fetchone()[0]) for word in ("user_version", "application_id"))
    if ours != APPLICATION_ID or not version:
        raise LedgerError(f"{path} is not a ledger; it is untouched: put the ledger back in its place")
    if version > NEWEST:
        raise LedgerError(
            f"{path} was written by a newer mind-body (its version is {version}, this one knows up to {NEWEST}); "
            "it is untouched: install the newer release"
        )


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    """Apply what is missing, with the file copied first. Nobody else does: who migrates holds the organ's lock."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    missing = [(number, sql) for number, sql in MIGRATIONS if number > version]
    if not missing:
        return
    copy = sqlite3.connect(path.with_name(f"{path.name}.before-{missing[0][0]}"), isolation_level=None)
    try:
        db.backup(copy, pages=-1)
    finally:
        copy.close()
    _apply(db, missing)


def _apply(db: sqlite3.Connection, missing: Sequence[tuple[int, str]]) -> None:
    """Each with its own mark in one transaction."""
    for number, sql in missing:
        db.execute("BEGIN EXCLUSIVE")
        try:
            for statement in _statements(sql):
                db.execute(statement)
            db.execute(f"PRAGMA application_id={APPLICATION_ID}")
            db.execute(f"PRAGMA user_version={number}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


def _statements(sql: str) -> Iterator[str]:
    """Single statements, so that they share the transaction (`executescript` would commit it)."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _identify(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StorageError(f"{path}: {error}; see that the disk has room and is writable; nothing was changed") from error
    except sqlite3.IntegrityError:
        # A broken promise between our own rows: a programming error, not the disk's.
        raise
    except sqlite3.DatabaseError as error:
        raise LedgerError(f"{path} cannot be read as a ledger ({error}); it is untouched: put a good one in its place") from error
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}; nothing was changed") from error
