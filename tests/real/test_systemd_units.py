"""The units' lives: ready when they say so, ended in time, back after a kill or a hang, and never deaf."""

import threading
import time
from collections import Counter
from functools import partial
from typing import TypeAlias

import pytest

from tests.real.parts.chat_api import held, reply
from tests.real.parts.person import Person
from tests.real.parts.scene import wait_until
from tests.real.parts.systemd_bed import Bed
from tests.real.parts.systemd_scene import DAEMONS, Household

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("systemd-lives"), pytest.mark.early]
MOUTH, HEARTBEAT, LEASE = DAEMONS
STOP_S = 5.0
ENDED_WELL = "7ad2d189f7e94e70a38c781354912448"
"""SD_MESSAGE_UNIT_SUCCESS (sd-messages.h): by itself, with 0."""
Talking: TypeAlias = tuple[str, Person, str]
"""Her user id, bob, and their direct room."""
HUNG = "/run/mind/hung"
"""Made once by whoever hangs, so that it hangs once."""


def persona(name: str) -> str:
    return f"mind-persona@{name}.service"


def stop_within(bed: Bed, unit: str, bound_s: float = STOP_S) -> None:
    """Ended by `systemctl stop`, in order and in time."""
    before, began = len(bed.journal(f"UNIT={unit}", f"MESSAGE_ID={ENDED_WELL}")), time.monotonic()
    bed.systemctl("stop", unit)
    assert time.monotonic() - began < bound_s
    wait_until("it to have ended well", lambda: len(bed.journal(f"UNIT={unit}", f"MESSAGE_ID={ENDED_WELL}")) > before, 2)


def hang(bed: Bed, unit: str, point: str, watchdog_s: int) -> None:
    """It will stop for ever at this point, once, and the manager will not wait for it longer than this."""
    bed.path(HUNG).unlink(missing_ok=True)
    bed.drop_in(unit, f"Environment=MIND_CRASH_AT={point}:hang MIND_CRASH_MARK={HUNG}", f"WatchdogSec={watchdog_s}")


@pytest.fixture
def talking(household: Household) -> Talking:
    """Ada, whom bob has a direct room with."""
    her = household.new("ada", persona={"linger_s": 1.0})
    household.enable("ada")
    bob = household.person()
    return her, bob, household.talk("ada", bob, her)


def test_a_daemon_is_active_only_when_it_is_ready(household: Household) -> None:
    bed = household.bed
    try:
        hang(bed, HEARTBEAT, "heartbeat.look", 60)
        bed.systemctl("restart", "--no-block", HEARTBEAT)
        wait_until("it to hang in its first look", lambda: bed.path(HUNG).exists(), 20)
        assert bed.state(HEARTBEAT) == "activating"
        bed.systemctl("kill", "--signal=KILL", HEARTBEAT)
        bed.wait_state(HEARTBEAT)
    finally:
        bed.drop_in(HEARTBEAT)
    for unit, kind in ((MOUTH, "mouth.started"), (HEARTBEAT, "heartbeat.started"), (LEASE, "lease.started")):
        bed.systemctl("restart", unit)
        assert bed.show(unit, "ActiveState", "StatusText")["StatusText"], "it says at once what it is at"
        pid = bed.main_pid(unit)
        wait_until(f"{kind} of that very process", partial(bed.journal, f"_PID={pid}", f"KIND={kind}"), 5)


@pytest.mark.parametrize("unit", DAEMONS)
def test_a_daemon_ends_in_order_and_in_time(household: Household, unit: str) -> None:
    household.bed.wait_state(unit)
    stop_within(household.bed, unit)
    household.bed.systemctl("start", unit)


def test_a_persona_that_waits_for_its_model_ends_in_time_and_the_message_is_answered_later(
    household: Household, talking: Talking
) -> None:
    her, bob, room = talking
    gate = threading.Event()
    household.api.script(held(gate, reply({"say": [], "react": []})))
    bob.send(room, "hello")
    household.api.wait_for(1)
    wait_until("the status", lambda: "Answering 1 message" in household.bed.show(persona("ada"), "StatusText")["StatusText"], 5)
    stop_within(household.bed, persona("ada"))
    gate.set()
    assert bob.wait_text(room, her) == ["re: hello"]


@pytest.mark.parametrize("unit", DAEMONS)
def test_a_daemon_that_is_killed_is_back_and_nothing_is_lost(household: Household, talking: Talking, unit: str) -> None:
    her, bob, room = talking
    before = household.bed.main_pid(unit)
    household.bed.systemctl("kill", "--signal=KILL", unit)
    bob.send(room, "q1")
    household.bed.wait_state(unit)
    assert household.bed.main_pid(unit) not in {0, before}
    bob.send(room, "q2")
    answers = wait_until("both answers", lambda: texts if "q2" in (texts := " ".join(bob.texts(room, her))) else None, 60)
    assert Counter(answers.split())["q1"] == Counter(answers.split())["q2"] == 1


def test_a_persona_that_is_killed_in_the_middle_of_a_turn_answers_once(household: Household, talking: Talking) -> None:
    her, bob, room = talking
    gate = threading.Event()
    household.api.script(held(gate, household.api.default))
    bob.send(room, "hello")
    household.api.wait_for(1)
    household.bed.systemctl("kill", "--signal=KILL", persona("ada"))
    gate.set()
    assert bob.wait_text(room, her) == ["re: hello"]
    household.wait_gone("ada")
    assert bob.texts(room, her) == ["re: hello"]


@pytest.mark.parametrize(
    ("unit", "point"),
    [
        (MOUTH, "ear.T1"),
        pytest.param(MOUTH, "voice.T4a", marks=pytest.mark.long),
        (HEARTBEAT, "heartbeat.T2"),
        (LEASE, "lease.reserved"),
        pytest.param(persona("ada"), "persona.T3a", marks=pytest.mark.long),
        (persona("ada"), "persona.model-answered"),
    ],
)
def test_a_hung_loop_is_killed_by_the_watchdog_and_comes_back(
    household: Household, talking: Talking, unit: str, point: str
) -> None:
    her, bob, room = talking
    bed = household.bed
    household.wait_gone("ada")
    killed = len(bed.journal(f"UNIT={unit}", "UNIT_RESULT=watchdog"))
    try:
        hang(bed, unit, point, 4)
        if unit in DAEMONS:
            bed.systemctl("restart", unit)
        bob.send(room, "hello")
        wait_until("somebody to hang", lambda: bed.path(HUNG).exists(), 30)
        wait_until("the watchdog", lambda: len(bed.journal(f"UNIT={unit}", "UNIT_RESULT=watchdog")) > killed, 15)
        assert bob.wait_text(room, her) == ["re: hello"]
        household.wait_gone("ada")
        assert bob.texts(room, her) == ["re: hello"]
    finally:
        bed.drop_in(unit)
        if unit in DAEMONS:
            bed.systemctl("restart", unit)


def test_what_is_idle_is_no_hang(household: Household, talking: Talking) -> None:
    """A watchdog shorter than any wait of ours kills nobody who goes round."""
    her, bob, room = talking
    bed = household.bed
    units = (*DAEMONS, persona("ada"))
    household.set("ada", persona={"linger_s": 10.0})
    try:
        for unit in units:
            bed.drop_in(unit, "WatchdogSec=4")
        bed.systemctl("restart", *DAEMONS)
        before = {unit: household.starts(unit) for unit in units}
        bob.send(room, "hello")
        assert bob.wait_text(room, her) == ["re: hello"]
        household.wait_gone("ada", 30)
        time.sleep(4)
        assert {unit: household.starts(unit) - before[unit] for unit in units} == dict.fromkeys(DAEMONS, 0) | {units[-1]: 1}
        assert bed.state(MOUTH) == bed.state(HEARTBEAT) == bed.state(LEASE) == "active"
    finally:
        for unit in units:
            bed.drop_in(unit)
        bed.systemctl("restart", *DAEMONS)


def test_thirty_bad_starts_in_a_row_do_not_make_a_mind_deaf(household: Household, talking: Talking) -> None:
    her, bob, room = talking
    bed, unit = household.bed, persona("ada")
    household.wait_gone("ada")
    before = household.starts(unit)
    bed.drop_in(unit, "ExecStart=", "ExecStart=/bin/false")
    try:
        bob.send(room, "hello")
        wait_until("the first bad start", lambda: household.starts(unit) > before, 20)
        time.sleep(5)
        assert household.starts(unit) - before <= 6, "what cannot start is not started over and over"
        bed.drop_in(unit, "ExecStart=", "ExecStart=/bin/false", "ExecStopPost=")
        wait_until("thirty bad starts", lambda: household.starts(unit) - before >= 30, 60)
        assert bed.state("mind-persona@ada.socket") == "active"
    finally:
        bed.drop_in(unit)
    assert bob.wait_text(room, her) == ["re: hello"]


def test_what_only_an_operator_can_mend_is_not_started_again_until_it_is_mended(household: Household, talking: Talking) -> None:
    her, bob, room = talking
    bed, unit = household.bed, persona("ada")
    household.wait_gone("ada")
    before = household.starts(unit)
    household.set("ada", persona={"doctrine": ["nowhere.md"]})
    bob.send(room, "hello")
    wait_until("a start in vain", lambda: bed.show(unit, "ExecMainStatus")["ExecMainStatus"] == "78", 20)
    time.sleep(8)
    assert household.starts(unit) - before <= 2, "one start for her mail, and one for a poke that came while it began"
    bed.write("/etc/mind/persona/nowhere.md", "Be kind.\n", 0o644)
    assert bob.wait_text(room, her, deadline_s=90) == ["re: hello"]


def test_a_mouth_whose_configuration_is_broken_is_not_started_by_every_poke(household: Household, talking: Talking) -> None:
    her, bob, room = talking
    bed = household.bed
    household.host(nonsense=1)
    try:
        bed.systemctl("restart", MOUTH, check=False)
        bed.wait_state(MOUTH, "failed")
        assert bed.show(MOUTH, "ExecMainStatus")["ExecMainStatus"] == "78"
        starts = household.starts(MOUTH)
        bed.run("python3", "-c", POKE, "/run/mind/mouth.sock")
        time.sleep(3)
        assert household.starts(MOUTH) == starts + 1, "one start for one poke, and none for what is left of it"
    finally:
        household.host()
    bed.systemctl("start", MOUTH)
    bob.send(room, "hello")
    assert bob.wait_text(room, her) == ["re: hello"]


POKE = "import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'', sys.argv[1])"
