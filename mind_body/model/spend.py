"""Shapes: the money of a call. It is reserved whole before the call is made and settled after it, once, by call id (design §10).

A reservation counts whole until it is settled. A call that provably never left is settled at nothing; one whose answer was lost
is not settled, because somebody may send a bill for it. What a call showed to be wrong with its credential goes with its
settlement: it holds for every other call with that credential.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

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


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a credential, as its server says. `until` (ms) as in `Declined`."""

    kind: Literal["limited", "overloaded", "authentication", "payment"]
    until: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Credential:
    """A borrowed secret."""

    secret: str = field(repr=False)


Borrow: TypeAlias = Callable[[], Awaitable[str | Declined | None]]
"""The credential for one call, asked for anew each time; None where the server wants none."""


async def borrow_none() -> None:
    """For a server that wants none."""


class Purse(Protocol):
    """Who lets a call happen: the lease's asking side, or a fake in tests."""

    async def reserve(self, call_id: str, ceiling_micro_usd: int, model: str = "") -> Reserved | Declined: ...

    async def settle(
        self, call_id: str, usage: Usage, cost_micro_usd: int, model: str = "", trouble: Trouble | None = None
    ) -> None:
        """`model`: the one that really answered."""
        ...

    async def tell(self, call_id: str, trouble: Trouble) -> None:
        """A trouble that no call of its own showed; `call_id` is a name for the telling."""
        ...

    def report(self, ours_micro_usd: int, theirs_micro_usd: int) -> None:
        """What the CLI says that calls of the run have cost, beside ours for the same calls. Added up over the run."""
        ...
