"""Rule: when the one message that shows how a run goes is edited (design §8).

1. At most 12 edits in any minute and 60 in all. The last of them is kept for the end.
2. The spacing grows with the run: a sixth of its age, so that sixty edits last a whole day and the first minute is lively.
3. What would show nothing new is not sent.
"""

from dataclasses import dataclass
from typing import TypeAlias

MIN_GAP_MS = 5_500
"""Eleven in any minute; the end makes twelve."""
AGE_SHARE = 6
EDITS_MAX = 60


@dataclass(frozen=True, slots=True)
class ProgressFacts:
    """Everything that it depends on. Instants are monotonic ms."""

    now: int
    began_at: int
    edits: int
    edited_at: int
    """The newest edit, or when the message itself was queued."""
    shown: str
    wanted: str
    over: bool = False
    """The run has ended."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Queue edit `number`."""

    number: int


@dataclass(frozen=True, slots=True)
class Hold:
    """Not now. `until` is monotonic ms; None is until there is something new."""

    until: int | None


Showing: TypeAlias = Edit | Hold


def decide_edit(facts: ProgressFacts) -> Showing:
    """Pure and total."""
    if facts.shown == facts.wanted or facts.edits >= EDITS_MAX:
        return Hold(None)
    if facts.over:
        return Edit(facts.edits + 1)
    if facts.edits >= EDITS_MAX - 1:
        return Hold(None)
    due = facts.edited_at + max(MIN_GAP_MS, (facts.edited_at - facts.began_at) // AGE_SHARE)
    return Edit(facts.edits + 1) if facts.now >= due else Hold(due)
