"""Wiring: how many examples a property gets whose examples are dear, as a share of what the profile gives."""

from hypothesis import settings


def share(part: float) -> int:
    """Each makes a file, or plays a whole life: `share(0.25)` is 15 of the quick profile's 60, and 125 of the long one's 500."""
    return max(round(settings().max_examples * part), 1)
