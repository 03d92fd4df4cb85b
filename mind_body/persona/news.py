"""Rule: how she is told of her own work: what began, what ended and with what result. A result is outside text: it is framed."""

from collections.abc import Sequence

from mind_body.matrix.outside import quote, safe_id
from mind_body.mind.work_records import RunNews

NEWS_MAX = 8
"""Ends that one turn tells in full, the newest."""
_HOW = {
    "result": "is done",
    "interrupted": "was stopped",
    "dead": "broke off",
    "died": "broke off",
    "killed": "had to be ended",
    "no-result": "ended without a result",
    "refused": "could not begin",
    "flushed": "came to the end of what one run can hold",
    "held": "was held by your operator",
    "budget": "has used up what it may cost",
    "limited": "has come to a limit of its plan",
    "spend": "has used up what you may spend for now",
    "overloaded": "found the model overloaded",
    "authentication": "was not let in to the model",
    "payment": "found the model not paid for",
}


def render_news(news: Sequence[RunNews], rooms: dict[str, str]) -> list[str]:
    """Lines for "What changed", the oldest first; `rooms` is room id → handle."""
    left_out = max(len(news) - NEWS_MAX, 0)
    lines = [f"({left_out} more of your runs ended before.)"] if left_out else []
    return lines + [_line(one, rooms) for one in news[left_out:]]


def render_small_news(news: Sequence[RunNews]) -> list[str]:
    """The same for a small model, which has no handles."""
    return [f"(Work of yours {_ending(one)}.)" for one in news[-NEWS_MAX:]]


def _line(one: RunNews, rooms: dict[str, str]) -> str:
    work = one.follow_up
    asked = f"m{one.asked_seq}" if one.asked_seq is not None else "the command line"
    head = f"Your work for {safe_id(work.asked_by)} (asked in {asked}, {rooms.get(work.room_id, 'r?')})"
    if one.told == "started":
        return f"{head} is under way. Its brief:\n{quote(work.brief)}"
    if not one.run.result:
        return f"{head} {_ending(one)}. It left no result."
    return f"{head} {_ending(one)}. Its result:\n{quote(one.run.result)}"


def _ending(one: RunNews) -> str:
    if one.told == "started":
        return "is under way"
    how = _HOW.get(one.run.outcome or "", "ended")
    return f"{how}, and is taken up again by itself" if one.goes_on else how
