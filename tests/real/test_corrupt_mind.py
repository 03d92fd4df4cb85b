"""A mind file that has gone bad under a household: told, left untouched, and brought back from a backup with nothing lost."""

import pytest

from tests.homes import call
from tests.real.parts.house import House
from tests.real.parts.scene import wait_until

pytestmark = pytest.mark.real


def test_a_corrupt_mind_is_told_left_as_it_is_and_a_restored_one_answers_what_came_meanwhile(house: House) -> None:
    house.scene.up()
    room = house.direct()
    house.bob.send(room, "before")
    house.answers(room)
    house.rest()
    copy = house.scene.directory.parent / "copy.db"
    assert call(house.scene.home, "backup", "ada", "--to", str(copy)).exit_code == 0
    house.scene.down()

    path = house.scene.home.mind_db("ada")
    broken = b"this was a mind once\n" * 500
    path.write_bytes(broken)
    house.scene.up()
    house.bob.send(room, "meanwhile")
    for kind in ("mouth.mind-failed", "mind.fault"):
        wait_until(f"{kind} to be told", lambda kind=kind: f"kind={kind}" in house.scene.journal())  # type: ignore[misc]
    told = [line for line in house.scene.journal().splitlines() if "cannot be read as a mind" in line]
    assert all(str(path) in line and "`mind restore` brings back a backup" in line for line in told)
    assert house.scene.down() == 0
    assert path.read_bytes() == broken

    assert call(house.scene.home, "restore", "ada", str(copy)).exit_code == 0
    house.scene.up()
    assert "meanwhile" in house.answers(room, 2)[-1]  # her session begins anew, and its first input shows what was said before
    house.rest()
    assert len(house.bob.texts(room, house.her)) == 2
    assert "Traceback" not in house.scene.journal()
