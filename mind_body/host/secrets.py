"""Door: files that hold a secret: tokens, passwords, keys.

1. A secret that others may read is not used: the mode is looked at on the open descriptor, so that no rename comes in between.
2. A secret is written whole (temporary file, fsync, rename, fsync of the directory) and is at no instant readable by others.
3. A secret's text is in no error, no log and no repr.
"""

import os
import stat
from pathlib import Path

from mind_body.errors import CredentialError, StorageError
from mind_body.host.credentials import is_handed, kept_at, then_restart

SECRET_MAX = 65_536
"""Bytes; a token is hundreds, and a wrong path must not fill the memory."""


def read_secret(path: Path) -> str:
    """The file's text without the white space around it. Raises CredentialError with the file's name and the way out."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise CredentialError(f"{path} is not a plain file, and a secret must be one")
            if mode & (stat.S_IRWXG | stat.S_IRWXO) and not is_handed(path):
                raise CredentialError(f"{path} can be read or written by others; chmod 600 it")
            text = file.read(SECRET_MAX).decode().strip()
    except FileNotFoundError as error:
        words = f"{kept_at(path)} does not exist; write the secret into it, readable by nobody else (mode 600){then_restart(path)}"
        raise CredentialError(words) from error
    except UnicodeDecodeError as error:
        raise CredentialError(f"{path} does not hold text") from error
    except OSError as error:
        raise CredentialError(f"{path} cannot be read: {error.strerror}") from error
    if not text:
        raise CredentialError(f"{path} is empty")
    return text


def write_secret(path: Path, text: str) -> None:
    """Put `text` there, mode 0600, whole or not at all. Raises StorageError."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            os.fchmod(file.fileno(), 0o600)  # a leftover part file may have had another mode
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
        directory = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise StorageError(f"{path} could not be written ({error.strerror}); it is as it was") from error
