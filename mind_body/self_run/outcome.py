"""Rule: what a finished turn says that the work came to. `success` in a result does not mean success (wire.md §2).

Text is never scanned for meaning; where the CLI gives a status, a subtype or a reason, that is what counts.
"""

from mind_body.model.lines import Result
from mind_body.self_run.actions import Outcome
from mind_body.self_run.facts import Verdict

_ENDS = {
    "error_max_turns": (Outcome.NO_RESULT, "it used up its turns"),
    "error_max_budget_usd": (Outcome.BUDGET, "it used up the CLI's own budget"),
    "error_during_execution": (Outcome.NO_RESULT, "the turn was broken off"),
}
_STATUSES = {
    401: (Outcome.AUTHENTICATION, "the credential was refused"),
    402: (Outcome.PAYMENT, "the bill is not paid"),
    403: (Outcome.AUTHENTICATION, "the credential was refused"),
    429: (Outcome.LIMITED, "the plan's limit is reached"),
    503: (Outcome.OVERLOADED, "the provider is overloaded"),
    529: (Outcome.OVERLOADED, "the provider is overloaded"),
}
_ERRORS = {
    "authentication_failed": (Outcome.AUTHENTICATION, "the credential was refused"),
    "oauth_org_not_allowed": (Outcome.AUTHENTICATION, "the organisation does not allow it"),
    "account_on_hold": (Outcome.AUTHENTICATION, "the account is on hold"),
    "billing_error": (Outcome.PAYMENT, "the bill is not paid"),
    "rate_limit": (Outcome.LIMITED, "the plan's limit is reached"),
}
"""`error` of a synthetic assistant line (SDK types, SDKAssistantMessageError)."""


def judge_result(result: Result, error: str | None = None) -> Verdict:
    """`error`: that of the turn's newest synthetic line, where there was one."""
    if result.well:
        said = bool(result.text.strip())
        return Verdict(Outcome.RESULT, "done") if said else Verdict(Outcome.NO_RESULT, "it ended without a word")
    found = _ENDS.get(result.subtype) or _STATUSES.get(result.api_error_status or 0) or _ERRORS.get(error or "")
    if found is not None:
        return Verdict(*found)
    status = (
        f"the API answered {result.api_error_status}" if result.api_error_status else f"claude said {result.subtype or 'nothing'}"
    )
    return Verdict(Outcome.NO_RESULT, f"{status} ({result.terminal_reason or 'no reason'})")
