"""`mind doctor` starts a Self's CLI in its sandbox and asks it for its window, with the real one and with the zoo's."""

import json
from pathlib import Path
from typing import Any

import pytest

from mind_body.home import Home
from mind_body.host.process import list_descendants
from tests.homes import call, make_home
from tests.parts_present import require_part
from tests.real.parts.zoo_claude import install_zoo

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def part() -> None:
    require_part("bubblewrap")


def checks(home: Home) -> dict[str, Any]:
    answer = call(home, "doctor", "--json")
    assert answer.stdout, answer.exception
    told = json.loads(answer.stdout)["checks"]
    return {check["name"].partition(": ")[2]: check for check in told if check["name"].startswith("ada: ")}


def test_the_real_cli_tells_its_window_and_no_model_is_called(tmp_path: Path) -> None:
    require_part("claude")
    seen = checks(make_home(tmp_path, "ada", self={"enabled": True, "model": "claude-sonnet-4-5"}))
    assert seen["self"]["ok"], seen["self"]
    assert "window 200,000 tokens, flush at 140,000" in seen["self"]["detail"]
    assert seen["self workspaces"]["ok"]
    assert seen["self sandbox"]["ok"]


def test_a_window_too_small_to_work_in_is_refused(tmp_path: Path) -> None:
    cli = install_zoo(tmp_path, window=100_000)
    seen = checks(make_home(tmp_path, "ada", self={"enabled": True, "cli": str(cli)}))["self"]
    assert not seen["ok"]
    assert "100,000 tokens; a Self needs 128,000" in seen["detail"]


def test_a_cli_that_does_not_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    cli = install_zoo(tmp_path, refuse="session-id")
    before = list_descendants(1)
    seen = checks(make_home(tmp_path, "ada", self={"enabled": True, "cli": str(cli)}))["self"]
    assert not seen["ok"]
    assert "already in use" in seen["detail"]
    assert not [pid for pid in set(list_descendants(1)) - set(before) if str(tmp_path) in _command(pid)]


def test_what_is_named_and_not_there_is_told(tmp_path: Path) -> None:
    cli = install_zoo(tmp_path)
    gone = str(tmp_path / "gone")
    table = {"enabled": True, "cli": str(cli), "binds_readable": [gone], "credential": "api-key", "home_room": "!no:where"}
    seen = checks(make_home(tmp_path, "ada", self=table))
    assert {name: check["ok"] for name, check in seen.items() if name.startswith(("self", "home room"))} == {
        "self": True, "self workspaces": False, "self key": False, "home room": False, "self sandbox": True,
    }  # fmt: skip
    assert gone in seen["self workspaces"]["detail"]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
