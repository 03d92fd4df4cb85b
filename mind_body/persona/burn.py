"""Rule: the burn line: what she costs, in the turn's own message and never in the system part (design §6).

1. In a direct conversation with an operator: what is spent, the caps, the heat, what of hers is at work. Nobody else sees a figure.
2. Elsewhere only that she should be sparing, where less than a fifth of the day's cap is left.
3. All of it is as far as her own mind knows: the lease counts more exactly, and refuses.
"""

from dataclasses import dataclass

from mind_body.money import render_usd

SPARING_PARTS = 5
"""Of a day's cap: with less than one of so many parts left, she should be sparing."""


@dataclass(frozen=True, slots=True)
class Burn:
    """Micro-USD, both halves; the caps with what an operator has allowed beyond them."""

    spent_day: int
    cap_day: int
    spent_month: int
    cap_month: int
    heat: float
    self_at_work: bool
    """A run of her Self is live."""


def render_burn(burn: Burn, *, for_operator: bool) -> str:
    """The line; empty where there is nothing to tell."""
    if for_operator:
        day = f"{render_usd(burn.spent_day)} of {render_usd(burn.cap_day)} today"
        month = f"{render_usd(burn.spent_month)} of {render_usd(burn.cap_month)} this month"
        at_work = "you and your Self" if burn.self_at_work else "you alone"
        return f"Spent: {day}, {month}. Heat: {burn.heat:g}. At work: {at_work}."
    if (burn.cap_day - burn.spent_day) * SPARING_PARTS < burn.cap_day:
        return "Little is left of what you may spend today: be sparing, and keep to what is needed."
    return ""
