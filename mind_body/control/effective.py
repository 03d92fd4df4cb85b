"""Rule: what brake and dial come to. Absent, unreadable or out of bounds is `Held(reason)`; never released by accident.

Cadence and run cap are derived here and never stored (design §10).
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from mind_body.money import MicroUsd, parse_usd
from mind_body.settings import Settings


class BrakeFile(Settings):
    """`control/NAME/brake.toml`."""

    state: Literal["held", "released"]
    reason: str = ""
    by: str = ""
    at: str = ""


class DialFile(Settings):
    """`control/NAME/dial.toml`; bounds from design §10."""

    heat: Annotated[float, Field(ge=0.05, le=2.0)] = 1.0
    base_cooldown_s: Annotated[float, Field(ge=1, le=604_800)] = 14_400.0
    base_run_usd: Annotated[float, Field(ge=0, le=1000)] = 1.0


@dataclass(frozen=True, slots=True)
class Dial:
    """The dial as it acts."""

    heat: float
    base_cooldown_s: float
    base_run_usd: float

    @property
    def cadence_s(self) -> float:
        """Seconds between unprompted wakes."""
        return self.base_cooldown_s / self.heat

    @property
    def run_cap(self) -> MicroUsd:
        """What one run may cost."""
        return parse_usd(self.base_run_usd * self.heat)


@dataclass(frozen=True, slots=True)
class Held:
    """She may do nothing of consequence."""

    reason: str


@dataclass(frozen=True, slots=True)
class Released:
    """She may act, within the dial. Made by `effective` alone."""

    dial: Dial


Control: TypeAlias = Held | Released


def effective(brake: BrakeFile | str, dial: DialFile | str) -> Control:
    """What the two files come to; a `str` is why a file could not be used."""
    if isinstance(brake, str):
        return Held(brake)
    if brake.state == "held":
        return Held(brake.reason or "held by the operator")
    if isinstance(dial, str):
        return Held(dial)
    return Released(Dial(dial.heat, dial.base_cooldown_s, dial.base_run_usd))
