"""Rule: the breaker: when work launches no more by itself, and its operators are asked (design §9).

An item is a piece of work with everything that it goes on as; work of a campaign is one item together. It trips when its last
TRIES_MAX runs came to nothing, when NOTHING_OF_LAST of its last LOOKED_BACK did, or when FLUSHES_MAX runs in a row only handed
off. What was answered with "reopen" is counted from there on. Newest is by row order: an id, too, is made from a clock.
"""

import itertools
from collections.abc import Sequence

from mind_body.mind.records import Run

NOTHING = frozenset({"dead", "failed", "no-result", "killed", "died", "refused", "interrupted"})
"""Outcomes of runs that came to nothing. Interrupted and open again: it stalled; what a person stopped is over."""
PASSED_OVER = frozenset({"held", "limited", "budget"})
"""Outcomes that say nothing against the next run."""
TRIES_MAX = 3
NOTHING_OF_LAST = 10
LOOKED_BACK = 50
FLUSHES_MAX = 20


def count_fruitless(past: Sequence[Run]) -> int:
    """How many of the newest runs in a row came to nothing."""
    count = 0
    for run in past:
        if run.outcome in NOTHING:
            count += 1
        elif run.outcome not in PASSED_OVER:
            break
    return count


def find_trip(past: Sequence[Run], after_run: str | None = None) -> str | None:
    """Why an item launches no more, None where it may. `past`: its ended runs, newest first; `after_run`: the newest one when an
    operator reopened it.
    """
    counted = list(itertools.takewhile(lambda run: run.id != after_run, past))[:LOOKED_BACK]
    in_a_row = count_fruitless(counted)
    if in_a_row >= TRIES_MAX:
        return f"its last {in_a_row} runs came to nothing"
    nothing = sum(run.outcome in NOTHING for run in counted)
    if nothing >= NOTHING_OF_LAST:
        return f"{nothing} of its last {len(counted)} runs came to nothing"
    ran = [run for run in counted if run.outcome not in PASSED_OVER][:FLUSHES_MAX]
    if len(ran) == FLUSHES_MAX and all(run.outcome == "flushed" for run in ran):
        return f"its last {FLUSHES_MAX} runs only handed off and came to no end"
    return None
