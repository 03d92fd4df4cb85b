"""Shapes: the money of a call. It is reserved whole before the call is made and settled after it, once, by call id (design §10).

A reservation counts whole until it is settled. A call that provably never left is settled at nothing; one whose answer was lost
is not settled, because somebody may send a bill for it.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from mind_body.model.session import Usage


@dataclass(frozen=True, slots=True)
class Reserved:
    """The call may be made."""


@dataclass(frozen=True, slots=True)
class Declined:
    """The call may not be made. `until` is when it may be asked again (ms), or None: when the operator has changed something."""

    kind: Literal["held", "budget", "spend", "limited", "overloaded", "authentication", "payment", "fault"]
    reason: str
    until: int | None = None


class Purse(Protocol):
    """Who lets a call happen: the lease's asking side, or a fake in tests."""

    async def reserve(self, call_id: str, ceiling_micro_usd: int) -> Reserved | Declined: ...

    async def settle(self, call_id: str, usage: Usage, cost_micro_usd: int) -> None: ...
