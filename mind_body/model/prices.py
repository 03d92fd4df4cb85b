"""Rule: what a call costs, in whole micro-USD.

1. A price is USD per million tokens, which is micro-USD per token. Sums are exact in decimals; a call is rounded up once, to
   the next micro-USD, so that the figures of calls add up to the ledger's and never to less than the bill.
2. A model without a price counts as whichever known one is dearest for that very usage, and `Priced` says so.
3. What runs on the operator's own machine costs nothing, where the book says so (`[free]`). A model that has a price keeps it,
   whoever serves it, except `local`, which is always ours.
"""

import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from mind_body.model.session import Usage
from mind_body.money import MicroUsd
from mind_body.settings import Settings

_LOCAL = "local:"
_DECORATION = re.compile(r"(-20\d{6}|-latest)?([\[@:].*)?$")
"""What providers put behind a model's name: a date, a context size, a tag."""


def _as_written(value: Any) -> Any:
    """TOML's 0.1 is a float; its shortest decimal is what the operator wrote."""
    return str(value) if isinstance(value, float) else value


Rate = Annotated[Decimal, BeforeValidator(_as_written), Field(ge=0, le=100_000)]
"""USD per million tokens."""


class ModelPrice(Settings):
    """One `[[model]]` of the price file."""

    names: Annotated[tuple[str, ...], Field(min_length=1)]
    above: Annotated[int, Field(ge=0)] = 0
    """Holds only for calls whose prompt has more tokens than this."""
    input: Rate
    output: Rate
    read: Rate
    write_5m: Rate
    write_1h: Rate


class FreeCalls(Settings):
    """`[free]`: globs over `<provider>:<server>`."""

    instances: tuple[str, ...] = ("local:*",)


class PriceBook(Settings):
    """`prices.toml`, dated."""

    as_of: str
    source: str = ""
    free: FreeCalls = FreeCalls()
    model: Annotated[tuple[ModelPrice, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Priced:
    """What a call costs, and whether that is a price or the dearest guess."""

    micro_usd: MicroUsd
    known: bool
    counted_as: str
    """The name in the book whose price was taken; `free` where nothing is charged."""


def price(book: PriceBook, model: str, usage: Usage, instance: str = "") -> Priced:
    """What `usage` of `model` costs at the server `instance` (a `Provider.instance`)."""
    free = any(fnmatchcase(instance, pattern) for pattern in book.free.instances)
    known = _find(book, model, usage)
    if free and (known is None or instance.startswith(_LOCAL)):
        return Priced(MicroUsd(0), known=True, counted_as="free")
    if known is not None:
        return Priced(_cost(known, usage), known=True, counted_as=known.names[0])
    dearest = max(book.model, key=lambda entry: (_cost(entry, usage), entry.input, entry.output))
    return Priced(_cost(dearest, usage), known=False, counted_as=dearest.names[0])


def bare_name(model: str) -> str:
    """`anthropic/claude-opus-4-5-20251101[1m]` is `claude-opus-4-5`."""
    return _DECORATION.sub("", model.rsplit("/", 1)[-1], count=1)


def _find(book: PriceBook, model: str, usage: Usage) -> ModelPrice | None:
    name = bare_name(model)
    return next((e for e in book.model if name in e.names and (not e.above or usage.prefix > e.above)), None)


def _cost(entry: ModelPrice, usage: Usage) -> MicroUsd:
    exact = (
        entry.input * usage.uncached
        + entry.read * usage.cache_read
        + entry.write_5m * usage.cache_write_5m
        + entry.write_1h * usage.cache_write_1h
        + entry.output * usage.output
    )
    return MicroUsd(int(exact.to_integral_value(rounding=ROUND_CEILING)))
