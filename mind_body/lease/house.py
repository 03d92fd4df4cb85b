"""Door: what the operator has set for a Mind and for the host, read anew whenever a file is another."""

import contextlib
from pathlib import Path

from mind_body.config import ConfigFiles
from mind_body.errors import MindBodyError
from mind_body.mind.questions import read_extensions
from mind_body.mind.store import open_reader


class House(ConfigFiles):
    """The files of one home."""

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
