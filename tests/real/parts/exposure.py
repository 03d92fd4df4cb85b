"""Rule: the figures that `systemd-analyze security` gives units, and the most that each of ours may have: 0 is safest, 10 naked."""

import re

BOUNDS = {
    "mind-heartbeat.service": 0.7,
    "mind-lease.service": 0.7,
    "mind-mouth.service": 1.2,
    "mind-persona@ada.service": 3.2,
    "mind-self@ada.service": 3.2,
}
"""Without any network; with one; with one and a sandbox to make."""
_OVERALL = re.compile(r"Overall exposure level for (\S+?):? (\d+\.\d)")


def parse_exposure(told: str) -> float:
    """The figure at the end of what it prints."""
    found = _OVERALL.search(told)
    assert found, told
    return float(found[2])
