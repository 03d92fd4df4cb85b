"""Rule: which model session the next turn goes into. `plan_session` is the one function that a later policy replaces (design §7).

For now: continue while what it was opened under still holds, the record and the provider agree, and the ceiling is far; else begin
again with the last dialogue.
"""

from dataclasses import dataclass
from typing import TypeAlias

from mind_body.mind.records import Session, TurnState

CEILING_MAX = 300_000
IN_STEP = frozenset({TurnState.REPLIED, TurnState.UNREADABLE})
"""Last turns after which a provider's own transcript is what the record says. A refused one is there too, but would be refused
again with whatever follows it."""
RESERVE = 1_024
"""Tokens kept free beside the output cap (design §7)."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What a session is opened under; a session whose binding does not match is not used."""

    provider: str
    model: str
    instructions_digest: str
    schema_digest: str


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """Everything that the choice depends on."""

    session: Session | None
    last_turn: TurnState | None
    binding: Binding
    alive: bool
    """Its process or connection is still open here."""
    keeps_transcript: bool
    window_tokens: int
    output_cap: int
    incoming: int
    """Tokens charged for what the turn will append."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on in the open session."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Open it again where the record left it."""


@dataclass(frozen=True, slots=True)
class Refresh:
    """End it, if there is one, and begin another."""

    reason: str


SessionChoice: TypeAlias = Continue | Resume | Refresh


def plan_session(facts: SessionFacts) -> SessionChoice:
    """Pure and total."""
    session = facts.session
    if session is None:
        return Refresh("no session")
    reason = _unbound(session, facts.binding) or _out_of_step(session, facts) or _too_full(session, facts)
    if reason:
        return Refresh(reason)
    return Continue() if facts.alive else Resume()


def ceiling_tokens(window_tokens: int, output_cap: int) -> int:
    """The prefix from which a session is not continued: 80 % of the window, at most 300,000, less what an answer needs."""
    return max(min(CEILING_MAX, window_tokens * 8 // 10) - output_cap - RESERVE, 0)


def _unbound(session: Session, binding: Binding) -> str | None:
    if session.instructions_digest != binding.instructions_digest:
        return "instructions changed"
    if session.schema_digest != binding.schema_digest:
        return "schema changed"
    if (session.provider, session.model) != (binding.provider, binding.model):
        return "model changed"
    return None


def _out_of_step(session: Session, facts: SessionFacts) -> str | None:
    """A provider that keeps a transcript may be ahead of the record after a turn that we have no answer of."""
    if session.turns == 0:
        return "no turn completed"
    if not facts.keeps_transcript:
        return None
    if facts.last_turn not in IN_STEP:
        return f"last turn {facts.last_turn}"
    return None if facts.alive or session.cursor is not None else "no cursor"


def _too_full(session: Session, facts: SessionFacts) -> str | None:
    if session.prefix_tokens >= ceiling_tokens(facts.window_tokens, facts.output_cap):
        return "ceiling"
    if session.prefix_tokens + facts.incoming + facts.output_cap + RESERVE > facts.window_tokens:
        return "window"
    return None
