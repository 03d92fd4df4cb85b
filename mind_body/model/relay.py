"""Door: one request of a `claude` child's, sent on to the real Messages API, metered as it passes (design §2).

In this order:

1. Nothing leaves without a grant, which is open while a turn is being taken, or a run is live. So a child that woke by itself is
   mute.
2. Credential borrowed, call reserved. The purse reads the brake: holding stops a turn between two of its requests. What is declined
   is spelled to the child as the API would say it.
3. The bytes that leave are compared with the last ones that left in their thread: a broken prefix is an event in the journal with
   its reason, never an error (design §6).
4. Sent; the answer goes to the child chunk by chunk as it comes, and past the meter. One request of a turn at a time, a run's side
   by side. A child that has seen enough hangs up before the last byte; what it was told is metered to
   its end all the same, while its turn is taken.
5. Settled: at nothing where it provably did not leave or was turned down, at what was metered where it is whole, and not at all
   where it broke off, for that may be billed; it then counts as its whole ceiling, here too. What was wrong with the credential
   goes with it.

No credential and no text is in a log line, an error or a repr, and no credential in what a child is told: a server may quote it.
"""

from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

import trio

from mind_body.clock import now_ms
from mind_body.log import Journal
from mind_body.model.blot import Blotter, blot_headers
from mind_body.model.http import Client, Lost, Streaming, Unsent, open_stream
from mind_body.model.limits import LIMIT_WAIT_MS, read_again_at
from mind_body.model.meter import Meter, Metered
from mind_body.model.passage import (
    GIVEN_UP,
    KeyKind,
    Passed,
    Refusal,
    count_ceiling,
    headers_to_child,
    headers_to_server,
    is_final,
    is_spent,
    parse_request,
    spell_refusal,
)
from mind_body.model.prefix import canonical_blocks, find_break, find_break_from
from mind_body.model.prices import PriceBook, price
from mind_body.model.seat import Grant, Seat, Thread
from mind_body.model.session import Usage
from mind_body.model.spend import Borrow, Declined
from mind_body.model.trouble import find_trouble, judge_passed


class ChildLine(Protocol):
    """The connection that the request came by."""

    async def refuse(self, refusal: Refusal) -> None: ...

    async def begin(self, status: int, headers: list[tuple[str, str]]) -> None: ...

    async def send(self, chunk: bytes) -> None: ...

    async def end(self) -> None: ...

    async def break_off(self) -> None:
        """So that the child sees that the answer is not whole."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """What the child asks. Header names are in small letters."""

    method: str
    target: str
    headers: Mapping[str, str] = field(repr=False)
    raw: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where the real API is, and how its credential is borrowed: asked anew for every request."""

    base_url: str
    kind: KeyKind
    borrow: Borrow = field(repr=False)
    prices: PriceBook
    instance: str

    def price(self, model: str, usage: Usage) -> int:
        return price(self.prices, model, usage, self.instance).micro_usd


@dataclass(frozen=True, slots=True)
class _Passing:
    """One request on its way."""

    grant: Grant
    scope: trio.CancelScope


@dataclass(frozen=True, slots=True)
class _Relayed:
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    metered: Metered = field(default_factory=Metered)
    broken: Unsent | Lost | None = None


class Relay:
    """Sends on what the gateway let in."""

    def __init__(self, upstream: Upstream, client: Client, journal: Journal) -> None:
        self._upstream = upstream
        self._client = client
        self._journal = journal

    async def count(self, line: ChildLine, request: Request) -> None:
        """Counting tokens is free, and no part of what a session sends."""
        secret = await self._upstream.borrow()
        if isinstance(secret, Declined):
            await line.refuse(spell_refusal(secret, now_ms(), whole_run=False))
        else:
            await self._relay(line, request, secret)

    async def message(self, line: ChildLine, seat: Seat, grant: Grant, request: Request) -> None:
        async with _place(grant):
            if not grant.whole_run and is_spent(grant.passed):
                await line.refuse(Refusal(403, "permission_error", "this turn has had its answer"))
                return
            with trio.CancelScope() as scope:
                grant.enter(scope)
                try:
                    await self._message(line, seat, _Passing(grant, scope), request)
                finally:
                    grant.leave(scope)
        if scope.cancelled_caught:
            await line.break_off()

    async def _message(self, line: ChildLine, seat: Seat, passing: "_Passing", request: Request) -> None:
        grant = passing.grant
        body, began, call_id = parse_request(request.raw), now_ms(), grant.next_call_id()
        if body is None:
            await line.refuse(Refusal(400, "invalid_request_error", "not a JSON object"))
            return
        model, blocks = str(body.get("model")), canonical_blocks(body)
        thread = seat.find_thread(grant, blocks)
        age = None if thread.answered_at is None else began - thread.answered_at
        ceiling = self._upstream.price(model, count_ceiling(body, request.raw, thread.cached, blocks, age))
        secret = await self._upstream.borrow()
        if isinstance(secret, Declined):
            await self._decline(line, grant, call_id, secret)
            return
        verdict = await grant.purse.reserve(call_id, ceiling, model)
        if isinstance(verdict, Declined):
            await self._decline(line, grant, call_id, verdict)
            return
        thread = seat.find_thread(grant, blocks)  # another request may have begun it while the lease was asked
        self._check_prefix(thread, blocks, call_id)
        passed = Passed(call_id, cost_micro_usd=ceiling, broken=GIVEN_UP)
        try:
            passed = self._account(call_id, model, await self._relay(line, request, secret, passing), ceiling, began)
        finally:
            # Also when the child hung up in the middle, or we did.
            grant.passed.append(passed)
        if passed.status == 200:
            thread.answered_at = began
            thread.cached = blocks if passed.metered.usage.prefix > passed.metered.usage.uncached else []
        if passed.broken is None or not passed.sent:
            trouble, answered = find_trouble(judge_passed(passed, began), passed.status), passed.metered.model or model
            await grant.purse.settle(call_id, passed.metered.usage, passed.cost_micro_usd, answered, trouble)

    async def _decline(self, line: ChildLine, grant: Grant, call_id: str, declined: Declined) -> None:
        grant.passed.append(Passed(call_id, declined=declined, sent=False))
        await line.refuse(spell_refusal(declined, now_ms(), whole_run=grant.whole_run))

    def _check_prefix(self, thread: Thread, blocks: list[str], call_id: str) -> None:
        why = find_break_from(thread.resumed_from, blocks) if thread.resumed_from else find_break(thread.blocks, blocks)
        thread.resumed_from = None
        if why is not None:
            words = "A request did not begin with the one before it."
            self._journal.note("prefix.broken", words, level="warning", CALL=call_id, REASON=why)
        thread.blocks = blocks

    async def _relay(self, line: ChildLine, request: Request, secret: str | None, passing: "_Passing | None" = None) -> _Relayed:
        url = self._upstream.base_url + request.target
        headers = headers_to_server(request.headers, self._upstream.kind, secret)
        async with open_stream(self._client, url, request.raw, headers) as answer:
            if not isinstance(answer, Streaming):
                await line.refuse(Refusal(502, "api_error", "the model cannot be reached"))
                return _Relayed(broken=answer)
            meter, blotter = Meter(answer.headers.get("content-type", "")), Blotter(secret)
            final = passing is not None and passing.grant.whole_run and is_final(answer.status, passing.grant.passed)
            told = headers_to_child(answer.status, blot_headers(answer.headers, secret), final=final)
            heard = await _is_heard(line.begin(answer.status, told))
            while (chunk := await answer.next_chunk()) is not None:
                if isinstance(chunk, Lost):
                    await line.break_off()
                    return _Relayed(answer.status, answer.headers, meter.read(), chunk)
                heard = await _pass_on(blotter.feed(chunk), meter, line, heard=heard)
            heard = await _pass_on(blotter.end(), meter, line, heard=heard)
            if heard:
                await _is_heard(line.end())
            if passing is not None:
                passing.grant.spare(passing.scope)
            return _Relayed(answer.status, answer.headers, meter.read())

    def _account(self, call_id: str, model: str, relayed: _Relayed, ceiling: int, began: int) -> Passed:
        metered, broken = relayed.metered, relayed.broken
        if isinstance(broken, Unsent):
            return Passed(call_id, broken=broken.reason, sent=False)
        if broken is None and relayed.status == 200 and "text/html" in relayed.headers.get("content-type", ""):
            return Passed(call_id, 200, broken="a page for people answered, and no model", sent=False)
        if broken is None and relayed.status == 200 and not metered.complete and metered.error is None:
            broken = Lost("the answer ended before its end")
        if broken is not None:
            return Passed(call_id, relayed.status, metered=metered, cost_micro_usd=ceiling, broken=broken.reason)
        again_at = read_again_at(relayed.headers, began) if relayed.status in {429, 503, 529} else None
        if relayed.status == 429 and again_at is None:
            again_at = began + LIMIT_WAIT_MS
        cost = self._upstream.price(metered.model or model, metered.usage)
        return Passed(call_id, relayed.status, again_at, metered, cost)


@asynccontextmanager
async def _place(grant: Grant) -> AsyncIterator[None]:
    """A turn's requests wait for each other."""
    if grant.whole_run:
        yield
        return
    async with grant.passing:
        yield


async def _pass_on(chunk: bytes, meter: Meter, line: ChildLine, *, heard: bool) -> bool:
    """Metered, and told to a child that still listens; whether it does."""
    meter.feed(chunk)
    return heard and (not chunk or await _is_heard(line.send(chunk)))


async def _is_heard(telling: Awaitable[None]) -> bool:
    """False when the child has hung up."""
    try:
        await telling
    except trio.BrokenResourceError:
        return False
    return True
