"""Door: one Mind's SQLite file: opening, migrating, transactions.

1. `synchronous=FULL`: under NORMAL a power cut can take back a T3b that has already been spoken (design §3).
2. A transaction is a `with` block without an await inside: connections are short-lived holders of the lock, and trio never
   switches while one is open. `write()` is BEGIN IMMEDIATE, so two writers queue instead of failing half-way.
3. A commit takes 2–6 ms at worst on the disks we measured; it runs on the loop's own thread, since a thread hop costs as much as it
   saves and would allow an await inside a transaction.
4. What the disk refuses (full, read-only, I/O) is a StorageError: the transaction did not happen. What the file is (newer, corrupt,
   not ours) is a MindFileError that leaves it untouched.
"""

import contextlib
import fcntl
import os
import select
import sqlite3  # noqa: TID251 - its home
from collections.abc import Iterator
from pathlib import Path

from mind_body.errors import MindFileError, StorageError
from mind_body.mind.schema import MIGRATIONS, NEWEST
from mind_body.shared import make_shared, open_shared

BUSY_TIMEOUT_MS = 30_000
"""How long a writer queues for another's commit. Transactions here take milliseconds; a backup does not hold the lock."""
WAL_TRIES, WAL_AGAIN_S = 500, 0.02
"""Ten seconds for processes that make one file WAL together."""
CACHE_KIB = 256
"""Page cache per connection: a host has a thousand of them, and rows are small."""
PAGE_BYTES = 1024
"""SQLite allocates room for 20 pages with every connection, and mouth and heartbeat hold one for each Mind: at its usual 4,096 an
idle connection costs 0.18 MB, so 0.12. Our rows are a few hundred bytes, and a commit takes no longer."""
STATEMENTS_MAX = 16
"""Prepared statements kept per connection: Python's default of 128 holds some 100 KB for a Mind that nobody talks to, and preparing
one again takes microseconds."""
APPLICATION_ID = 0x4D494E44
"""'MIND' in the file's header: `file` and our own reader tell a mind.db from another database."""

Transaction = sqlite3.Connection
"""What `read` and `write` hand out. SQL is written in `mind_body.mind` alone."""


class Mind:
    """An open mind.db. Not shared between threads or across a fork."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._db = connection
        self.path = path
        self._seen_version = -1

    @contextlib.contextmanager
    def read(self) -> Iterator[Transaction]:
        """One consistent snapshot."""
        with _translated(self.path):
            self._db.execute("BEGIN")
            try:
                yield self._db
            finally:
                self._db.execute("ROLLBACK")

    @contextlib.contextmanager
    def write(self) -> Iterator[Transaction]:
        """All or nothing; durable when the block has ended."""
        with _translated(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                # SQLite has already rolled back after some errors (a full disk): then there is nothing to undo.
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def changed(self) -> bool:
        """Whether another connection has committed since this was last asked. Costs microseconds, reads no table."""
        with _translated(self.path):
            version: int = self._db.execute("PRAGMA data_version").fetchone()[0]
        changed, self._seen_version = version != self._seen_version, version
        return changed

    def shrink(self) -> None:
        """Give back the page cache: what a Mind with nothing to do need not keep. A third of an idle connection's memory."""
        with _translated(self.path):
            self._db.execute("PRAGMA shrink_memory")

    def backup_to(self, target: Path) -> None:
        """A consistent copy of the whole mind while others write; `target` must not exist. Complete or absent."""
        if target.exists():
            raise StorageError(f"{target} exists already; a backup never overwrites")
        part = target.with_name(target.name + ".part")
        with _translated(target):
            _unlink(part)
            try:
                self._copy_to(part)
                part.rename(target)
            finally:
                _unlink(part)  # there only when it could not be finished, and then it may be what fills the disk
            _fsync(target.parent)

    def _copy_to(self, part: Path) -> None:
        copy = sqlite3.connect(part, isolation_level=None)
        try:
            # One step: a backup that yields between pages starts again whenever somebody writes.
            self._db.backup(copy, pages=-1)
            # The copy stands alone: no write-ahead log beside it.
            copy.execute("PRAGMA journal_mode=DELETE")
        finally:
            copy.close()
        _fsync(part)

    def close(self) -> None:
        self._db.close()


def open_mind(path: Path, *, create: bool = False) -> Mind:
    """Open and, where needed, migrate. Raises MindFileError or StorageError with a sentence."""
    if not create and not path.exists():
        raise MindFileError(f"{path} does not exist; `mind new` makes it, `mind restore` brings it back from a backup")
    with _translated(path):
        if create:
            make_shared(path.parent)
            os.close(open_shared(path))  # SQLite would make it for its owner; its log takes the file's mode
        db = sqlite3.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1000, cached_statements=STATEMENTS_MAX)
        try:
            db.row_factory = sqlite3.Row
            version, ours = _version(db), _application(db)
            if version > NEWEST or ours not in {0, APPLICATION_ID} or (ours == 0 and version > 0):
                raise MindFileError(_refusal(path, version, ours))
            db.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
            db.execute(f"PRAGMA page_size={PAGE_BYTES}")  # a new file's; one that exists keeps its own
            _enter_wal(db)
            db.execute("PRAGMA synchronous=FULL")
            db.execute("PRAGMA foreign_keys=ON")
            if version < NEWEST:
                _migrate(db, path)
        except BaseException:
            db.close()
            raise
    return Mind(db, path)


def _enter_wal(db: sqlite3.Connection) -> None:
    """SQLite does not wait by itself where several processes make a new file WAL at once."""
    for left in range(WAL_TRIES - 1, -1, -1):
        try:
            db.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if left == 0 or "locked" not in str(error):
                raise
            select.select([], [], [], WAL_AGAIN_S)
        else:
            return


def open_reader(path: Path) -> Mind:
    """To look into a mind that nothing here may change, not even to a newer version. Raises MindFileError or StorageError."""
    with _translated(path):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1000)
        try:
            db.row_factory = sqlite3.Row
            if _version(db) != NEWEST or _application(db) != APPLICATION_ID:
                raise MindFileError(f"{path} is not a mind of this version")
        except BaseException:
            db.close()
            raise
    return Mind(db, path)


def check_mind(path: Path) -> str:
    """`ok`, or what is wrong with the file: by its header, or by SQLite's own integrity check."""
    with _translated(path):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            if _application(db) != APPLICATION_ID:
                return "it is not a mind"
            return str(db.execute("PRAGMA integrity_check(1)").fetchone()[0])
        finally:
            db.close()


def is_behind(path: Path) -> bool:
    """Whether this release would migrate the file. One that is not there, or cannot be read, is for `open_mind` to say."""
    try:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return _application(db) == APPLICATION_ID and _version(db) < NEWEST
        finally:
            db.close()
    except sqlite3.Error:
        return False


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _application(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA application_id").fetchone()[0])


def _refusal(path: Path, version: int, application: int) -> str:
    if application not in {0, APPLICATION_ID} or application == 0:
        return f"{path} is a database, but not a mind; move it away, or restore a backup with `mind restore`"
    return (
        f"{path} was written by a newer mind-body (its version is {version}, this one knows up to {NEWEST}); "
        "it is untouched: install the newer release, or `mind restore` a backup made before the upgrade"
    )


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    """Apply what is missing, one mark each, with the file copied first. Two processes may arrive here together."""
    lock = open_shared(path.with_name(path.name + ".migrate-lock"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made_now = _version(db) == 0
        for number, sql in MIGRATIONS:
            version = _version(db)
            if number <= version:
                continue
            before = path.with_name(f"{path.name}.before-{number}")
            if not made_now and not before.exists():
                Mind(db, path).backup_to(before)
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
    finally:
        os.close(lock)


def _statements(sql: str) -> Iterator[str]:
    """Single statements, so that they share the transaction (`executescript` would commit it)."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _unlink(part: Path) -> None:
    """A database file and what SQLite puts beside it."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        part.with_name(part.name + suffix).unlink(missing_ok=True)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
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
        raise MindFileError(
            f"{path} cannot be read as a mind ({error}); it is untouched: `mind restore` brings back a backup"
        ) from error
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}; nothing was changed") from error
