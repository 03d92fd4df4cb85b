"""The crash campaigns and the fault zoo under a real systemd; `probes/crash.py` and `probes/zoo.py` run more of them."""

from pathlib import Path

import pytest

from tests.parts_present import require_part
from tests.real.parts.campaigns import UNDER_SYSTEMD, Which, open_campaign
from tests.real.parts.systemd_zoo import open_host_zoo

pytestmark = [pytest.mark.real, pytest.mark.long, pytest.mark.xdist_group("systemd")]


@pytest.mark.parametrize("which", UNDER_SYSTEMD)
def test_units_that_are_killed_and_hosts_that_lose_power_lose_double_and_reorder_nothing(tmp_path: Path, which: Which) -> None:
    for part in ("systemd", "synapse") if which == "all" else ("systemd", "synapse", "claude", "bubblewrap"):
        require_part(part)
    with open_campaign(which, tmp_path, tmp_path / "home", 1, systemd=True) as campaign:
        found = campaign.run(10)
        assert found.as_json() == {**found.as_json(), "lost": 0, "twice": 0, "reordered": 0, "orphans": 0, "wrong": []}
        assert not any(found.must_be_zero())
        assert len(found.tried) > 4


@pytest.mark.parametrize("name", ["works", "flushes, and the work goes on", "leaves grandchildren and dies"])
def test_s2_in_the_real_unit_a_run_over_a_child_that(tmp_path: Path, name: str) -> None:
    require_part("systemd")
    require_part("bubblewrap")
    with open_host_zoo(tmp_path) as zoo:
        report = zoo.play(name)
    assert report.wrong == []
    assert not report.late
    assert report.leaked == []
