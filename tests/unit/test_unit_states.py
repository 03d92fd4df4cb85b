"""What `mind status` and `mind brake` make of units: by systemd's word where that carries the host, by the locks elsewhere."""

import json
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.cli.control import brake, dial
from mind_body.cli.status import status
from mind_body.cli.unit_states import States, describe
from mind_body.control.effective import Held, Released
from mind_body.control.files import read_control
from mind_body.errors import ChildError
from mind_body.home import Home
from mind_body.host.liveness import take_hold
from mind_body.host.manager import Ran
from mind_body.host.units import Unit, read_units
from mind_body.mind.store import open_mind
from tests import builders
from tests.homes import make_home
from tests.systemctl import Systemctl, as_host, call_verb, stand_in

WORD = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=12)
SAID = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=60)


@pytest.fixture
def systemctl(monkeypatch: pytest.MonkeyPatch) -> Systemctl:
    return stand_in(monkeypatch)


@pytest.fixture
def host(tmp_path: Path, systemctl: Systemctl) -> Home:
    """Two Minds, carried: ada is released, and so is bea."""
    systemctl.carry("ada", "bea")
    return as_host(make_home(tmp_path, "ada", "bea", released=True))


def shown(host: Home, *words: str) -> dict[str, object]:
    told = call_verb(status, host, "--json", *words)
    assert told.exit_code == 0, told.output
    return dict(json.loads(told.stdout))


def units_of(host: Home, name: str) -> dict[str, str]:
    minds = {mind["name"]: mind for mind in shown(host)["minds"]}  # type: ignore[attr-defined]
    return dict(minds[name]["units"])


# -- what the manager says -----------------------------------------------------------------------------------------------


@given(st.dictionaries(WORD, st.tuples(st.sampled_from(["active", "failed", "activating"]), WORD, SAID), max_size=5))
def test_what_units_say_is_read_as_they_said_it(found: dict[str, tuple[str, str, str]]) -> None:
    manager = Systemctl()
    for name, (active, sub, said) in found.items():
        manager.put(f"mind-{name}.service", active, sub, status=said, result="success", exit_status=0, invocation="7")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mind_body.host.units.run_tool", manager.run)
        assert dict(read_units()) == manager.units


def test_a_manager_that_does_not_answer_is_an_error_with_its_words(systemctl: Systemctl) -> None:
    systemctl.deaf = True
    with pytest.raises(ChildError, match="systemd does not answer: Failed to connect to bus"):
        read_units()


def test_lines_that_name_no_unit_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mind_body.host.units.run_tool", lambda _: Ran(0, "\nstrange words\n", ""))
    assert read_units() == {}


# -- status --------------------------------------------------------------------------------------------------------------


def test_a_host_whose_units_are_well_is_told_in_one_table_and_what_daemons_say_in_another(host: Home) -> None:
    told = call_verb(status, host).stdout
    head, *rows = told.split("\n\n")[0].splitlines()
    assert head.startswith("MIND")
    assert head.endswith("LAST REASON")
    assert [row.split()[0] for row in rows] == ["ada", "bea"]
    assert "mind-mouth      running  the mouth is well" in told
    assert units_of(host, "ada") == {
        "mouth": "running", "heartbeat": "running", "lease": "running", "persona": "idle", "self": "idle"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("active", "sub", "said"),
    [
        ("activating", "start", "starting"),
        ("activating", "auto-restart", "restarting"),
        ("deactivating", "stop-sigterm", "stopping"),
        ("failed", "failed", "failed"),
        ("inactive", "dead", "stopped"),
    ],
)
def test_a_daemon_is_what_systemd_says_of_it(host: Home, systemctl: Systemctl, active: str, sub: str, said: str) -> None:
    systemctl.put("mind-mouth.service", active, sub, result="exit-code", exit_status=1)
    assert units_of(host, "bea")["mouth"] == said


def test_a_half_whose_sockets_do_not_listen_is_stopped_and_one_that_runs_says_what_it_is_at(
    host: Home, systemctl: Systemctl
) -> None:
    systemctl.put("mind-persona@ada.socket", "inactive", "dead")
    systemctl.put("mind-self@ada.service", "active", "running", status="Working · turn 3")
    assert units_of(host, "ada")["persona"] == "stopped"
    told = call_verb(status, host).stdout
    assert "mind-self@ada   running  Working · turn 3" in told
    assert "ada is released, and nothing starts her: `systemctl enable --now mind@ada.target`" in told
    assert "bea is released, and nothing" not in told


def test_who_is_run_by_hand_beside_a_unit_that_rests_runs(host: Home, systemctl: Systemctl) -> None:
    systemctl.put("mind-lease.service", "inactive", "dead")
    hold = take_hold(host.lock_file("lease"), "by hand")
    assert hold is not None
    try:
        assert units_of(host, "ada")["lease"] == "running"
    finally:
        hold.release()
    assert units_of(host, "ada")["lease"] == "stopped"
    assert "The lease is stopped" in call_verb(status, host).stdout


def test_a_daemon_that_ended_with_78_is_told_as_somebodys_to_mend(host: Home, systemctl: Systemctl) -> None:
    systemctl.put("mind-mouth.service", "failed", "failed", result="exit-code", exit_status=78)
    told = call_verb(status, host).stdout
    assert "mind-mouth      failed: it ended with 78, an operator must act" in told
    assert "The mouth has failed" in told
    assert "`mind doctor`" in told


@pytest.mark.parametrize(
    ("result", "code", "words"),
    [("watchdog", None, "failed: watchdog"), ("exit-code", 1, "failed: it ended with 1"), ("", None, "failed: no reason given")],
)
def test_how_a_unit_failed_is_said(result: str, code: int | None, words: str) -> None:
    assert describe(Unit("u", "loaded", "failed", "failed", result=result, exit_status=code)) == words


def test_without_systemd_the_locks_are_what_is_known_and_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = as_host(make_home(tmp_path, "ada"))
    monkeypatch.setattr("mind_body.cli.unit_states.is_booted", lambda: False)
    hold = take_hold(host.lock_file("mouth"), "one")
    assert hold is not None
    told = call_verb(status, host)
    hold.release()
    assert "The mouth is running, the heartbeat is stopped and the lease is stopped." in told.stdout
    assert "Systemd does not run here: what is said of units is what their locks say." in told.stdout
    assert shown(host)["systemd"] is None


def test_a_manager_that_does_not_answer_hides_no_mind(host: Home, systemctl: Systemctl) -> None:
    systemctl.deaf = True
    told = shown(host)
    assert "Permission denied" in told["systemd"]["fault"]  # type: ignore[index]
    assert units_of(host, "ada")["persona"] == "idle"
    assert "does not answer" in call_verb(status, host).stdout


def test_of_named_minds_the_units_of_others_are_left_out(host: Home) -> None:
    units = shown(host, "ada")["systemd"]["units"]  # type: ignore[index]
    assert {"mind-mouth.service", "mind-persona@ada.socket", "mind.target"} <= set(units)
    assert not [unit for unit in units if "@bea" in unit]
    assert units["mind-mouth.service"] == {
        "active": "active", "sub": "running", "status": "the mouth is well", "result": "success", "exit_status": None
    }  # fmt: skip


def test_a_host_that_carries_nobody_says_how_it_would(tmp_path: Path, systemctl: Systemctl) -> None:
    nowhere = Home(None, tmp_path / "etc", tmp_path / "state", tmp_path / "run")
    assert "`mind install` prepares it" in call_verb(status, nowhere).stdout
    nowhere.minds_dir.mkdir(parents=True)
    assert "`mind new NAME` makes one" in call_verb(status, nowhere).stdout


def test_what_is_not_loaded_rests(tmp_path: Path) -> None:
    states = States(builders.make_home(tmp_path, "ada"), {})
    assert (states.of_daemon("mouth"), states.of_half("persona", "ada"), states.is_started("ada")) == ("stopped", "stopped", False)


# -- the brake -----------------------------------------------------------------------------------------------------------


def test_holding_stops_her_sockets_and_halves_when_the_brake_is_written_and_releasing_starts_them_before(
    host: Home, systemctl: Systemctl
) -> None:
    systemctl.put("mind-persona@ada.service", "active", "running")
    assert call_verb(brake, host, "hold", "ada", "--reason", "night").exit_code == 0
    assert isinstance(read_control(host, "ada"), Held)
    stopped = {"mind@ada.target", "mind-persona@ada.socket", "mind-self@ada.socket", "mind-persona@ada.service"}
    assert [(verb, set(units)) for verb, *units in systemctl.done] == [("stop", stopped)]
    assert units_of(host, "ada")["persona"] == "stopped"
    systemctl.done.clear()
    assert call_verb(brake, host, "release", "ada").exit_code == 0
    assert systemctl.done == [("start", "mind@ada.target")]
    assert isinstance(read_control(host, "ada"), Released)


def test_her_units_are_stopped_when_the_brake_holds_already_and_started_before_it_is_released(
    host: Home, systemctl: Systemctl
) -> None:
    seen: list[tuple[str, bool]] = []
    systemctl.watch = lambda verb: seen.append((verb, isinstance(read_control(host, "ada"), Held)))
    call_verb(brake, host, "hold", "ada")
    call_verb(brake, host, "release", "ada")
    assert seen == [("stop", True), ("start", True)], "nobody pokes a socket that is not there"


def test_of_many_all_are_stopped_in_one_request_and_who_rests_is_left_alone(host: Home, systemctl: Systemctl) -> None:
    call_verb(brake, host, "hold", "bea")
    systemctl.done.clear()
    told = call_verb(brake, host, "hold", "--all")
    assert told.exit_code == 0
    assert len(systemctl.done) == 1
    assert not [unit for unit in systemctl.done[0] if "@bea" in unit]


def test_who_was_disabled_stays_so_and_is_named_when_she_is_released(host: Home, systemctl: Systemctl) -> None:
    systemctl.enabled.clear()
    call_verb(brake, host, "hold", "ada")
    systemctl.done.clear()
    told = call_verb(brake, host, "release", "ada")
    assert (told.exit_code, systemctl.done) == (0, [])
    assert "nothing starts ada: `systemctl enable --now mind@ada.target`" in told.stderr


def test_who_turns_the_dial_of_one_that_nothing_starts_is_told_so(host: Home, systemctl: Systemctl) -> None:
    call_verb(brake, host, "release", "ada")
    assert "nothing starts" not in call_verb(dial, host, "ada", "--heat", "1.5").stderr
    systemctl.enabled.clear()
    call_verb(brake, host, "hold", "ada")
    assert "nothing starts" not in call_verb(dial, host, "ada", "--heat", "1.5").stderr, "she is held, and that is all"
    call_verb(brake, host, "release", "ada")
    told = call_verb(dial, host, "ada", "--heat", "1.2")
    assert told.exit_code == 0
    assert "heat 1.2" in told.stdout
    assert "nothing starts ada: `systemctl enable --now mind@ada.target`" in told.stderr


def test_a_brake_holds_though_her_units_cannot_be_stopped_and_that_is_said(host: Home, systemctl: Systemctl) -> None:
    systemctl.refuses = True
    told = call_verb(brake, host, "hold", "ada")
    assert told.exit_code == 1
    assert "ada is held." in told.stdout
    assert "Job failed." in told.stderr
    assert isinstance(read_control(host, "ada"), Held)


def test_what_goes_wrong_with_a_mind_and_with_her_units_is_both_said(host: Home, systemctl: Systemctl) -> None:
    systemctl.refuses = True
    (host.control_dir("ada") / "dial.toml").write_text("heat = 99.0\n")
    told = call_verb(brake, host, "release", "--all")
    assert told.exit_code == 78
    assert "ada is still held" in told.stderr
    assert "Job failed." in told.stderr
    assert "bea is released." in told.stdout


def test_a_home_directory_has_no_units_to_stop(tmp_path: Path, systemctl: Systemctl) -> None:
    home = make_home(tmp_path, "ada", released=True)
    with ExitStack() as stack:
        stack.enter_context(closing(open_mind(home.mind_db("ada"))))
        assert call_verb(brake, home, "hold", "ada").exit_code == 0
    assert systemctl.done == []
