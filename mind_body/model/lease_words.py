"""Rule: a call's money in the lines that the lease is told (`lease_lines`), and what its answers come to."""

from typing import assert_never

from mind_body.model import lease_lines as lines
from mind_body.model.session import FAULT_WAIT_MS, Usage
from mind_body.model.spend import Declined, Trouble

REASON_MAX, MODEL_MAX = 500, 200
"""Characters, as `lease_lines` has them."""


def render_settle(
    call_id: str, cost_micro_usd: int, *, usage: Usage | None = None, model: str = "", trouble: Trouble | None = None
) -> lines.Settle:
    """What a call came to; with nothing but its id, one that never left."""
    told = None
    if trouble is not None:
        told = lines.Trouble(kind=trouble.kind, until=trouble.until, reason=trouble.reason[:REASON_MAX])
    return lines.Settle(call=call_id, cost_micro_usd=cost_micro_usd, usage=_render_usage(model, usage), trouble=told)


def read_refusal(answer: lines.Answer, now: int) -> Declined:
    """Why a call cannot be made, by what the lease said to a question that it should have granted.

    A fault of the lease's, or a process that it does not know, may mend itself: it is asked again soon.
    """
    match answer:
        case lines.Refused(kind=kind, reason=reason, until=until):
            if kind == "fault" or kind == "peer":  # noqa: PLR1714 - so that what is left is known to have the others
                return Declined("fault", reason, now + FAULT_WAIT_MS if until is None else until)
            return Declined(kind, reason, until)
        case lines.Lent() | lines.Granted() | lines.Noted():
            return Declined("fault", f"the lease answers {answer.answer!r}, which is no answer to this", now + FAULT_WAIT_MS)
        case _:
            assert_never(answer)


def _render_usage(model: str, usage: Usage | None) -> dict[str, lines.Tokens]:
    if usage is None or usage == Usage():
        return {}
    return {model[:MODEL_MAX]: lines.Tokens(**{name: getattr(usage, name) for name in Usage.__slots__})}
