"""Rule: what a turn of the `claude` CLI came to.

1. What passed the gateway is the truth; what the CLI says of it is not asked where the gateway knows (wire.md §2: `success` does
   not mean success).
2. Of a limit, the CLI may know more: its own lines tell when the plan's ends, also where it sends no request at all.
3. A reply is a result that is no error, completed, with structured output. Everything else has its own name: a limit, an
   overload, a refused credential, an unpaid bill, a refusal, an answer that cannot be read, a fault.
4. Text is never scanned for meaning.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mind_body.model.limits import LIMIT_WAIT_MS
from mind_body.model.lines import Result
from mind_body.model.passage import GIVEN_UP, Passed
from mind_body.model.session import FAULT_WAIT_MS, Failed, Limited, Outcome, Reply, Unreadable
from mind_body.model.trouble import judge_passed

PLAN = "the plan's limit is reached"


@dataclass(frozen=True, slots=True)
class Shown:
    """What the child showed of a turn."""

    result: Result | None
    said: str = ""
    """The text of the newest answer."""
    ended: str | None = None
    """Why the process is gone, where it is."""
    limit_until: int | None = None
    """When a limit of the plan ends, where its lines told one (ms)."""


def decide_outcome(passed: Sequence[Passed], shown: Shown, now: int) -> Outcome:
    """The one answer."""
    result = shown.result
    if result is not None and result.good:
        return Reply(json.dumps(result.structured, ensure_ascii=False))
    # A request that the child hung up on tells nothing; what it was told before does.
    told = [one for one in passed if one.broken != GIVEN_UP]
    fault = judge_passed(told[-1], now) if told else _limit_without_request(shown, now)
    if isinstance(fault, Limited):
        return replace(fault, until=max(fault.until, shown.limit_until or 0))
    if fault is not None:
        return fault
    if not told or result is None:
        return Failed("fault", now + FAULT_WAIT_MS, _why(result, shown.ended))
    return _without_reply(told[-1], result, shown.said, now)


def _limit_without_request(shown: Shown, now: int) -> Limited | None:
    """The CLI knows of a limit and does not ask again until it ends."""
    told = shown.result is not None and shown.result.api_error_status == 429
    return Limited(shown.limit_until or now + LIMIT_WAIT_MS, PLAN) if told or shown.limit_until is not None else None


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
