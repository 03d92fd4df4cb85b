"""The crash campaign (parts/campaign.py): every organ killed at every boundary and at random, the homeserver up, down, restarted.

`probes/crash.py` runs the same with a number of kills of one's choice.
"""

from pathlib import Path

import pytest

from tests.parts_present import require_part
from tests.real.parts.campaign import AT_WORK, TALK, Campaign, Findings
from tests.real.parts.campaign_work import WorkCampaign, WorkFindings, do_work, start_work
from tests.real.parts.chat_api import answer_with, open_chat_api
from tests.real.parts.echo import echo
from tests.real.parts.messages_api import scripted_messages_api
from tests.real.parts.synapse import open_homeserver

pytestmark = [pytest.mark.real, pytest.mark.early]


def run_campaign(directory: Path, kills: int, seed: int) -> Findings:
    require_part("synapse")
    with open_homeserver(directory / "synapse") as homeserver, open_chat_api(answer_with(echo)) as api:
        campaign = Campaign(homeserver, api, directory / "home", seed)
        try:
            return campaign.run(kills)
        finally:
            campaign.scene.close()


def verify(found: Findings, kills: int) -> None:
    assert (found.lost, found.twice, found.reordered, found.orphans) == (0, 0, 0, 0), found.as_json()
    assert not found.wrong
    assert found.kills >= kills
    assert found.tried.keys() >= set(TALK), "every crash point was among them"
    assert found.homeserver_restarts


def test_forty_kills_lose_double_and_reorder_nothing(tmp_path: Path) -> None:
    verify(run_campaign(tmp_path, 40, seed=1), 40)


@pytest.mark.long
def test_three_hundred_kills_lose_double_and_reorder_nothing(tmp_path: Path) -> None:
    verify(run_campaign(tmp_path, 300, seed=2), 300)


def run_work_campaign(directory: Path, kills: int, seed: int) -> WorkFindings:
    for part in ("synapse", "claude", "bubblewrap"):
        require_part(part)
    with (
        open_homeserver(directory / "synapse") as homeserver,
        open_chat_api(answer_with(start_work)) as api,
        scripted_messages_api(do_work) as works,
    ):
        campaign = WorkCampaign(homeserver, api, works, directory / "home", seed)
        try:
            campaign.run(kills)
        finally:
            campaign.scene.close()
        return campaign.found


def verify_work(found: WorkFindings, kills: int) -> None:
    counts = (found.lost, found.twice, found.reordered, found.orphans, found.not_taken_again, found.untold)
    assert counts == (0,) * 6, found.as_json()
    assert not found.wrong
    assert found.kills >= kills
    assert found.dead


def test_work_whose_self_is_killed_is_taken_again_done_and_told_once(tmp_path: Path) -> None:
    verify_work(run_work_campaign(tmp_path, 6, seed=1), 6)


@pytest.mark.long
def test_sixty_kills_lose_double_and_reorder_no_work_and_leave_nothing_running(tmp_path: Path) -> None:
    found = run_work_campaign(tmp_path, 60, seed=2)
    verify_work(found, 60)
    assert found.tried.keys() >= set(AT_WORK), "every crash point of work was among them"
    assert found.homeserver_restarts
