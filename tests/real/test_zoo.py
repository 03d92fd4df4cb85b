"""Whatever its `claude` does, a run ends once, as the design says, in bounded time, and leaves nothing."""

from pathlib import Path

import pytest

from tests.parts_present import require_part
from tests.real.parts.zoo import SCENARIOS, play

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def part() -> None:
    require_part("bubblewrap")


@pytest.mark.parametrize("name", SCENARIOS)
async def test_s2_a_run_over_a_child_that(name: str, tmp_path: Path) -> None:
    report = await play(name, tmp_path)
    assert report.wrong == []
    assert not report.late
    assert report.leaked == []
