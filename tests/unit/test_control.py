"""Brake and dial: whatever is not plainly released is held, and what is written is written whole."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body import clock
from mind_body.control import files
from mind_body.control.effective import BrakeFile, Dial, DialFile, Held, Released, effective
from mind_body.control.files import read_control, read_dial, write_brake, write_dial
from mind_body.errors import ConfigError
from mind_body.home import Home
from tests.builders import hold, make_home, release

WRONG_USER = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away; run as root")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path, "ada")


def brake_file(home: Home) -> Path:
    return home.control_dir("ada") / "brake.toml"


def dial_file(home: Home) -> Path:
    return home.control_dir("ada") / "dial.toml"


def no_toml(path: Path) -> dict[str, object]:
    raise AssertionError(path)


def held(home: Home) -> str:
    control = read_control(home, "ada")
    assert isinstance(control, Held), control
    return control.reason


def test_released_by_both_files_is_released_with_the_dial(home: Home) -> None:
    release(home, "ada", heat=2.0, base_cooldown_s=100, base_run_usd=0.25)
    assert read_control(home, "ada") == Released(Dial(2.0, 100, 0.25))


def test_held_says_the_operators_reason(home: Home) -> None:
    hold(home, "ada", 'a "reason" with \\ and ü\nand a second line')
    assert held(home) == 'a "reason" with \\ and ü\nand a second line'
    hold(home, "ada")
    assert held(home) == "held by the operator"


@pytest.mark.parametrize("which", [brake_file, dial_file])
@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_may_write_is_held(home: Home, which: Callable[[Home], Path], mode: int) -> None:
    which(home).chmod(mode)
    assert "writable by others" in held(home)


def test_a_directory_that_others_may_write_is_held_since_they_could_put_another_file_there(home: Home) -> None:
    home.control_dir("ada").chmod(0o777)
    assert "writable by others" in held(home)


@as_root
@pytest.mark.parametrize("which", [brake_file, dial_file, lambda home: home.control_dir("ada")])
def test_a_file_of_the_wrong_owner_is_held(home: Home, which: Callable[[Home], Path]) -> None:
    os.chown(which(home), WRONG_USER, -1)
    assert f"belongs to user {WRONG_USER}" in held(home)


@as_root
def test_the_owner_of_the_home_may_hold_and_release(home: Home) -> None:
    assert home.root is not None
    os.chown(home.root, WRONG_USER, -1)
    for path in (home.control_dir("ada"), brake_file(home), dial_file(home)):
        os.chown(path, WRONG_USER, -1)
    assert isinstance(read_control(home, "ada"), Released)


@pytest.mark.parametrize("which", [brake_file, dial_file])
def test_an_absent_file_is_held_and_says_what_writes_it(home: Home, which: Callable[[Home], Path]) -> None:
    which(home).unlink()
    assert "mind brake" in held(home)


def test_an_absent_directory_or_home_is_held(home: Home, tmp_path: Path) -> None:
    assert isinstance(read_control(home, "nobody"), Held)
    assert isinstance(read_control(make_home(tmp_path / "other"), "ada"), Held)


@pytest.mark.parametrize("which", [brake_file, dial_file])
def test_a_symbolic_link_is_held_wherever_it_leads(home: Home, which: Callable[[Home], Path]) -> None:
    path = which(home)
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))
    assert "symbolic link" in held(home)


def test_a_directory_or_a_pipe_in_place_of_a_file_is_held(home: Home) -> None:
    brake_file(home).unlink()
    brake_file(home).mkdir()
    assert held(home)
    brake_file(home).rmdir()
    os.mkfifo(brake_file(home), 0o600)
    assert held(home)


@given(heat=st.floats(), cooldown=st.floats(), usd=st.floats())
def test_a_dial_out_of_bounds_is_never_released(heat: float, cooldown: float, usd: float) -> None:
    inside = 0.05 <= heat <= 2.0 and 1 <= cooldown <= 604_800 and 0 <= usd <= 1000
    try:
        dial = DialFile(heat=heat, base_cooldown_s=cooldown, base_run_usd=usd)
    except ValueError:
        assert not inside
        return
    assert inside
    control = effective(BrakeFile(state="released"), dial)
    assert isinstance(control, Released)
    assert control.dial.cadence_s == cooldown / heat
    assert 0 <= control.dial.run_cap <= 2_000_000_000


@given(st.binary(max_size=200))
def test_no_garbage_in_a_brake_file_releases_her(tmp_path_factory: pytest.TempPathFactory, garbage: bytes) -> None:
    home = make_home(tmp_path_factory.mktemp("home"))
    release(home, "ada")
    brake_file(home).write_bytes(garbage)
    assert isinstance(read_control(home, "ada"), Held)


@pytest.mark.parametrize(
    "text",
    [
        "",
        'state = "Released"',
        "state = true",
        'state = "released"\nstate = "released"',
        'state = "released"\nuntil = "noon"',
        '[released]\nstate = "released"',
    ],
)
def test_a_brake_file_that_says_it_otherwise_is_held(home: Home, text: str) -> None:
    brake_file(home).write_text(text)
    assert str(brake_file(home)) in held(home)


@pytest.mark.parametrize("text", ["heat = 3.0", "heat = nan", 'heat = "hot"', "base_run_usd = -1", "heet = 1.0", "heat ="])
def test_a_dial_file_that_cannot_be_used_is_held_and_the_verb_says_why(home: Home, text: str) -> None:
    dial_file(home).write_text(text)
    assert str(dial_file(home)) in held(home)
    with pytest.raises(ConfigError, match="dial"):
        read_dial(home, "ada")


@given(reason=st.text(max_size=100), heat=st.floats(0.05, 2.0), usd=st.floats(0, 1000))
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, reason: str, heat: float, usd: float) -> None:
    home = make_home(tmp_path_factory.mktemp("home"))
    dial = DialFile(heat=heat, base_run_usd=usd)
    write_dial(home, "ada", dial)
    assert read_dial(home, "ada") == dial
    write_brake(home, "ada", BrakeFile(state="held", reason=reason))
    assert read_control(home, "ada") == Held(reason or "held by the operator")


def age(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on every file is old."""
    monkeypatch.setattr(files, "now_ms", lambda: clock.now_ms() + 60_000)


def test_a_file_that_was_read_when_it_was_old_is_read_again_when_it_is_another(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    age(monkeypatch)
    text = brake_file(home).read_text()
    assert isinstance(read_control(home, "ada"), Released)
    monkeypatch.setattr(files, "read_toml", no_toml)
    assert isinstance(read_control(home, "ada"), Released), "it is not read again"
    monkeypatch.undo()
    age(monkeypatch)
    before = brake_file(home).stat()
    with brake_file(home).open("r+") as file:
        file.write(text.replace('"released"', '"held"    '))
    os.utime(brake_file(home), ns=(before.st_atime_ns, before.st_mtime_ns))
    after = brake_file(home).stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (before.st_ino, before.st_size, before.st_mtime_ns)
    assert held(home) == "held by the operator"


def test_a_file_that_was_just_written_is_read_every_time_since_the_next_write_may_leave_the_same_marks(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = brake_file(home).lstat()
    monkeypatch.setattr(files, "_look", lambda *_: marks)
    monkeypatch.setattr(files, "now_ms", lambda: marks.st_ctime_ns // 1_000_000 + files.OLD_MS)
    assert isinstance(read_control(home, "ada"), Released)
    hold(home, "ada", "enough")
    assert held(home) == "enough"


@as_root
@pytest.mark.parametrize("which", [brake_file, dial_file])
def test_who_may_write_a_file_is_asked_for_however_often_it_was_read(
    home: Home, which: Callable[[Home], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    age(monkeypatch)
    assert isinstance(read_control(home, "ada"), Released)
    assert isinstance(read_control(home, "ada"), Released)
    which(home).chmod(0o666)
    assert "writable by others" in held(home)
    which(home).chmod(0o644)
    assert isinstance(read_control(home, "ada"), Released)
    os.chown(which(home), WRONG_USER, -1)
    assert f"belongs to user {WRONG_USER}" in held(home)
    which(home).unlink()
    assert "cannot be read" in held(home)


def test_a_wide_umask_makes_no_file_that_is_then_refused(home: Home) -> None:
    before = os.umask(0)
    try:
        release(home, "eve")
    finally:
        os.umask(before)
    assert isinstance(read_control(home, "eve"), Released)


DIES_BEFORE_RENAME = """
import os, signal, sys
from pathlib import Path
from mind_body.control.effective import BrakeFile
from mind_body.control.files import write_brake
from mind_body.home import directory_home
Path.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write_brake(directory_home(Path(sys.argv[1]), Path(sys.argv[1]) / "r"), "ada", BrakeFile(state="released"))
"""


def test_a_crash_in_the_middle_of_writing_leaves_the_old_brake(home: Home) -> None:
    hold(home, "ada", "still")
    died = subprocess.run([sys.executable, "-c", DIES_BEFORE_RENAME, str(home.root)], check=False)
    assert died.returncode == -signal.SIGKILL
    assert held(home) == "still"
    release(home, "ada")
    assert isinstance(read_control(home, "ada"), Released)
