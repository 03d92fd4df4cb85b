"""Rule: how the Minds of a host stand with their homeservers, as the mouth's status line says it."""

from collections import Counter
from collections.abc import Mapping
from enum import Enum

NAMED_MAX = 5
"""Names of Minds that are told; a line is no list."""


class Standing(Enum):
    """How one Mind stands; the value is what is said of so many."""

    SYNCING = "syncing"
    UNANSWERED = "waiting for the homeserver"
    SIGNING_IN = "signing in"
    OUT = "not signed in"
    """Only an operator can mend it."""


def render_status(standings: Mapping[str, Standing]) -> str:
    """`12 Minds, 11 syncing, 1 not signed in: ada`."""
    counts = Counter(standings.values())
    parts = [f"{len(standings)} Mind{'' if len(standings) == 1 else 's'}"]
    parts += [f"{counts[standing]} {standing.value}" for standing in Standing if counts[standing] or standing is Standing.SYNCING]
    out = sorted(name for name, standing in standings.items() if standing is Standing.OUT)
    more = f" and {len(out) - NAMED_MAX} more" if len(out) > NAMED_MAX else ""
    return ", ".join(parts) + (f": {', '.join(out[:NAMED_MAX])}{more}" if out else "")
