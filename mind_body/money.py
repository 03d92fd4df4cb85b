"""Shapes: money in whole micro-USD, so that sums never drift."""

import functools
from decimal import Decimal
from typing import NewType

MicroUsd = NewType("MicroUsd", int)
"""One millionth of a US dollar. A token at 3 USD per million costs exactly 3."""


@functools.lru_cache(maxsize=1024)  # the same few caps at every decision
def parse_usd(amount: float) -> MicroUsd:
    """Dollars as written in a file to micro-USD, by the decimal digits that were written."""
    return MicroUsd(int((Decimal(str(amount)) * 1_000_000).to_integral_value()))


def render_usd(amount: int) -> str:
    """Dollars for people: cents normally, more digits below a cent."""
    usd = Decimal(amount) / 1_000_000
    return f"${usd:.2f}" if amount == 0 or abs(amount) >= 10_000 else f"${usd:.6f}"
