"""An installation as it is planned: over a host that is a dictionary, whatever was there before, whatever somebody edits."""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from mind_body.cli.install_host import Host
from mind_body.cli.install_plan import plan_install
from mind_body.cli.install_shapes import (
    ACCOUNTS,
    GROUP,
    Action,
    Facts,
    Manager,
    Manifest,
    Plan,
    Thing,
    Wanted,
    WantedDirectory,
    WantedFile,
)
from mind_body.cli.install_wanted import PLACES, RUNTIME
from mind_body.cli.installation import UNSEEN, Installation, find_fault, find_installation
from mind_body.cli.main import cli
from mind_body.cli.manager_plan import DAEMONS, TARGET
from mind_body.cli.uninstall_plan import plan_uninstall
from mind_body.cli.unit_text import render_command, render_unit
from mind_body.data import units_dir
from mind_body.errors import ChildError, MindBodyError
from mind_body.home import Home
from mind_body.host.manager import OLDEST, change, run_tool

UNITS = "/usr/local/lib/systemd/system"
UNIT_KINDS = {".service", ".socket", ".target", ".slice"}
SYSTEM = ("/usr", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/etc", "/var", "/var/lib", "/run")
MANIFEST = "/var/lib/mind/.installed.json"


def make_file(path: str, text: str) -> WantedFile:
    return WantedFile(path, text.encode(), hashlib.sha256(text.encode()).hexdigest())


def make_wanted(units: Mapping[str, str] | None = None, code: str = "code 1", **other: Any) -> Wanted:
    """A release with these units."""
    texts = {"mind-mouth.service": "mouth 1", "mind.target": "target 1"} if units is None else units
    values: dict[str, Any] = {
        "release": "1.0",
        "code": code,
        "prefix": "/usr/local",
        "sysusers": make_file("/usr/local/lib/sysusers.d/mind-body.conf", "u"),
        "tmpfiles": make_file("/usr/local/lib/tmpfiles.d/mind-body.conf", "d"),
        "units": tuple(make_file(f"{UNITS}/{name}", text) for name, text in texts.items()),
        "catalogs": (make_file("/usr/local/lib/systemd/catalog/mind-body.catalog", "c"),),
        "directories": (
            WantedDirectory("/etc/mind", 0o2750, "root", GROUP),
            WantedDirectory("/var/lib/mind", 0o2750, "root", GROUP),
        ),
        "runtime": WantedDirectory(RUNTIME, 0o2770, "root", GROUP),
        "links": {"/usr/local/bin/mind": "/opt/mind-body/bin/mind"},
        "accounts": ACCOUNTS,
    }
    return Wanted(**(values | other))


@dataclass
class World:
    """A host with systemd. What a plan says is done to it, in order, as the real one would be."""

    things: dict[str, Thing] = field(
        default_factory=lambda: {path: Thing("directory", mode=0o755, owner="root", group="root") for path in SYSTEM}
    )
    accounts: set[str] = field(default_factory=set)
    manifest: Manifest | None = None
    active: set[str] = field(default_factory=set)
    enabled: set[str] = field(default_factory=set)
    minds: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    booted: bool = True
    told: list[str] = field(default_factory=list)

    def facts(self) -> Facts:
        return Facts(
            things=dict(self.things),
            accounts=frozenset(self.accounts),
            manifest=self.manifest,
            manager=Manager(self.booted, tuple(self.active), tuple(self.enabled)),
            minds=self.minds,
            behind=self.behind,
            left=self.left,
        )

    def install(self, wanted: Wanted, *, start: bool = True, stop_after: int | None = None) -> Plan:
        """`stop_after`: so many actions, and the process is gone."""
        plan = plan_install(wanted, self.facts(), start=start)
        contents = {file.path: file for file in wanted.files}
        assert plan.first is not None
        self.manifest = plan.first
        for action in plan.actions[:stop_after]:
            self.do(action, contents, wanted)
            pending = [word for word in self.manifest.pending if word != action.settles]
            self.manifest = self.manifest.model_copy(update={"pending": pending})
        if stop_after is None or stop_after >= len(plan.actions):
            assert plan.manifest is not None
            self.manifest = plan.manifest.model_copy(update={"pending": self.manifest.pending})
        return plan

    def uninstall(self, *, purge: bool = False) -> Plan:
        plan = plan_uninstall(self.facts(), PLACES, RUNTIME, purge=purge)
        for action in plan.actions:
            self.do(action, {}, None)
        self.manifest = plan.manifest
        return plan

    def write(self, path: str, text: str) -> None:
        self.things[path] = Thing("file", make_file(path, text).digest, mode=0o644, owner="root", group="root")

    def text(self, path: str) -> str:
        return self.things[path].digest

    def do(self, action: Action, contents: Mapping[str, WantedFile], wanted: Wanted | None) -> None:
        path = action.about
        match action.do:
            case "write" | "beside":
                assert str(Path(path).parent) in self.things, f"{path} has no directory yet"
                assert action.do == "write" or path not in contents
                self.things[path] = replace(Thing("file"), digest=contents[path.removesuffix(".new")].digest)
            case "directory" | "own":
                assert not action.owner or action.group in {*self.accounts, "root"}
                now = self.things.get(path, Thing("directory", owner="root", group="root"))
                self.things[path] = Thing("directory", "", "", action.mode, action.owner or now.owner, action.group or now.group)
            case "link":
                self.things[path] = Thing("link", target=action.why)
            case "remove" | "unlink":
                del self.things[path]
            case "rmdir":
                if not [one for one in self.things if one.startswith(f"{path}/")]:
                    del self.things[path]
            case "clear":
                for one in [one for one in self.things if one == path or one.startswith(f"{path}/")]:
                    del self.things[one]
            case "migrate":
                assert not self.active & set(DAEMONS), "who knows the old shape runs"
                self.behind = tuple(name for name in self.behind if name != path)
            case "run":
                self.run(*action.argv, wanted=wanted)

    def run(self, program: str, *words: str, wanted: Wanted | None) -> None:
        self.told.append(" ".join((program, *words)))
        match program, *words:
            case "systemd-sysusers", _:
                self.accounts |= set(ACCOUNTS)
            case "systemd-tmpfiles", _, _:
                assert GROUP in self.accounts
                self.things[RUNTIME] = Thing("directory", mode=0o2770, owner="root", group=GROUP)
            case "systemctl", "enable", *units:
                self.enabled |= set(units)
            case "systemctl", "disable", *units:
                self.enabled -= set(units)
            case "systemctl", ("start" | "restart"), *units:
                self.active |= {*units, *(DAEMONS if TARGET in units else ())}
            case "systemctl", "stop", *units:
                self.active -= set(units)
            case "userdel" | "groupdel", name:
                assert not self.active, "a process of his runs"
                self.accounts.discard(name)
            case _:
                assert (program, *words) in {("systemctl", "daemon-reload"), ("journalctl", "--update-catalog")}


releases = st.builds(
    make_wanted,
    st.dictionaries(st.sampled_from(["mind-mouth.service", "mind-lease.socket", "mind.target"]), st.sampled_from("abc")),
    st.sampled_from(["code 1", "code 2"]),
)
paths = st.sampled_from([f"{UNITS}/{name}{end}" for name in ("mind-mouth.service", "mind.target") for end in ("", ".new")])
edits = st.dictionaries(paths, st.one_of(st.none(), st.sampled_from(["theirs", "a", "b"])))


def edit(world: World, what: Mapping[str, str | None]) -> None:
    for path, text in what.items():
        if text is None:
            world.things.pop(path, None)
        elif str(Path(path).parent) in world.things:
            world.write(path, text)


@given(releases, edits, releases, edits, st.booleans())
def test_the_second_run_changes_nothing(
    old: Wanted, first: Mapping[str, str | None], new: Wanted, second: Mapping[str, str | None], start: bool
) -> None:
    world = World()
    edit(world, first)
    world.install(old)
    edit(world, second)
    world.install(new, start=start)
    before = dict(world.things)
    plan = world.install(new, start=start)
    assert plan.actions == ()
    assert world.things == before


@given(releases, releases, edits)
def test_what_somebody_edited_is_never_overwritten(old: Wanted, new: Wanted, what: Mapping[str, str | None]) -> None:
    world = World()
    world.install(old)
    edit(world, what)
    ours = {file.path: file.digest for file in old.files}
    theirs = {path: thing for path, thing in world.things.items() if thing.kind == "file" and thing.digest != ours.get(path)}
    theirs = {path: thing for path, thing in theirs.items() if thing.digest != _digest_in(new, path)}
    world.install(new)
    world.install(old)
    assert {path: world.things.get(path) for path in theirs} == theirs


def _digest_in(wanted: Wanted, path: str) -> str:
    return next((file.digest for file in wanted.files if file.path == path.removesuffix(".new")), "")


@given(releases, edits, releases, st.integers(0, 40))
def test_a_run_that_was_cut_off_is_finished_by_the_next(
    old: Wanted, what: Mapping[str, str | None], new: Wanted, steps: int
) -> None:
    cut, whole = World(), World()
    for world in (cut, whole):
        world.install(old)
        edit(world, what)
    whole.install(new)
    cut.install(new, stop_after=steps)
    cut.install(new)
    assert (cut.things, cut.active, cut.enabled, cut.manifest) == (whole.things, whole.active, whole.enabled, whole.manifest)


@given(releases, releases, st.booleans())
def test_uninstall_takes_back_exactly_what_install_put_there(old: Wanted, new: Wanted, purge: bool) -> None:
    world = World()
    world.write("/etc/systemd-of-somebody", "theirs")
    before = (dict(world.things), set(world.accounts), set(world.enabled))
    world.install(old)
    world.install(new)
    world.uninstall(purge=purge)
    assert (world.things, world.accounts, world.enabled) == before
    assert not world.active
    assert world.manifest is None
    assert world.uninstall(purge=purge).actions == ()


@given(releases, edits)
def test_uninstall_leaves_what_was_there_before_and_what_was_edited(wanted: Wanted, what: Mapping[str, str | None]) -> None:
    world = World()
    for directory in ("/usr/local/lib/systemd", UNITS):
        world.things[directory] = Thing("directory", mode=0o755, owner="root", group="root")
    edit(world, what)
    theirs = {path: thing for path, thing in world.things.items() if thing.kind == "file"}
    world.install(wanted)
    world.uninstall()
    assert {path: thing for path, thing in world.things.items() if thing.kind == "file"} == theirs


@given(releases, releases, st.integers(0, 40))
def test_a_run_that_was_cut_off_is_taken_back_whole(old: Wanted, new: Wanted, steps: int) -> None:
    world = World()
    before = dict(world.things)
    world.install(old, stop_after=steps)
    world.install(new, stop_after=steps)
    world.uninstall(purge=True)
    assert (world.things, world.accounts, world.enabled) == (before, set(), set())


def test_an_edited_unit_is_kept_and_the_new_one_lies_beside_it() -> None:
    world = World()
    world.install(make_wanted())
    world.write(f"{UNITS}/mind-mouth.service", "mine")
    plan = world.install(make_wanted({"mind-mouth.service": "mouth 2", "mind.target": "target 1"}))
    assert world.text(f"{UNITS}/mind-mouth.service") == make_file("", "mine").digest
    assert world.text(f"{UNITS}/mind-mouth.service.new") == make_file("", "mouth 2").digest
    assert "edited" in plan.kept[f"{UNITS}/mind-mouth.service"]


def test_what_lay_beside_goes_when_the_file_is_the_same() -> None:
    world = World()
    world.install(make_wanted())
    world.write(f"{UNITS}/mind-mouth.service", "mine")
    new = make_wanted({"mind-mouth.service": "mouth 2", "mind.target": "target 1"})
    world.install(new)
    world.write(f"{UNITS}/mind-mouth.service", "mouth 2")
    world.install(new)
    assert f"{UNITS}/mind-mouth.service.new" not in world.things


def test_an_upgrade_restarts_the_daemons_the_lease_first_and_starts_nothing_that_was_stopped() -> None:
    world = World()
    world.install(make_wanted())
    world.active.discard("mind-heartbeat.service")
    world.told.clear()
    world.install(make_wanted(code="code 2"))
    assert world.told == ["systemctl restart mind-lease.service", "systemctl restart mind-mouth.service"]


def test_where_a_socket_is_another_one_everything_begins_anew_together() -> None:
    world = World()
    world.install(make_wanted({"mind-lease.socket": "1"}))
    world.told.clear()
    world.install(make_wanted({"mind-lease.socket": "2"}))
    assert world.told == ["systemctl daemon-reload", "systemctl restart mind.target"]


def test_what_a_package_put_there_itself_is_told_to_the_manager_and_left_to_the_package() -> None:
    world = World()
    for release, text in ((make_wanted({"mind-mouth.service": "1"}), "1"), (make_wanted({"mind-mouth.service": "2"}), "2")):
        for directory in (Path(file.path).parent for file in release.files):
            world.do(Action("directory", str(directory), mode=0o755), {}, None)
        for file in release.files:
            world.write(file.path, file.content.decode())
        world.told.clear()
        assert not [action for action in world.install(release).actions if action.do == "write"]
        assert {
            "systemctl daemon-reload",
            "systemctl enable mind.target" if text == "1" else f"systemctl restart {DAEMONS[1]}",
        } <= set(world.told)
        assert world.install(release).actions == ()
    world.uninstall(purge=True)
    assert f"{UNITS}/mind-mouth.service" in world.things


def test_minds_are_migrated_while_nobody_who_knows_the_old_shape_runs() -> None:
    world = World(minds=("ada", "bea"))
    world.install(make_wanted())
    world.behind = ("ada", "bea")
    world.active |= {"mind-persona@ada.service", "mind-self@bea.socket"}
    world.told.clear()
    plan = world.install(make_wanted(code="code 2"))
    assert [action.about for action in plan.actions if action.do == "migrate"] == ["ada", "bea"]
    assert world.told == [
        "systemctl stop mind-heartbeat.service mind-mouth.service mind-lease.service mind-persona@ada.service",
        "systemctl start mind-lease.service",
        "systemctl start mind-mouth.service",
        "systemctl start mind-heartbeat.service",
    ]


def test_what_an_operator_disabled_or_stopped_stays_so() -> None:
    world = World()
    world.install(make_wanted())
    world.enabled.clear()
    world.active.clear()
    world.install(make_wanted(code="code 2"))
    assert not world.enabled
    assert not world.active


def test_no_start_leaves_it_for_the_next_run() -> None:
    world = World()
    world.install(make_wanted(), start=False)
    assert (world.enabled, world.active) == ({TARGET}, set())
    world.install(make_wanted())
    assert set(DAEMONS) <= world.active


def test_without_a_running_manager_units_are_enabled_for_the_next_boot() -> None:
    world = World(booted=False)
    world.install(make_wanted())
    assert world.enabled == {TARGET}
    assert not [told for told in world.told if "start" in told or "daemon-reload" in told]
    assert world.install(make_wanted()).actions == ()


def test_minds_that_are_there_start_again_after_a_new_installation() -> None:
    world = World(minds=("ada",))
    world.install(make_wanted())
    assert world.enabled == {TARGET, "mind@ada.target"}


def test_uninstall_keeps_minds_and_the_users_whose_files_they_are() -> None:
    world = World()
    world.install(make_wanted())
    world.left = ("/etc/mind/minds/ada.toml",)
    world.uninstall()
    assert {"/etc/mind", "/var/lib/mind"} <= world.things.keys()
    assert world.accounts == set(ACCOUNTS)
    assert not [path for path in world.things if path.startswith(UNITS)]
    world.install(make_wanted())
    world.left = ()
    world.uninstall()
    assert not world.accounts
    assert "/etc/mind" not in world.things


def test_users_that_were_there_before_stay() -> None:
    world = World(accounts={GROUP, "mind-mouth"})
    world.install(make_wanted())
    world.uninstall(purge=True)
    assert world.accounts == {GROUP, "mind-mouth"}


def test_a_directory_that_is_open_too_far_is_given_its_mode() -> None:
    world = World()
    world.install(make_wanted())
    world.things["/etc/mind"] = replace(world.things["/etc/mind"], mode=0o777)
    plan = world.install(make_wanted())
    assert [(action.do, action.about, action.why) for action in plan.actions] == [
        ("own", "/etc/mind", "2750 root:mind, is 0777 root:mind")
    ]


# -- what units are made of --------------------------------------------------------------------------------------------


def test_a_unit_names_this_installation_and_only_what_its_systemd_knows() -> None:
    text = "ExecStart=@MIND@ organ mouth\n@SINCE-254@RestartSteps=6\nExecStopPost=-@PYTHON@ -c pass\n"
    old = render_unit(text, ["/opt/m/bin/mind"], "/opt/m/bin/python", 252)
    assert old == "ExecStart=/opt/m/bin/mind organ mouth\nExecStopPost=-/opt/m/bin/python -c pass\n"
    assert "\nRestartSteps=6\n" in render_unit(text, ["/opt/m/bin/mind"], "/opt/m/bin/python", 254)


def test_a_path_with_marks_that_mean_something_to_systemd_is_quoted() -> None:
    assert render_command(["/opt/a b/50%/$x/mind", "-m"]) == '"/opt/a b/50%%/$$x/mind" -m'


@pytest.mark.parametrize("unit", sorted(units_dir().glob("*.service")), ids=lambda path: path.name)
def test_what_find_fault_believes_is_what_the_units_say(unit: Path) -> None:
    lines = unit.read_text().splitlines()
    assert {"ProtectHome=yes", "PrivateTmp=yes", "NoNewPrivileges=yes", "UMask=0007", "Group=mind"} <= set(lines)
    user = next(line for line in lines if line.startswith("User="))
    assert user.removeprefix("User=") in ACCOUNTS


def test_the_accounts_are_those_of_sysusers() -> None:
    lines = [line.split() for line in (units_dir() / "sysusers.d" / "mind-body.conf").read_text().splitlines()]
    assert tuple(words[1] for words in lines if words and words[0] in {"g", "u"}) == ACCOUNTS


# -- this installation -------------------------------------------------------------------------------------------------


def make_installation(*needs: Path) -> Installation:
    return Installation("1.0", "code", ("/opt/mind-body/bin/mind",), "/opt/mind-body/bin/python", needs)


@pytest.mark.parametrize("place", UNSEEN)
def test_what_units_do_not_see_is_refused_and_opt_is_named(tmp_path: Path, place: str) -> None:
    path = tmp_path / place.lstrip("/") / "venv" / "mind"
    path.parent.mkdir(parents=True)
    path.touch()
    fault = find_fault(make_installation(path), tmp_path)
    assert fault is not None
    assert place in fault
    assert "/opt" in fault


def test_who_installs_by_pipx_is_told_how_pipx_puts_it_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "root" / ".local" / "share" / "pipx" / "venvs" / "mind-body" / "bin" / "mind"
    path.parent.mkdir(parents=True)
    path.touch()
    fault = find_fault(make_installation(path), tmp_path)
    assert fault is not None
    assert "they see nothing of /root" in fault
    assert "PIPX_HOME=/opt/pipx PIPX_BIN_DIR=/usr/local/bin pipx install" in fault


def test_what_other_users_may_not_enter_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "opt" / "mind"
    path.parent.mkdir(mode=0o700)
    path.touch()
    assert f"{path.parent} is closed" in (find_fault(make_installation(path), tmp_path) or "")
    path.parent.chmod(0o755)
    assert find_fault(make_installation(path), tmp_path) is None


def test_this_installation_is_found_with_its_interpreter_and_packages() -> None:
    found = find_installation(Path("/"))
    assert Path(found.python).exists()
    assert {"trio", "pydantic", "click"} <= {path.parent.name for path in found.needs}
    assert find_installation(Path("/")).code == found.code


# -- below a directory -------------------------------------------------------------------------------------------------


def call(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


def list_files(root: Path) -> dict[str, str]:
    found = {}
    for path in root.rglob("*"):
        plain = path.is_file() and not path.is_symlink()
        found[str(path.relative_to(root))] = oct(path.lstat().st_mode) + (path.read_text() if plain else "")
    return found


def test_below_a_directory_the_second_run_changes_nothing_and_uninstall_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    before = list_files(tmp_path)
    assert "Done" in call("install", "--root", str(tmp_path)).output
    there = list_files(tmp_path)
    assert f"{UNITS}/mind-persona@.service".lstrip("/") in there
    assert stat.S_IMODE((tmp_path / "etc/mind/credentials/matrix").stat().st_mode) == 0o700
    second = json.loads(call("install", "--root", str(tmp_path), "--json").stdout)
    assert (second["changed"], second["actions"]) == (0, [])
    assert list_files(tmp_path) == there
    assert call("uninstall", "--root", str(tmp_path)).exit_code == 0
    assert list_files(tmp_path) == before


def test_a_dry_run_says_what_would_be_done_and_does_nothing(tmp_path: Path) -> None:
    told = json.loads(call("install", "--root", str(tmp_path), "--dry-run", "--json").stdout)
    assert {"do": "write", "about": f"{UNITS}/mind.target", "why": "new"} in told["actions"]
    assert (told["done"], told["changed"]) == (False, 0)
    assert not list(tmp_path.iterdir())


def test_no_placeholder_is_left_in_what_is_written(tmp_path: Path) -> None:
    call("install", "--root", str(tmp_path), "--prefix", "/usr")
    written = list((tmp_path / "usr/lib/systemd/system").iterdir())
    assert len(written) == len([path for path in units_dir().iterdir() if path.suffix in UNIT_KINDS])
    for path in written:
        assert "@MIND@" not in path.read_text()
        assert "@SINCE" not in path.read_text()


def test_an_edited_file_below_a_directory_is_left_and_named(tmp_path: Path) -> None:
    call("install", "--root", str(tmp_path))
    unit = tmp_path / UNITS.lstrip("/") / "mind-mouth.service"
    unit.write_text("mine")
    told = call("install", "--root", str(tmp_path))
    assert f"keep       {UNITS}/mind-mouth.service" in told.output
    assert unit.read_text() == "mine"
    assert "[Service]" in unit.with_name("mind-mouth.service.new").read_text()
    call("uninstall", "--root", str(tmp_path))
    assert unit.read_text() == "mine"
    assert [path.name for path in unit.parent.iterdir()] == ["mind-mouth.service"]


def test_a_link_in_the_place_of_a_file_is_never_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    unit = tmp_path / UNITS.lstrip("/") / "mind.target"
    unit.parent.mkdir(parents=True)
    unit.symlink_to(victim)
    call("install", "--root", str(tmp_path))
    assert victim.read_text() == "precious"
    assert unit.is_symlink()


def test_an_unreadable_manifest_stops_everything_with_a_sentence(tmp_path: Path) -> None:
    call("install", "--root", str(tmp_path))
    Host(tmp_path).path(MANIFEST).write_text("{")
    told = call("install", "--root", str(tmp_path))
    assert told.exit_code == 78
    assert "cannot be read" in told.output


def test_a_host_without_root_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    told = call("install")
    assert told.exit_code == 78
    assert "as root" in told.output


@pytest.mark.parametrize(("version", "words"), [(None, "systemd is not here"), (251, "this is 251")])
def test_a_host_without_a_systemd_that_knows_the_units_is_told_of_mind_up(
    monkeypatch: pytest.MonkeyPatch, version: int | None, words: str
) -> None:
    monkeypatch.setattr("mind_body.cli.install.read_version", lambda: version)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    told = call("install")
    assert told.exit_code == 78
    assert words in told.output
    assert "mind --home DIR up" in told.output


def test_a_mind_on_a_host_that_is_not_prepared_is_refused_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unprepared = Home(None, tmp_path / "etc", tmp_path / "state", tmp_path / "run")
    monkeypatch.setattr("mind_body.cli.main.find_home", lambda _: unprepared)
    told = call("new", "ada", "--no-input")
    assert told.exit_code == 78
    assert "`mind install` makes it" in told.output
    assert not list(tmp_path.iterdir())


def test_a_tool_that_fails_is_a_sentence_with_its_words() -> None:
    with pytest.raises(MindBodyError, match="no such thing"):
        change(["sh", "-c", "echo no such thing >&2; exit 3"])
    with pytest.raises(ChildError):
        run_tool(["/nowhere/tool"])
    assert run_tool(["sh", "-c", "echo a; echo b >&2"]).out == "a"
    assert OLDEST == 252
