"""`mind up` over the real organs: who dies comes back and answers, who is held stays away, and nothing is left."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.parts_present import ROOT
from tests.real.parts.house import House
from tests.real.parts.scene import is_gone, wait_until

pytestmark = pytest.mark.real
STARTER = """
import sys
from pathlib import Path
from tests.real.parts.scene import Scene
scene = Scene(None, Path(sys.argv[1]))
scene.up()
print(scene.process.pid, flush=True)
sys.stdin.read()
"""


def test_every_organ_that_is_killed_comes_back_and_what_was_said_meanwhile_is_answered_once(house: House) -> None:
    house.scene.up()
    room = house.direct()
    house.bob.send(room, "before")
    house.answers(room)
    for number, organ in enumerate(("mouth", "heartbeat", "persona"), 2):
        pid = house.scene.organ_pid(organ)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        house.bob.send(room, f"after {organ}")
        assert f"after {organ}" in house.answers(room, number)[-1]
    house.rest()
    assert len(house.bob.texts(room, house.her)) == 4
    assert {row["outcome"] for row in house.scene.rows("ada", "SELECT outcome FROM run")} <= {"done", "dead"}


def test_a_persona_lives_while_there_is_something_to_do_and_no_longer(house: House) -> None:
    house.tables = {"persona": {"linger_s": 0.5}}
    house.scene.up()
    room = house.direct()
    assert house.scene.organ_pid("persona") is None or not house.asked_of_the_model()
    house.bob.send(room, "hello")
    house.answers(room)
    wait_until("her persona to leave", lambda: house.scene.organ_pid("persona") is None)
    house.bob.send(room, "still there?")
    house.answers(room, 2)


def test_a_brake_held_by_its_file_alone_keeps_her_silent_and_released_lets_her_answer(house: House) -> None:
    house.scene.up()
    room = house.direct()
    house.bob.send(room, "one")
    house.answers(room)
    house.scene.brake("ada", "held")
    wait_until("her persona to be ended", lambda: house.scene.organ_pid("persona") is None)
    house.bob.send(room, "two")
    house.scene.wait_rows("ada", "the message to be heard", "SELECT 1 FROM heard WHERE body = 'two'")
    assert len(house.bob.texts(room, house.her)) == 1
    assert not house.scene.rows("ada", "SELECT 1 FROM run WHERE ended_at IS NULL")
    house.scene.brake("ada", "released")
    assert "two" in house.answers(room, 2)[-1]
    assert len(house.asked_of_the_model()) == 2


def test_sigterm_ends_the_whole_tree_within_five_seconds(house: House) -> None:
    house.scene.up()
    room = house.direct()
    house.bob.send(room, "hello")
    house.answers(room)
    began = time.monotonic()
    assert house.scene.down() == 0
    assert time.monotonic() - began < 5.5
    assert house.scene.organs() == {}


def test_kill_9_of_mind_up_leaves_no_organ_behind_and_the_next_one_goes_on(house: House) -> None:
    house.scene.up()
    room = house.direct()
    house.bob.send(room, "one")
    house.answers(room)
    assert house.scene.down(signal.SIGKILL) == -signal.SIGKILL
    house.bob.send(room, "two")
    house.scene.up()
    assert "two" in house.answers(room, 2)[-1]
    house.rest()
    assert len(house.bob.texts(room, house.her)) == 2


def test_a_household_ends_with_whoever_started_it_even_when_that_is_killed(house: House) -> None:
    assert house.her
    words = [sys.executable, "-c", STARTER, str(house.scene.directory)]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        everybody = [int(starter.stdout.readline())]
        try:
            house.bob.send(house.direct(), "hello")
            wait_until("every organ and her persona", lambda: len(house.scene.organs()) == 4)
            everybody += house.scene.organs()
        finally:
            starter.kill()
    try:
        wait_until("all of them to be gone", lambda: all(map(is_gone, everybody)), 5)
    finally:
        for pid in everybody:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
