"""Door: the asking side of the lease: borrow a credential, reserve a call before it is made, settle it after (design §10).

1. No run, no money: who has not opened its run here is declined. So is who is held: the brake is read here too, before the lease
   is asked and after it has answered, so that a hold acts also while that is slow.
2. A question is put again until it is answered, for ASK_S at most: asked twice, it has one effect. What comes then is Declined,
   with a sentence; a lease that is not there raises nothing.
3. A settlement that did not arrive is owed: told before the next question, and again and again in the background. Until it arrives
   its call counts whole, and for good where it never does.
4. A credential's text is in no repr. It is for the organ's own requests; nothing hands it on to a child.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

import trio

from mind_body.clock import now_ms
from mind_body.control.effective import Held
from mind_body.control.files import read_control
from mind_body.errors import CredentialError
from mind_body.home import Home
from mind_body.host.beside import background
from mind_body.host.handover import Caller, Handed
from mind_body.host.secrets import read_lent_secret
from mind_body.log import Journal
from mind_body.model import lease_lines as lines
from mind_body.model.lease_words import MODEL_MAX, read_refusal, render_settle
from mind_body.model.session import FAULT_WAIT_MS, Usage
from mind_body.model.spend import Borrow, Credential, Declined, Reserved, Trouble
from mind_body.money import render_usd

ASK_S = 5.0
"""For a question and its answer, however often it is put."""
AGAIN_S = 0.1
"""Between two tries of one question."""
SETTLE_S = 2.0
"""Whoever settles waits no longer; the rest is done in the background."""
OWED_AGAIN_S, OWED_S = 2.0, 600.0
"""Between two rounds of telling what is owed; and how long something is."""
LAST_S = 1.0
"""For what is still owed when the organ leaves."""
MENDING = frozenset({"fault", "peer"})
"""Refusals that say nothing of the settlement: what stands in its way may be gone at the next try."""
SILENT = "it says nothing"


@dataclass(slots=True)
class _OpenRun:
    run_id: str
    conversation: str
    ours: int = 0
    theirs: int = 0
    """Micro-USD reported so far."""


@dataclass(frozen=True, slots=True)
class _Owed:
    line: lines.Settle | lines.Report
    until: float
    """When it is given up, on trio's clock."""


class Lease:
    """A `Purse` for one half of a Mind. One run at a time, opened by whoever holds it. Made by `open_lease`."""

    def __init__(self, home: Home, name: str, journal: Journal) -> None:
        self._home = home
        self._name = name
        self._journal = journal
        self._caller = Caller(home.lease_socket)
        self._run: _OpenRun | None = None
        self._owed: dict[str, _Owed] = {}
        self._owing = trio.Event()
        self._silence = SILENT
        """Why there was no answer, the last time."""

    def open_run(self, run_id: str, conversation: str = "") -> None:
        """The run was adopted; its calls are made for this conversation until another one is named."""
        self._run = _OpenRun(run_id, conversation)

    def turn_to(self, conversation: str) -> None:
        """The run's next calls are made for this conversation."""
        if self._run is not None:
            self._run.conversation = conversation

    async def expect(self) -> None:
        """A call is about to be reserved: the lease finds out who we are meanwhile."""
        await self._caller.come_early()

    def close_run(self) -> None:
        self._run = None
        self._caller.leave()

    async def borrow(self) -> Credential | Declined:
        """The credential of this half, for one request."""
        hold = self._find_hold()
        if hold is not None:
            return hold
        found = await self._put(lines.Borrow())
        if not isinstance(found, _Answered) or not isinstance(found.answer, lines.Lent) or found.descriptor is None:
            return _declined(found)
        try:
            return Credential(read_lent_secret(found.descriptor))
        except CredentialError as error:
            return Declined("authentication", str(error))

    async def reserve(self, call_id: str, ceiling_micro_usd: int, model: str = "") -> Reserved | Declined:
        """May this call be made, if it costs at most so much?"""
        verdict = await self._reserve(call_id, ceiling_micro_usd, model)
        return self._decline(call_id, verdict) if isinstance(verdict, Declined) else verdict

    async def _reserve(self, call_id: str, ceiling_micro_usd: int, model: str = "") -> Reserved | Declined:
        run, hold = self._run, self._find_hold()
        if run is None or hold is not None:
            return hold or Declined("held", "no run is granted")
        question = lines.Reserve(
            call=call_id,
            run=run.run_id,
            conversation=run.conversation,
            model=model[:MODEL_MAX],
            ceiling_micro_usd=ceiling_micro_usd,
        )
        found: _Answered | str = SILENT
        deadline = trio.current_time() + ASK_S
        try:
            with trio.move_on_at(deadline):
                await self._tell_owed()
            found = await self._put(question, deadline)
        finally:
            if not isinstance(found, _Answered):
                # It may be reserved all the same, and it never leaves.
                self._owe(call_id, render_settle(call_id, 0))
        if not isinstance(found, _Answered) or not isinstance(found.answer, lines.Granted):
            return _declined(found)
        hold = self._find_hold()
        if hold is not None:
            await self.settle(call_id, Usage(), 0)
            return hold
        return Reserved()

    async def settle(
        self, call_id: str, usage: Usage, cost_micro_usd: int, model: str = "", trouble: Trouble | None = None
    ) -> None:
        """What it came to; nothing at all for a call that provably never left."""
        line = render_settle(call_id, cost_micro_usd, usage=usage, model=model, trouble=trouble)
        owed = self._owe(call_id, line, at_once=False)
        try:
            with trio.move_on_after(SETTLE_S):
                await self._tell_one(call_id, owed)
        finally:
            if call_id in self._owed:
                self._owing.set()
        self._journal.note(
            "call.settled",
            f"A model call cost {render_usd(cost_micro_usd)}.",
            level="debug",
            RUN=self._run.run_id if self._run else None,
            CALL=call_id,
            PREFIX_TOKENS=usage.prefix,
            CACHE_READ=usage.cache_read,
            COST_MICRO_USD=cost_micro_usd,
        )

    async def tell(self, call_id: str, trouble: Trouble) -> None:
        """A trouble that no call of its own showed: as that of a call that costs nothing. Known already, there is none to make,
        and nobody wanted to make one: then it is not told as declined.
        """
        if isinstance(await self._reserve(call_id, 0), Reserved):
            await self.settle(call_id, Usage(), 0, trouble=trouble)

    def report(self, ours_micro_usd: int, theirs_micro_usd: int) -> None:
        """What the CLI says that calls of the run have cost, beside ours. The run's sums so far are told, in the background."""
        run = self._run
        if run is None:
            return
        run.ours += ours_micro_usd
        run.theirs += theirs_micro_usd
        line = lines.Report(run=run.run_id, ours_micro_usd=run.ours, theirs_micro_usd=run.theirs)
        self._owe(f"report {run.run_id}", line)

    async def keep_telling(self) -> None:
        """Tell what is owed, until cancelled."""
        while True:
            await self._owing.wait()
            self._owing = trio.Event()
            await self._tell_owed()
            if self._owed:
                self._owing.set()
                await trio.sleep(OWED_AGAIN_S)

    async def tell_last(self) -> None:
        """What is still owed when the organ leaves; finishes even when cancelled."""
        with trio.move_on_after(LAST_S) as scope:
            scope.shield = True
            await self._tell_owed()

    def _find_hold(self) -> Declined | None:
        control = read_control(self._home, self._name)
        return Declined("held", control.reason) if isinstance(control, Held) else None

    async def _put(self, question: lines.Line, deadline: float | None = None) -> "_Answered | str":
        """The answer, or why there is none."""
        raw = lines.render_line(question)
        with trio.move_on_at(trio.current_time() + ASK_S if deadline is None else deadline):
            while True:
                handed = await self._caller.ask(raw, lines.LINE_MAX)
                if isinstance(handed, Handed):
                    self._silence = SILENT
                    return _read(handed)
                self._silence = handed
                await trio.sleep(AGAIN_S)
        return self._silence

    def _owe(self, key: str, line: lines.Settle | lines.Report, *, at_once: bool = True) -> _Owed:
        owed = self._owed[key] = _Owed(line, trio.current_time() + OWED_S)
        if at_once:
            self._owing.set()
        return owed

    async def _tell_owed(self) -> None:
        """The oldest first, until one does not arrive."""
        for key, owed in list(self._owed.items()):
            if not await self._tell_one(key, owed):
                return

    async def _tell_one(self, key: str, owed: _Owed) -> bool:
        """Whether it is not owed any more."""
        found = await self._put(owed.line)
        refused = isinstance(found, _Answered) and isinstance(found.answer, lines.Refused) and found.answer.kind in MENDING
        if isinstance(found, _Answered) and not refused:
            self._forget(key, owed)
            return True
        if trio.current_time() < owed.until:
            return False
        self._forget(key, owed)
        words = "What a call came to was never taken by the lease: there it counts whole."
        self._journal.note("call.unsettled", words, level="warning", CALL=key, REASON=_declined(found).reason)
        return True

    def _forget(self, key: str, owed: _Owed) -> None:
        if self._owed.get(key) is owed:
            del self._owed[key]

    def _decline(self, call_id: str, declined: Declined) -> Declined:
        self._journal.note(
            "call.declined",
            "A model call was not made.",
            level="warning",
            RUN=self._run.run_id if self._run else None,
            CALL=call_id,
            REASON=declined.reason,
        )
        return declined


@asynccontextmanager
async def open_lease(home: Home, name: str, journal: Journal) -> AsyncIterator[Lease]:
    """The asking side, for the life of the context: what did not arrive is told again meanwhile."""
    lease = Lease(home, name, journal)
    async with background() as nursery:
        nursery.start_soon(lease.keep_telling)
        try:
            yield lease
        finally:
            await lease.tell_last()


def make_borrow(lease: Lease, kind: Literal["none", "api-key", "oauth-token"]) -> Borrow:
    """How a provider asks for its credential."""

    async def borrow() -> str | Declined | None:
        if kind == "none":
            return None
        found = await lease.borrow()
        return found if isinstance(found, Declined) else found.secret

    return borrow


@dataclass(frozen=True, slots=True)
class _Answered:
    answer: lines.Answer
    descriptor: int | None


def _read(handed: Handed) -> _Answered | str:
    answer = lines.parse_answer(handed.line)
    if handed.descriptor is not None and not isinstance(answer, lines.Lent):
        os.close(handed.descriptor)
    return f"what it says is no answer ({answer})" if isinstance(answer, str) else _Answered(answer, handed.descriptor)


def _declined(found: _Answered | str) -> Declined:
    if isinstance(found, str):
        return Declined("fault", f"the lease does not answer: {found}", now_ms() + FAULT_WAIT_MS)
    return read_refusal(found.answer, now_ms())
