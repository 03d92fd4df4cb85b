"""Rule: what the lines of a Self tell of its size, its tools and its use (design §8, wire.md §4). One meter per child.

1. The prefix is that of the newest main-thread request that told one. Subagents do not count, nor synthetic lines, nor a usage that
   is missing, null or zero. The same message id seen again counts once.
2. A tool runs from its tool_use until its result, or the turn's. Bash says how long it may take; what says nothing is given as long
   as the API is.
3. Totals per model are added from what each result says is new; else from what grew since the result before it, where the first
   result of a resumed process is only the base. The same result seen again counts once.
4. For money the gateway's figures are the truth. These are compared with them, and never paid by.
"""

from dataclasses import dataclass, field
from typing import Any

from mind_body.model.lines import Assistant, CompactBoundary, ConversationReset, Event, ModelUse, Result, User
from mind_body.model.session import Usage

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

    resumed: bool = False
    prefix_tokens: int = 0
    requests: int = 0
    """Main-thread requests."""
    output_tokens: int = 0
    totals: dict[str, ModelUse] = field(default_factory=dict)
    """Per model, in this run."""
    _seen: set[str] = field(default_factory=set)
    _results: set[str] = field(default_factory=set)
    _running: dict[str, int] = field(default_factory=dict)
    _base: dict[str, ModelUse] | None = None

    @property
    def tool_limit_ms(self) -> int | None:
        """The longest limit among the tools that run; None where none does."""
        return max(self._running.values(), default=None)

    def begin_run(self) -> None:
        """Another run in the same child: its totals begin anew, its size does not."""
        self.totals, self.requests, self.output_tokens = {}, 0, 0

    def see(self, event: Event) -> None:
        match event:
            case Assistant(error=None):
                self._see_answer(event)
            case User(finished=finished):
                for tool in finished:
                    self._running.pop(tool, None)
            case Result():
                self._running.clear()
                self._add(event)
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

    def _add(self, result: Result) -> None:
        if result.uuid and result.uuid in self._results:
            return
        self._results.add(result.uuid)
        new = result.since_last
        if new is None:
            base = self._base if self._base is not None else dict(result.totals) if self.resumed else {}
            new = {model: _grown(base.get(model), use) for model, use in result.totals.items()}
        self._base = {**(self._base or {}), **result.totals}
        for model, use in new.items():
            self.totals[model] = _sum(self.totals.get(model), use)
        self.output_tokens += result.output_tokens


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


def total_usage(totals: dict[str, ModelUse]) -> Usage:
    """All models together."""
    whole = Usage()
    for use in totals.values():
        whole = whole.plus(use.usage)
    return whole


def _grown(before: ModelUse | None, after: ModelUse) -> ModelUse:
    """What came on top; the whole where the totals began anew."""
    if before is None:
        return after
    old, new = before.usage, after.usage
    pairs = [(getattr(new, name), getattr(old, name)) for name in Usage.__slots__]
    if any(now < then for now, then in pairs):
        return after
    return ModelUse(Usage(*(now - then for now, then in pairs)), max(after.cost_micro_usd - before.cost_micro_usd, 0))


def _sum(before: ModelUse | None, more: ModelUse) -> ModelUse:
    if before is None:
        return more
    return ModelUse(before.usage.plus(more.usage), before.cost_micro_usd + more.cost_micro_usd)
