"""What an operator sees and does on a host that systemd carries: the status, the brake, the doctor and what it prints."""

import json
import re
import threading
import time
from typing import Any

import pytest

from tests.real.parts.chat_api import held
from tests.real.parts.scene import wait_until
from tests.real.parts.systemd_scene import DAEMONS, Household

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("systemd")]
MOUTH = DAEMONS[0]
MANY = 16


def status(household: Household, name: str) -> dict[str, Any]:
    (mind,) = json.loads(household.product.mind("status", "--json", name))["minds"]
    return dict(mind)


def shown(household: Household) -> str:
    return household.product.mind("status")


def doctor(household: Household, name: str) -> dict[str, dict[str, Any]]:
    """What is amiss with the host and with this Mind, but for her model: the scripted one answers no empty question."""
    told = household.product.bed.run("mind", "doctor", "--json", check=False).stdout
    checks = {check["name"]: check for check in json.loads(told)["checks"] if not check["ok"]}
    mine = {what: check for what, check in checks.items() if what.startswith(f"{name}: ") or ": " not in what}
    return {what: check for what, check in mine.items() if what != f"{name}: model"}


def commands(fix: str) -> list[str]:
    return re.findall(r"`([^`]+)`", fix)


def make(household: Household, name: str) -> tuple[str, Any, str]:
    """A Mind that is carried, whom bob has a direct room with."""
    her = household.new(name)
    household.enable(name)
    bob = household.person()
    return her, bob, household.talk(name, bob, her)


def test_status_says_of_a_mind_what_systemd_says_and_of_a_unit_what_it_says_of_itself(household: Household) -> None:
    _, bob, room = make(household, "ada")
    assert status(household, "ada")["units"] == {
        "mouth": "running", "heartbeat": "running", "lease": "running", "persona": "idle", "self": "idle"
    }  # fmt: skip
    gate = threading.Event()
    household.api.script(held(gate, household.api.default))
    bob.send(room, "hello")
    household.api.wait_for(1)
    told = shown(household)
    assert status(household, "ada")["units"]["persona"] == "running"
    assert re.search(r"^mind-persona@ada +running +Answering 1 message", told, re.MULTILINE), told
    assert status(household, "ada")["last_reason"].startswith("acting: 1 message")
    gate.set()
    household.wait_gone("ada")
    after = status(household, "ada")
    assert (after["units"]["persona"], after["last_reason"].partition(":")[0]) == ("idle", "done")
    assert "mind-persona@ada" not in shown(household)
    household.bed.systemctl("disable", "--now", "mind@ada.target")
    assert status(household, "ada")["units"]["persona"] == "stopped"
    assert "ada is released, and nothing starts her" in shown(household)


def test_holding_ends_her_at_work_and_stops_what_would_start_her_and_a_release_answers_what_waited(household: Household) -> None:
    her, bob, room = make(household, "bea")
    gate = threading.Event()
    household.api.script(held(gate, household.api.default))
    bob.send(room, "hello")
    household.api.wait_for(1)
    began = time.monotonic()
    told = household.bed.run("mind", "brake", "hold", "bea", "--reason", "night").stdout
    assert time.monotonic() - began < 10
    gate.set()
    assert "bea is held: night." in told
    assert household.persona("bea") == 0
    assert not household.bed.path("/run/mind/persona@bea.sock").exists()
    assert household.bed.state("mind@bea.target") == "inactive"
    bob.send(room, "are you there?")
    wait_until("her to hear", lambda: status(household, "bea")["pending"] == 2, 20)
    assert status(household, "bea")["last_reason"] == "held: night"
    assert doctor(household, "bea") == {}
    household.bed.run("mind", "brake", "release", "bea")
    wait_until("both answers", lambda: len(re.findall("hello|there", " ".join(bob.texts(room, her)))) == 2, 30)
    assert not household.bed.journal("MIND=bea", "KIND=poke.refused"), "her sockets were there before anybody poked"


def test_who_is_held_hears_of_no_boot(household: Household) -> None:
    """Her sockets are there again after a boot or a restart of everything, and nobody uses them."""
    _, bob, room = make(household, "cleo")
    household.bed.run("mind", "brake", "hold", "cleo")
    household.bed.systemctl("stop", "mind.target")
    household.bed.systemctl("start", "mind.target")
    assert household.bed.state("mind-persona@cleo.socket") == "active"
    bob.send(room, "hello")
    wait_until("her to hear", lambda: status(household, "cleo")["pending"] == 1, 20)
    assert household.starts("mind-persona@cleo.service") == 0


def test_all_are_held_by_their_files_at_once_and_their_units_follow(household: Household) -> None:
    names = [f"held{number}" for number in range(MANY)]
    household.new_many(names)
    household.enable(*names)
    household.bed.run("touch", "/run/began")
    began = time.monotonic()
    household.bed.run("mind", "brake", "hold", "--all", timeout_s=120)
    took = time.monotonic() - began
    start = household.bed.path("/run/began").stat().st_mtime
    written = [household.bed.path(f"/etc/mind/control/{name}/brake.toml").stat().st_mtime - start for name in names]
    assert max(written) < 2.0, "the program's own start is in it"
    assert took < 15
    states = {household.bed.state(f"mind-persona@{name}.socket") for name in names}
    assert states == {"inactive"}


def test_who_ended_with_78_is_named_with_its_sentence_and_the_printed_command_starts_it_again(household: Household) -> None:
    her, bob, room = make(household, "dora")
    household.host(nonsense=1)
    household.bed.systemctl("restart", MOUTH, check=False)
    try:
        found = doctor(household, "dora")["unit mind-mouth"]
        assert "it ended with 78, an operator must act: /etc/mind/config.toml: `nonsense` is not a setting" in found["detail"]
        assert re.search(r"^mind-mouth +failed: it ended with 78", shown(household), re.MULTILINE)
    finally:
        household.host()
    household.bed.run("sh", "-c", commands(found["fix"])[-1])
    assert doctor(household, "dora") == {}
    bob.send(room, "hello")
    assert bob.wait_text(room, her) == ["re: hello"]


def test_a_half_that_ended_with_78_is_named_until_it_has_worked_again(household: Household) -> None:
    her, bob, room = make(household, "emma")
    household.set("emma", persona={"doctrine": ["nowhere.md"]})
    bob.send(room, "hello")
    named = "emma: unit mind-persona@emma"
    found = wait_until("the doctor to name it", lambda: doctor(household, "emma").get(named), 30)
    assert "an operator must act" in found["detail"]
    assert "nowhere.md" in found["detail"]
    wait_until("it to have failed for good", lambda: status(household, "emma")["units"]["persona"] == "failed", 30)
    household.set("emma", persona={"doctrine": []})
    assert bob.wait_text(room, her, deadline_s=90) == ["re: hello"]
    assert named not in doctor(household, "emma")


def test_files_that_came_by_another_way_are_mended_by_what_the_doctor_prints(household: Household) -> None:
    """As after a copy from another host: everything is root's, and closed."""
    her, bob, room = make(household, "fina")
    bob.send(room, "one")
    assert bob.wait_text(room, her) == ["re: one"]
    household.bed.systemctl("stop", "mind.target")
    household.bed.run("sh", "-c", "chown -R root:root /var/lib/mind/fina /etc/mind/*/fina* && chmod -R go= /var/lib/mind/fina")
    household.bed.run("sh", "-c", "chmod 600 /etc/mind/minds/fina.toml /etc/mind/persona/fina.md; chmod 700 /etc/mind/control/fina")
    household.bed.systemctl("start", "mind.target")
    found = doctor(household, "fina")["fina: rights"]
    for command in commands(found["fix"]):
        household.bed.run("sh", "-c", command)
    assert "fina: rights" not in doctor(household, "fina")
    bob.send(room, "two")
    assert bob.wait_text(room, her, 2, deadline_s=60) == ["re: one", "re: two"]


def test_a_new_secret_is_said_to_wait_for_a_restart_and_no_message_is_lost_by_it(household: Household) -> None:
    her, bob, room = make(household, "gina")
    kept = "/etc/mind/credentials/matrix/gina.matrix-password"
    household.bed.run("sh", "-c", f"install -m 600 {kept} {kept}.new && echo >> {kept}.new && mv {kept}.new {kept}")
    found = doctor(household, "gina")["gina: handed over"]
    bob.send(room, "hello")
    household.bed.run("sh", "-c", commands(found["fix"])[0])
    assert doctor(household, "gina") == {}
    assert bob.wait_text(room, her) == ["re: hello"]


def test_who_is_not_root_is_told_what_he_may_not_see_and_changes_nothing(household: Household) -> None:
    make(household, "hana")
    for words in (("status",), ("brake", "hold", "hana"), ("doctor",)):
        refused = household.bed.run("mind", *words, user="nobody", check=False)
        assert refused.returncode != 0
        assert "Permission denied" in refused.stderr
    assert status(household, "hana")["brake"] == "released"
    told = household.bed.run("mind", "status", user="mind-heartbeat").stdout
    assert "hana" in told, "who is in the group sees, by the bus where there is one, by locks else"
