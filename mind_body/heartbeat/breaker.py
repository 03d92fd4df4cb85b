"""Rule: the breaker: when work launches no more by itself, what its operators are asked, and what their answer does (design §9).

An item is a piece of work with everything that it goes on as; work of a campaign is one item together. It trips when its last
TRIES_MAX runs came to nothing, when NOTHING_OF_LAST of its last LOOKED_BACK did, or when FLUSHES_MAX runs in a row only handed
off. What was answered with "reopen" is counted from there on. Newest is by row order: an id, too, is made from a clock.

Work that has tripped stays open and is passed over until they answer: "reopen" tries it again, "retire" drops it, or closes its
campaign. A closed campaign's work stays where it is.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from mind_body.ids import derived_id
from mind_body.mind.asking_records import Question
from mind_body.mind.records import Run
from mind_body.mind.work_records import OpenWork

NOTHING = frozenset({"dead", "failed", "no-result", "killed", "died", "refused", "interrupted"})
"""Outcomes of runs that came to nothing. Interrupted and open again: it stalled; what a person stopped is over."""
PASSED_OVER = frozenset({"held", "limited", "budget", "spend", "overloaded", "authentication", "payment"})
"""Outcomes that say nothing against the next run."""
TRIES_MAX = 3
NOTHING_OF_LAST = 10
LOOKED_BACK = 50
FLUSHES_MAX = 20
REASON_MAX = 200
"""Characters of why the last run ended that a question repeats."""


@dataclass(frozen=True, slots=True)
class Retired:
    """An operator has answered that it is left at that."""

    work: OpenWork
    why: str


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


def find_hold(work: OpenWork) -> str | None:
    """Why a piece of work is not tried, however long one waits; None where it may be."""
    if work.campaign_closed:
        return f"the campaign {work.follow_up.campaign} is closed"
    trip = find_trip(work.item_past, work.reopened_after)
    return None if trip is None else f"{trip}; her operators are asked"


def plan_breaker(works: Sequence[OpenWork], now: int) -> list[Question | Retired]:
    """What is asked, and what was answered; one for each item."""
    found: dict[str, Question | Retired] = {}
    for work in works:
        todo = None if work.campaign_closed or work.question_open else _plan(work, now)
        if todo is not None:
            found.setdefault(work.about, todo)
    return list(found.values())


def count_tries(past: Sequence[Run]) -> int:
    """How often it was tried, as its thread is told when it is given up."""
    in_a_row, nothing = count_fruitless(past), sum(run.outcome in NOTHING for run in past)
    return in_a_row if in_a_row >= TRIES_MAX else nothing if nothing >= NOTHING_OF_LAST else len(past)


def _plan(work: OpenWork, now: int) -> Question | Retired | None:
    if work.answered is not None and work.answered.answer == "retire":
        return Retired(work, f"{work.answered.answered_by} left it at that")
    trip = find_trip(work.item_past, work.reopened_after)
    if trip is None:
        return None
    newest = work.item_past[0]
    # Nothing that somebody wrote in a room: its brief is not repeated.
    whose = f"for {work.follow_up.asked_by}, in the workspace {work.follow_up.workspace},"
    what = f"My work {'for the campaign ' + work.about.partition(':')[2] if work.about.startswith('campaign:') else whose}"
    last = f"the last one: {newest.outcome}, {(newest.end_reason or 'for no known reason')[:REASON_MAX]}"
    text = f"{what} goes no further by itself: {trip} ({last}). Going on tries it again."
    return Question(derived_id("question", work.about, newest.id), "breaker", work.about, text, now, None, None)
