"""Rule: the same thing is told once in so long, and then with how often it was not."""

from dataclasses import dataclass, field

APART_MS = 60_000
MOST = 1000
"""Things that are remembered: more of them are told as if they were new."""


@dataclass(slots=True)
class Seldom:
    """What was told lately."""

    _told: dict[str, tuple[int, int]] = field(default_factory=dict)

    def count(self, thing: str, now: int) -> int | None:
        """None: not now. Else how often it was kept back since it was last told."""
        at, kept = self._told.pop(thing, (None, 0))
        if at is not None and abs(now - at) < APART_MS:
            self._told[thing] = (at, kept + 1)
            return None
        while len(self._told) >= MOST:
            del self._told[next(iter(self._told))]
        self._told[thing] = (now, 0)
        return kept
