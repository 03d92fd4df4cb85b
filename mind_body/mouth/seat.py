"""Wiring: one Mind's place in the mouth, shared by her ear and her voice.

Ear and voice ask `await seat.account()` for a way to the homeserver, which waits until she is signed in; whoever meets a 401 says
`seat.refuse(account)`, and asks again. Signing in is `sign_in.py`'s.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from mind_body.clock import now_ms
from mind_body.home import Home
from mind_body.log import Journal
from mind_body.matrix.client import Account, MatrixClient
from mind_body.mind.records import Identity
from mind_body.mind.store import Mind
from mind_body.mouth.nudge import Nudge
from mind_body.mouth.waits import MOST_S, wait_s
from mind_body.settings import HostConfig, MindConfig


class Bell:
    """Rung by anybody, heard by one who waits; a ring while nobody waits is kept."""

    def __init__(self) -> None:
        self._nudge = Nudge()

    def ring(self) -> None:
        self._nudge.set()

    async def wait(self, timeout_s: float) -> bool:
        """True for a ring, False when `timeout_s` has passed."""
        rung = await self._nudge.wait(timeout_s)
        self._nudge.clear()
        return rung


@dataclass(slots=True)
class Seat:
    """Everything that ear and voice of one Mind share."""

    name: str
    home: Home
    host: HostConfig
    config: MindConfig
    mind: Mind
    client: MatrixClient
    journal: Journal
    poke_heartbeat: Callable[[], None]
    progress: Callable[[], None]
    """The watchdog's food: an answer of the homeserver has come, or a wait that was told is over."""
    voice: Bell = field(default_factory=Bell)
    """There may be something to say."""
    speaking: Callable[[], bool] = lambda: False
    """Whether something is on its way to the homeserver; set by who speaks."""
    chores: Nudge = field(default_factory=Nudge)
    """There may be an invite to answer or a gap to fill."""
    open_chores: bool = False
    """There is one."""
    settled: Callable[[], bool] = lambda: True
    """Whether nothing is queued, shown or to be acknowledged, so that it need not be looked at again; set by who speaks."""
    trouble: str | None = None
    """Why she is not signed in, for the status line."""
    deaf: bool = False
    """The homeserver has not answered her newest /sync; for the status line, too."""
    identity: Identity | None = None
    _account: Account | None = None
    _signed_in: trio.Event = field(default_factory=trio.Event)
    _refused: trio.Event = field(default_factory=trio.Event)

    async def account(self) -> Account:
        """Her way to the homeserver; waits until she is signed in."""
        while self._account is None:
            await self._signed_in.wait()
        return self._account

    @property
    def user_id(self) -> str:
        """As /whoami said it; before that as configured."""
        return self.identity.user_id if self.identity else self.config.matrix.user

    @property
    def signed_in(self) -> bool:
        return self._account is not None

    def admit(self, account: Account, identity: Identity) -> None:
        """She is signed in."""
        self._account, self.identity, self.trouble = account, identity, None
        self._refused = trio.Event()
        self._signed_in.set()

    def refuse(self, account: Account) -> None:
        """The homeserver has said that this token is worth nothing."""
        if self._account is account:
            self._account = None
            self._signed_in = trio.Event()
            self._refused.set()

    async def wait_refused(self) -> None:
        await self._refused.wait()

    def wait_s(self, tries: int) -> float:
        """How long to wait after the nth failure in a row."""
        return wait_s(tries, random.random())  # noqa: S311 - spreading, not secrecy

    async def wait_out(self, tries: int, at_least_s: float = 0.0) -> None:
        """A bounded wait after the nth failure in a row; never less than the homeserver asked for. A long one is alive, too."""
        until = trio.current_time() + max(self.wait_s(tries), at_least_s)
        while (left := until - trio.current_time()) > 0:
            await trio.sleep(min(left, MOST_S))
            self.progress()

    async def wait_until(self, at: int) -> None:
        """Until an instant (ms) has come."""
        await trio.sleep(max(at - now_ms(), 0) / 1000)
