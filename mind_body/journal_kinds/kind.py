"""Shapes: what is known of one kind of journal line before it is written.

A kind is a dotted past fact ("turn.replied"). Its message id is made from its name and never changes: a kind that comes to mean
something else gets another name. The catalog (`journalctl -x`) and `units/mind-body.catalog` are made from these.
"""

from dataclasses import dataclass
from typing import Literal

from mind_body.ids import digest

Level = Literal["debug", "info", "notice", "warning", "error"]
"""What a level means:

    error     an operator must act; nothing of this goes on before
    warning   something did not go as it should; it goes on by itself. Look when it repeats
    notice    ordinary and seldom: what begins, ends or changes
    info      ordinary: one line for each message, wake, turn and run
    debug     more than anybody wants to read
"""
PRIORITY: dict[Level, int] = {"error": 3, "warning": 4, "notice": 5, "info": 6, "debug": 7}
"""syslog's numbers (sd-daemon(3))."""
NOTHING = "Nothing."


@dataclass(frozen=True, slots=True)
class Kind:
    """Sentences for an operator who sees such a line for the first time."""

    message_id: str
    """128 bits in hex, written out so that grep finds it; `make_message_id` of the kind's name."""
    level: Level
    """Where the line itself does not say otherwise."""
    what: str
    means: str
    act: str
    """What to do."""


def make_message_id(kind: str) -> str:
    return digest(f"mind-body journal kind {kind}")[:32]
