"""Rule: the one governor. Every wake, whatever its cause, is a Wake or a Skip with its reason and when to look again (design §9).

In this order:

1. Held is Skip, whatever waits. So is Busy: one run of a kind at a time.
2. A pause that is not over: a limit of the plan, a cap of spending, an overload, a fault, a credential. One that an operator mends
   ends where a file that can mend it was changed since; every other one where her key or her configuration was, for then it may be
   another plan and another provider. At a reset that many wait for, each goes on at an instant of its own.
3. The back-off after runs that came to nothing.
4. Spending: the day's and the month's cap, by the mind's own sums; the lease refuses by its ledger, before the call.
5. Quiet hours: unprompted words wait, and where it says so everyone's but operators'.
6. The cadence, for a scheduled wake: `base_cooldown_s / heat`, doubled for every scheduled wake since a person last spoke, at most
   a day (but never sooner than the dial says).
7. The cause's own instant: a message may be followed by another of the same breath.

Of several that hold it up, the one that ends last is the reason. A clock that stepped back makes no wait longer than twice its
length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mind_body.clock import day_start, local_day, local_month, month_start, next_day, next_month
from mind_body.control.effective import Control, Dial, Held
from mind_body.control.quiet import quiet_until
from mind_body.mind.records import Pause, Run
from mind_body.mind.wake_facts import Standing, Window
from mind_body.money import parse_usd, render_usd
from mind_body.settings import HostConfig, MindConfig

Cause: TypeAlias = Literal["operator", "direct", "mention", "self_run", "beat", "work"]
UNPROMPTED: frozenset[Cause] = frozenset({"beat"})
SkipKind: TypeAlias = Literal["held", "busy", "paused", "backoff", "spend", "quiet", "cadence", "breath"]
DAY_MS = 86_400_000
CADENCE_MIN_MS = 60_000
"""Doubled from less than this, two weeks of silence would hold more than 24 scheduled wakes."""
SPREAD_MS = 30_000
"""Over so long those who waited for the same reset go on."""
SHARED = ("limited", "overloaded", "spend")
"""Causes of a pause that ends for many at the same instant."""
RUN_CAP = "run-cap"
"""The cause of a pause that no wait ends: a call for this conversation may cost more than the dial gives to a whole run."""
MENDABLE = ("authentication", "payment", "budget", RUN_CAP, "spend", "fault")
"""Causes of a pause that an operator mends. Turning the dial, releasing the brake, changing her configuration or her model's key
says "try now"; else they end by themselves. The rest is no operator's to mend, but for another key or provider."""
HERS, CONVERSATIONS, HOSTS = "she may spend", "this conversation may cost", "all Minds together may spend"
"""Whose cap a refusal of the lease is about, in its words; an operator's "reopen" lifts hers alone."""
FRUITLESS = frozenset({"dead"})
"""Outcomes of runs that came to nothing whatever their turns did."""
EXCUSED = frozenset({"held"})
"""Outcomes of runs without a turn that say nothing against the next one."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Something that would wake her."""

    cause: Cause
    at: int
    """When the cause itself is ripe."""


@dataclass(frozen=True, slots=True)
class Wake:
    """She may act, for this."""

    cause: Cause
    at: int


@dataclass(frozen=True, slots=True)
class Skip:
    """Not now."""

    kind: SkipKind
    reason: str
    look_again_at: int
    """Later than now; something may happen sooner, and is looked at when it does."""
    cause: str = ""
    """Of a pause: which."""


Verdict: TypeAlias = Wake | Skip


@dataclass(frozen=True, slots=True)
class House:
    """What the operator has set."""

    config: MindConfig
    host: HostConfig
    mended_at: int = 0
    """When a file that may mend a pause was last changed; 0 for not known."""
    chance: float = 0.0
    """In [0, 1), a Mind's own: where in the spread she goes on."""
    keyed_at: int = 0
    """When her key or her configuration was last changed; 0 for not known."""


def govern(ask: Ask, standing: Standing, control: Control, house: House, now: int) -> Verdict:
    """The one answer."""
    skips = find_skips(ask, standing, control, house, now)
    return max(skips, key=lambda skip: skip.look_again_at, default=None) or Wake(ask.cause, now)


def find_skips(ask: Ask, standing: Standing, control: Control, house: House, now: int) -> list[Skip]:
    """All that holds it up: for who explains the answer."""
    if isinstance(control, Held):
        return [Skip("held", f"held: {control.reason}", _next_look(house.host, now))]
    if standing.live is not None:
        words = f"run {standing.live.id} is {'held' if standing.live.holder else 'open'}"
        return [Skip("busy", words, _next_look(house.host, now))]
    skips = [
        *_paused(standing.pauses, house, now),
        *_backing_off(standing.recent, house.host, now),
        *_spent(standing, house, now),
        *_quiet(ask.cause, house, now),
        *(_too_soon(standing, control.dial, now) if ask.cause in UNPROMPTED else ()),
    ]
    if ask.at > now:
        skips.append(Skip("breath", "more may come of the same breath", ask.at))
    return skips


def find_apart(standing: Standing, house: House, now: int) -> dict[str, Skip]:
    """What holds up one conversation and no other, by that."""
    return {conversation: skip for conversation, pause in standing.apart for skip in _paused([pause], house, now)}


def window_of(host: HostConfig, now: int) -> Window:
    """The operator's day and month at an instant."""
    zone = host.time_zone
    begun = local_day(now, zone), day_start(now, zone), local_month(now, zone), month_start(now, zone)
    return Window(*begun, next_day(now, zone), next_month(now, zone))


def keeps_quiet(house: House, now: int) -> bool:
    """Whether quiet hours hold everyone's words back now, but operators'."""
    return bool(_quiet("mention", house, now))


def backoff_ms(strikes: int, host: HostConfig) -> int:
    """How long nothing is tried after so many failures in a row: doubling from restart_min_s to restart_max_s."""
    if strikes < 1:
        return 0
    return _ms(min(host.restart_min_s * 2 ** min(strikes - 1, 32), host.restart_max_s))


def spacing_ms(dial: Dial, silent_beats: int) -> int:
    """How far apart scheduled wakes are after so many in silence."""
    cadence = _ms(dial.cadence_s)
    doubled = max(cadence, CADENCE_MIN_MS) << min(silent_beats, 32)
    return max(cadence, min(doubled, DAY_MS))


def is_mended(pause: Pause, house: House, now: int) -> bool:
    """Whether a file that can mend it was changed since. A change that the clock has not reached yet proves nothing."""
    return 0 < pause.since < (house.mended_at if pause.cause in MENDABLE else house.keyed_at) <= now


def _paused(pauses: Sequence[Pause], house: House, now: int) -> list[Skip]:
    found = []
    for pause in pauses:
        until = pause.until + (_spread(house, pause.until - pause.since) if pause.cause in SHARED else 0)
        stepped_back = pause.since > 0 and pause.since - now > until - pause.since
        if until > now and not stepped_back and not is_mended(pause, house, now):
            found.append(Skip("paused", f"paused ({pause.cause}): {pause.reason}", until, pause.cause))
    return found


def _backing_off(recent: Sequence[Run], host: HostConfig, now: int) -> list[Skip]:
    strikes = _fruitless(recent)
    ended = recent[0].ended_at if strikes else None
    if ended is None or abs(now - ended) >= backoff_ms(strikes, host):
        return []
    until = ended + backoff_ms(strikes, host)
    times = "run" if strikes == 1 else f"{strikes} runs in a row"
    return [Skip("backoff", f"the last {times} came to nothing", until)] if until > now else []


def _fruitless(recent: Sequence[Run]) -> int:
    """How many of the newest runs in a row came to nothing."""
    count = 0
    for run in recent:
        if run.outcome not in FRUITLESS and (run.turns or run.outcome in EXCUSED):
            break
        count += 1
    return count


def _spent(standing: Standing, house: House, now: int) -> list[Skip]:
    spend, zone = house.config.spend, house.host.time_zone
    found = []
    for word, spent, cap, until in (
        ("day", standing.spent_day, parse_usd(spend.day_usd) * (1 + standing.extensions_day), next_day),
        ("month", standing.spent_month, parse_usd(spend.month_usd) * (1 + standing.extensions_month), next_month),
    ):
        if spent and spent >= cap:
            words = f"she has spent {render_usd(spent)} of the {render_usd(cap)} that she may in a {word}"
            opens = max(until(now, zone), now + 1) + _spread(house)  # a cap is renewed for many at once, too
            found.append(Skip("spend", words, opens, f"spend-{word}"))
    return found


def _quiet(cause: Cause, house: House, now: int) -> list[Skip]:
    persona = house.config.persona
    if not persona.quiet_hours or cause in {"operator", "work"} or (cause not in UNPROMPTED and persona.quiet_for == "unprompted"):
        return []
    until = quiet_until(persona.quiet_hours, house.host.time_zone, now)
    return [Skip("quiet", "she keeps quiet hours", until)] if until is not None else []


def _too_soon(standing: Standing, dial: Dial, now: int) -> list[Skip]:
    if standing.last_act_at is None:
        return []
    length = spacing_ms(dial, standing.silent_beats)
    if abs(now - standing.last_act_at) >= length:
        return []
    silent = f", doubled for {standing.silent_beats} in silence" if standing.silent_beats else ""
    return [Skip("cadence", f"the next scheduled wake is not due yet{silent}", max(standing.last_act_at + length, now + 1))]


def _spread(house: House, length: int = 4 * SPREAD_MS) -> int:
    """How long after a reset she goes on: a quarter of the wait at most, so that nobody waits much longer for a short limit."""
    return round(min(SPREAD_MS, max(length, 0) // 4) * house.chance)


def _next_look(host: HostConfig, now: int) -> int:
    return now + max(_ms(host.look_s), 1)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
