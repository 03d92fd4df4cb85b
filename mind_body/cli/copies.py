"""Wiring: `mind backup` and `mind restore`.

1. A backup is one consistent file, made while everything runs; it never overwrites.
2. A restore takes the locks of every organ that could write, and refuses while one runs. The copy is read and checked beside the
   old file first; the old file is kept aside, with its write-ahead log, before the new one takes its name.
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import click

from mind_body.clock import now_ms, render_utc
from mind_body.config import read_mind_config
from mind_body.errors import MindBodyError, MindFileError, StorageError
from mind_body.home import Home
from mind_body.host.liveness import take_hold
from mind_body.ids import new_id
from mind_body.mind.reports import read_newest_instant
from mind_body.mind.restored import admit_restored
from mind_body.mind.rooms import read_identity
from mind_body.mind.store import check_mind, open_mind
from mind_body.shared import share_file

_PARTS = ("", "-wal", "-shm")
"""SQLite's files of one database; the log belongs to its file and to no other."""


@click.command()
@click.argument("name")
@click.option("--to", "target", type=click.Path(path_type=Path), metavar="FILE", help="Default: NAME-<instant>.mind.db here.")
@click.pass_obj
def backup(home: Home, name: str, target: Path | None) -> None:
    """Write a consistent copy of NAME's mind, while everything runs.

    It holds what people wrote to her and what she said: keep it as you keep the mind itself. Configuration, persona and
    credentials are not in it.
    """
    read_mind_config(home, name)
    target = target or Path(f"{name}-{_stamp()}.mind.db")
    if not target.absolute().parent.is_dir():
        raise StorageError(f"{target.absolute().parent} is not a directory; make it, or name another with --to")
    mind = open_mind(home.mind_db(name))
    try:
        mind.backup_to(target)
    finally:
        mind.close()
    target.chmod(0o600)
    click.echo(f"The mind of {name} is in {target} ({target.stat().st_size:,} bytes).")


@click.command()
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_obj
def restore(home: Home, name: str, file: Path) -> None:
    """Put the backup FILE in the place of NAME's mind. Refuses while its organs run.

    The mind that was there is kept beside it. What happened after the backup is unknown to the restored mind; the command says
    what that means.
    """
    config = read_mind_config(home, name)
    if not file.is_file():
        raise MindBodyError(f"{file} is not a file; name one that `mind backup` wrote")
    path = home.mind_db(name)
    with _stopped(home, name):
        try:
            copy = _checked_copy(file, path.parent / "restoring")
            known_until = _admit(copy, config.matrix.user)
            aside = _set_aside(path)
            copy.rename(path)
            share_file(path)
        finally:
            shutil.rmtree(path.parent / "restoring", ignore_errors=True)
    click.echo(f"{name} has the mind of {file} again.")
    if aside is not None:
        click.echo(f"The one before is kept as {aside}.")
    click.echo(_unknown(name, known_until))


@contextlib.contextmanager
def _stopped(home: Home, name: str) -> Iterator[None]:
    """Hold the locks of every organ that writes this mind, so that none runs and none starts."""
    with contextlib.ExitStack() as stack:
        for organ, whose in (("mouth", None), ("heartbeat", None), ("persona", name), ("self", name)):
            hold = take_hold(home.lock_file(organ, whose), f"restore-{new_id()}")
            if hold is None:
                raise MindBodyError(f"the {organ} is running: stop `mind up` (or the units) first, then restore {name}")
            stack.callback(hold.release)
        yield


def _checked_copy(file: Path, directory: Path) -> Path:
    try:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(mode=0o700, parents=True)
        copy = directory / "mind.db"
        shutil.copyfile(file, copy)
    except OSError as error:
        raise StorageError(f"{file} could not be copied ({error.strerror}); the mind is as it was") from error
    try:
        found = check_mind(copy)
    except MindFileError as error:
        raise MindFileError(f"{file} cannot be read as a mind; nothing was changed") from error
    if found != "ok":
        raise MindFileError(f"{file} is damaged ({found}); nothing was changed: restore another backup")
    return copy


def _admit(copy: Path, user_id: str) -> int:
    try:
        mind = open_mind(copy)
    except MindFileError as error:
        raise MindFileError(str(error).replace(str(copy), "the backup") + "; nothing was changed") from error
    try:
        with mind.write() as tx:
            identity = read_identity(tx)
            if identity is not None and identity.user_id != user_id:
                words = f"the backup is of {identity.user_id}, and this Mind is {user_id} ([matrix] user); nothing was changed"
                raise MindFileError(words)
            known_until = read_newest_instant(tx)
            admit_restored(tx, now_ms())
    finally:
        mind.close()
    return known_until


def _set_aside(path: Path) -> Path | None:
    aside = path.with_name(f"{path.name}.replaced-{_stamp()}")
    for part in _PARTS:
        old = path.with_name(path.name + part)
        if old.exists():
            old.rename(aside.with_name(aside.name + part))
    return aside if aside.exists() else None


def _unknown(name: str, known_until: int) -> str:
    since = render_utc(known_until) if known_until else "it was made"
    return (
        f"Unknown to {name} now is everything after {since}: what she said since then she does not remember, and messages of "
        "that time will reach her again and may be answered a second time. Her model sessions begin afresh."
    )


def _stamp() -> str:
    return render_utc(now_ms()).replace("-", "").replace(":", "")
