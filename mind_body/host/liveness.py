"""Door: holding is a lock (design §2). "Dead" means that the flock is free or somebody else's, never a guess from a process table.

1. Who acts for a Mind (or is a daemon of the host) holds an flock on its file for its life, and has written its holder id into it.
2. A run whose holder is not the one in the locked file is dead: its process is gone, and perhaps another one has begun.
3. The lock file is never deleted: a new file under the same name would be a second lock.
"""

import fcntl
import os
import select
from pathlib import Path

from mind_body.errors import StorageError
from mind_body.shared import open_shared

_TRIES = 25
_BETWEEN_TRIES_S = 0.002


class Hold:
    """An flock held for this object's life, and the process's at most. Not inherited by children (O_CLOEXEC)."""

    def __init__(self, descriptor: int, holder: str) -> None:
        self._descriptor: int | None = descriptor
        self.holder = holder

    def take(self) -> bool:
        """False when another process has it. Whatever goes wrong, nothing is held then."""
        assert self._descriptor is not None
        try:
            taken = _lock(self._descriptor)
            if taken:
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, self.holder.encode(), 0)
        except OSError:
            self.release()
            raise
        if not taken:
            self.release()
        return taken

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def take_hold(path: Path, holder: str) -> Hold | None:
    """The lock, with `holder` written into it, or None when another process has it. Raises StorageError."""
    try:
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        hold = Hold(open_shared(path), holder)
        return hold if hold.take() else None
    except OSError as error:
        raise StorageError(f"{path} could not be written ({error.strerror}); see that the disk has room and is writable") from error


def _lock(descriptor: int) -> bool:
    """Whoever only asks (`read_holder`) has the lock too, shared, for microseconds: that refusal is not one."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            select.select([], [], [], _BETWEEN_TRIES_S)
        else:
            return True
    return False


def read_holder(path: Path) -> str | None:
    """The holder id of whoever holds the lock now; None when it is free. Empty for the instant before the id is written."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # A shared lock is refused exactly while an exclusive one is held, and two askers do not refuse each other.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(descriptor, 256, 0).decode()
    else:
        return None
    finally:
        os.close(descriptor)
