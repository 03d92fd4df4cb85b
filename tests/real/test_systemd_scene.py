"""A Mind under a real systemd: her halves are there only while there is something for them to do."""

import time

import pytest

from tests.real.parts.scene import wait_until
from tests.real.parts.systemd_scene import DAEMONS, Household

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("systemd")]


def test_a_message_is_answered_and_before_and_after_it_no_process_is_hers(household: Household) -> None:
    her = household.new("ada")
    bob = household.person()
    household.enable("ada")
    room = household.talk("ada", bob, her)
    assert household.persona("ada") == 0
    bob.send(room, "hello")
    assert bob.wait_text(room, her) == ["re: hello"]
    assert household.persona("ada") == 1
    answered = time.monotonic()
    household.wait_gone("ada", 15)
    assert time.monotonic() - answered > 1, "she lingers, for the next message"
    assert household.persona("ada") == 0
    bob.send(room, "again")
    assert bob.wait_text(room, her, 2) == ["re: hello", "re: again"]


def test_a_mind_that_is_not_enabled_has_no_sockets_and_is_not_started(household: Household) -> None:
    household.new("bea")
    assert household.bed.state("mind-persona@bea.socket") == "inactive"
    assert not household.bed.path("/run/mind/persona@bea.sock").exists()


def test_disabling_a_mind_ends_her_halves_and_leaves_the_others_alone(household: Household) -> None:
    her, other = household.new("cia"), household.new("dot")
    bob = household.person()
    for name in ("cia", "dot"):
        household.enable(name)
    rooms = {name: household.talk(name, bob, user) for name, user in (("cia", her), ("dot", other))}
    bob.send(rooms["cia"], "hello")
    bob.wait_text(rooms["cia"], her)
    assert household.persona("cia") == 1
    household.bed.systemctl("disable", "--now", "mind@cia.target")
    wait_until("her sockets to be gone", lambda: not household.bed.path("/run/mind/persona@cia.sock").exists())
    household.wait_gone("cia")
    bob.send(rooms["dot"], "and you?")
    assert bob.wait_text(rooms["dot"], other) == ["re: and you?"]
    assert [household.bed.state(daemon) for daemon in DAEMONS] == ["active"] * 3
