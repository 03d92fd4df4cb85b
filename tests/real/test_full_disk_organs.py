"""The organs on a disk that is full: a sentence that names the file, nothing lost or said twice, and with room they go on."""

import contextlib
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mind_body.mind.store import check_mind
from tests.parts_present import require_part
from tests.real.parts.chat_api import answer_with, held, open_chat_api
from tests.real.parts.disk import SmallDisk, open_small_disk
from tests.real.parts.echo import echo
from tests.real.parts.house import House
from tests.real.parts.scene import Scene, wait_until
from tests.real.parts.synapse import Homeserver

pytestmark = pytest.mark.real
SIZE_KIB = 3072


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    """So near the root that a home's sockets and locks are on it too."""
    require_part("small-disk")
    with tempfile.TemporaryDirectory(prefix="mind-disk-") as place, open_small_disk(Path(place) / "d", SIZE_KIB) as disk:
        yield disk


@pytest.fixture
def house(homeserver: Homeserver, disk: SmallDisk, tmp_path: Path) -> Iterator[House]:
    """All of it on the disk, but for the journal."""
    with open_chat_api(answer_with(echo)) as api:
        found = House(Scene(homeserver, disk.path / "home"), api)
        found.scene.log = tmp_path / "up.log"
        assert found.scene.home.run.is_relative_to(disk.path)
        try:
            yield found
        finally:
            found.scene.close()


def fill(house: House, disk: SmallDisk) -> None:
    """No room is left, and none in her mind's log: it keeps what it once took, and would take a few rows yet."""
    with contextlib.closing(sqlite3.connect(house.scene.home.mind_db("ada"))) as db:
        emptied = "PRAGMA wal_checkpoint(TRUNCATE)"
        wait_until("an empty log", lambda: db.execute(emptied).fetchone()[0] == 0)
    disk.fill()


def place_ledger(house: House, directory: Path) -> None:
    """On another disk."""
    directory.mkdir(mode=0o700)
    assert house.her
    house.scene.home.ledger.parent.symlink_to(directory)


def wait_told(house: House, what: str) -> None:
    """Somebody says what could not be done, which file it is, and what to do."""
    said = f"{what}: {house.scene.home.mind_db('ada')}: database or disk is full; see that the disk has room"
    wait_until(f"a sentence about the full disk: {said}", lambda: said in house.scene.journal())


def end_well(house: House, room: str, *texts: str) -> None:
    assert house.answers(room, len(texts)) == [f"re: {text}" for text in texts]
    house.rest()
    assert house.bob.texts(room, house.her) == [f"re: {text}" for text in texts]
    assert "Traceback" not in house.scene.journal()
    assert house.scene.down() == 0
    assert check_mind(house.scene.home.mind_db("ada")) == "ok"


def test_what_is_said_while_the_disk_is_full_is_answered_when_there_is_room(house: House, disk: SmallDisk) -> None:
    house.scene.up()
    room = house.direct()
    house.bob.send(room, "before")
    house.answers(room)
    house.rest()
    fill(house, disk)
    house.bob.send(room, "meanwhile")
    wait_told(house, "She cannot hear just now")
    disk.free()
    end_well(house, room, "before", "meanwhile")


def test_an_answer_that_could_not_be_recorded_is_said_once_when_there_is_room(
    house: House, disk: SmallDisk, tmp_path: Path
) -> None:
    # On the same disk the ledger may meet it first; closed by who finds it so, it gives back what its log took: room for an answer.
    place_ledger(house, tmp_path / "lease.d")
    house.scene.up()
    room = house.direct()
    thought = threading.Event()
    house.api.script(held(thought, answer_with(echo)))
    house.bob.send(room, "think")
    house.api.wait_for(1)
    fill(house, disk)
    thought.set()
    wait_told(house, "A turn could not be recorded yet")
    assert house.bob.texts(room, house.her) == []
    disk.free()
    end_well(house, room, "think")
    assert len(house.api.requests) == 1, "an answer that was paid for is kept until there is room"


def test_a_journal_on_the_full_disk_takes_nobody_with_it(house: House, disk: SmallDisk) -> None:
    house.scene.log = house.scene.directory / "up.log"
    house.scene.up()
    room = house.direct()
    house.rest()
    organs = {organ: house.scene.organ_pid(organ) for organ in ("mouth", "heartbeat")}
    disk.fill(house.scene.log)
    for n in range(3):
        house.bob.send(room, f"<{n}>")
    house.bob.sync(2.0)
    house.bob.sync(2.0)
    disk.free()
    house.answers(room)
    house.rest()
    said = " ".join(house.bob.texts(room, house.her))
    assert [said.count(f"<{n}>") for n in range(3)] == [1, 1, 1]
    assert {organ: house.scene.organ_pid(organ) for organ in organs} == organs, "nobody had to be started again"
    assert house.scene.down() == 0


def test_a_household_that_cannot_start_for_want_of_room_says_so(house: House, disk: SmallDisk) -> None:
    assert house.her
    disk.fill()
    done = subprocess.run(
        [sys.executable, "-m", "mind_body", "--home", str(house.scene.directory), "up"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert str(house.scene.home.run) in done.stderr
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    disk.free()
    house.scene.up()
    room = house.direct()
    house.bob.send(room, "and now?")
    end_well(house, room, "and now?")
