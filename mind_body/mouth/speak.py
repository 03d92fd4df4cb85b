"""Rule: which said row may go out now, how long another waits, and what an answer of the homeserver comes to.

1. A room's rows go out in order, so a room waits for the row whose turn it is, and no room waits for another.
2. Rate limits count the account, not the room. Under one, no notice goes before a reply and no edit before either, in whatever
   room; rows that have been limited go one at a time, the one that was turned away most often first, so that a long reply starves
   no other room. Who is told to wait for the same instant hears it with some milliseconds between: such a lead buys nothing.
3. A wait is bounded and kept with the row: as long as the homeserver said (at most an hour), or a back-off that doubles. An edit
   waits longer than it was told, so that what the account may send meanwhile is there for words.
4. A row that was attempted more than 20 h ago, from another device, or before a login, may be there although the homeserver has
   forgotten its transaction id (24 h, per device, and with a device that was logged out): the room's history is read before it is
   sent.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mind_body.errors import MatrixError, MatrixLimited, MatrixRefused, MatrixUnreachable
from mind_body.mind.records import Said, SaidKind, SaidState

MEMORY_MS = 20 * 3_600_000
"""Homeservers forget a transaction id after 24 h (wire.md §10); four hours are for clocks and slow requests."""
LIMIT_MAX_MS = 3_600_000
SAME_LIMIT_MS = 1_000
"""Waits that end within this of each other are for the same place in the account's bucket."""
LIMIT_MARGIN_MS = 20
"""Synapse rounds down what it tells."""
EDIT_PATIENCE_MS = 10_000
"""What an edit that was limited waits more: two events at Synapse's default rate."""
BACKOFF_FIRST_MS = 500
LIMITED = "limited: "
"""How the reason of a row that waits for a rate limit begins."""
CURABLE = frozenset({"M_RESOURCE_LIMIT_EXCEEDED", "M_CONSENT_NOT_GIVEN", "M_USER_LOCKED", "M_USER_SUSPENDED", "M_LIMIT_EXCEEDED"})
"""Refusals of the account or the server, not of the event: they end when somebody acts, and nothing may be lost until then."""


@dataclass(frozen=True, slots=True)
class Due:
    """What may be sent now, replies first; and the next instant at which something more may, None for not before a poke."""

    rows: tuple[Said, ...]
    next_at: int | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now."""

    until: int
    reason: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Never."""

    reason: str


Setback: TypeAlias = Wait | GiveUp


def pick_due(rows: Sequence[Said], busy: Collection[str], now: int) -> Due:
    """`rows`: of each room the one whose turn it is. `busy`: rooms that are being spoken in already."""
    limits = any(_limited(row) for row in rows)
    # Under a limit, nothing goes before what weighs more and would go now, or has been turned away.
    allowed = min((_rank(row) for row in rows if limits and (_limited(row) or row.not_before <= now)), default=_EDIT)
    turn = [row for row in rows if _rank(row) <= allowed]
    due = sorted((row for row in turn if row.not_before <= now and row.room_id not in busy), key=_precedence)
    one_out = any(_limited(row) and row.room_id in busy for row in rows)
    queue = [row for row in turn if _limited(row) and row.not_before <= now + SAME_LIMIT_MS and row.room_id not in busy]
    first = None if one_out else min(queue, key=_precedence, default=None)
    held_back = {row.id for row in due if _limited(row) and row is not first}
    later = [row.not_before for row in turn if row.not_before > now]
    return Due(tuple(row for row in due if row.id not in held_back), min(later, default=None))


def may_follow(row: Said, said: Said, now: int) -> bool:
    """Whether a room's next row goes out at once after the one just said; if not, it is for the next round to decide."""
    return row.not_before <= now and _rank(row) == 0 and not _limited(said)


def _precedence(row: Said) -> tuple[int, int, int]:
    return _rank(row), -row.tries, row.place


_EDIT = 2


def _rank(row: Said) -> int:
    """Replies and reactions, then notices, then edits."""
    return {SaidKind.NOTICE: 1, SaidKind.EDIT: _EDIT}.get(row.kind, 0)


def _limited(row: Said) -> bool:
    return (row.reason or "").startswith(LIMITED)


def must_look_first(row: Said, device_id: str, now: int) -> bool:
    """Whether the room's history must be read before this row is sent."""
    if row.state is not SaidState.ATTEMPTED:
        return False
    # A clock that was set back makes the age negative: then nobody knows how old the attempt is.
    return row.device_id != device_id or row.attempted_at is None or not 0 <= now - row.attempted_at <= MEMORY_MS


def plan_setback(error: MatrixError, row: Said, now: int, backoff_max_ms: int) -> Setback:
    """What an error of the homeserver means for the row; MatrixUnauthorised is the mouth's, not the row's."""
    if isinstance(error, MatrixLimited):
        told = error.retry_after_ms + (EDIT_PATIENCE_MS if row.kind is SaidKind.EDIT else LIMIT_MARGIN_MS)
        return Wait(now + min(told, LIMIT_MAX_MS), f"{LIMITED}{error}")
    if isinstance(error, MatrixUnreachable) or (isinstance(error, MatrixRefused) and error.code in CURABLE):
        return Wait(now + min(BACKOFF_FIRST_MS * 2 ** min(row.tries, 20), backoff_max_ms), str(error))
    return GiveUp(str(error))
