"""Rule: what a request came to that was no answer, and what of it holds for every other request with its credential.

A limit, an overload, a refused credential, an unpaid bill and a fault are different answers everywhere (cases.md M3).
"""

from mind_body.model.limits import LIMIT_WAIT_MS
from mind_body.model.passage import Passed
from mind_body.model.session import (
    FAULT_WAIT_MS,
    NETWORK_WAIT_MS,
    OVERLOAD_WAIT_MS,
    Failed,
    Limited,
    Outcome,
    Refused,
)
from mind_body.model.spend import Declined, Trouble


def judge_declined(declined: Declined, now: int) -> Limited | Failed:
    """A call that may not be made, as the outcome of a turn."""
    if declined.kind == "limited":
        return Limited(now + LIMIT_WAIT_MS if declined.until is None else declined.until, declined.reason)
    return Failed(declined.kind, declined.until, declined.reason)


def judge_passed(passed: Passed, now: int) -> Limited | Failed | Refused | None:
    """What a request of a child's came to; None where it was answered."""
    if passed.declined is not None:
        return judge_declined(passed.declined, now)
    if passed.broken is not None and passed.status in {None, 200}:
        return Failed("network", now + NETWORK_WAIT_MS, passed.broken)
    if passed.metered.stop_reason == "refusal":
        return Refused("the model declined to answer")
    if passed.status == 200 and passed.metered.error is not None:
        return _judge_status(529 if passed.metered.error == "overloaded_error" else 500, passed, now)
    return None if passed.status == 200 else _judge_status(passed.status or 500, passed, now)


def find_trouble(outcome: Outcome | None, status: int | None) -> Trouble | None:
    """What the lease is told with the settlement.

    A 403 may be about the one model, or where the request came from: it is that Mind's own, and holds up no other.
    """
    match outcome:
        case Limited(until, reason):
            return Trouble("limited", until, reason)
        case Failed(("payment" | "overloaded") as kind, retry_at, reason):
            return Trouble(kind, retry_at, reason)
        case Failed("authentication", retry_at, reason) if status != 403:
            return Trouble("authentication", retry_at, reason)
        case _:
            return None


def _judge_status(status: int, passed: Passed, now: int) -> Limited | Failed:
    words = f"the Messages API answered {status}" + (f" ({passed.metered.error})" if passed.metered.error else "")
    if status in {401, 403}:
        return Failed("authentication", None, words)
    if status == 402 or passed.metered.error == "billing_error":
        return Failed("payment", None, words)
    if status == 429:
        return Limited(now + LIMIT_WAIT_MS if passed.again_at is None else passed.again_at, words)
    if status in {503, 529}:
        return Failed("overloaded", now + OVERLOAD_WAIT_MS if passed.again_at is None else passed.again_at, words)
    return Failed("fault", now + FAULT_WAIT_MS, words)
