"""Shapes: what a wake depends on, as the mind holds it."""

from dataclasses import dataclass

from mind_body.mind.records import Pause, Run


@dataclass(frozen=True, slots=True)
class PendingMail:
    """The mail of one conversation that no turn has closed."""

    conversation: str
    count: int
    oldest_at: int
    newest_at: int
    senders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WakeFacts:
    """Everything in the mind that a wake depends on."""

    pending: tuple[PendingMail, ...]
    """Oldest mail first."""
    live: Run | None
    pauses: tuple[Pause, ...]
    recent: tuple[Run, ...]
    """Ended runs, newest first."""
    first_heard_at: int | None
    """When she first heard anything that is still stored."""
    active_conversation: str | None
    """Where she last took a turn or heard something, of the conversations that she is still in."""
    awaited: tuple[str, ...] = ()
    """Conversations whose work is over, and that no turn has told of it."""
