"""Rule: which room was made to ask an operator in, where the mind has only what /sync says about it.

It has her name, nobody invited her, and the operator is all who was ever asked in. One that gained a third member is widened, and
no DM again.
"""

from collections.abc import Iterable, Sequence

from mind_body.mind.records import Room

Members = Sequence[tuple[str, str]]
"""User id and membership of those whom we have seen."""


def find_ours(rooms: Iterable[tuple[Room, Members]], name: str, operator: str) -> tuple[Room, Members] | None:
    """The newest such room; `rooms` are those that she is in."""
    found = [(room, members) for room, members in rooms if _is_ours(room, members, name, operator)]
    return max(found, key=lambda one: one[0].number, default=None)


def is_there(members: Members, operator: str) -> bool:
    """Whether the operator is in the room, or invited."""
    return any(user_id == operator and membership in {"join", "invite"} for user_id, membership in members)


def _is_ours(room: Room, members: Members, name: str, operator: str) -> bool:
    if room.name != name or room.invited_by is not None or room.widened or room.joined_members + room.invited_members > 2:
        return False
    return any(user_id == operator for user_id, _ in members)
