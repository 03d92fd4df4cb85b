"""Door: what the organs share. A file is as open to its group as the directory that it lies in.

Under systemd each organ is a user of its own, and they share a group: the directories are setgid and writable for it (2770), so
what is made there must be, too, whoever makes it and whatever his umask is. Under `--home` the directories are the owner's alone,
and nothing is opened. Only a file that was just made is opened: what the operator closed stays closed.
"""

import os
import stat
from pathlib import Path

FILE_MODE, DIRECTORY_MODE = 0o660, 0o2770


def open_shared(path: Path, flags: int = os.O_RDWR) -> int:
    """A descriptor of the file, made where it is not there: for the group, too, where its directory is. Raises OSError."""
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    except FileExistsError:
        return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    if _is_shared(path.parent):
        os.fchmod(descriptor, FILE_MODE)
    return descriptor


def share_file(path: Path) -> None:
    """The same for a file of ours that another door has made. Raises OSError."""
    if _is_shared(path.parent):
        path.chmod(FILE_MODE)


def make_shared(directory: Path) -> None:
    """The directory, and what of its parents is not there: for the group, too, where the one above is. Raises OSError."""
    if directory.is_dir():
        return
    make_shared(directory.parent)
    directory.mkdir(mode=0o750, exist_ok=True)
    if directory.parent.stat().st_mode & stat.S_ISGID:
        directory.chmod(DIRECTORY_MODE)


def _is_shared(directory: Path) -> bool:
    return bool(directory.stat().st_mode & stat.S_IWGRP)
