"""The verbs that write, on a disk that is full: one sentence that names the file, an exit code, and nothing lost."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mind_body.config import find_home
from mind_body.mind.store import check_mind
from tests.homes import call, make_home

pytestmark = pytest.mark.real
SIZE_KIB = 1024
"""A home with one Mind takes about 250."""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE_KIB}k", "tmpfs", str(disk)], capture_output=True, check=False
    ).returncode == 0  # fmt: skip
    if not mounted:
        pytest.skip("a small tmpfs can be mounted by root alone")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def _fill(disk: Path) -> None:
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"\0" * 4096)
        except OSError:
            return


def test_a_backup_onto_a_full_disk_leaves_no_half_of_one(small_disk: Path, tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada")
    _fill(small_disk)
    told = call(home, "backup", "ada", "--to", str(small_disk / "copy.db"))
    assert told.exit_code == 1
    assert str(small_disk / "copy.db") in told.stderr
    assert not list(small_disk.glob("copy.db*"))
    assert check_mind(home.mind_db("ada")) == "ok"


def test_a_restore_onto_a_full_disk_leaves_the_mind_as_it_was(small_disk: Path, tmp_path: Path) -> None:
    home = make_home(small_disk, "ada")
    assert call(home, "backup", "ada", "--to", str(tmp_path / "copy.db")).exit_code == 0
    _fill(small_disk)
    before = home.mind_db("ada").read_bytes()
    told = call(home, "restore", "ada", str(tmp_path / "copy.db"))
    assert told.exit_code == 1, told.output
    assert len(told.stderr.splitlines()) == 1
    assert home.mind_db("ada").read_bytes() == before
    assert not list(home.mind_dir("ada").glob("*replaced*"))
    assert not (home.mind_dir("ada") / "restoring").exists()


def test_a_mind_made_on_a_full_disk_is_not_seen_by_any_organ(small_disk: Path) -> None:
    _fill(small_disk)
    home = find_home(str(small_disk / "home"))
    words = ["--no-input", "--homeserver", "http://127.0.0.1:9", "--user", "@ada:x.org", "--password-file", "-"]
    told = call(home, "new", "ada", *words, input="hers")
    assert told.exit_code == 1, told.output
    assert "No space left" in told.stderr or "could not be written" in told.stderr
    assert not home.mind_file("ada").exists()
    assert len(told.stderr.splitlines()) <= 2, "one for the login that could not be tried, one for the disk"


def test_a_brake_that_cannot_be_written_says_so_and_is_as_it_was(small_disk: Path) -> None:
    home = make_home(small_disk, "ada")
    brake = home.control_dir("ada") / "brake.toml"
    before = brake.read_bytes()
    _fill(small_disk)
    told = call(home, "brake", "release", "ada")
    assert told.exit_code == 1
    assert "could not be written" in told.stderr
    assert brake.read_bytes() == before
