"""Rule: what a Reserve comes to (design §10): granted, or refused with a reason and, where it is known, when it may be asked again.

In this order:

1. Held is refused, whatever else holds.
2. A call that was settled is not made again. One that is reserved already, at no less, is granted again: who asked had not heard.
3. A credential with something wrong: until its reset, or until an operator has changed something since.
4. The run's cap, by the dial. Another run has room for the call; where none has, only the dial opens it.
5. The caps of a day and of a month: hers, her conversation's, the host's. Sums count what is reserved whole. Of several that would
   be passed, the one that opens last is the reason. A call that cannot cost anything passes no cap.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from mind_body.clock import next_day, next_month
from mind_body.control.effective import Control, Held
from mind_body.control.govern import CONVERSATIONS, HERS, HOSTS
from mind_body.model.lease_lines import Granted, Refused, RefusedKind
from mind_body.money import parse_usd, render_usd
from mind_body.settings import HostSpendConfig, SpendConfig

REASON_MAX = 1000
"""Characters, as `lease_lines` has it."""
SHORT_MS = 5_000
"""How long a limit or an overload holds where nobody said."""
LONGEST_MS = 32 * 86_400_000
"""How long it holds at most, whatever was said: plans are by the month."""
APART_PERCENT = 2
"""How far our sum and the CLI's may be from each other."""

TroubleKind: TypeAlias = Literal["limited", "overloaded", "authentication", "payment"]
PASSING: frozenset[TroubleKind] = frozenset({"limited", "overloaded"})
"""What ends by itself; the others are an operator's."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The call."""

    ceiling: int
    """Micro-USD that it may cost at most."""
    state: Literal["new", "reserved", "settled"] = "new"
    reserved: int = 0
    """What it is reserved at already. The sums count it."""

    @property
    def more(self) -> int:
        """What it would add to the sums."""
        return self.ceiling - self.reserved


@dataclass(frozen=True, slots=True)
class Stop:
    """Why no call is made with a credential."""

    kind: TroubleKind
    until: int | None
    """ms; None: until it is mended."""
    reason: str
    since: int
    """When the call was made that showed it."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the ledger holds: committed micro-USD (settled, and reserved whole), and what is wrong with the credential."""

    stops: tuple[Stop, ...] = ()
    run: int = 0
    mind_day: int = 0
    mind_month: int = 0
    conversation_day: int = 0
    conversation_month: int = 0
    host_day: int = 0
    host_month: int = 0


@dataclass(frozen=True, slots=True)
class Caps:
    """What the operator has set."""

    mind: SpendConfig
    host: HostSpendConfig
    zone: str
    mended_at: int = 0
    """When something that may mend a credential's trouble was last changed; 0 for not known."""
    extensions_day: int = 0
    """How often an operator has allowed her day's cap once more, for this day."""
    extensions_month: int = 0


def decide_grant(asked: Asked, control: Control, standing: Standing, caps: Caps, now: int) -> Granted | Refused:
    """The one answer."""
    if isinstance(control, Held):
        return refuse("held", control.reason)
    if asked.state == "settled":
        return refuse("fault", "this call was made and settled already")
    if asked.state == "reserved" and asked.more <= 0:
        return Granted()
    if stopped := find_stop(standing.stops, caps.mended_at, now):
        return refuse(stopped.kind, stopped.reason, stopped.until)
    if _passes(asked, standing.run, cap := control.dial.run_cap):
        return _refuse_run(asked, standing.run, cap, now)
    return max(_over(asked, standing, caps, now), key=lambda refused: refused.until or 0, default=Granted())


def refuse(kind: RefusedKind, reason: str, until: int | None = None) -> Refused:
    return Refused(kind=kind, reason=reason[:REASON_MAX], until=until)


def find_stop(stops: Sequence[Stop], mended_at: int, now: int) -> Stop | None:
    """The one that holds longest."""
    holding = [stop for stop in stops if not is_over(stop, mended_at, now)]
    return max(holding, key=lambda stop: (stop.until is None, stop.until or 0), default=None)


def is_over(stop: Stop, mended_at: int, now: int) -> bool:
    """Its time has come; or, where only an operator mends it, a file was changed since.

    A change that the clock has not reached yet proves nothing. A clock that was set back may have passed any: it is tried.
    """
    if stop.since > now:
        return True
    return stop.until <= now if stop.until is not None else stop.since < mended_at <= now


def outlast(new: Stop, old: Stop | None) -> Stop:
    """Of two that hold for the same reason, told by calls side by side: the later end counts, and the later call."""
    if old is None:
        return new
    since = max(new.since, old.since)
    if old.until is None or new.until is None or old.until <= new.until:
        return replace(new, since=since)
    return replace(old, since=since)


def make_stop(kind: TroubleKind, until: int | None, reason: str, made_at: int, now: int) -> Stop:
    """From what a call that was made at `made_at` came to, told now."""
    if kind not in PASSING:
        return Stop(kind, None, reason, made_at)
    bounded = now + SHORT_MS if until is None else min(until, now + LONGEST_MS)
    return Stop(kind, bounded, reason, min(made_at, now))


def is_apart(ours: int, theirs: int) -> bool:
    """Whether two sums for the same calls differ by more than they may."""
    return abs(ours - theirs) * 100 > APART_PERCENT * max(ours, theirs)


def _refuse_run(asked: Asked, committed: int, cap: int, now: int) -> Refused:
    if asked.ceiling > cap:
        return refuse("budget", f"the call may cost {render_usd(asked.ceiling)}, and one run may cost {render_usd(cap)} in all")
    return refuse("budget", _words(asked, committed, cap, "this run may cost"), now)


def _over(asked: Asked, standing: Standing, caps: Caps, now: int) -> Iterator[Refused]:
    day, month = next_day(now, caps.zone), next_month(now, caps.zone)
    hers, conversation, host = HERS, CONVERSATIONS, HOSTS
    mind = caps.mind
    for committed, usd, times, whose, unit, until in (
        (standing.mind_day, mind.day_usd, 1 + caps.extensions_day, hers, "day", day),
        (standing.mind_month, mind.month_usd, 1 + caps.extensions_month, hers, "month", month),
        (standing.conversation_day, mind.conversation_day_usd, 1, conversation, "day", day),
        (standing.conversation_month, mind.conversation_month_usd, 1, conversation, "month", month),
        (standing.host_day, caps.host.day_usd, 1, host, "day", day),
        (standing.host_month, caps.host.month_usd, 1, host, "month", month),
    ):
        if usd is not None and _passes(asked, committed, cap := parse_usd(usd) * times):
            yield refuse("spend", _words(asked, committed, cap, f"{whose} in a {unit}"), until)


def _passes(asked: Asked, committed: int, cap: int) -> bool:
    return asked.more > 0 and committed + asked.more > cap


def _words(asked: Asked, committed: int, cap: int, whose: str) -> str:
    used = f"{render_usd(committed)} of the {render_usd(cap)} that {whose}"
    return f"the call may cost {render_usd(asked.ceiling)}, and {used} are committed"
