"""Rule: with which child and session a run begins (design §7, §8). The first that holds:

1. Keep the child that is there: idle, of the same workspace and conversation, its cache warm, under the ceiling, and with at least
   half of its own budget left, since the CLI's budget counts per process.
2. Resume their session at its cursor: of the same model and server, under the ceiling. Whether its transcript still ends there is
   asked when it is opened.
3. Fresh, with the hand-off that the last run on this workspace for this conversation left. The files in the workspace are for all.
"""

from dataclasses import dataclass
from typing import TypeAlias

from mind_body.mind.records import Session
from mind_body.model.passage import TTL_1H_MS, TTL_5M_MS, KeyKind


@dataclass(frozen=True, slots=True)
class Binding:
    """What a session was made under; a cursor of another one leads nowhere."""

    workspace: str
    conversation: str
    """Where the work was asked for: sessions of different conversations never share text (design §5)."""
    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class Idle:
    """The child that is there."""

    binding: Binding
    session_id: str
    fit: bool
    """It answers, and nothing of it runs."""
    prefix_tokens: int
    spent_micro_usd: int
    """Through this process, over all its runs."""
    used_at: int
    """When its last answered request began."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Use the child that is there."""


@dataclass(frozen=True, slots=True)
class Resume:
    session: Session


@dataclass(frozen=True, slots=True)
class Fresh:
    reason: str


Opening: TypeAlias = Keep | Resume | Fresh


def warm_ms(kind: KeyKind) -> int:
    """How long the cache lives after a request; the kind of the key decides which marks the CLI sends (wire.md §1)."""
    return TTL_1H_MS if kind == "oauth-token" else TTL_5M_MS


def linger_ms(kind: KeyKind, linger_s: float) -> int:
    """How long a child is kept after its last request: until the cache is cold, at most what is configured."""
    return min(warm_ms(kind), round(linger_s * 1000))


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is too much."""

    ceiling_tokens: int
    cap_micro_usd: int
    warm_ms: int


def plan_opening(binding: Binding, idle: Idle | None, session: Session | None, bounds: Bounds, now: int) -> Opening:
    """The one answer, with its reason where something is begun anew."""
    if session is None:
        return Fresh("nothing is open for this workspace and conversation")
    if idle is not None and idle.session_id == session.id and _may_keep(binding, idle, bounds, now):
        return Keep()
    if session.cursor is None:
        return Fresh("its last run left nothing to resume")
    if (session.provider, session.model) != (binding.provider, binding.model):
        return Fresh("model or server has changed")
    if session.prefix_tokens >= bounds.ceiling_tokens:
        return Fresh("the session is at its ceiling")
    return Resume(session)


def _may_keep(binding: Binding, idle: Idle, bounds: Bounds, now: int) -> bool:
    return (
        idle.fit
        and idle.binding == binding
        and idle.prefix_tokens < bounds.ceiling_tokens
        and 2 * idle.spent_micro_usd <= bounds.cap_micro_usd
        and 0 <= now - idle.used_at < bounds.warm_ms
    )
