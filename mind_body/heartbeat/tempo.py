"""Rule: how far apart the beats of a host are: the lower median of the Minds' newest votes (design §9).

It only spaces beats, of which each wakes at most one Mind. The lower median, so that half of the Minds must want it slower before it
is; a vote out of bounds counts as the bound, and who has not voted has no say.
"""

from collections.abc import Iterable

DEFAULT_S = 600
LEAST_S, MOST_S = 60, 86_400


def tempo(votes: Iterable[int | None]) -> int:
    """Seconds between beats."""
    given = sorted(min(max(vote, LEAST_S), MOST_S) for vote in votes if vote is not None)
    return given[(len(given) - 1) // 2] if given else DEFAULT_S
