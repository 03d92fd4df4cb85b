"""Door: one Mind's SQLite file: opening, migrating, copying (see `sqlite_file` for what a transaction is)."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from mind_body import sqlite_file
from mind_body.errors import MindFileError, StorageError
from mind_body.mind.schema import MIGRATIONS, NEWEST
from mind_body.shared import make_shared, open_shared
from mind_body.sqlite_file import FileKind, Mark, SqliteFile, Weighing, apply_migrations, copy_database, read_mark

BUSY_TIMEOUT_MS = 30_000
"""How long a writer queues for another's commit. Transactions here take milliseconds; a backup does not hold the lock."""
CACHE_KIB = 256
"""Page cache per connection: a host has a thousand of them, and rows are small."""
PAGE_BYTES = 1024
"""SQLite allocates room for 20 pages with every connection, and mouth and heartbeat hold one for each Mind: at its usual 4,096 an
idle connection costs 0.18 MB, so 0.12. Our rows are a few hundred bytes, and a commit takes no longer."""
FEW_STATEMENTS, ALL_STATEMENTS = 4, 128
"""Prepared statements kept per connection. The mouth holds a thousand Minds, of whom few are talked to, and what is kept for each
costs more memory (4 KB each, by `probes/memory.py`) than preparing it anew is worth. A half of a Mind holds one, and keeps all."""
APPLICATION_ID = 0x4D494E44
"""'MIND' in the file's header: `file` and our own reader tell a mind.db from another database."""

KIND = FileKind(
    "mind",
    APPLICATION_ID,
    MindFileError,
    when_unreadable="`mind restore` brings back a backup",
    when_newer="install the newer release, or `mind restore` a backup made before the upgrade",
)

Transaction = sqlite_file.Transaction
"""What `read` and `write` hand out. SQL is written in `mind_body.mind` alone."""


class Mind(SqliteFile):
    """An open mind.db. Not shared between threads or across a fork."""

    kind = KIND
    _seen_version = -1

    @contextlib.contextmanager
    def weigh(self) -> Iterator[Weighing]:
        """A snapshot which may become a write; then all or nothing, and durable when the block has ended."""
        with KIND.translated(self.path), sqlite_file.weigh(self._db, "position") as weighing:
            yield weighing

    def changed(self) -> bool:
        """Whether another connection has committed since this was last asked. Costs microseconds, reads no table."""
        with KIND.translated(self.path):
            version: int = self._db.execute("PRAGMA data_version").fetchone()[0]
        changed, self._seen_version = version != self._seen_version, version
        return changed

    def shrink(self) -> None:
        """Give back the page cache: what a Mind with nothing to do need not keep. A third of an idle connection's memory."""
        with KIND.translated(self.path):
            self._db.execute("PRAGMA shrink_memory")

    def backup_to(self, target: Path) -> None:
        """A consistent copy of the whole mind while others write; `target` must not exist. Complete or absent."""
        if target.exists():
            raise StorageError(f"{target} exists already; a backup never overwrites")
        with KIND.translated(target):
            copy_database(self._db, target)


def open_mind(path: Path, *, create: bool = False, statements: int = FEW_STATEMENTS) -> Mind:
    """Open and, where needed, migrate. Raises MindFileError or StorageError with a sentence.

    `statements`: how many stay prepared.
    """
    if not create and not path.exists():
        raise MindFileError(f"{path} does not exist; `mind new` makes it, `mind restore` brings it back from a backup")
    with KIND.translated(path):
        if create:
            make_shared(path.parent)
            os.close(open_shared(path))  # SQLite would make it for its owner; its log takes the file's mode
        with sqlite_file.kept(sqlite_file.connect(path, busy_ms=BUSY_TIMEOUT_MS, statements=statements)) as db:
            mark, empty = _read_first(db)
            if mark.application_id != APPLICATION_ID and not empty:
                raise MindFileError(f"{path} is a database, but not a mind; move it away, or restore a backup with `mind restore`")
            KIND.refuse_newer(path, mark.version, NEWEST)
            db.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
            db.execute(f"PRAGMA page_size={PAGE_BYTES}")  # a new file's; one that exists keeps its own
            sqlite_file.enter_wal(db)
            db.execute("PRAGMA foreign_keys=ON")
            mind = Mind(db, path)
            if mark.version < NEWEST:
                _migrate(mind, db)
    return mind


def open_reader(path: Path) -> Mind:
    """To look into a mind that nothing here may change, not even to a newer version. Raises MindFileError or StorageError."""
    with KIND.translated(path), sqlite_file.kept(sqlite_file.connect(path, read_only=True, busy_ms=BUSY_TIMEOUT_MS)) as db:
        if read_mark(db) != Mark(NEWEST, APPLICATION_ID):
            raise MindFileError(f"{path} is not a mind of this version")
    return Mind(db, path)


def check_mind(path: Path) -> str:
    """`ok`, or what is wrong with the file: by its header, or by SQLite's own integrity check."""
    with KIND.translated(path), contextlib.closing(sqlite_file.connect(path, read_only=True)) as db:
        if read_mark(db).application_id != APPLICATION_ID:
            return "it is not a mind"
        return str(db.execute("PRAGMA integrity_check(1)").fetchone()[0])


def is_behind(path: Path) -> bool:
    """Whether this release would migrate the file. One that is not there, or cannot be read, is for `open_mind` to say."""
    try:
        with KIND.translated(path), contextlib.closing(sqlite_file.connect(path, read_only=True)) as db:
            mark = read_mark(db)
    except (MindFileError, StorageError):
        return False
    return mark.application_id == APPLICATION_ID and mark.version < NEWEST


def _read_first(db: Transaction) -> tuple[Mark, bool]:
    """What the file says of itself, and whether there is nothing in it yet; both at one instant, for another may be making it."""
    db.execute("BEGIN")
    try:
        mark = read_mark(db)
        return mark, mark == Mark(0, 0) and db.execute("SELECT 1 FROM sqlite_master").fetchone() is None
    finally:
        db.execute("ROLLBACK")


def _migrate(mind: Mind, db: Transaction) -> None:
    """Apply what is missing. Two processes may arrive here together."""
    path = mind.path
    lock = open_shared(path.with_name(path.name + ".migrate-lock"))
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        version = read_mark(db).version
        if version == 0:
            # Made just now: there is nothing to copy and no version between to come back to.
            apply_migrations(db, KIND, MIGRATIONS)
            return
        for migration in MIGRATIONS:
            if migration[0] <= version:
                continue
            before = path.with_name(f"{path.name}.before-{migration[0]}")
            if not before.exists():
                mind.backup_to(before)
            apply_migrations(db, KIND, [migration])
    finally:
        os.close(lock)
