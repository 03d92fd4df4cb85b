"""Power cuts: what was not synced is gone, every process with it, and what was promised is still there.

The household's home lies on a disk of its own (parts/disk.py). A cut freezes everybody, keeps what the disk has, kills everybody,
and mounts what was kept. Then the campaign's oracle reads the rooms back: nothing lost, twice or out of order.
"""

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mind_body.lease.ledger_read import read_calls, read_difference
from mind_body.mind.store import check_mind
from tests.parts_present import require_part
from tests.real.parts.campaign import TALK, Campaign
from tests.real.parts.chat_api import ChatApi, answer_with, open_chat_api
from tests.real.parts.disk import Disk
from tests.real.parts.echo import echo
from tests.real.parts.scene import wait_until
from tests.real.parts.synapse import Homeserver

pytestmark = [pytest.mark.real, pytest.mark.early]
RARE = {"ear.gap-page"}
"""Reached only with more messages than a sync brings; a kill there is the crash campaign's."""


class PowerCampaign(Campaign):
    """The campaign on a disk that loses power."""

    def __init__(self, homeserver: Homeserver, api: ChatApi, disk: Disk, outside: Path, seed: int) -> None:
        super().__init__(homeserver, api, disk.path / "home", seed)
        self.disk = disk
        self.scene.log = outside / "up.log"
        self._mark = outside / "hanging"

    def prepare(self) -> None:
        # What an operator made long ago is on the disk; from here on only what our own code syncs is.
        super().prepare()
        os.sync()

    def cut_at(self, point: str) -> None:
        """Between two transactions: an organ hangs at a crash point, and the power goes."""
        self._mark.unlink(missing_ok=True)
        self.scene.up(MIND_CRASH_AT=f"{point}:hang", MIND_CRASH_MARK=str(self._mark))
        end = time.monotonic() + 60
        while not self._mark.exists():
            self.ask()
            assert time.monotonic() < end, f"{point} was not reached; see {self.scene.log}"
            time.sleep(self.random.uniform(0.02, 0.3))
        self._cut(point)

    def cut_at_random(self) -> None:
        self.scene.up()
        for _ in range(self.random.choice((1, 3, 6))):
            self.ask()
            time.sleep(self.random.uniform(0.0, 0.5))
        time.sleep(self.random.uniform(0.0, 1.5))
        self._cut("random")

    def come_back(self) -> None:
        """Power is back: everything comes to rest by itself, and the mind is whole."""
        self.scene.up()
        self._finish_round()
        assert check_mind(self.scene.home.mind_db("ada")) == "ok"
        assert read_difference(self.scene.home.ledger) == 0
        answered = {row["id"] for row in self.scene.rows("ada", "SELECT id FROM turn WHERE state = 'replied'")}
        assert answered <= {call.id for call in read_calls(self.scene.home.ledger)}, "what was granted is on record"

    def _cut(self, what: str) -> None:
        process, self.scene.process = self.scene.process, None
        assert process is not None
        pids = [process.pid, *self.scene.organs()]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        wait_until("everybody to stand still", lambda: all(_is_stopped(pid) for pid in pids))
        self.disk.keep()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        process.wait()
        wait_until("everybody to be gone", lambda: not self.scene.organs())
        self.disk.return_to_kept()
        self._count(f"power {what}")


def _is_stopped(pid: int) -> bool:
    # A process inside an fsync stops when that has ended: what it then holds for durable is on the disk.
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "TZX"
    except FileNotFoundError:
        return True


@pytest.fixture
def campaign(homeserver: Homeserver) -> Iterator[PowerCampaign]:
    require_part("loop-disk")
    with tempfile.TemporaryDirectory(prefix="mind-power-") as place, open_chat_api(answer_with(echo)) as api:
        disk = Disk(Path(place))
        try:
            found = PowerCampaign(homeserver, api, disk, Path(place), seed=1)
            try:
                found.prepare()
                yield found
            finally:
                found.scene.close()
        finally:
            disk.close()


def verify(campaign: PowerCampaign) -> None:
    campaign.come_back()
    found = campaign.verdict()
    assert (found.lost, found.twice, found.reordered, found.orphans) == (0, 0, 0, 0), found.as_json()
    assert found.asked >= found.kills


def test_a_power_cut_between_any_two_transactions_loses_nothing(campaign: PowerCampaign) -> None:
    points = sorted(set(TALK) - RARE)
    for point in campaign.random.sample(points, len(points)):
        campaign.cut_at(point)
    verify(campaign)


def test_a_power_cut_at_any_moment_loses_nothing(campaign: PowerCampaign) -> None:
    for _ in range(8):
        campaign.cut_at_random()
    verify(campaign)
