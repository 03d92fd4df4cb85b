"""Rule: what may pass the gateway, and as what (design §2).

1. Two paths pass, by POST: a message and the counting of its tokens. Nothing else of the API is reachable for a child.
2. The child's key comes as a bearer or as x-api-key; the one header that carried it is replaced by the real credential, of its own
   kind. What belongs to a connection stays with it. The answer is asked for uncompressed, because it is metered as it passes.
3. A refusal of our own is spelled as the API spells its errors, with `x-should-retry: false`: the CLI then gives up at once. A run
   alone is told to try again where that is no use yet and soon will be (an overload, a lease that is away): its CLI waits so long.
4. The reservation is the request's bytes at three to a token. What the last answered request had already sent counts as read
   from the cache while that one is fresh and its answer told of a cache, else as written: a long warm session is not refused for
   what it will not cost.
"""

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mind_body.model.ceiling import count_tokens
from mind_body.model.meter import Metered
from mind_body.model.session import Usage
from mind_body.model.spend import Declined

MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
TTL_5M_MS, TTL_1H_MS = 300_000, 3_600_000
"""Counted from the start of the request that wrote or read the entry (wire.md §6)."""
OUTPUT_UNTOLD = 32_000
_OF_THE_CONNECTION = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "content-length",
    "expect",
}

_SPELLING = {
    "limited": (429, "rate_limit_error"),
    "overloaded": (529, "overloaded_error"),
    "authentication": (401, "authentication_error"),
    "payment": (402, "billing_error"),
    "fault": (500, "api_error"),
}
RETRY_MAX_S = 60
"""A child is not kept waiting for longer: its run ends, and the work goes on when it may."""
GIVEN_UP = "the turn was given up"
FINAL = frozenset({"tool_use", "max_tokens", "refusal"})
"""Answers after which a Persona's turn has no further request. What the CLI would add by itself (a second try at the schema, a
classifier's remark) is paid for and changes nothing; the one repair is the organ's."""
ANSWERS_MAX = 2
"""Prose brings one reminder of the CLI's, and its answer."""

KeyKind = Literal["none", "api-key", "oauth-token"]


@dataclass(frozen=True, slots=True)
class Passed:
    """One request of the child's and what became of it. The truth about a turn, whatever the CLI makes of it."""

    call_id: str
    status: int | None = None
    """HTTP status of the real server; None where it gave none."""
    again_at: int | None = None
    """Where the server said when it may be asked again (ms): the reset of a limit, the end of an overload."""
    metered: Metered = field(default_factory=Metered)
    cost_micro_usd: int = 0
    declined: Declined | None = None
    """Not sent: held, no money, no credential, or nobody to ask for them."""
    broken: str | None = None
    """No connection, or an answer that broke off."""
    sent: bool = True


def read_key(headers: Mapping[str, str]) -> str | None:
    """The key that a child shows."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    return bearer.strip() if scheme.lower() == "bearer" and bearer else headers.get("x-api-key")


def same_key(shown: str, key: str) -> bool:
    """In constant time."""
    return hmac.compare_digest(shown.encode("utf-8", "replace"), key.encode())


def headers_to_server(headers: Mapping[str, str], kind: KeyKind, secret: str | None) -> dict[str, str]:
    kept = {name: value for name, value in headers.items() if name not in _OF_THE_CONNECTION}
    for name in ("authorization", "x-api-key"):
        kept.pop(name, None)
    kept["accept-encoding"] = "identity"
    if secret is not None:
        kept |= {"authorization": f"Bearer {secret}"} if kind == "oauth-token" else {"x-api-key": secret}
    return kept


def headers_to_child(status: int, headers: Mapping[str, str], *, final: bool = False) -> list[tuple[str, str]]:
    """The answer's own headers; a length stays, so that a cut answer shows. A limit is not tried again: that makes it worse."""
    kept = {name: value for name, value in headers.items() if name == "content-length" or name not in _OF_THE_CONNECTION}
    return list((kept | {"x-should-retry": "false"} if final or status == 429 else kept).items())


def is_final(status: int, passed: Sequence[Passed]) -> bool:
    """What trying again does not change: no money, forbidden, or a credential refused twice in a row (it may just be replaced)."""
    return status in {402, 403} or (status == 401 and bool(passed) and passed[-1].status == 401)


def is_spent(passed: Sequence[Passed]) -> bool:
    """Whether a turn has had its answer."""
    answers = [one.metered.stop_reason for one in passed if one.metered.complete]
    return len(answers) >= ANSWERS_MAX or any(stop in FINAL for stop in answers)


@dataclass(frozen=True, slots=True)
class Refusal:
    """How a call that was declined is told to the child."""

    status: int
    kind: str
    """The API's error type."""
    sentence: str
    retry_after_s: int | None = None
    """Where trying again helps, after so long."""


def spell_refusal(declined: Declined, now: int, *, whole_run: bool) -> Refusal:
    """As the API would say it. Why, is in our own record: what a child reads may be told to anybody."""
    status, kind = _SPELLING.get(declined.kind, (403, "permission_error"))
    wait_s = None if declined.until is None else max(-(-(declined.until - now) // 1000), 1)
    helps = whole_run and declined.kind in {"overloaded", "fault"} and wait_s is not None and wait_s <= RETRY_MAX_S
    return Refusal(status, kind, "this call may not be made now", wait_s if helps else None)


def render_error(kind: str, sentence: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": sentence}}).encode()


def parse_request(raw: bytes) -> dict[str, Any] | None:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def count_ceiling(body: dict[str, Any], raw: bytes, before: Sequence[str], after: Sequence[str], age_ms: int | None) -> Usage:
    """What this request may come to. `before` and `after` are canonical blocks; `age_ms` since the last answered one began."""
    hour = _wants_hour(body)
    warm = age_ms is not None and age_ms < (TTL_1H_MS if hour else TTL_5M_MS)
    known = (
        count_tokens(block.encode("utf-8", "replace") for block in before)
        if warm and list(after[: len(before)]) == list(before)
        else 0
    )
    fresh = max(count_tokens([raw]) - known, 0) + 1
    told = body.get("max_tokens")
    return Usage(
        cache_read=known,
        cache_write_5m=0 if hour else fresh,
        cache_write_1h=fresh if hour else 0,
        output=told if isinstance(told, int) and told > 0 else OUTPUT_UNTOLD,
    )


def _wants_hour(body: dict[str, Any]) -> bool:
    blocks = [body.get("system"), *(m.get("content") for m in body.get("messages") or [] if isinstance(m, dict))]
    return any(_ttl(block) == "1h" for content in blocks if isinstance(content, list) for block in content)


def _ttl(block: Any) -> Any:
    mark = block.get("cache_control") if isinstance(block, dict) else None
    return mark.get("ttl") if isinstance(mark, dict) else None
