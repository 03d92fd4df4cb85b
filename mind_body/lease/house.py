"""Door: what the operator has set for a Mind and for the host, read anew whenever a file is another."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mind_body.config import read_host_config, read_mind_config
from mind_body.errors import MindBodyError
from mind_body.home import Home
from mind_body.mind.questions import read_extensions
from mind_body.mind.store import open_reader
from mind_body.settings import HostConfig, MindConfig

S = TypeVar("S", HostConfig, MindConfig)
Mark = tuple[int, int, int] | None


class House:
    """The files of one home. Parsing one costs a hundred times what asking costs whether it changed."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._hosts: dict[str, tuple[Mark, HostConfig]] = {}
        self._minds: dict[str, tuple[Mark, MindConfig]] = {}

    def read_host(self) -> HostConfig:
        """Raises ConfigError."""
        return _again(self._hosts, "", self._home.config_file, lambda: read_host_config(self._home))

    def read_mind(self, name: str) -> MindConfig:
        """Raises ConfigError, also for a Mind that is not there."""
        return _again(self._minds, name, self._home.mind_file(name), lambda: read_mind_config(self._home, name))

    def read_mended_at(self, name: str, key: Path) -> int:
        """When a file that may mend her credential's trouble was changed last (ms): the key, her configuration, brake or dial.

        By ctime, which no copying tool sets back.
        """
        control = self._home.control_dir(name)
        found = 0
        for path in (key, self._home.mind_file(name), control / "brake.toml", control / "dial.toml"):
            with contextlib.suppress(OSError):
                # Of a link and of what it leads to: either may be another.
                found = max(found, path.lstat().st_ctime_ns // 1_000_000, path.stat().st_ctime_ns // 1_000_000)
        return found

    def read_extensions(self, name: str, day: str, month: str) -> tuple[int, int]:
        """How often an operator has allowed her caps of this day and month once more, by her questions. Unreadable is never."""
        try:
            mind = open_reader(self._home.mind_db(name))
        except MindBodyError:
            return 0, 0
        try:
            with mind.read() as tx:
                return read_extensions(tx, f"day:{day}"), read_extensions(tx, f"month:{month}")
        except MindBodyError:
            return 0, 0
        finally:
            mind.close()


def _again(known: dict[str, tuple[Mark, S]], name: str, path: Path, read: Callable[[], S]) -> S:
    mark = _mark(path)
    held = known.get(name)
    if held is None or held[0] != mark:
        held = known[name] = (mark, read())
    return held[1]


def _mark(path: Path) -> Mark:
    """Of the file that a link leads to: a cap that is lowered there is lowered."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
