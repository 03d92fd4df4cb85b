"""The crash campaign (parts/campaign.py): every organ killed at every boundary and at random, the homeserver up, down, restarted.

`probes/crash.py` runs the same with a number of kills of one's choice.
"""

from pathlib import Path

import pytest

from mind_body.crash import POINTS
from tests.parts_present import require_part
from tests.real.parts.campaign import Campaign, Findings
from tests.real.parts.chat_api import answer_with, open_chat_api
from tests.real.parts.echo import echo
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
    assert found.tried.keys() >= POINTS.keys(), "every crash point was among them"
    assert found.homeserver_restarts


def test_forty_kills_lose_double_and_reorder_nothing(tmp_path: Path) -> None:
    verify(run_campaign(tmp_path, 40, seed=1), 40)


@pytest.mark.long
def test_three_hundred_kills_lose_double_and_reorder_nothing(tmp_path: Path) -> None:
    verify(run_campaign(tmp_path, 300, seed=2), 300)
