"""Scheduled wakes in a real house: where she speaks, who comes next, and that no restart and no second Mind makes them more.

A beat is ten minutes away from the next at least, and a Mind's own cadence a minute: the tests move what was back in the minds
while nothing runs, as if they had slept for so long.
"""

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.parts.chat_api import Request, answer_with, open_chat_api
from tests.real.parts.company import HOST, Company, answer_each, read_lines
from tests.real.parts.scene import Scene, wait_until
from tests.real.parts.synapse import Homeserver

pytestmark = pytest.mark.real

SCHEDULED = "This is a scheduled wake"
MINUTE_MS = 60_000
RESTARTS = 10
MOVED = {"heard": ("heard_at",), "spoke": ("at",), "run": ("opened_at", "ended_at"), "turn": ("opened_at", "ended_at")}


class Home:
    """Minds who speak by themselves in a room of bob's."""

    def __init__(self, scene: Scene, company: Company) -> None:
        self.scene, self.company = scene, company
        self.room = company.bob.create_room(invite=(company.witness.user_id,))
        company.witness.join(self.room)
        self.thinks, self.may_answer = threading.Event(), threading.Event()
        self.answered_at: list[float] = []
        """When each scheduled turn had its answer."""
        self._slept = 0
        company.api.default = answer_with(self.answer)

    def add(self, name: str) -> None:
        self.company.add(name, {"persona": {"beat": True, "home_room": self.room}})
        self.scene.dial(name, base_cooldown_s=60)

    def answer(self, request: Request) -> dict[str, Any]:
        if SCHEDULED not in request.last_user:
            return answer_each(request, lambda _, mail: f"re: {mail.text}")
        self.thinks.set()
        assert self.may_answer.wait(60)
        told = "\n".join(message["content"] for message in request.messages if message["role"] == "user")
        home = re.findall(r"^(r\d+) is a room", told, re.MULTILINE)
        self.answered_at.append(time.monotonic())
        return {"say": [{"room": home[-1], "text": "good morning", "reply_to": None, "thread": None}], "react": []}

    def sleep(self, **minutes: int) -> None:
        """As if the house had been closed for so long, by each Mind."""
        self.scene.down()
        for name, passed in minutes.items():
            for table, columns in MOVED.items():
                for column in columns:
                    self.scene.forget(name, f"UPDATE {table} SET {column} = {column} - {passed * MINUTE_MS}")
        self._slept = len(read_lines(self.scene))
        self.scene.up()

    def wait_told(self, name: str, why: str) -> None:
        """Until the journal says why she is not woken; what it said before she last slept does not count."""
        wait_until(
            why, lambda: any(why in one["event"] and one.get("MIND") == name for one in read_lines(self.scene)[self._slept :])
        )

    def beats(self, name: str) -> int:
        return len(self.scene.rows(name, "SELECT 1 FROM run WHERE cause = 'beat'"))

    def restart_heartbeat(self) -> None:
        """It is killed, and has looked after every Mind when this returns."""
        before = len(self.company.lines("heartbeat.started"))
        pid = wait_until("a heartbeat", lambda: self.scene.organ_pid("heartbeat"))
        os.kill(pid, signal.SIGKILL)
        wait_until("the next heartbeat", lambda: len(self.company.lines("heartbeat.started")) > before)


@pytest.fixture
def home(homeserver: Homeserver, tmp_path: Path) -> Iterator[Home]:
    with open_chat_api() as api:
        scene = Scene(homeserver, tmp_path / "home", **HOST, restart_max_s=0.2)
        try:
            yield Home(scene, Company(scene, api))
        finally:
            scene.close()


def test_she_speaks_in_her_home_room_once_and_who_speaks_meanwhile_is_answered_next(home: Home) -> None:
    scene, company, bob = home.scene, home.company, home.company.bob
    home.add("ada")
    scene.up()
    company.take_in(home.room, "ada")
    elsewhere = company.direct("ada")
    bob.send(home.room, "hello everybody")
    bob.send(elsewhere, "hello")
    company.wait_settled()
    home.sleep(ada=120)
    assert home.thinks.wait(60)
    asked = len(company.asked("ada"))
    bob.say_to(home.room, company.ids["ada"], "are you there?")
    home.wait_told("ada", "1 message waits: run ")
    assert len(company.asked("ada")) == asked, "nobody is answered while she thinks"
    home.may_answer.set()
    company.wait_settled()
    assert company.said(home.room, "ada") == ["good morning", "re: are you there?"]
    assert company.said(elsewhere, "ada") == ["re: hello"]
    assert company.asked("ada")[asked].at >= home.answered_at[0]
    assert home.beats("ada") == 1

    # Her cadence is over after five minutes, the host's after ten. Nothing of it is in a process.
    home.sleep(ada=5)
    home.wait_told("ada", "for a beat of the host")
    for _ in range(RESTARTS):
        home.restart_heartbeat()
    assert home.beats("ada") == 1
    home.sleep(ada=6)
    bob.wait_text(home.room, company.ids["ada"], 3)
    company.wait_settled()
    assert home.beats("ada") == 2
    assert company.said(home.room, "ada")[2:] == ["good morning"]


def test_of_two_who_are_due_one_speaks_on_a_beat_and_the_other_on_the_next(home: Home) -> None:
    company = home.company
    home.may_answer.set()
    home.add("ada")
    home.add("bea")
    home.scene.up()
    company.take_in(home.room, "ada", "bea")
    company.bob.send(home.room, "hello everybody")
    company.wait_settled()
    home.sleep(ada=120, bea=130)
    company.bob.wait_for("good morning", lambda: "good morning" in company.said(home.room, "bea"))
    home.wait_told("ada", "for a beat of the host")
    home.restart_heartbeat()
    company.wait_settled()
    assert (home.beats("ada"), home.beats("bea")) == (0, 1)
    home.sleep(ada=11, bea=11)
    company.bob.wait_for("good morning", lambda: "good morning" in company.said(home.room, "ada"))
    home.restart_heartbeat()
    company.wait_settled()
    assert (home.beats("ada"), home.beats("bea")) == (1, 1)
