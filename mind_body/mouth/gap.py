"""Rule: what one page of history fills of a gap (design §3).

1. Pages come newest first. The gap ends at the first event that she knows, at her invite (her join, if there was none) in a room
   that she has just joined, or where the homeserver has no more.
2. Taken in are at most so many events, none older than so many days; what is beyond is counted, so that one row can say how many
   she missed, and past ten times as many as are taken in the counting ends too.
3. Her own membership is always kept: it tells how what follows it is heard.
4. In a room that she has just joined, the last messages before her invite come along as context.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from mind_body.matrix.events import Event, Member, Message
from mind_body.matrix.wire import MessagesPage
from mind_body.mind.records import Gap
from mind_body.mouth.hear import worth_keeping
from mind_body.mouth.room import begins_mail

CONTEXT_LINES = 20
"""Design §3: what travels along at most."""
COUNT_FACTOR = 10


@dataclass(frozen=True, slots=True)
class Caps:
    """How far a gap is paged back."""

    events: int
    oldest: int
    """Milliseconds since the epoch; older ones are counted only."""


@dataclass(frozen=True, slots=True)
class PagePlan:
    """What to do with a page."""

    kept: tuple[Event, ...]
    """Newest first."""
    missed: int
    """Messages that were counted and not kept."""
    done: bool
    cut_off: bool
    """It ended by the cap, not by anything that she knows: there were more."""
    cursor: str


def plan_page(page: MessagesPage, gap: Gap, known: AbstractSet[str], user_id: str, caps: Caps, *, invited: bool) -> PagePlan:
    """`known` are those events of the page that are from before the gap: heard, said, or waiting since before it."""
    kept: list[Event] = []
    missed = 0
    done = page.end is None or page.end == gap.cursor
    for index, event in enumerate(page.events):
        if event.event_id in known:
            done = True
            break
        if worth_keeping(event, user_id):
            beyond = gap.filled + len(kept) >= caps.events or event.sent_at < caps.oldest
            if isinstance(event, Member) or not beyond:
                kept.append(event)
            elif isinstance(event, Message):
                missed += 1
        if gap.fresh and begins_mail(event, user_id, invited=invited):
            if gap.missed + missed == 0:
                kept += _before(page.events[index + 1 :], known, user_id)
            done = True
            break
    cut_off = not done and gap.missed + missed >= caps.events * COUNT_FACTOR
    return PagePlan(tuple(kept), missed, done or cut_off, cut_off, page.end or "")


def _before(events: tuple[Event, ...], known: AbstractSet[str], user_id: str) -> list[Event]:
    found = [e for e in events if isinstance(e, Message) and worth_keeping(e, user_id) and e.event_id not in known]
    return list(found[:CONTEXT_LINES])
