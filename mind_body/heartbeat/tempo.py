"""Rule: how far apart the beats of a host are: the lower median of the Minds' newest votes (design §9).

It only spaces beats, of which each wakes at most one Mind. The lower median, so that half of the Minds must want it slower before
it is; a vote out of bounds counts as the bound, and who has not voted has no say.
"""

from collections.abc import Iterable

DEFAULT_S = 600
LEAST_S, MOST_S = 60, 86_400


def tempo(votes: Iterable[int | None]) -> int:
    """Seconds between beats."""
    given = sorted(min(max(vote, LEAST_S), MOST_S) for vote in votes if vote is not None)
    return given[(len(given) - 1) // 2] if given else DEFAULT_S


def next_beat(lasts: Iterable[int | None], beat_s: int, now: int) -> int:
    """From when on the next beat may be, given when the Minds had their last ones; at most `now` where one is due.

    One beat, however long nobody looked: the machine may have slept. A last beat that lies further ahead than one spacing was
    written by a clock that has been set back since, and counts as none.
    """
    beat_ms = beat_s * 1000
    last = max((at for at in lasts if at is not None and at - now < beat_ms), default=None)
    return now if last is None else last + beat_ms
