"""Door: an installation on this host, or below a directory: what is wanted, what is found, and the doing of it.

1. Paths in plans and in the manifest are as they will be; below `--root DIR` they are written with DIR before them.
2. Every file is written whole: beside its place, then renamed. One that stands in the way as a link is replaced, never followed.
3. The manifest is written before anything else, and after each thing that the manager was told: a run that was cut off is finished
   by the next, and what it has put there is known.
"""

import contextlib
import grp
import hashlib
import os
import pwd
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from mind_body.cli.install_shapes import GROUP, NEW_SUFFIX, Action, Facts, Manager, Manifest, Plan, Thing, WantedFile
from mind_body.config import list_minds
from mind_body.errors import ConfigError, MindBodyError, StorageError
from mind_body.home import Home, system_home
from mind_body.host.manager import change, is_booted, list_active, list_enabled
from mind_body.lease.ledger_read import read_calls
from mind_body.mind.store import is_behind, open_mind

MANIFEST = "/var/lib/mind/.installed.json"
"""Root's, in a directory where nobody else may put one."""


@dataclass(frozen=True, slots=True)
class Host:
    """Where to install: `/`, or the root of what is being made."""

    root: Path

    @property
    def is_this(self) -> bool:
        return self.root == Path("/")

    @property
    def home(self) -> Home:
        found = system_home()
        return Home(None, self.path(str(found.etc)), self.path(str(found.state)), self.path(str(found.run)))

    def path(self, told: str) -> Path:
        return self.root / told.lstrip("/")

    def read_manifest(self) -> Manifest | None:
        """Raises ConfigError."""
        path = self.path(MANIFEST)
        try:
            return Manifest.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            words = "what `mind install` has put where is not known; move it away, and everything that is there counts as yours"
            raise ConfigError(f"{path} cannot be read: {words}") from error

    def read_facts(self, paths: Iterable[str], accounts: Iterable[str], manifest: Manifest | None) -> Facts:
        """`paths`: what is asked about, beside what the manifest names."""
        named = {*paths, *(_every_path(manifest) if manifest else ())}
        wide = named | {str(parent) for path in named for parent in Path(path).parents}
        minds = list_minds(self.home)
        return Facts(
            things={path: thing for path in wide if (thing := _read_thing(self.path(path))) is not None},
            accounts=frozenset(name for name in accounts if _is_account(name)) if self.is_this else frozenset(),
            manifest=manifest,
            manager=_read_manager() if self.is_this else None,
            minds=tuple(minds),
            behind=tuple(name for name in minds if is_behind(self.home.mind_db(name))),
            left=tuple(self._read_left(manifest)),
        )

    def _read_left(self, manifest: Manifest | None) -> Iterator[str]:
        """What in the places of configuration and state is not there by `mind install` alone."""
        made = set(manifest.directories if manifest else ())
        empty = {str(self.home.ledger.parent)} if self._is_ledger_blank() else set()
        organs = {str(self.home.state / name) for name in ("mouth.d", "lease.d")}
        for place in (self.home.etc, self.home.state):
            for directory, _, files in os.walk(place):
                told = f"/{Path(directory).relative_to(self.root)}"
                if told not in made and directory != str(place) and directory not in organs:
                    yield told
                if directory not in empty:
                    yield from (f"{told}/{file}" for file in files if f"{told}/{file}" != MANIFEST)

    def _is_ledger_blank(self) -> bool:
        """The lease begins one at its first start; before the first call nothing is in it."""
        with contextlib.suppress(MindBodyError):
            return self.home.ledger.exists() and not read_calls(self.home.ledger)
        return False


def carry_out(host: Host, plan: Plan, files: Iterable[WantedFile]) -> None:
    """Do it, in its order. Raises MindBodyError or OSError where something cannot be done; what was, is known."""
    content = {file.path: file.content for file in files}
    known, pending = plan.first, list(plan.first.pending) if plan.first else []
    if known is not None and plan.actions:
        save_manifest(host, known)
    for action in plan.actions:
        _do(host, action, content)
        if known is not None and action.settles in pending:
            pending.remove(action.settles)
            save_manifest(host, known.model_copy(update={"pending": pending}))
    if plan.manifest is None:
        host.path(MANIFEST).unlink(missing_ok=True)
    else:
        save_manifest(host, plan.manifest.model_copy(update={"pending": pending}))


def save_manifest(host: Host, manifest: Manifest) -> None:
    if manifest == host.read_manifest():
        return
    path = host.path(MANIFEST)
    path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    _write(path, (manifest.model_dump_json(indent=2) + "\n").encode())


def _do(host: Host, action: Action, content: dict[str, bytes]) -> None:
    match action.do:
        case "write" | "beside":
            _write(host.path(action.about), content[action.about.removesuffix(NEW_SUFFIX)])
        case "link":
            _link(host.path(action.about), action.why)
        case "directory" | "own":
            _own(host.path(action.about), action)
        case "migrate":
            open_mind(host.home.mind_db(action.about)).close()
        case "run":
            change(action.argv)
        case "remove" | "unlink" | "rmdir" | "clear":
            _remove(host.path(action.about), action.do)


def _remove(path: Path, how: Literal["remove", "unlink", "rmdir", "clear"]) -> None:
    if how == "clear":
        shutil.rmtree(path)
    elif how == "rmdir":
        with contextlib.suppress(OSError):  # what somebody else has put there keeps it
            path.rmdir()
    else:
        path.unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.part")
    try:
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644), "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    except OSError as error:
        raise StorageError(f"{path} could not be written ({error.strerror}); it is as it was") from error


def _link(path: Path, target: str) -> None:
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    part.symlink_to(target)
    part.rename(path)


def _own(path: Path, action: Action) -> None:
    """Made where it is not there. The owner first: a change of owner takes setgid away."""
    path.mkdir(mode=0o700, exist_ok=True)
    if action.owner:
        shutil.chown(path, action.owner, action.group)
    path.chmod(action.mode)


def _read_thing(path: Path) -> Thing | None:
    """A directory may lie elsewhere, where a link leads to; a file is what is there itself."""
    try:
        found = path.lstat()
        target = str(path.readlink()) if stat.S_ISLNK(found.st_mode) else ""
        if target and path.is_dir():
            found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    mode, owner, group = stat.S_IMODE(found.st_mode), _name(pwd.getpwuid, found.st_uid), _name(grp.getgrgid, found.st_gid)
    if stat.S_ISDIR(found.st_mode):
        return Thing("directory", mode=mode, owner=owner, group=group)
    if target:
        return Thing("link", target=target)
    if not stat.S_ISREG(found.st_mode):
        return Thing("other")
    return Thing("file", digest_of(path.read_bytes()), mode=mode, owner=owner, group=group)


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _name(ask: Callable[[int], pwd.struct_passwd | grp.struct_group], number: int) -> str:
    try:
        return str(ask(number)[0])
    except KeyError:
        return str(number)


def _is_account(name: str) -> bool:
    with contextlib.suppress(KeyError):
        (grp.getgrnam if name == GROUP else pwd.getpwnam)(name)
        return True
    return False


def _read_manager() -> Manager:
    booted = is_booted()
    return Manager(booted, list_active() if booted else (), list_enabled())


def _every_path(manifest: Manifest) -> Iterator[str]:
    yield from (*manifest.files, *manifest.beside, *manifest.links, *manifest.directories)
