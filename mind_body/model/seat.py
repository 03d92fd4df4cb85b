"""Shapes: a child's place at the gateway, what is granted there, and what it has sent so far.

1. A seat without a grant lets nothing pass. A grant is for one turn (one answer, one request at a time) or for a whole run (any
   number, side by side, because subagents ask too); the purse caps both.
2. What was sent is kept per thread of requests: a turn's child has one thread, a run's has a main one and one per subagent. A
   request belongs to the main thread where it goes on with it; else threads are told by all that stands before the first answer.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import trio

from mind_body.ids import new_secret
from mind_body.model.passage import Passed
from mind_body.model.prefix import fingerprint_opening
from mind_body.model.spend import Purse

THREADS_MAX = 16
"""Subagents' threads that are remembered; the longest silent is forgotten first."""


@dataclass(slots=True)
class Thread:
    """One line of requests, each of which begins with the one before."""

    blocks: list[str] = field(default_factory=list, repr=False)
    """What the last request sent; empty before the first."""
    resumed_from: str | None = None
    """The fingerprint of what the session had sent in an earlier process, until the first request of this one."""
    answered_at: int | None = None
    """When the last answered request began."""
    cached: list[str] = field(default_factory=list, repr=False)
    """What it sent, where its answer tells of a cache. What was sent since and came to nothing is in no cache."""


@dataclass(slots=True)
class Grant:
    """Requests may pass, and are remembered here."""

    call_id: str
    purse: Purse
    whole_run: bool = False
    passed: list[Passed] = field(default_factory=list)
    asked: int = 0
    passing: trio.Lock = field(default_factory=trio.Lock)
    """Held while a turn's request passes: who takes it finds `passed` complete."""
    scopes: set[trio.CancelScope] = field(default_factory=set, repr=False)
    """One for each request that passes now."""
    told: set[trio.CancelScope] = field(default_factory=set, repr=False)
    """Those whose answer was told to its end: it is only written down, and that is not broken off."""
    idle: trio.Event = field(default_factory=trio.Event, repr=False)
    """Set once the grant is closed and nothing passes any more: `passed` is complete."""
    closed: bool = False

    def next_call_id(self) -> str:
        """The turn's own id first, then numbered ones."""
        self.asked += 1
        return self.call_id if self.asked == 1 else f"{self.call_id}.{self.asked}"

    def enter(self, scope: trio.CancelScope) -> None:
        self.scopes.add(scope)
        if self.closed:
            scope.cancel()  # it waited for its place while the grant was closed

    def spare(self, scope: trio.CancelScope) -> None:
        """Its answer was told to its end."""
        self.scopes.discard(scope)
        self.told.add(scope)

    def leave(self, scope: trio.CancelScope) -> None:
        self.scopes.discard(scope)
        self.told.discard(scope)
        self._settle()

    def close(self) -> None:
        """What still passes is broken off."""
        self.closed = True
        for scope in self.scopes:
            scope.cancel()
        self._settle()

    def _settle(self) -> None:
        if self.closed and not self.scopes and not self.told:
            self.idle.set()


@dataclass(slots=True)
class Seat:
    """One child's place at the gateway."""

    key: str = field(default_factory=new_secret, repr=False)
    grant: Grant | None = None
    main: Thread = field(default_factory=Thread)
    others: OrderedDict[str, Thread] = field(default_factory=OrderedDict, repr=False)

    def find_thread(self, grant: Grant, blocks: Sequence[str]) -> Thread:
        """The thread that a request goes on with, or begins."""
        if not grant.whole_run or not self.main.blocks or _goes_on(self.main, blocks):
            return self.main
        opening = fingerprint_opening(blocks)
        if fingerprint_opening(self.main.blocks) == opening:
            return self.main
        thread = self.others.setdefault(opening, Thread())
        self.others.move_to_end(opening)
        while len(self.others) > THREADS_MAX:
            self.others.popitem(last=False)
        return thread

    def close_grant(self) -> None:
        """The turn or the run is over, or given up."""
        if self.grant is not None:
            self.grant.close()
        self.grant = None


def _goes_on(thread: Thread, blocks: Sequence[str]) -> bool:
    return list(blocks[: len(thread.blocks)]) == thread.blocks
