"""Door: a time zone of a test's own, as a file that its processes find by PYTHONTZPATH: its midnight is when the test wants it.

Instants are whole seconds since 1970; offsets are seconds that the wall clock is ahead of UTC.
"""

import struct
from collections.abc import Sequence
from pathlib import Path

HOUR, DAY = 3600, 86_400
NAME = "Test/Town"


class Town:
    """At first it is evening there, six hours before midnight. However its clock is changed then, it is the same date."""

    def __init__(self, directory: Path, now: float) -> None:
        self.directory = directory
        self._offset = (18 * HOUR - int(now) + DAY // 2) % DAY - DAY // 2
        write_zone(directory, self._offset, [])

    def jump_forward_at(self, midnight: int) -> None:
        """The clock goes from 24:00 to 01:00: the day that begins has no 00:00."""
        offset = self._offset_of(midnight)
        write_zone(self.directory, offset, [(midnight, offset + HOUR)])

    def step_back_before(self, midnight: int) -> None:
        """An hour earlier, when it would have been midnight, the clock went back to 23:00: the day's last hour comes twice."""
        offset = self._offset_of(midnight)
        write_zone(self.directory, offset + HOUR, [(midnight - HOUR, offset)])

    def _offset_of(self, midnight: int) -> int:
        """With which offset, later than the first one, that instant is midnight."""
        return self._offset + (-midnight - self._offset) % DAY


def write_zone(directory: Path, first: int, changes: Sequence[tuple[int, int]]) -> None:
    """A TZif file (RFC 9636) whose clock begins with an offset and changes it at instants. It replaces the one before."""
    offsets = [first, *(offset for _, offset in changes)]
    counts = struct.pack(">6l", 0, 0, 0, len(changes), len(offsets), 2)
    times = b"".join(struct.pack(">q", at) for at, _ in changes)
    kinds = bytes(range(1, len(offsets))) + b"".join(struct.pack(">lbb", offset, 0, 0) for offset in offsets)
    old_part = b"TZif2" + bytes(15) + struct.pack(">6l", 0, 0, 0, 0, 1, 2) + struct.pack(">lbb", first, 0, 0) + b"T\0"
    path = directory / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(old_part + b"TZif2" + bytes(15) + counts + times + kinds + b"T\0" + b"\n\n")
