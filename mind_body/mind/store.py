"""Door: one Mind's SQLite file: opening, migrating, resting, copying (see `sqlite_file` for what a transaction is).

A Mind for whom nothing happens rests: her connection, most of what she costs, is closed, and opened again by the next transaction.
Two stats then tell whether somebody has committed. No commit may be missed; to be told of one that was none costs a look.

1. She rests where nobody has written for a while, by the stamps of file and log. They are read under the write lock, and so is
   whether there was a commit of which she was not told: then nobody is between writing a commit and showing it, which a slow disk
   may part by any time. Who commits afterwards writes to the log, and its stamp is another: one tick of the clock holds no two
   instants that are a second apart.
2. The stamps from before the connection was closed count. Closing a file's last one moves the log into the file and deletes it,
   and she is told of a change that was none; stamps from afterwards would hide a commit that came between.
3. A log that is empty is as none: whoever opens the file makes one, and two organs would wake each other for ever.
4. When she wakes, the new connection's version is asked before the stamps are compared: a commit before that has left its stamp,
   and one after it shows in the version. Who was told of a change while she rested looks after that, and is not told again.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mind_body import sqlite_file
from mind_body.clock import now_ms
from mind_body.errors import MindFileError, StorageError
from mind_body.mind.schema import MIGRATIONS, NEWEST
from mind_body.shared import make_shared, open_shared
from mind_body.sqlite_file import FileKind, Mark, SqliteFile, Weighing, apply_migrations, copy_database, read_mark

BUSY_TIMEOUT_MS = 30_000
"""How long a writer queues for another's commit. Transactions here take milliseconds; a backup does not hold the lock."""
CACHE_KIB = 256
"""Page cache per connection: a host has a thousand of them, and rows are small."""
PAGE_BYTES = 1024
"""SQLite allocates room for 20 pages with every connection, and mouth and heartbeat hold one for each Mind that does not rest: at
its usual 4,096 an idle connection costs 0.18 MB, so 0.12. Our rows are a few hundred bytes, and a commit takes no longer."""
REST_LOOKS = 2
"""A Mind in whose file nobody has written for so many looks (`look_s`) rests: by default a minute, longer than people pause."""
TICK_S = 1.0
"""Longer than any file system's clock takes for a tick (ext4, xfs and btrfs: 4 ms or less)."""
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


class Stamp(NamedTuple):
    """What tells of a write to a file."""

    inode: int
    size: int
    written_ns: int


Stamps = tuple[Stamp | None, Stamp | None]
"""Of the file and of its log; None for what is not there, or is a log with nothing in it."""


class Mind(SqliteFile):
    """An open mind.db. Not shared between threads or across a fork."""

    kind = KIND
    _seen_version = -1

    def __init__(self, connection: Transaction, path: Path, *, reads_only: bool = False) -> None:
        """`reads_only`: she never rests."""
        super().__init__(connection, path)
        self._reads_only = reads_only
        self._rested: Stamps | None = None
        """The stamps with which she rests."""
        self._told = False
        """That somebody has committed since."""

    @property
    def resting(self) -> bool:
        """Nothing has been written since long before the last look, unless `changed` says so."""
        return self._rested is not None

    @contextlib.contextmanager
    def weigh(self) -> Iterator[Weighing]:
        """A snapshot which may become a write; then all or nothing, and durable when the block has ended."""
        with KIND.translated(self.path), sqlite_file.weigh(self._db, "DELETE FROM position WHERE 0") as weighing:
            yield weighing

    def changed(self) -> bool:
        """Whether another connection has committed since this was last asked; while she rests, since she was last used.

        Costs microseconds, reads no table.
        """
        if self._rested is not None:
            self._told = self._told or _read_stamps(self.path) != self._rested
            return self._told
        with KIND.translated(self.path):
            version = _read_version(self._connection)
        changed, self._seen_version = version != self._seen_version, version
        return changed

    def rest(self, idle_s: float) -> bool:
        """Give the connection back until she is used, if nobody has written for so long; whether she rests (rules 1 and 2)."""
        if self._rested is not None:
            return True
        before_ns = (now_ms() - int(max(idle_s, TICK_S) * 1000)) * 1_000_000
        if self._reads_only or _written_ns(_read_stamps(self.path)) > before_ns:
            return False
        try:
            with self.write() as tx:
                stamps, version = _read_stamps(self.path), _read_version(tx)
        except StorageError:
            return False  # who has something to write meets it, too, and says so
        if version != self._seen_version or _written_ns(stamps) > before_ns:
            return False
        self._connection.close()
        self._rested, self._told = stamps, False
        return True

    def close(self) -> None:
        self._rested = None
        super().close()

    @property
    def _db(self) -> Transaction:
        if self._rested is not None:
            self._wake(self._rested)
        return self._connection

    def _wake(self, rested: Stamps) -> None:
        """Rule 4. Raises MindFileError or StorageError, and she rests as before."""
        db = _open(self.path)
        with KIND.translated(self.path), sqlite_file.kept(db):
            version = _read_version(db)
            known = self._told or _read_stamps(self.path) == rested
        self._connection, self._rested, self._seen_version = db, None, version if known else -1

    def backup_to(self, target: Path) -> None:
        """A consistent copy of the whole mind while others write; `target` must not exist. Complete or absent."""
        if target.exists():
            raise StorageError(f"{target} exists already; a backup never overwrites")
        _copy(self._db, target)


def open_mind(path: Path, *, create: bool = False) -> Mind:
    """Open and, where needed, migrate. Raises MindFileError or StorageError with a sentence."""
    return Mind(_open(path, create=create), path)


def _open(path: Path, *, create: bool = False) -> Transaction:
    if not create and not path.exists():
        raise MindFileError(f"{path} does not exist; `mind new` makes it, `mind restore` brings it back from a backup")
    with KIND.translated(path):
        if create:
            make_shared(path.parent)
            os.close(open_shared(path))  # SQLite would make it for its owner; its log takes the file's mode
        with sqlite_file.kept(sqlite_file.connect(path, busy_ms=BUSY_TIMEOUT_MS)) as db:
            mark, empty = _read_first(db)
            if mark.application_id != APPLICATION_ID and not empty:
                raise MindFileError(f"{path} is a database, but not a mind; move it away, or restore a backup with `mind restore`")
            KIND.refuse_newer(path, mark.version, NEWEST)
            db.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
            db.execute(f"PRAGMA page_size={PAGE_BYTES}")  # a new file's; one that exists keeps its own
            sqlite_file.enter_wal(db)
            db.execute("PRAGMA foreign_keys=ON")
            if mark.version < NEWEST:
                _migrate(path, db)
    return db


def _copy(db: Transaction, target: Path) -> None:
    with KIND.translated(target):
        copy_database(db, target)


def _read_version(db: Transaction) -> int:
    """Another one whenever another connection has committed."""
    version: int = db.execute("PRAGMA data_version").fetchone()[0]
    return version


def _read_stamps(path: Path) -> Stamps:
    log = _read_stamp(f"{path}-wal")
    return _read_stamp(str(path)), log if log and log.size else None


def _read_stamp(path: str) -> Stamp | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - a thousand Minds are asked in each round
    except OSError:
        return None
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns)


def _written_ns(stamps: Stamps) -> int:
    return max((stamp.written_ns for stamp in stamps if stamp), default=0)


def open_reader(path: Path) -> Mind:
    """To look into a mind that nothing here may change, not even to a newer version. Raises MindFileError or StorageError."""
    with KIND.translated(path), sqlite_file.kept(sqlite_file.connect(path, read_only=True, busy_ms=BUSY_TIMEOUT_MS)) as db:
        if read_mark(db) != Mark(NEWEST, APPLICATION_ID):
            raise MindFileError(f"{path} is not a mind of this version")
    return Mind(db, path, reads_only=True)


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


def _migrate(path: Path, db: Transaction) -> None:
    """Apply what is missing. Two processes may arrive here together."""
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
                _copy(db, before)
            apply_migrations(db, KIND, [migration])
    finally:
        os.close(lock)
