"""Door: an SQLite file of ours: its mark, its log, its transactions, its migrations, a copy of it.

Minds and the ledger are its kinds. What is in one, who may begin one, and what is done before a migration is theirs.

1. WAL with `synchronous=FULL`: under NORMAL a power cut can take back what somebody has already been told (design §3).
2. A transaction is a `with` block without an await inside: connections are short-lived holders of the lock, and trio never
   switches while one is open. `write()` is BEGIN IMMEDIATE, so two writers queue instead of failing half-way.
3. A commit takes 2–6 ms at worst on the disks we measured; it runs on the loop's own thread, since a thread hop costs as much as it
   saves and would allow an await inside a transaction.
4. What the disk refuses (full, read-only, I/O) is a StorageError: the transaction did not happen. What the file is (newer, corrupt,
   not ours) is the error of its kind, and leaves it untouched.
"""

import contextlib
import functools
import os
import select
import sqlite3  # noqa: TID251 - its home
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from mind_body.errors import OperatorError, StorageError

Transaction = sqlite3.Connection
"""What `read` and `write` hand out."""
Migration = tuple[int, str]
"""Its number, which is the version that it leads to, and its SQL."""

BUSY_TIMEOUT_MS = 5_000
"""How long a connection queues for another's commit where its kind does not say."""
WAL_TRIES, WAL_AGAIN_S = 500, 0.02
"""Ten seconds for processes that make one file WAL together."""


class Mark(NamedTuple):
    """What a file's header says of it; both are 0 in a new one."""

    version: int
    application_id: int


@dataclass(frozen=True)
class FileKind:
    """What files of a kind are called and marked with, and the way out where one is not as it should be."""

    name: str
    application_id: int
    error: type[OperatorError]
    when_unreadable: str
    when_newer: str

    @contextlib.contextmanager
    def translated(self, path: Path) -> Iterator[None]:
        """SQLite's errors and the disk's as ours, with a sentence."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StorageError(f"{path}: {error}; see that the disk has room and is writable; nothing was changed") from error
        except sqlite3.IntegrityError:
            # A broken promise between our own rows: a programming error, not the disk's.
            raise
        except sqlite3.DatabaseError as error:
            sentence = f"{path} cannot be read as a {self.name} ({error}); it is untouched: {self.when_unreadable}"
            raise self.error(sentence) from error
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}; nothing was changed") from error

    def refuse_newer(self, path: Path, version: int, newest: int) -> None:
        """Raises the kind's error for a file that knows more than this release."""
        if version > newest:
            raise self.error(
                f"{path} was written by a newer mind-body (its version is {version}, this one knows up to {newest}); "
                f"it is untouched: {self.when_newer}"
            )


class SqliteFile:
    """An open file. Not shared between threads or across a fork."""

    kind: ClassVar[FileKind]

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @property
    def _db(self) -> sqlite3.Connection:
        return self._connection

    @contextlib.contextmanager
    def read(self) -> Iterator[Transaction]:
        """One consistent snapshot."""
        with self.kind.translated(self.path):
            db = self._db
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.execute("ROLLBACK")

    @contextlib.contextmanager
    def write(self) -> Iterator[Transaction]:
        """All or nothing; durable when the block has ended."""
        with self.kind.translated(self.path):
            db = self._db
            with _all_or_nothing(db, "BEGIN IMMEDIATE"):
                yield db

    def close(self) -> None:
        self._connection.close()


class Weighing:
    """A snapshot to decide on, and to act upon where nobody has written since."""

    def __init__(self, tx: Transaction, changes_nothing: str) -> None:
        self.tx = tx
        self._changes_nothing = changes_nothing

    def act(self) -> bool:
        """True: what was read is how it is, and from here on it is a write. False, at once: somebody writes, or has written since;
        decide anew, in a `write`.
        """
        try:
            self.tx.execute(self._changes_nothing)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True


@contextlib.contextmanager
def weigh(db: sqlite3.Connection, changes_nothing: str) -> Iterator[Weighing]:
    """`changes_nothing`: a statement that takes the writer's lock, and has no other effect."""
    with _all_or_nothing(db, "BEGIN"):
        yield Weighing(db, changes_nothing)


def connect(path: Path, *, read_only: bool = False, busy_ms: int = BUSY_TIMEOUT_MS) -> sqlite3.Connection:
    """Transactions are begun by hand, rows are read by name. Raises SQLite's errors and OSError, as all below do."""
    name = f"file:{path}?mode=ro" if read_only else path
    db = sqlite3.connect(name, uri=read_only, isolation_level=None, timeout=busy_ms / 1000)
    db.row_factory = sqlite3.Row
    return db


@contextlib.contextmanager
def kept(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A connection that stays open where the block ends well, and is closed where it does not."""
    try:
        yield db
    except BaseException:
        db.close()
        raise


def read_mark(db: sqlite3.Connection) -> Mark:
    """As it is at this moment."""
    version, application_id = (int(db.execute(f"PRAGMA {word}").fetchone()[0]) for word in ("user_version", "application_id"))
    return Mark(version, application_id)


def enter_wal(db: sqlite3.Connection) -> None:
    """From here on what is committed is durable. SQLite does not wait by itself where several make a new file WAL at once."""
    for left in range(WAL_TRIES - 1, -1, -1):
        try:
            db.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if left == 0 or "locked" not in str(error):
                raise
            select.select([], [], [], WAL_AGAIN_S)
        else:
            break
    db.execute("PRAGMA synchronous=FULL")


def apply_migrations(db: sqlite3.Connection, kind: FileKind, migrations: Sequence[Migration]) -> None:
    """All of them in one transaction, together with the mark of the last."""
    with _all_or_nothing(db, "BEGIN EXCLUSIVE"):
        for _, sql in migrations:
            for statement in _statements(sql):
                db.execute(statement)
        db.execute(f"PRAGMA application_id={kind.application_id}")
        db.execute(f"PRAGMA user_version={migrations[-1][0]}")


def copy_database(db: sqlite3.Connection, target: Path) -> None:
    """A consistent copy of the whole file while others write; it takes the target's place. Complete or absent."""
    part = target.with_name(target.name + ".part")
    remove_database(part)
    try:
        with contextlib.closing(sqlite3.connect(part, isolation_level=None)) as copy:
            # One step: a backup that yields between pages starts again whenever somebody writes.
            db.backup(copy, pages=-1)
            # The copy stands alone: no write-ahead log beside it.
            copy.execute("PRAGMA journal_mode=DELETE")
        put_in_place(part, target)
    finally:
        remove_database(part)  # there only when it could not be finished, and then it may be what fills the disk


def put_in_place(part: Path, target: Path) -> None:
    """What is whole takes its name, and both are on the disk."""
    _fsync(part)
    part.rename(target)
    _fsync(target.parent)


def remove_database(path: Path) -> None:
    """A database file and what SQLite puts beside it."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextlib.contextmanager
def _all_or_nothing(db: sqlite3.Connection, begin: str) -> Iterator[None]:
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # SQLite has already rolled back after some errors (a full disk): then there is nothing to undo.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@functools.cache
def _statements(sql: str) -> tuple[str, ...]:
    """Single statements, so that they share the transaction (`executescript` would commit it)."""
    statements, statement = [], ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            statements.append(statement)
            statement = ""
    return tuple(statements)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
