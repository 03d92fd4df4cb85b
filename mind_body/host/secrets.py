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
        with os.fdopen(open_secret(path), "rb") as file:
            text = file.read(SECRET_MAX).decode().strip()
    except UnicodeDecodeError as error:
        raise CredentialError(f"{path} does not hold text") from error
    except OSError as error:
        raise CredentialError(f"{path} cannot be read: {error.strerror}") from error
    if not text:
        raise CredentialError(f"{path} is empty")
    return text


def open_secret(path: Path) -> int:
    """A descriptor that can only be read; the caller's to close. Raises CredentialError, also where others may read the file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would wait for who writes into it
        mode = os.fstat(descriptor).st_mode
    except FileNotFoundError as error:
        words = f"{kept_at(path)} does not exist; write the secret into it, readable by nobody else (mode 600){then_restart(path)}"
        raise CredentialError(words) from error
    except OSError as error:
        raise CredentialError(f"{path} cannot be read: {error.strerror}") from error
    if stat.S_ISREG(mode) and (not mode & (stat.S_IRWXG | stat.S_IRWXO) or is_handed(path)):
        return descriptor
    os.close(descriptor)
    if not stat.S_ISREG(mode):
        raise CredentialError(f"{path} is not a plain file, and a secret must be one")
    raise CredentialError(f"{path} can be read or written by others; chmod 600 it")


def read_lent_secret(descriptor: int) -> str:
    """The text behind an open descriptor that was handed over; it is closed. From its beginning: who lent it may have read it.

    Raises CredentialError.
    """
    try:
        text = os.pread(descriptor, SECRET_MAX, 0).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialError(f"the credential that was lent cannot be read ({type(error).__name__})") from None
    finally:
        os.close(descriptor)
    if not text:
        raise CredentialError("the credential that was lent is empty")
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
