"""Rule: who may speak unprompted on a beat: one Mind, the highest `(waited / beat) x 10^(2 x urgency / 1000)` (design §9).

Ties go to who waited longest, then to the name, so that every process answers alike.

No Mind starves. Urgency weighs at most RATIO (100). Let one of N contenders be passed over beat after beat; after w beats her score is at
least w. Whoever is picked before her then has waited more than w / RATIO beats. Once w exceeds RATIO x (N - 1), that is more than N - 1
beats; but of the N - 1 others one was picked on each of the last N - 1 beats, so one who has waited longer was passed over by a Mind
picked twice among them, whose own second wait was shorter than N - 1: no longer enough. So she is picked within
`most_beats(N)` beats in which she may speak.
"""

from collections.abc import Iterable
from dataclasses import dataclass

URGENCY_MAX = 1000
RATIO = 100


@dataclass(frozen=True, slots=True)
class Contender:
    """An idle, released Mind whose own cadence has passed."""

    name: str
    waited_ms: int
    urgency: int


def score(contender: Contender, beat_ms: int) -> float:
    urgency = min(max(contender.urgency, 0), URGENCY_MAX)
    return max(contender.waited_ms, 0) / beat_ms * 10 ** (2 * urgency / URGENCY_MAX)


def pick(contenders: Iterable[Contender], beat_ms: int) -> Contender | None:
    """The one; None where there is nobody."""
    return min(contenders, key=lambda one: (-score(one, beat_ms), -one.waited_ms, one.name), default=None)


def most_beats(contenders: int) -> int:
    """How many beats a Mind among so many waits at most, while she may speak."""
    return (RATIO + 1) * max(contenders - 1, 0) + 1
