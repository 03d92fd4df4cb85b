"""Door: the brake and dial files of a Mind.

1. One reader, used by every organ before every consequence. It fails closed: what is absent, unreadable, out of bounds, owned by
   the wrong user or writable by others is `Held(reason)`.
2. Owned by root, or by the owner of the home under `--home`; writable by nobody else. The same holds for their directory, since who
   may rename there may release.
3. What was read of a file counts while its marks are the same, if it was old when it was read: the next write shows in them. Owner
   and mode are asked for every time.
4. Written whole: temporary file, fsync, rename, fsync of the directory.
"""

import json
import os
import stat
from pathlib import Path
from typing import TypeVar

from mind_body.clock import now_ms
from mind_body.config import parse_settings, read_toml
from mind_body.control.effective import BrakeFile, Control, DialFile, Held, effective
from mind_body.errors import ConfigError, StorageError
from mind_body.home import Home
from mind_body.settings import Settings

S = TypeVar("S", bound=Settings)
OLD_MS = 1000
"""Longer than any file system's clock takes for a tick: two writes within one leave the same marks."""
_known: dict[Path, tuple[tuple[int, ...], Settings]] = {}
"""What was read, by file. Parsing takes ten times what asking does, and both are asked for six times on the way to a model call."""


def read_control(home: Home, name: str) -> Control:
    """What this Mind may do now. Never raises."""
    directory = home.control_dir(name)
    owners = _owners(home)
    trusted = _look(directory, owners)
    if isinstance(trusted, str):
        return Held(trusted)
    brake = _read(directory / "brake.toml", BrakeFile, owners)
    dial = _read(directory / "dial.toml", DialFile, owners)
    return effective(brake, dial)


def read_dial(home: Home, name: str) -> DialFile:
    """The dial as written, for the verb that turns it; raises ConfigError."""
    path = home.control_dir(name) / "dial.toml"
    return parse_settings(DialFile, read_toml(path), str(path))


def write_brake(home: Home, name: str, brake: BrakeFile) -> None:
    _write(
        home.control_dir(name) / "brake.toml",
        "# Written by `mind brake`. Readable by organs, writable by the operator alone.",
        brake,
    )


def write_dial(home: Home, name: str, dial: DialFile) -> None:
    _write(
        home.control_dir(name) / "dial.toml",
        "# Written by `mind dial`. Cadence is base_cooldown_s / heat; run cap is base_run_usd * heat.",
        dial,
    )


def _owners(home: Home) -> set[int]:
    try:
        return {0} if home.root is None else {0, home.root.stat().st_uid}
    except OSError:
        return {0}


def _read(path: Path, shape: type[S], owners: set[int]) -> S | str:
    found = _look(path, owners)
    if isinstance(found, str):
        return found
    marks = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    known = _known.get(path)
    if known is not None and known[0] == marks and isinstance(known[1], shape):
        return known[1]
    try:
        read = parse_settings(shape, read_toml(path), str(path))
    except ConfigError as error:
        return str(error)
    if found.st_ctime_ns // 1_000_000 < now_ms() - OLD_MS:
        _known[path] = (marks, read)
    return read


def _look(path: Path, owners: set[int]) -> os.stat_result | str:
    """The file as it is, or why it cannot be trusted."""
    try:
        found = path.lstat()
    except OSError as error:
        return f"{path} cannot be read ({error.strerror}); `mind brake` writes it"
    if stat.S_ISLNK(found.st_mode):
        return f"{path} is a symbolic link, and control files must be themselves"
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        return f"{path} is neither a file nor a directory"  # opening a pipe would wait for ever
    if found.st_uid not in owners:
        return f"{path} belongs to user {found.st_uid}, who may not hold the brake; chown it to root or to the home's owner"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{path} is writable by others; chmod go-w it"
    return found


def _write(path: Path, comment: str, values: Settings) -> None:
    lines = [comment, *(f"{key} = {_toml(value)}" for key, value in values.model_dump().items())]
    part = path.with_name(path.name + ".part")
    try:
        _make_readable(path.parent)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        part.rename(path)
        directory = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise StorageError(f"{path} could not be written ({error.strerror}); it is as it was") from error


def _make_readable(directory: Path) -> None:
    """For whoever may come as far as here, whatever the umask of who turns the dial."""
    if not directory.is_dir():
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        directory.chmod(0o755)


def _toml(value: object) -> str:
    # A JSON string is a TOML basic string but for two things: TOML has no surrogates (so what may stand plainly does), and it
    # wants DEL escaped. Numbers and booleans are spelled alike.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f").encode("utf-8", "replace").decode("utf-8")
