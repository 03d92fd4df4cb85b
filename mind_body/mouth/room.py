"""Rule: what a sync changes about a room (design §3, §5).

1. State is applied at once, in the order in which it came; what was said is heard in order, after the gap before it is filled.
2. Whether it is a DM: `m.direct` or an invite that says so, and at most two members, invited ones counted. One that gained a third
   is widened: a room from then on, whatever `m.direct` says.
3. Conversations: rooms whose join rule is public, and those listed in `open_rooms`, share `open`; a DM is `direct:<room>`; every
   other room is `room:<room>`.
4. The first sync of all is history. In a room that she has just joined, mail begins at her invite, or at her join if there was
   none; where the timeline does not reach back so far, it has a gap.
5. A room that goes on as another one hands on that it was a DM.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from mind_body.control.people import is_operator, listed, may_invite
from mind_body.matrix.events import Encryption, Event, JoinRules, Member, Name, Tombstone
from mind_body.matrix.parse import as_dict
from mind_body.matrix.wire import InvitedRoom, JoinedRoom
from mind_body.mind.records import Membership, Room
from mind_body.settings import PeopleConfig

OPEN = "open"
JOINED = frozenset({"join", "invite"})


class Era(Enum):
    """How an event is heard, by what came before it in the room."""

    HISTORY = "it is from before she was here"
    INVITED = "it came after her invite, before she had joined"
    LIVE = "she is in the room"


@dataclass(frozen=True, slots=True)
class GapStart:
    """A hole before the timeline."""

    cursor: str
    until: str | None
    fresh: bool


@dataclass(frozen=True, slots=True)
class RoomPlan:
    """What one sync says about a room that she is in."""

    room: Room
    members: tuple[tuple[str, str, str], ...]
    """(user id, name, membership)."""
    events: tuple[Event, ...]
    """The timeline, to be heard in order."""
    era: Era
    """Of the first of them."""
    gap: GapStart | None
    newly_encrypted: bool


def new_room(room_id: str, number: int, membership: Membership, predecessor: Room | None = None) -> Room:
    """A room of which nothing is known yet: private, which is the safe side."""
    direct = predecessor is not None and predecessor.direct
    return Room(
        room_id=room_id,
        number=number,
        membership=membership,
        join_rule="invite",
        direct=direct,
        encrypted=False,
        name="",
        conversation=f"direct:{room_id}" if direct else f"room:{room_id}",
        invited_by=None,
        all_mail=False,
        upgraded_to=None,
        receipt_seq=0,
        widened=predecessor is not None and predecessor.widened,
    )


def settle(room: Room, people: PeopleConfig) -> Room:
    """The room with what follows from its facts: whether it is still a DM, and its conversation."""
    crowded = room.joined_members + room.invited_members > 2
    widened = room.widened or (room.direct and crowded)
    direct = room.direct and not widened
    return replace(room, direct=direct, widened=widened, conversation=_conversation(room, people, direct=direct))


def mark_direct(room: Room, direct: Mapping[str, tuple[str, ...]], people: PeopleConfig) -> Room:
    """What `m.direct` says. It only ever adds: an invite that said "direct" stays one where no client keeps the list."""
    said = any(room.room_id in rooms for rooms in direct.values())
    return settle(replace(room, direct=room.direct or (said and not room.widened)), people)


def plan_invite(before: Room, invited: InvitedRoom, user_id: str, people: PeopleConfig) -> Room:
    """The room as an invite tells it."""
    invite = invited.invite_of(user_id)
    room = _with_state(before, invited.state, user_id)
    # An invite is a new beginning: she was not there, and whoever was counted before may have left.
    room = replace(
        room,
        membership=Membership.INVITED,
        invited_by=invite.sender if invite else None,
        all_mail=True,
        direct=room.direct or (invite.direct if invite else False),
        joined_members=0,
        invited_members=0,
    )
    return settle(room, people)


def plan_joined(
    before: Room, joined: JoinedRoom, user_id: str, people: PeopleConfig, since: str | None, *, fresh: bool
) -> RoomPlan:
    """`fresh`: she was not in this room when the mind last looked. `since`: the position that this sync started from."""
    state = (*joined.state, *joined.timeline.events)
    room = _with_state(before, state, user_id)
    room = replace(
        room,
        membership=Membership.JOINED,
        all_mail=False,
        joined_members=room.joined_members if joined.joined_members is None else joined.joined_members,
        invited_members=room.invited_members if joined.invited_members is None else joined.invited_members,
    )
    return RoomPlan(
        room=settle(room, people),
        members=_members(state),
        events=joined.timeline.events,
        era=Era.HISTORY if fresh or since is None else Era.LIVE,
        gap=_gap(room, joined, user_id, since, fresh=fresh),
        newly_encrypted=room.encrypted and (fresh or not before.encrypted),
    )


def decline_reason(room: Room, people: PeopleConfig) -> str | None:
    """Why an invite is not accepted; None where it is. An operator's always is."""
    inviter = room.invited_by or ""
    if is_operator(inviter, people):
        return None
    if not may_invite(inviter, people):
        return "the inviter is not on may_invite"
    return None if listed(room.room_id, people.rooms) else "the room is not on rooms"


def begins_mail(event: Event, user_id: str, *, invited: bool) -> bool:
    """Whether mail begins here in a room that she has just joined: nothing older is read."""
    if not isinstance(event, Member) or event.user_id != user_id:
        return False
    return event.membership == "invite" or (event.membership == "join" and not invited and not _by_invite(event))


def _gap(room: Room, joined: JoinedRoom, user_id: str, since: str | None, *, fresh: bool) -> GapStart | None:
    timeline = joined.timeline
    if since is None or not timeline.limited or not timeline.prev_batch:
        return None
    invited = room.invited_by is not None
    if fresh and any(begins_mail(event, user_id, invited=invited) for event in timeline.events):
        return None
    # The invite may be older than the position: a fresh room's gap ends at it, not there.
    return GapStart(timeline.prev_batch, None if fresh else since, fresh)


def _by_invite(join: Member) -> bool:
    return _before(join).get("membership") == "invite"


def _before(event: Event) -> Mapping[str, Any]:
    """What a state event replaced."""
    return as_dict(as_dict(event.raw.get("unsigned")).get("prev_content"))


def _with_state(room: Room, events: Iterable[Event], user_id: str) -> Room:
    for event in events:
        match event:
            case JoinRules():
                room = replace(room, join_rule=event.join_rule)
            case Name():
                room = replace(room, name=event.name)
            case Encryption():
                room = replace(room, encrypted=True)
            case Tombstone():
                room = replace(room, upgraded_to=event.replacement)
            case Member() if event.user_id == user_id and event.membership == "invite" and event.event_id:
                room = replace(room, invited_by=event.sender, direct=room.direct or event.direct)
            case Member() if event.user_id == user_id and event.membership == "join" and _by_invite(event):
                # Where the mind was lost, her own join still tells what the invite said.
                room = replace(room, direct=room.direct or _before(event).get("is_direct") is True)
            case _:
                pass
    return room


def _members(events: Iterable[Event]) -> tuple[tuple[str, str, str], ...]:
    found = {event.user_id: (event.user_id, event.name, event.membership) for event in events if isinstance(event, Member)}
    return tuple(found.values())


def _conversation(room: Room, people: PeopleConfig, *, direct: bool) -> str:
    if room.join_rule == "public" or listed(room.room_id, people.open_rooms):
        return OPEN
    return f"direct:{room.room_id}" if direct else f"room:{room.room_id}"
