"""Rule: how long to wait after the nth failure in a row: 0.5 s, doubling, at most 30 s.

Spread by chance, so that a thousand Minds do not knock at a restarted homeserver in the same instant.
"""

FIRST_S = 0.5
MOST_S = 30.0


def wait_s(tries: int, chance: float) -> float:
    """`tries` failures so far; `chance` in [0, 1) spreads it over the upper half."""
    whole = min(FIRST_S * 2.0 ** min(tries, 16), MOST_S)
    return whole * (0.5 + chance / 2)
