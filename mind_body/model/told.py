"""Rule: what the results of one `claude` process tell of its use (wire.md §4). What passed the gateway is what is paid.

1. Added is what each result says is new; else what grew since the result before it, where the first result of a resumed process is
   only the base: its running totals go on across a resume, and nobody knows how much of them is new.
2. The same result seen again counts once. Totals that began anew count whole.
3. Costs are compared for the same calls: those that were answered whole, by the models that the CLI tells of. It leaves out what
   its helpers ask for.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from mind_body.model.lines import ModelUse, Result
from mind_body.model.passage import Passed
from mind_body.model.prices import bare_name
from mind_body.model.session import Usage


@dataclass(slots=True)
class Told:
    """Fed with every result of one process; begun anew for each turn or run that is to be told apart."""

    resumed: bool = False
    totals: dict[str, ModelUse] = field(default_factory=dict)
    """Per model, since it was begun."""
    whole: bool = True
    """False where the totals leave out what only a base told."""
    _results: set[str] = field(default_factory=set)
    _base: dict[str, ModelUse] | None = None

    def begin(self) -> None:
        self.totals, self.whole = {}, True

    def add(self, result: Result) -> bool:
        """False for a result that was seen already."""
        if result.uuid and result.uuid in self._results:
            return False
        self._results.add(result.uuid)
        new = result.since_last
        if new is None:
            only_base = self._base is None and self.resumed
            self.whole = self.whole and not only_base
            base = dict(result.totals) if only_base else self._base or {}
            new = {model: _grown(base.get(model), use) for model, use in result.totals.items()}
        self._base = {**(self._base or {}), **result.totals}
        for model, use in new.items():
            self.totals[model] = _sum(self.totals.get(model), use)
        return True


def compare_costs(passed: Iterable[Passed], told: Told) -> tuple[int, int] | None:
    """Ours and theirs in micro-USD; None where they do not tell the same calls, or none."""
    models = {bare_name(model) for model in told.totals}
    whole = [one for one in passed if one.metered.complete and one.broken is None]
    ours = sum(one.cost_micro_usd for one in whole if bare_name(one.metered.model) in models)
    theirs = sum(use.cost_micro_usd for use in told.totals.values())
    return (ours, theirs) if told.whole and (ours or theirs) else None


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
