"""Rule: what `mind up` does about an organ that ended: again at once, again after a while, or not before an operator acted."""

from dataclasses import dataclass
from typing import TypeAlias

from mind_body.errors import EXIT_OPERATOR
from mind_body.settings import HostConfig

HEALTHY_S = 60.0
"""Who lived this long has not failed at starting."""


@dataclass(frozen=True, slots=True)
class Again:
    """Start it again after so many seconds. `strikes` is how many times in a row it has failed."""

    after_s: float
    strikes: int


@dataclass(frozen=True, slots=True)
class WaitForOperator:
    """Starting it again changes nothing until one of its files is another."""


Restart: TypeAlias = Again | WaitForOperator


def decide_restart(code: int, lived_s: float, strikes: int, host: HostConfig, *, may_end: bool) -> Restart:
    """`may_end`: an organ that a poke starts, and that ends with 0 when it has nothing to do, has not failed."""
    if code == EXIT_OPERATOR:
        return WaitForOperator()
    if may_end and code == 0:
        return Again(0.0, 0)
    strikes = 1 if lived_s >= HEALTHY_S else strikes + 1
    return Again(min(host.restart_min_s * 2 ** min(strikes - 1, 32), host.restart_max_s), strikes)


def render_end(code: int) -> str:
    """How a process ended, in words."""
    return f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
