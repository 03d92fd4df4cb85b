"""Rule: who may speak unprompted on a beat: one Mind, the highest `(waited / beat) x 10^(2 x urgency / 1000)` (design §9).

Ties go to who waited longest, then to the name, so that every process answers alike. A contender says since when she waits, not how
long: what was offered an hour ago is still true.

No Mind starves. Urgency weighs between 1 and RATIO (100): whoever is picked while she has waited w has waited w / RATIO at least.

1. Beats evenly apart, and she may speak on each (`most_beats`). Suppose that of N contenders she were passed over on
   RATIO x (N - 1) + N of them. On the last N of these one of the N - 1 others was picked twice. Before its second time it had
   waited N - 1 beats at most, which weighs RATIO x (N - 1) at most; but by then she had waited RATIO x (N - 1) + 1 beats at least,
   and would have been picked. So she is picked on one of them, whatever anybody's urgency does, and whoever else comes and goes.
2. Any beats, and her chances come and go (`most_passes`): no number of beats alone can bound it, since chances that grow ever rarer
   let the others wait as long as she does. But let one and the same other be picked before her twice, when she had waited u and
   then v. It had waited v - u at most, so RATIO x (v - u) >= v: v is at least u x RATIO / (RATIO - 1). So each of the others goes
   before her 1 + log(v / u) / log(RATIO / (RATIO - 1)) times at most while her wait grows from u to v.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

URGENCY_MAX = 1000
RATIO = 100
WEIGHTS = tuple(math.pow(RATIO, urgency / URGENCY_MAX) for urgency in range(URGENCY_MAX + 1))
"""What each urgency weighs."""


@dataclass(frozen=True, slots=True)
class Contender:
    """An idle, released Mind whose own cadence has passed."""

    name: str
    since: int
    """When she last acted."""
    urgency: int


def score(contender: Contender, beat_ms: int, now: int) -> float:
    return max(now - contender.since, 0) / max(beat_ms, 1) * weigh(contender.urgency)


def weigh(urgency: int) -> float:
    """From 1 to RATIO; out of bounds counts as the bound."""
    return WEIGHTS[min(max(urgency, 0), URGENCY_MAX)]


def pick(contenders: Iterable[Contender], beat_ms: int, now: int) -> Contender | None:
    """The one; None where there is nobody. One pass over all: there may be ten thousand."""
    picked, best = None, -1.0
    for one in contenders:
        scored = score(one, beat_ms, now)
        if picked is None or scored > best or (scored == best and (one.since, one.name) < (picked.since, picked.name)):
            picked, best = one, scored
    return picked


def most_beats(contenders: int) -> int:
    """On how many beats evenly apart a Mind among so many is picked at the latest, where she may speak on each."""
    return (RATIO + 1) * max(contenders - 1, 0) + 1


def most_passes(contenders: int, waited_first: int, waited_now: int) -> int:
    """How often a Mind among so many is passed over at most, at any instants, while her wait grows from one length to the other."""
    growth = math.log(max(waited_now, 1) / max(waited_first, 1)) / math.log(RATIO / (RATIO - 1))
    return max(contenders - 1, 0) * (1 + math.floor(max(growth, 0.0) + 1e-9))
