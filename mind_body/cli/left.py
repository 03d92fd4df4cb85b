"""Rule: what is left of the caps of spending, in the day and the month that it is for the operator."""

from collections.abc import Iterator
from dataclasses import dataclass

from mind_body.clock import next_day, next_month
from mind_body.mind.wake_facts import Window
from mind_body.money import parse_usd
from mind_body.settings import HostSpendConfig, SpendConfig


@dataclass(frozen=True, slots=True)
class Committed:
    """Micro-USD that count against a day's and a month's cap; or how often an operator has allowed each once more."""

    day: int = 0
    month: int = 0


@dataclass(frozen=True, slots=True)
class Cap:
    """One cap, in the window that it is now."""

    mind: str | None
    """None: of all Minds of the host together."""
    conversation: str | None
    window: str
    """The day, like 2026-11-30, or the month, like 2026-11."""
    committed: int
    """Micro-USD, settled and reserved."""
    cap: int
    opens_at: int
    """When the window is over, and it counts from nothing again."""

    @property
    def left(self) -> int:
        return max(self.cap - self.committed, 0)


@dataclass(frozen=True, slots=True)
class Today:
    """The windows that it is now, and when they are over."""

    window: Window
    day_over: int
    month_over: int


def find_today(window: Window, zone: str, now: int) -> Today:
    return Today(window, next_day(now, zone), next_month(now, zone))


def list_host_caps(spend: HostSpendConfig, committed: Committed, today: Today) -> list[Cap]:
    return list(_caps(None, None, (spend.day_usd, spend.month_usd), committed, today, Committed()))


def list_mind_caps(mind: str, spend: SpendConfig, committed: Committed, extensions: Committed, today: Today) -> list[Cap]:
    return list(_caps(mind, None, (spend.day_usd, spend.month_usd), committed, today, extensions))


def list_conversation_caps(mind: str, conversation: str, spend: SpendConfig, committed: Committed, today: Today) -> list[Cap]:
    """Nothing where its Mind has no such caps."""
    usd = (spend.conversation_day_usd, spend.conversation_month_usd)
    return list(_caps(mind, conversation, usd, committed, today, Committed()))


def _caps(  # noqa: PLR0917 - all that a cap is made of
    mind: str | None,
    conversation: str | None,
    usd: tuple[float | None, float | None],
    committed: Committed,
    today: Today,
    extensions: Committed,
) -> Iterator[Cap]:
    day, month = usd
    if day is not None:
        cap = parse_usd(day) * (1 + extensions.day)
        yield Cap(mind, conversation, today.window.day, committed.day, cap, today.day_over)
    if month is not None:
        cap = parse_usd(month) * (1 + extensions.month)
        yield Cap(mind, conversation, today.window.month, committed.month, cap, today.month_over)
