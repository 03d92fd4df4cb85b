"""Shapes: fakes of our own ports. Each passes the suite that the real ones pass (tests/real/test_providers.py)."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import trio

from mind_body.log import Journal
from mind_body.model.session import Exchange, Outcome, Reply, SessionPlan, TurnResult, Unreadable, Usage
from mind_body.model.spend import Borrow, Declined, Reserved, Trouble

BYTES_PER_TOKEN = 4


@dataclass(frozen=True)
class Ask:
    """One turn as the fake model sees it."""

    plan: SessionPlan
    past: tuple[Exchange, ...]
    text: str
    call_id: str
    number: int
    """From 0, over all sessions of the provider."""

    @property
    def blocks(self) -> list[str]:
        """The whole request as a flat list: system part, then inputs and answers in turn."""
        spoken = [part for exchange in self.past for part in (exchange.input, exchange.output)]
        first, *rest = [*spoken, self.text]
        return [self.plan.instructions, f"{self.plan.rehydration}\n\n{first}" if self.plan.rehydration else first, *rest]


Answering: TypeAlias = Callable[[Ask], Any]
"""From a turn to an Outcome, a text that is one (JSON or not), or a value that is sent as JSON."""


def echo(ask: Ask) -> dict[str, str]:
    """What a small model's echo would say."""
    return {"say": ask.text[-300:] or "nothing"}


class FunctionProvider:
    """A model that is a function. It keeps every request, counts tokens of four bytes, and reads from its cache what it saw."""

    keeps_transcript = False
    instance = "function:test"
    model = "function"
    window_tokens = 128_000
    output_cap = 4_096

    def __init__(self, answer: Answering = echo, *, small: bool = True, micro_usd_per_token: int = 0) -> None:
        self.answer = answer
        self.small = small
        self.micro_usd_per_token = micro_usd_per_token
        self.asks: list[Ask] = []
        self.hold: trio.Event | None = None
        """While this is set and not fired, every turn waits for it before it is answered."""
        self.closed = False
        self._seen: list[bytes] = []

    async def open(self, plan: SessionPlan) -> "FunctionSession":
        await trio.lowlevel.checkpoint()
        return FunctionSession(self, plan)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self.closed = True

    def count(self, ask: Ask, output: str) -> Usage:
        prompt = "\x1e".join(ask.blocks).encode()
        cached = max((len(seen) for seen in self._seen if prompt.startswith(seen)), default=0)
        self._seen.append(prompt)
        tokens, read = len(prompt) // BYTES_PER_TOKEN, cached // BYTES_PER_TOKEN
        return Usage(uncached=tokens - read, cache_read=read, output=len(output.encode()) // BYTES_PER_TOKEN)


class FunctionSession:
    """One conversation with the function."""

    def __init__(self, provider: FunctionProvider, plan: SessionPlan) -> None:
        self._provider = provider
        self._plan = plan
        self._past = list(plan.past)

    async def send(self, text: str, call_id: str) -> TurnResult:
        provider = self._provider
        ask = Ask(self._plan, tuple(self._past), text, call_id, len(provider.asks))
        provider.asks.append(ask)
        await trio.lowlevel.checkpoint()
        if provider.hold is not None:
            await provider.hold.wait()
        outcome = _read(provider.answer(ask))
        said = outcome.text if isinstance(outcome, Reply | Unreadable) else None
        usage = Usage() if said is None else provider.count(ask, said)
        if said is not None:
            self._past.append(Exchange(text, said))
        cost = (usage.prefix + usage.output) * provider.micro_usd_per_token
        cursor = str(len(self._past)) if self._past else None
        received = () if said is None else ({"role": "assistant", "content": said},)
        return TurnResult(outcome, usage, usage, cost, cursor, 1, received, provider.model)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


def _read(value: Any) -> Outcome:
    if not isinstance(value, str | dict | list):
        outcome: Outcome = value
        return outcome
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    try:
        parsed = json.loads(text)
    except ValueError:
        return Unreadable("not JSON" if text.strip() else "empty", text)
    return Reply(text) if isinstance(parsed, dict) else Unreadable("not a JSON object", text)


@dataclass
class RecordingPurse:
    """A `Purse` that lets every call happen, or none, and keeps its books."""

    declined: Declined | None = None
    reserved: dict[str, int] = field(default_factory=dict)
    """Ceilings in micro-USD by call id."""
    settled: dict[str, tuple[Usage, int]] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    """What was told of the credential."""
    reports: list[tuple[int, int]] = field(default_factory=list)

    async def reserve(self, call_id: str, ceiling_micro_usd: int, model: str = "") -> Reserved | Declined:
        await trio.lowlevel.checkpoint()
        if self.declined is not None:
            return self.declined
        self.reserved[call_id] = ceiling_micro_usd
        return Reserved()

    async def settle(
        self, call_id: str, usage: Usage, cost_micro_usd: int, model: str = "", trouble: Trouble | None = None
    ) -> None:
        self.settled.setdefault(call_id, (usage, cost_micro_usd))
        if trouble is not None:
            self.troubles.append(trouble)
        await trio.lowlevel.checkpoint()  # at last: what was settled is never lost to a cancellation

    async def tell(self, call_id: str, trouble: Trouble) -> None:
        await trio.lowlevel.checkpoint()
        self.troubles.append(trouble)

    def report(self, ours_micro_usd: int, theirs_micro_usd: int) -> None:
        self.reports.append((ours_micro_usd, theirs_micro_usd))


def lend(secret: str) -> Borrow:
    """A lease that lends this."""

    async def borrow() -> str:
        await trio.lowlevel.checkpoint()
        return secret

    return borrow


def lend_nothing(declined: Declined) -> Borrow:
    """A lease that lends nothing, for this reason."""

    async def borrow() -> Declined:
        await trio.lowlevel.checkpoint()
        return declined

    return borrow


class Notes(Journal):
    """A journal that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []
        self.fields: dict[str, Any] = {}

    def bind(self, **fields: Any) -> "Notes":
        bound = Notes()
        bound.lines, bound.fields = self.lines, self.fields | fields
        return bound

    def note(self, kind: str, sentence: str, *, level: str | None = None, **fields: Any) -> None:
        self.lines.append((kind, sentence, self.fields | fields))

    def kinds(self) -> list[str]:
        return [kind for kind, _, _ in self.lines]

    def take(self) -> list[str]:
        kinds = self.kinds()
        self.lines.clear()
        return kinds
