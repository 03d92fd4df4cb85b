"""The verbs that write, on a disk that is full: one sentence that names the file, an exit code, and nothing lost."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mind_body.config import find_home
from mind_body.mind.store import check_mind
from tests.homes import call, make_home
from tests.parts_present import require_part
from tests.real.parts.disk import SmallDisk, open_small_disk

pytestmark = pytest.mark.real
SIZE_KIB = 1024
"""A home with one Mind takes about 250."""


@pytest.fixture
def small_disk() -> Iterator[SmallDisk]:
    """So near the root that a home's sockets and locks are on it too."""
    require_part("small-disk")
    with tempfile.TemporaryDirectory(prefix="mind-disk-") as place, open_small_disk(Path(place) / "d", SIZE_KIB) as disk:
        yield disk


def test_a_backup_onto_a_full_disk_leaves_no_half_of_one(small_disk: SmallDisk, tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada")
    small_disk.fill()
    told = call(home, "backup", "ada", "--to", str(small_disk.path / "copy.db"))
    assert told.exit_code == 1
    assert str(small_disk.path / "copy.db") in told.stderr
    assert not list(small_disk.path.glob("copy.db*"))
    assert check_mind(home.mind_db("ada")) == "ok"


def test_a_restore_onto_a_full_disk_leaves_the_mind_as_it_was(small_disk: SmallDisk, tmp_path: Path) -> None:
    home = make_home(small_disk.path, "ada")
    assert call(home, "backup", "ada", "--to", str(tmp_path / "copy.db")).exit_code == 0
    small_disk.fill()
    before = home.mind_db("ada").read_bytes()
    told = call(home, "restore", "ada", str(tmp_path / "copy.db"))
    assert told.exit_code == 1, told.output
    assert len(told.stderr.splitlines()) == 1
    assert home.mind_db("ada").read_bytes() == before
    assert not list(home.mind_dir("ada").glob("*replaced*"))
    assert not (home.mind_dir("ada") / "restoring").exists()


def test_a_mind_made_on_a_full_disk_is_not_seen_by_any_organ(small_disk: SmallDisk) -> None:
    small_disk.fill()
    home = find_home(str(small_disk.path / "home"))
    words = ["--no-input", "--homeserver", "http://127.0.0.1:9", "--user", "@ada:x.org", "--password-file", "-"]
    told = call(home, "new", "ada", *words, input="hers")
    assert told.exit_code == 1, told.output
    assert "No space left" in told.stderr or "could not be written" in told.stderr
    assert not home.mind_file("ada").exists()
    assert len(told.stderr.splitlines()) <= 2, "one for the login that could not be tried, one for the disk"


def test_a_brake_that_cannot_be_written_says_so_and_is_as_it_was(small_disk: SmallDisk) -> None:
    home = make_home(small_disk.path, "ada")
    brake = home.control_dir("ada") / "brake.toml"
    before = brake.read_bytes()
    small_disk.fill()
    told = call(home, "brake", "release", "ada")
    assert told.exit_code == 1
    assert "could not be written" in told.stderr
    assert brake.read_bytes() == before
