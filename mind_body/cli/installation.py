"""Door: this installation: where its program lies, and whether a unit could run it.

1. Units run as users of their own, which see no home directory (`ProtectHome=yes`) and have a /tmp of their own
   (`PrivateTmp=yes`). So nothing that an organ loads may lie there, and all of it must be readable by everybody: the program, its
   interpreter, the packages that it needs.
2. A package is made below a directory that will be the root: paths are told as they will be there.
"""

import contextlib
import hashlib
import importlib.metadata
import os
import re
import stat
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mind_body

PACKAGE = "mind-body"
UNSEEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108 - what a unit sees of its own
"""What `ProtectHome=yes` and `PrivateTmp=yes` take away (systemd.exec(5))."""
OPT = (
    "`/usr/bin/python3 -m venv /opt/mind-body`, `/opt/mind-body/bin/pip install` its checkout or wheel, "
    "`/opt/mind-body/bin/mind install`"
)
PIPX = (
    "`PIPX_HOME=/opt/pipx PIPX_BIN_DIR=/usr/local/bin pipx install --python /usr/bin/python3` its checkout or wheel, "
    "`/usr/local/bin/mind install`"
)
"""By itself pipx puts it below `~/.local/share/pipx`. Both name an interpreter: one of pyenv's lies in a home, too."""


@dataclass(frozen=True, slots=True)
class Installation:
    """As it will be found by a unit."""

    release: str
    code: str
    """A digest of the program's files."""
    program: tuple[str, ...]
    """What `mind` is: its script, or an interpreter and a module."""
    python: str
    needs: tuple[Path, ...]
    """What an organ loads, as it lies here: as it is called, and with every link followed."""


def find_installation(root: Path) -> Installation:
    """`root`: what will be `/` for the units."""
    script = Path(sysconfig.get_path("scripts")) / "mind"
    program: tuple[str, ...] = (_below(script, root),)
    if not script.exists():
        program = (_below(Path(sys.executable), root), "-m", "mind_body")
    called = [script, Path(sys.executable)] if script.exists() else [Path(sys.executable)]
    loaded = [Path(os.__file__), Path(mind_body.__file__), *_dependencies()]
    needs = [*(path.absolute() for path in called), *(path.resolve() for path in (*called, *loaded))]
    return Installation(_read_release(), _digest_code(), program, _below(Path(sys.executable), root), tuple(dict.fromkeys(needs)))


def find_fault(installation: Installation, root: Path) -> str | None:
    """Why a unit could not run it, with the way out; None where it can."""
    way = PIPX if any("pipx" in path.parts for path in installation.needs) else OPT
    for path in installation.needs:
        there = _below(path, root)
        unseen = next((place for place in UNSEEN if Path(there).is_relative_to(place)), None)
        if unseen:
            return f"the units could not run {there}: they see nothing of {unseen}; put it below /opt: {way}"
        closed = next((one for one in (path, *path.parents) if one not in {root, *root.parents} and not _is_open(one)), None)
        if closed:
            return f"the units could not run {there}: {closed} is closed to other users; `chmod o+rX` it, or: {way}"
    return None


def _is_open(path: Path) -> bool:
    """To everybody: readable, and a directory to be gone through."""
    mode = path.stat().st_mode
    return bool(mode & stat.S_IXOTH) if stat.S_ISDIR(mode) else bool(mode & stat.S_IROTH)


def _read_release() -> str:
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:  # a bare tree, run by `python -m`
        return "unknown"


def _dependencies() -> Iterator[Path]:
    """One file of each package that is needed, and here."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for requirement in importlib.metadata.requires(PACKAGE) or ():
            if "extra" not in requirement.partition(";")[2]:
                name = re.match(r"[\w.-]+", requirement)
                assert name is not None
                files = importlib.metadata.distribution(name[0]).files or []
                modules = [file for file in files if file.suffix == ".py" and ".." not in file.parts]
                yield from (Path(str(file.locate())) for file in modules[:1])


def _digest_code() -> str:
    """Of every file that an organ could load, by its place and its content."""
    package = Path(mind_body.__file__).parent
    whole = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        whole.update(f"{path.relative_to(package)}\0".encode())
        whole.update(path.read_bytes())
    return whole.hexdigest()


def _below(path: Path, root: Path) -> str:
    """As it will be called when `root` is `/`."""
    path = path.absolute()
    return f"/{path.relative_to(root)}" if root != Path("/") and path.is_relative_to(root) else str(path)
