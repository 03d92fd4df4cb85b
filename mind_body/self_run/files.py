"""Door: what a Self keeps on disk: its workspaces, and one configuration directory of the `claude` CLI per session.

1. A session's directory begins as a copy of the operator's seed, without what would be a secret or another session's. It is used
   by one process at a time: the organ holds its Mind's lock.
2. Directories of sessions that are over are removed at the next start: nothing is left of what a killed driver began.
3. A workspace that the operator placed elsewhere has to be there already; any other is made below the Mind's state.
4. What the operator names is shown by where it really lies, and never where that would open the Mind itself (`binds`).
"""

import shutil
from collections.abc import Collection
from pathlib import Path

from mind_body.errors import ConfigError, StorageError
from mind_body.home import Home
from mind_body.model.claude_files import check_transcript, mend_state, write_settings
from mind_body.model.claude_launch import SETTINGS
from mind_body.self_run.binds import check_place, find_binds
from mind_body.self_run.launch import SETTINGS_FILE
from mind_body.settings import SelfConfig

NEVER_COPIED = shutil.ignore_patterns(
    ".credentials.json", ".claude.json*", "backups", "projects", "sessions", "history.jsonl", "shell-snapshots", "todos", "statsig"
)


class SelfFiles:
    """The directories of one Mind's Self."""

    def __init__(self, home: Home, name: str, config: SelfConfig) -> None:
        self._home = home
        self._name = name
        self._config = config

    def config_dir(self, session_id: str) -> Path:
        return self._home.self_dir(self._name) / session_id

    def prepare(self, session_id: str) -> Path:
        """The session's directory, with everything that a start reads. Raises ConfigError or StorageError."""
        directory = self.config_dir(session_id)
        try:
            _make_private(directory.parent)
            if not directory.exists():
                self._plant(directory)
            write_settings(directory, SETTINGS_FILE, SETTINGS)
            mend_state(directory)
        except (OSError, shutil.Error) as error:
            raise StorageError(f"{directory} could not be written ({error})") from error
        return directory

    def find_workspace(self, workspace: str) -> Path:
        """Its directory, made where it is ours to make. Raises ConfigError or StorageError."""
        placed = self._config.workspaces.get(workspace)
        if placed is not None:
            directory = Path(placed).expanduser()
            if not directory.is_dir():
                raise ConfigError(f"the workspace '{workspace}' is {directory} by [self] workspaces, which is no directory")
            return check_place(self._home, self._name, directory)
        directory = self._home.work_dir(self._name, workspace)
        try:
            _make_private(directory.parent)
            directory.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{directory} could not be made ({error.strerror})") from error
        return directory

    def find_binds(self) -> tuple[dict[str, str], dict[str, str]]:
        """Further paths, those to read and those to write, outside to inside. Raises ConfigError."""
        config = self._config
        return find_binds(self._home, self._name, config.binds_readable), find_binds(self._home, self._name, config.binds_writable)

    def check_resumable(self, session_id: str, leaf: str) -> None:
        """Raises SessionGone with the reason."""
        check_transcript(self.config_dir(session_id), session_id, leaf)

    def sweep(self, keep: Collection[str]) -> int:
        """Remove what sessions left that are not to be kept; how many."""
        root = self._home.self_dir(self._name)
        gone = [entry for entry in root.iterdir() if entry.name not in keep] if root.is_dir() else []
        for entry in gone:
            shutil.rmtree(entry, ignore_errors=True)
        return len(gone)

    def check_seed(self) -> Path:
        """Where it really lies. Raises ConfigError."""
        seed = Path(self._config.config_seed).expanduser()
        if not seed.is_dir():
            raise ConfigError(f"[self] config_seed is {seed}, which is no directory")
        return check_place(self._home, self._name, seed)

    def _plant(self, directory: Path) -> None:
        """Whole or not at all: it is made beside its place."""
        part = directory.with_name(directory.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        if self._config.config_seed:
            shutil.copytree(self.check_seed(), part, ignore=NEVER_COPIED)
            part.chmod(0o700)
        else:
            part.mkdir(mode=0o700)
        part.rename(directory)


def _make_private(directory: Path) -> None:
    """Its own directory in the Mind's, which other organs share: nobody else puts anything in a workspace's place."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
