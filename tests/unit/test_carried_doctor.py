"""`mind doctor` where systemd carries the Minds: what is broken in one place is named there, with the command that mends it."""

import grp
import json
import os
import pwd
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mind_body.cli import unit_checks
from mind_body.cli.doctor import doctor
from mind_body.cli.finding import Check
from mind_body.cli.in_force import check_in_force, read_in_force
from mind_body.cli.install_shapes import ACCOUNTS, Action, Facts, Manifest, Plan
from mind_body.cli.seen import find_seen_cli, find_unseen, may
from mind_body.cli.unit_checks import read_carried
from mind_body.errors import ConfigError, CredentialError
from mind_body.home import Home
from mind_body.host.liveness import take_hold
from mind_body.host.manager import Ran
from tests import builders
from tests.homes import make_home
from tests.systemctl import Systemctl, as_host, call_verb, stand_in

ME, MY_GROUP, SELF, OTHERS = os.getuid(), os.getgid(), 4001, 4002
UIDS = {"mind-self": SELF, "mind-heartbeat": OTHERS}
"""Of the organs; the others are who runs the tests, so that files are theirs."""


@pytest.fixture
def systemctl(monkeypatch: pytest.MonkeyPatch) -> Systemctl:
    found = stand_in(monkeypatch)
    monkeypatch.setattr(unit_checks, "run_tool", found.run)
    monkeypatch.setattr(unit_checks, "read_version", lambda: 252)
    monkeypatch.setattr(unit_checks, "list_enabled", lambda: tuple(found.enabled))
    monkeypatch.setattr(unit_checks, "find_fault", lambda *_: None)
    monkeypatch.setattr(unit_checks, "look_at", lambda *_: (None, Facts({}, manifest=Manifest(release="1")), Plan((), None)))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return found


@pytest.fixture
def host(tmp_path: Path, systemctl: Systemctl, monkeypatch: pytest.MonkeyPatch) -> Home:
    """One Mind, released and carried, and everything of hers as open as `mind install` and `mind new` make it."""
    systemctl.carry("ada")
    systemctl.enabled.add("mind.target")
    ids = {name: SimpleNamespace(pw_uid=UIDS.get(name, ME), pw_gid=MY_GROUP) for name in ACCOUNTS[1:]}
    monkeypatch.setattr(pwd, "getpwnam", ids.__getitem__)
    monkeypatch.setattr(grp, "getgrnam", {"mind": SimpleNamespace(gr_gid=MY_GROUP)}.__getitem__)
    monkeypatch.setattr(os, "getgrouplist", lambda _, gid: [gid])
    monkeypatch.setattr("mind_body.cli.in_force.HANDED", tmp_path / "handed")
    home = as_host(make_home(tmp_path, "ada", released=True))
    for path in (home.config_file, home.mind_file("ada"), home.persona_file("ada")):
        path.chmod(0o640)
    home.mind_dir("ada").chmod(0o2770)
    home.mind_db("ada").chmod(0o660)
    return home


def look(host: Home) -> dict[str, Check]:
    """What is not well; the homeserver of these Minds is nowhere, and their model is not asked for."""
    told = call_verb(doctor, host, "--json")
    found = [Check(**check) for check in json.loads(told.stdout)["checks"]]
    assert told.exit_code == (0 if all(check.ok for check in found) else 78)
    return {check.name: check for check in found if not check.ok and check.name not in {"ada: homeserver", "ada: model"}}


def test_a_host_that_is_well_has_no_fault(host: Home) -> None:
    assert look(host) == {}
    told = call_verb(doctor, host).stdout
    for words in ("systemd 252 carries", "4 sockets listen", "ada: units: her sockets listen", "in the group 'mind'"):
        assert words in told


# -- units ---------------------------------------------------------------------------------------------------------------


def test_who_ended_with_78_is_named_with_its_last_sentence_and_the_command_that_mends_it(host: Home, systemctl: Systemctl) -> None:
    systemctl.put("mind-mouth.service", "failed", "failed", result="exit-code", exit_status=78, invocation="ab12")
    systemctl.words["ab12"] = "The mouth ended.\nmind: /etc/mind/config.toml: `x` is not a setting\nsome noise\n"
    (found,) = look(host).values()
    assert found.name == "unit mind-mouth"
    assert "ended with 78, an operator must act: /etc/mind/config.toml: `x` is not a setting" in found.detail
    assert found.fix.endswith("then `systemctl restart mind-mouth`")


def test_a_half_that_ended_with_78_is_started_again_by_a_file_or_a_release(host: Home, systemctl: Systemctl) -> None:
    systemctl.put("mind-persona@ada.service", "failed", "failed", result="exit-code", exit_status=78, invocation="7")
    found = look(host)["ada: unit mind-persona@ada"]
    assert "a file of hers has changed" in found.fix
    assert "`mind brake release ada`" in found.fix


@pytest.mark.parametrize(
    ("unit", "active", "sub", "words", "fix"),
    [
        ("mind-lease.service", "failed", "failed", "failed: watchdog", "systemctl restart mind-lease"),
        ("mind-lease.service", "activating", "auto-restart", "restarting: watchdog", "journalctl -xe -u mind-lease"),
        ("mind-heartbeat.service", "inactive", "dead", "it is stopped", "systemctl start mind-heartbeat"),
        ("mind-lease-stream.socket", "inactive", "dead", "it does not listen", "systemctl restart mind.target"),
        ("mind-mouth.socket", "failed", "failed", "it does not listen (failed: watchdog)", "systemctl restart mind.target"),
        ("mind-self@ada.service", "failed", "failed", "failed: watchdog", "systemctl reset-failed mind-self@ada"),
        ("mind-self@ada.socket", "failed", "failed", "mind-self@ada.socket is not active", "enable --now mind@ada.target"),
        ("mind@ada.target", "inactive", "dead", "mind@ada.target is not active", "enable --now mind@ada.target"),
    ],
)
def test_a_unit_that_is_not_as_it_should_be_is_named(
    host: Home, systemctl: Systemctl, unit: str, active: str, sub: str, words: str, fix: str
) -> None:
    systemctl.put(unit, active, sub, result="watchdog")
    (found,) = look(host).values()
    assert words in found.detail
    assert fix in found.fix


def test_a_daemon_that_is_starting_is_no_fault(host: Home, systemctl: Systemctl) -> None:
    systemctl.put("mind-mouth.service", "activating", "start")
    assert look(host) == {}


def test_a_daemon_run_by_hand_beside_its_unit_is_named(host: Home, systemctl: Systemctl) -> None:
    systemctl.put("mind-heartbeat.service", "inactive", "dead")
    hold = take_hold(host.lock_file("heartbeat"), "by hand")
    assert hold is not None
    assert "by hand" in look(host)["unit mind-heartbeat"].detail
    hold.release()


def test_what_does_not_start_at_boot_and_targets_of_nobody_are_named(host: Home, systemctl: Systemctl) -> None:
    systemctl.enabled = {"mind@ada.target", "mind@eve.target"}
    found = look(host)
    assert set(found) == {"unit mind.target", "unit mind@eve.target"}
    assert "no Mind 'eve'" in found["unit mind@eve.target"].detail


def test_a_held_mind_may_be_stopped_and_a_disabled_one_is_told_of(host: Home, systemctl: Systemctl) -> None:
    builders.hold(host, "ada", "night")
    for unit in ("mind@ada.target", "mind-persona@ada.socket", "mind-self@ada.socket"):
        systemctl.put(unit, "inactive", "dead")
    systemctl.enabled = {"mind.target"}
    assert look(host) == {}
    assert "stopped, as she is held; she is not enabled" in call_verb(doctor, host).stdout


def test_a_manager_that_does_not_answer_is_a_fault_and_one_that_is_not_there_is_none(
    host: Home, systemctl: Systemctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemctl.deaf = True
    assert "Permission denied" in look(host)["systemd"].detail
    monkeypatch.setattr("mind_body.cli.unit_states.is_booted", lambda: False)
    assert look(host) == {}
    assert "it does not run here" in call_verb(doctor, host).stdout


def test_a_home_directory_is_not_carried(tmp_path: Path, systemctl: Systemctl) -> None:
    assert read_carried(make_home(tmp_path, "ada")) is None


def test_words_that_cannot_be_read_leave_the_state(host: Home, systemctl: Systemctl, monkeypatch: pytest.MonkeyPatch) -> None:
    systemctl.put("mind-mouth.service", "failed", "failed", result="signal", invocation="7")
    monkeypatch.setattr(unit_checks, "run_tool", _no_journal)
    assert look(host)["unit mind-mouth"].detail == "failed: signal"


def _no_journal(argv: list[str]) -> Ran:
    raise ConfigError(f"{argv[0]} is not here")


# -- the installation ----------------------------------------------------------------------------------------------------


def test_an_installation_of_another_release_is_told_with_what_is_to_be_done(host: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    actions = tuple(Action("write", f"/usr/local/lib/{n}") for n in range(5))
    monkeypatch.setattr(unit_checks, "look_at", lambda *_: (None, Facts({}), Plan(actions, None)))
    found = look(host)["installation"]
    assert "write /usr/local/lib/0" in found.detail
    assert "and 2 more" in found.detail
    assert "mind install" in found.fix


def test_a_program_that_units_cannot_run_and_a_note_that_cannot_be_read_are_told(
    host: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def torn(*_: object) -> None:
        raise ConfigError("the note cannot be read")

    monkeypatch.setattr(unit_checks, "look_at", torn)
    assert look(host)["installation"].detail == "the note cannot be read"
    monkeypatch.setattr(unit_checks, "find_fault", lambda *_: "the units could not run /root/mind")
    assert "could not run" in look(host)["installation"].detail
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert look(host)["installation"].fix == "call `mind doctor` as root"


# -- users and rights ----------------------------------------------------------------------------------------------------


def test_a_user_that_is_missing_or_in_another_group_is_named(host: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = pwd.getpwnam
    monkeypatch.setattr(
        pwd, "getpwnam", lambda name: SimpleNamespace(pw_uid=SELF, pw_gid=9) if name == "mind-self" else theirs(name)
    )
    assert look(host)["users"].fix == "`usermod -g mind mind-self`"

    def nobody(name: str) -> pwd.struct_passwd:
        raise KeyError(f"getpwnam(): name not found: '{name}'")

    monkeypatch.setattr(pwd, "getpwnam", nobody)
    assert look(host)["users"].detail == "not there: 'mind-lease'"


def _own_file(home: Home) -> None:
    home.mind_file("ada").chmod(0o600)


def _closed_brake(home: Home) -> None:
    (home.control_dir("ada") / "brake.toml").chmod(0o600)


def _closed_directory(home: Home) -> None:
    home.mind_dir("ada").chmod(0o750)


def _closed_memory(home: Home) -> None:
    home.mind_db("ada").chmod(0o640)


def _strange_work(home: Home) -> None:
    (home.mind_dir("ada") / "work" / "main").mkdir(parents=True)


@pytest.mark.parametrize(
    ("break_it", "named", "fix"),
    [
        (_own_file, "minds/ada.toml cannot be read", "chmod 640"),
        (_closed_brake, "so that she is held", "chmod 644"),
        (_closed_directory, "is not the group's", "chmod 2770"),
        (_closed_memory, "mind.db cannot be written", "chmod 660"),
        (_strange_work, "work, or what is in it, is not mind-self's", "chown -R mind-self:mind"),
    ],
)
def test_what_an_organ_could_not_use_is_named(host: Home, break_it: Callable[[Home], None], named: str, fix: str) -> None:
    break_it(host)
    (found,) = look(host).values()
    assert found.name == "ada: rights"
    assert named in found.detail
    assert fix in found.fix


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file away")
def test_a_credential_that_somebody_else_could_change_is_named(host: Home) -> None:
    os.chown(host.matrix_secret("ada", "password"), OTHERS, -1)
    assert "chown root:root" in look(host)["ada: rights"].fix


def test_who_may_not_look_is_told_to_be_root(host: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object) -> bool:
        raise PermissionError(13, "Permission denied", "/etc/mind/control/ada")

    monkeypatch.setattr("mind_body.cli.right_checks.may", closed)
    assert look(host)["ada: rights"].fix == "call `mind doctor` as root"


@pytest.mark.parametrize(("mode", "well"), [(0o700, True), (0o070, True), (0o007, True), (0o040, False), (0o000, False)])
def test_rights_are_those_of_the_owner_the_group_or_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, well: bool
) -> None:
    file = tmp_path / "file"
    file.touch()
    file.chmod(mode)
    uid, gid = {0o700: (ME, 9), 0o007: (OTHERS, 9)}.get(mode, (OTHERS, MY_GROUP))
    monkeypatch.setattr(pwd, "getpwnam", lambda _: SimpleNamespace(pw_uid=uid, pw_gid=gid))
    monkeypatch.setattr(os, "getgrouplist", lambda _, gid: [gid])
    assert may("somebody", file, 7) is well


# -- credentials ---------------------------------------------------------------------------------------------------------


def hand(host: Home, directory: Path, text: str | None) -> tuple[Path, Path]:
    """What the mouth has of ada's password; the operator's own file, and the copy."""
    copies = directory / "handed" / "mind-mouth.service"
    copies.mkdir(parents=True)
    kept, copy = host.matrix_secret("ada", "password"), copies / "matrix_ada.matrix-password"
    if text is not None:
        copy.write_text(text)
    return kept, copy


def test_a_copy_that_is_the_same_is_in_force_however_old(host: Home, tmp_path: Path) -> None:
    kept, _ = hand(host, tmp_path, host.matrix_secret("ada", "password").read_text())
    kept.chmod(0o600)
    found = check_in_force(host, "ada")
    assert (found.ok, found.detail) == (True, "ada.matrix-password to mind-mouth")
    assert read_in_force(kept) == "long and hers"


def test_what_was_written_since_its_unit_started_is_not_in_force(host: Home, tmp_path: Path) -> None:
    kept, copy = hand(host, tmp_path, "old")
    while kept.stat().st_ctime_ns <= copy.stat().st_ctime_ns:
        kept.write_text("new\n")
    found = look(host)["ada: handed over"]
    assert found.fix.startswith("`systemctl restart mind-mouth`")
    assert read_in_force(kept) == "new", "the doctor tries the one that will be"


def test_what_was_never_handed_over_is_named(host: Home, tmp_path: Path) -> None:
    hand(host, tmp_path, None)
    assert "mind-mouth has not got ada.matrix-password" in look(host)["ada: handed over"].detail


def test_what_lies_encrypted_is_tried_as_its_unit_has_it(host: Home, tmp_path: Path) -> None:
    kept, copy = hand(host, tmp_path, None)
    kept.write_text("DHzAexF2RZGcSwvqCLwg/iAAAAAFAAAADAAAABAAAAC1vFajPAi9")
    while not copy.exists() or copy.stat().st_ctime_ns <= kept.stat().st_ctime_ns:
        copy.write_text("long and hers\n")
    assert look(host) == {}
    assert read_in_force(kept) == "long and hers"
    copy.write_bytes(b"\xff\xfe")
    with pytest.raises(CredentialError, match="does not hold text"):
        read_in_force(kept)


def test_a_home_directorys_secret_is_read_where_it_lies(tmp_path: Path) -> None:
    home = make_home(tmp_path, "ada")
    assert read_in_force(home.matrix_secret("ada", "password")) == "long and hers"


# -- what units see ------------------------------------------------------------------------------------------------------


def test_where_her_self_may_not_write_is_named_with_the_drop_in_that_lets_it(
    host: Home, systemctl: Systemctl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site = tmp_path.resolve()
    text = host.mind_file("ada").read_text()
    own = f'[self]\nenabled = true\ncredential = "none"\nsandbox = false\nworkspaces = {{site = "{site}"}}\n'
    host.mind_file("ada").write_text(text.replace("[self]\n", own, 1) if "\n[self]\n" in text else text + own)
    granted = ["-/var/lib/mind/ada"]

    async def show(argv: list[str]) -> Ran:
        assert argv[-1] == "mind-self@ada.service"
        return Ran(0, " ".join(granted), "")

    monkeypatch.setattr("mind_body.cli.right_checks.call_tool", show)
    monkeypatch.setattr("mind_body.cli.seen.UNSEEN", ("/nowhere",))
    monkeypatch.setattr("mind_body.cli.right_checks.find_unseen", lambda _: None)
    site.chmod(0o700)
    found = look(host)["ada: self reach"]
    assert f"ReadWritePaths={site}" in found.fix
    assert f"mind-self may not write to {site}" in found.detail
    granted.append(str(site.parent))
    site.chmod(0o770)
    assert "ada: self reach" not in look(host)
    monkeypatch.setattr("mind_body.cli.right_checks.find_unseen", lambda _: "/home")
    assert "sees nothing of /home" in look(host)["ada: self reach"].detail


def test_a_cli_that_units_do_not_find_or_see_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = builders.make_home(tmp_path)
    host = replace(home, root=None)
    cli = tmp_path.resolve() / "bin" / "claude"
    cli.parent.mkdir()
    cli.write_text("#!/bin/sh\n")
    cli.chmod(0o755)
    monkeypatch.setattr("mind_body.cli.seen.UNSEEN", ())
    monkeypatch.setattr("mind_body.model.claude_files.cli_places", lambda: [cli])
    monkeypatch.setenv("PATH", str(cli.parent))
    assert find_seen_cli(home, "") == cli
    with pytest.raises(ConfigError, match="not on that of units"):
        find_seen_cli(host, "")
    assert find_seen_cli(host, str(cli)) == cli
    monkeypatch.setattr("mind_body.cli.seen.UNSEEN", (str(tmp_path.resolve()),))
    with pytest.raises(ConfigError, match="units see nothing"):
        find_seen_cli(host, str(cli))
    assert find_unseen(Path("/usr/bin/claude")) is None
