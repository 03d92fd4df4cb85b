"""Rule: what the lines of a Self tell of its size, its tools and its use (design §8, wire.md §4). One meter per child.

1. The prefix is that of the newest main-thread request that told one. Subagents do not count, nor synthetic lines, nor a usage that
   is missing, null or zero. The same message id seen again counts once.
2. A tool runs from its tool_use until its result, or the turn's. Bash says how long it may take; what says nothing is given as long
   as the API is.
3. For money the gateway's figures are the truth. What the results tell (`told`) is compared with them, and never paid by.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mind_body.model.lines import Assistant, CompactBoundary, ConversationReset, Event, ModelUse, Result, User
from mind_body.model.session import Usage
from mind_body.model.told import Told

BASH_LIMIT_MS, BASH_LIMIT_MAX_MS = 120_000, 600_000
"""The CLI's own, where the model names none, and at most."""
MARGIN_MS = 30_000
"""For a tool that was stopped at its limit to say so."""
OTHER_LIMIT_MS = 600_000
"""For tools that know no limit of their own: design §8's stall."""
TOLERANCE = 1.02
"""The CLI's totals leave out what its helpers ask for; they never tell of more than passed the gateway."""


@dataclass(slots=True)
class Meter:
    """Fed with every event of one child."""

    told: Told = field(default_factory=Told)
    """In this run."""
    prefix_tokens: int = 0
    requests: int = 0
    """Main-thread requests."""
    output_tokens: int = 0
    _seen: set[str] = field(default_factory=set)
    _running: dict[str, int] = field(default_factory=dict)

    @property
    def tool_limit_ms(self) -> int | None:
        """The longest limit among the tools that run; None where none does."""
        return max(self._running.values(), default=None)

    def begin_run(self) -> None:
        """Another run in the same child: its totals begin anew, its size does not."""
        self.told.begin()
        self.requests = self.output_tokens = 0

    def see(self, event: Event) -> None:
        match event:
            case Assistant(error=None):
                self._see_answer(event)
            case User(finished=finished):
                for tool in finished:
                    self._running.pop(tool, None)
            case Result():
                self._running.clear()
                self.output_tokens += event.output_tokens if self.told.add(event) else 0
            case CompactBoundary(after_tokens=int(after)):
                self.prefix_tokens = after
            case ConversationReset():
                self.prefix_tokens = 0

    def _see_answer(self, event: Assistant) -> None:
        for block in event.blocks:
            if block.get("type") == "tool_use":
                self._running[str(block.get("id"))] = limit_of(block)
        if event.parent is None and event.usage.prefix and event.message_id not in self._seen:
            self._seen.add(event.message_id)
            self.requests += 1
            self.prefix_tokens = event.usage.prefix


def limit_of(block: dict[str, Any]) -> int:
    """Milliseconds that a tool may take, by its own word."""
    given = block.get("input")
    if block.get("name") != "Bash" or not isinstance(given, dict):
        return OTHER_LIMIT_MS
    asked = given.get("timeout")
    limit = asked if isinstance(asked, int) and asked > 0 else BASH_LIMIT_MS
    return min(limit, BASH_LIMIT_MAX_MS) + MARGIN_MS


def compare(told: Usage, passed: Usage) -> str | None:
    """What is odd between the stream's figures and the gateway's; None where nothing is."""
    pairs = {
        "input": (told.prefix, passed.prefix),
        "output": (told.output, passed.output),
    }
    over = [f"{name} {ours} of {theirs}" for name, (ours, theirs) in pairs.items() if ours > theirs * TOLERANCE]
    return f"the CLI tells of more tokens than passed the gateway: {', '.join(over)}" if over else None


def total_usage(totals: Mapping[str, ModelUse]) -> Usage:
    """All models together."""
    whole = Usage()
    for use in totals.values():
        whole = whole.plus(use.usage)
    return whole
