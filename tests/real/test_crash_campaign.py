"""The crash campaigns (parts/campaign*.py): every organ killed at every boundary and at random, the homeserver up, down, restarted.

`probes/crash.py` runs the same with a number of kills of one's choice.
"""

from pathlib import Path
from typing import Any

import pytest

from mind_body.crash import POINTS
from tests.parts_present import require_part
from tests.real.parts.campaign import AT_WORK, LEASING, TALK, WAKING, Findings
from tests.real.parts.campaigns import Which, open_campaign

pytestmark = [pytest.mark.real, pytest.mark.early]


def run_campaign(which: Which, directory: Path, kills: int, seed: int) -> Any:
    """What it found, which is nothing."""
    for part in ("synapse",) if which == "all" else ("synapse", "claude", "bubblewrap"):
        require_part(part)
    with open_campaign(which, directory, directory / "home", seed) as campaign:
        found: Findings = campaign.run(kills)
    assert not any(found.must_be_zero()), found.as_json()
    assert not found.wrong
    assert found.kills >= kills
    return found


def test_every_crash_point_is_one_of_a_campaigns() -> None:
    assert {*TALK, *AT_WORK, *WAKING, *LEASING} == set(POINTS)


def test_forty_kills_lose_double_and_reorder_nothing(tmp_path: Path) -> None:
    found = run_campaign("all", tmp_path, 40, seed=1)
    assert found.tried.keys() >= set(TALK), "every crash point was among them"
    assert found.homeserver_restarts


@pytest.mark.long
def test_three_hundred_kills_lose_double_and_reorder_nothing(tmp_path: Path) -> None:
    found = run_campaign("all", tmp_path, 300, seed=2)
    assert found.tried.keys() >= set(TALK)
    assert found.homeserver_restarts


def test_work_whose_self_is_killed_is_taken_again_done_and_told_once(tmp_path: Path) -> None:
    assert run_campaign("self", tmp_path, 6, seed=1).dead


@pytest.mark.long
def test_sixty_kills_lose_double_and_reorder_no_work_and_leave_nothing_running(tmp_path: Path) -> None:
    found = run_campaign("self", tmp_path, 60, seed=2)
    assert found.dead
    assert found.tried.keys() >= set(AT_WORK), "every crash point of work was among them"
    assert found.homeserver_restarts


def test_whenever_the_lease_dies_the_ledger_says_what_was_served(tmp_path: Path) -> None:
    found = run_campaign("lease", tmp_path, 10, seed=1)
    assert found.tried.keys() >= set(LEASING)
    assert found.billed
    assert found.limits
    assert found.questions


def test_whenever_the_heartbeat_dies_everybody_is_woken_once(tmp_path: Path) -> None:
    found = run_campaign("heartbeat", tmp_path, 10, seed=1)
    assert len(found.tried) > 1
    assert found.beats == found.days


@pytest.mark.long
@pytest.mark.parametrize(("which", "points"), [("lease", LEASING), ("heartbeat", WAKING)])
def test_sixty_kills_lose_no_wake_and_no_money(tmp_path: Path, which: Which, points: tuple[str, ...]) -> None:
    found = run_campaign(which, tmp_path, 60, seed=2)
    assert found.tried.keys() >= set(points), "every crash point was among them"
    assert found.homeserver_restarts
    assert found.unsettled
    assert min(found.limits, found.questions, found.runs)
    assert found.beats == found.days
