"""The crash campaigns and the fault zoo under a real systemd; `probes/crash.py` and `probes/zoo.py` run more of them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.parts_present import require_part
from tests.real.parts.campaigns import CAMPAIGNS, Which, open_campaign
from tests.real.parts.systemd_zoo import open_host_zoo

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("systemd")]


@pytest.mark.long
@pytest.mark.parametrize("which", CAMPAIGNS)
def test_units_that_are_killed_and_hosts_that_lose_power_lose_double_and_reorder_nothing(tmp_path: Path, which: Which) -> None:
    for part in ("systemd", "synapse") if which == "all" else ("systemd", "synapse", "claude", "bubblewrap"):
        require_part(part)
    with open_campaign(which, tmp_path, tmp_path / "home", 1, systemd=True) as campaign:
        found = campaign.run(10)
    assert not any(found.must_be_zero()), found.as_json()
    assert not found.wrong
    assert len(found.tried) > 4


def test_s2_in_the_real_unit_a_run_ends_once_and_leaves_nothing(tmp_path: Path) -> None:
    require_part("systemd")
    require_part("bubblewrap")
    names = ["works", "flushes, and the work goes on", "leaves grandchildren and dies"]
    with open_host_zoo(tmp_path) as zoo, ThreadPoolExecutor(len(names)) as pool:
        for report in pool.map(zoo.play, names):
            assert report.wrong == [], report.name
            assert not report.late, report.name
            assert report.leaked == [], report.name
