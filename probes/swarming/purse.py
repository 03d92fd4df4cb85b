"""Rule: the lease's ledger of a simulated host, in memory: what is reserved and settled, by Mind and for all, in a day and a month.

Whether a call may be made is the lease's own rule (lease/grant.py).
"""

from collections import Counter
from dataclasses import dataclass, field

from mind_body.control.effective import Control
from mind_body.lease.grant import Asked, Caps, Standing, Stop, decide_grant
from mind_body.mind.wake_facts import Window
from mind_body.model.lease_lines import Granted, Refused
from mind_body.money import parse_usd
from mind_body.settings import HostConfig, MindConfig


@dataclass(slots=True)
class Reservation:
    who: str
    day: str
    month: str
    ceiling: int


@dataclass(slots=True)
class Purse:
    host: HostConfig
    committed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Micro-USD by Mind (empty: all of them) and day or month: settled, and reserved whole."""
    settled: Counter[tuple[str, str]] = field(default_factory=Counter)
    stops: dict[int, Stop] = field(default_factory=dict)
    """What is wrong with a credential."""
    refused: Counter[str] = field(default_factory=Counter)

    def reserve(
        self, who: str, credential: int, ceiling: int, control: Control, caps: Caps, window: Window, now: int, *, run: int = 0
    ) -> Reservation | Refused:
        stop = self.stops.get(credential)
        sums = self.committed
        standing = Standing(
            stops=(stop,) if stop else (),
            run=run,
            mind_day=sums[who, window.day],
            mind_month=sums[who, window.month],
            host_day=sums["", window.day],
            host_month=sums["", window.month],
        )
        answer = decide_grant(Asked(ceiling), control, standing, caps, now)
        if not isinstance(answer, Granted):
            self.refused[answer.kind] += 1
            return answer
        reservation = Reservation(who, window.day, window.month, ceiling)
        self._add(self.committed, reservation, ceiling)
        return reservation

    def settle(self, reservation: Reservation, cost: int) -> None:
        self._add(self.committed, reservation, cost - reservation.ceiling)
        self._add(self.settled, reservation, cost)

    def passed(self, configs: dict[str, MindConfig], extensions: dict[tuple[str, str], int]) -> int:
        """In how many windows more was spent than somebody may; counted from what was settled, whatever the rule was told."""
        found = 0
        for (who, window), spent in self.settled.items():
            spend = configs[who].spend if who else self.host.spend
            cap = parse_usd(spend.day_usd if len(window) > 7 else spend.month_usd)
            found += spent > cap * (1 + extensions.get((who, window), 0))
        return found

    @staticmethod
    def _add(sums: Counter[tuple[str, str]], reservation: Reservation, amount: int) -> None:
        for who in (reservation.who, ""):
            sums[who, reservation.day] += amount
            sums[who, reservation.month] += amount
