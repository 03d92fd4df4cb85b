"""Rule: where the operators are asked what only they can decide: in a direct conversation with one of them (design §9).

Whoever asks and whoever makes such a room for it goes by this one answer.
"""

from collections.abc import Iterable

from mind_body.control.people import is_operator
from mind_body.mind.records import Membership, Room
from mind_body.settings import PeopleConfig

THERE = frozenset({"join", "invite"})
"""Who is invited sees the room, and reads what was said there when they come in."""


def is_asking_room(room: Room, members: Iterable[tuple[str, str]], people: PeopleConfig) -> bool:
    """Whether a question can be asked here; `members`: user id and membership of those whom we have seen."""
    if room.membership is not Membership.JOINED or not room.conversation.startswith("direct:") or room.encrypted:
        return False
    seen = dict(members)
    # Members are lazy-loaded: who invited her may not have been seen otherwise.
    if room.invited_by is not None and room.invited_by not in seen:
        seen[room.invited_by] = "join"
    return any(membership in THERE and is_operator(user_id, people) for user_id, membership in seen.items())


def first_operator(people: PeopleConfig) -> str | None:
    """Whom a room is made with where there is none: the first that is an id and not a glob."""
    return next((one for one in people.operators if not set(one) & set("*?")), None)
