"""Door: what the `claude` CLI keeps on disk for one Mind, and where the CLI itself is.

1. One configuration directory per Mind, below its state; one process of ours uses it at a time, by a lock of our own: the CLI has
   none, and two processes that resume one session lose an answer (wire.md §1).
2. A session is resumed only where its transcript's last entry is the last one that we recorded. After a power cut the transcript
   may be behind the record, after a lost turn ahead of it.
3. A truncated `.claude.json` blocks every start of the CLI, so it is moved aside.
4. What lies in the directory was left by a child, which may have tools: a link or a pipe in the place of a file is followed and
   opened by nobody out here.
"""

import json
import os
import platform
import shutil
import stat
from pathlib import Path

from mind_body.clock import now_ms
from mind_body.errors import ConfigError, SessionGone, StorageError
from mind_body.home import Home
from mind_body.host.liveness import Hold, take_hold
from mind_body.ids import new_id
from mind_body.model.claude_launch import SETTINGS, SETTINGS_FILE

_PLATFORM = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}
_TAIL = 8 * 1024 * 1024
"""Bytes of a transcript's end that are looked at; an entry is at most a few MB."""


class ClaudeFiles:
    """The directory of one Mind."""

    def __init__(self, home: Home, name: str) -> None:
        self.config_dir = home.mind_dir(name) / "claude"
        self.work_dir = home.mind_dir(name) / "claude-quiet"

    def hold(self) -> Hold:
        """Take the directory for this process. Raises StorageError."""
        try:
            self.config_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.work_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            taken = take_hold(self.config_dir / "mind-body.lock", new_id())
        except OSError as error:
            raise StorageError(f"{self.config_dir} cannot be used ({error.strerror})") from error
        if taken is None:
            raise StorageError(f"another process uses {self.config_dir}")
        return taken

    def prepare(self, session_id: str, instructions: str) -> str:
        """Everything that a start reads; the prompt file's name below the directory. Raises StorageError."""
        name = f"prompts/{session_id}.md"
        try:
            (self.config_dir / "prompts").mkdir(mode=0o700, exist_ok=True)
            (self.config_dir / name).write_text(instructions, encoding="utf-8", errors="replace")
            write_settings(self.config_dir, SETTINGS_FILE, SETTINGS)
            mend_state(self.config_dir)
        except OSError as error:
            raise StorageError(f"{self.config_dir} could not be written ({error.strerror})") from error
        return name

    def check_resumable(self, session_id: str, leaf: str) -> None:
        """Raises SessionGone with the reason."""
        check_transcript(self.config_dir, session_id, leaf)


def check_transcript(config_dir: Path, session_id: str, leaf: str) -> None:
    """That the session's transcript ends with our last recorded message. Raises SessionGone with the reason."""
    found = next(iter((config_dir / "projects").glob(f"*/{session_id}.jsonl")), None)
    if found is None or not _is_plain(found):
        raise SessionGone("the session's transcript is not there")
    if _read_leaf(found) != leaf:
        raise SessionGone("the session's transcript does not end with our last recorded turn")


def mend_state(config_dir: Path) -> None:
    """Move a truncated state file of the CLI's aside. Raises OSError."""
    state = config_dir / ".claude.json"
    aside = state.with_name(f".claude.json.broken-{now_ms()}")
    if os.path.lexists(state) and not _is_plain(state):
        state.rename(aside)
    try:
        text = state.read_bytes()
        if text.strip():
            json.loads(text)
    except FileNotFoundError:
        return
    except ValueError:
        state.rename(aside)


def write_settings(config_dir: Path, name: str, text: str) -> None:
    """A file of its own, whatever a child has put in its place. Raises OSError."""
    (config_dir / name).unlink(missing_ok=True)
    with (config_dir / name).open("x", encoding="utf-8") as file:
        file.write(text)


def cli_places() -> list[Path]:
    """Where the CLI is looked for when `[model] cli` is empty, in this order; `mind doctor` names them."""
    package = f"@anthropic-ai/claude-code-{_PLATFORM.get(platform.machine(), 'linux-x64')}/claude"
    beside = Path(__file__).resolve().parents[2] / ".npm/node_modules" / package
    places = [beside, Path("/opt/mind-body/.npm/node_modules") / package, Path("/usr/lib/node_modules") / package]
    found = shutil.which("claude")
    return [*places, Path(found).resolve()] if found else places


def find_cli(named: str) -> Path:
    """The binary. Raises ConfigError with the way out."""
    places = [Path(named).expanduser()] if named else cli_places()
    found = next((place.resolve() for place in places if place.is_file()), None)
    if found is None:
        where = ", ".join(map(str, places))
        raise ConfigError(f"the claude CLI is not there (looked at {where}); `make venv` installs it, or name it in [model] cli")
    return found


def check_sandbox(*, wanted: bool) -> None:
    """Raises ConfigError where the sandbox is wanted and bubblewrap is missing."""
    if wanted and shutil.which("bwrap") is None:
        raise ConfigError("the claude provider holds its child in bubblewrap, which is missing: install the package `bubblewrap`")


def _is_plain(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def _read_leaf(transcript: Path) -> str | None:
    """The id of the last message of the main thread; None where there is none, or where the file ends in a torn line."""
    try:
        with transcript.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - _TAIL, 0))
            lines = file.read().split(b"\n")
    except OSError as error:
        raise SessionGone(f"the session's transcript cannot be read ({error.strerror})") from error
    if lines[-1]:
        return None
    for line in reversed(lines):
        entry = _parse(line)
        if entry.get("type") in {"user", "assistant"} and not entry.get("isSidechain"):
            return str(entry.get("uuid"))
    return None


def _parse(line: bytes) -> dict[str, object]:
    try:
        entry = json.loads(line) if line else None
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}
