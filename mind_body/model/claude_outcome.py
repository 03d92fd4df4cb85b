"""Rule: what a turn of the `claude` CLI came to.

1. What passed the gateway is the truth; what the CLI says of it is not asked where the gateway knows (wire.md §2: `success` does
   not mean success).
2. A reply is a result that is no error, completed, with structured output. Everything else has its own name: a limit, an
   overload, a refused credential, an unpaid bill, a refusal, an answer that cannot be read, a fault.
3. Text is never scanned for meaning.
"""

import json
from collections.abc import Sequence

from mind_body.model.lines import Result
from mind_body.model.passage import GIVEN_UP, Passed
from mind_body.model.session import (
    FAULT_WAIT_MS,
    NETWORK_WAIT_MS,
    OVERLOAD_WAIT_MS,
    Failed,
    Limited,
    Outcome,
    Refused,
    Reply,
    Unreadable,
)

LIMIT_WAIT_MS = 60_000
"""As in model/chat.py."""


def decide_outcome(passed: Sequence[Passed], result: Result | None, said: str, ended: str | None, now: int) -> Outcome:
    """`said`: the text of the newest answer; `ended`: why the process is gone, where it is."""
    if result is not None and result.good:
        return Reply(json.dumps(result.structured, ensure_ascii=False))
    # A request that the child hung up on tells nothing; what it was told before does.
    told = [one for one in passed if one.broken != GIVEN_UP]
    fault = _fault(told[-1], now) if told else None
    if fault is not None:
        return fault
    if not told or result is None:
        return Failed("fault", now + FAULT_WAIT_MS, _why(result, ended))
    return _without_reply(told[-1], result, said, now)


def _fault(last: Passed, now: int) -> Outcome | None:
    """What the newest request came to, where it was not an answer."""
    if last.declined is not None:
        return Failed(last.declined.kind, last.declined.until, last.declined.reason)
    if last.unauthorised is not None:
        return Failed("authentication", None, last.unauthorised)
    if last.broken is not None and last.status in {None, 200}:
        return Failed("network", now + NETWORK_WAIT_MS, last.broken)
    if last.metered.stop_reason == "refusal":
        return Refused("the model declined to answer")
    if last.metered.error is not None and last.status == 200:
        return _by_status(529 if last.metered.error == "overloaded_error" else 500, last, now)
    return None if last.status == 200 else _by_status(last.status or 500, last, now)


def _by_status(status: int, last: Passed, now: int) -> Outcome:
    words = f"the Messages API answered {status}" + (f" ({last.metered.error})" if last.metered.error else "")
    if status in {401, 403}:
        return Failed("authentication", None, words)
    if status == 402 or last.metered.error == "billing_error":
        return Failed("payment", None, words)
    if status == 429:
        return Limited(last.limit_until or now + LIMIT_WAIT_MS, words)
    if status in {503, 529}:
        return Failed("overloaded", now + OVERLOAD_WAIT_MS, words)
    return Failed("fault", now + FAULT_WAIT_MS, words)


def _without_reply(last: Passed, result: Result, said: str, now: int) -> Outcome:
    if last.metered.stop_reason == "max_tokens":
        return Unreadable("length", said)
    if result.subtype == "error_during_execution":
        return Failed("fault", now + FAULT_WAIT_MS, _why(result, None))
    return Unreadable("no structured output that fits the schema", said)


def _why(result: Result | None, ended: str | None) -> str:
    if result is not None:
        return f"claude ended the turn with {result.subtype or 'nothing'} ({result.terminal_reason or 'no reason'})"
    return ended or "claude gave no result"
