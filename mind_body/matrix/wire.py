"""Shapes: the homeserver's answers to /sync and /messages; the events in them are those of `events.py`.

A response that is not what was asked for raises MatrixUnreachable: the same request may be sent again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mind_body.errors import MatrixUnreachable
from mind_body.matrix.events import Event, Member
from mind_body.matrix.parse import as_dict, as_list, count_of, parse_events, parse_stripped, text_of


@dataclass(frozen=True, slots=True)
class Timeline:
    events: tuple[Event, ...]
    """Oldest first."""
    limited: bool
    """There is a hole before the first event."""
    prev_batch: str | None
    """Where paging back starts."""


@dataclass(frozen=True, slots=True)
class JoinedRoom:
    room_id: str
    state: tuple[Event, ...]
    """State before the timeline; state changed in the timeline is in the timeline alone."""
    timeline: Timeline
    joined_members: int | None
    """`m.joined_member_count`, where this sync says it."""
    invited_members: int | None


@dataclass(frozen=True, slots=True)
class InvitedRoom:
    room_id: str
    state: tuple[Event, ...]
    """Stripped: no event ids."""

    def invite_of(self, user_id: str) -> Member | None:
        """The invite itself: its sender, and whether it says "direct"."""
        mine = [e for e in self.state if isinstance(e, Member) and e.user_id == user_id and e.membership == "invite"]
        return mine[-1] if mine else None


@dataclass(frozen=True, slots=True)
class LeftRoom:
    room_id: str
    state: tuple[Event, ...]
    timeline: Timeline


@dataclass(frozen=True, slots=True)
class Sync:
    """One answer of /sync."""

    next_batch: str
    joined: tuple[JoinedRoom, ...]
    invited: tuple[InvitedRoom, ...]
    left: tuple[LeftRoom, ...]
    direct: Mapping[str, tuple[str, ...]] | None
    """`m.direct`: user id → room ids; None when this sync does not say it."""

    @property
    def empty(self) -> bool:
        """Nothing but a new position."""
        return not (self.joined or self.invited or self.left or self.direct is not None)


@dataclass(frozen=True, slots=True)
class MessagesPage:
    """One page of /messages, in the order asked for."""

    events: tuple[Event, ...]
    state: tuple[Event, ...]
    end: str | None
    """The next page's token; None at the end of what may be seen."""


def parse_sync(response: object) -> Sync:
    top = as_dict(response)
    next_batch = text_of(top, "next_batch")
    if not next_batch:
        raise MatrixUnreachable("the homeserver's answer to /sync has no next_batch")
    rooms = as_dict(top.get("rooms"))
    return Sync(
        next_batch,
        tuple(_parse_joined(room_id, room) for room_id, room in _rooms(rooms, "join")),
        tuple(InvitedRoom(room_id, parse_stripped(_events(room, "invite_state"))) for room_id, room in _rooms(rooms, "invite")),
        tuple(
            LeftRoom(room_id, parse_events(_events(room, "state")), _parse_timeline(room))
            for room_id, room in _rooms(rooms, "leave")
        ),
        _parse_direct(_events(top, "account_data")),
    )


def parse_messages(response: object) -> MessagesPage:
    top = as_dict(response)
    if not isinstance(top.get("chunk"), list):
        raise MatrixUnreachable("the homeserver's answer to /messages has no chunk")
    return MessagesPage(parse_events(top["chunk"]), parse_events(as_list(top.get("state"))), text_of(top, "end") or None)


def _parse_joined(room_id: str, room: dict[str, Any]) -> JoinedRoom:
    summary = as_dict(room.get("summary"))
    return JoinedRoom(
        room_id,
        parse_events(_events(room, "state")),
        _parse_timeline(room),
        count_of(summary, "m.joined_member_count"),
        count_of(summary, "m.invited_member_count"),
    )


def _parse_timeline(room: dict[str, Any]) -> Timeline:
    timeline = as_dict(room.get("timeline"))
    return Timeline(
        parse_events(as_list(timeline.get("events"))), timeline.get("limited") is True, text_of(timeline, "prev_batch") or None
    )


def _parse_direct(account_data: list[Any]) -> Mapping[str, tuple[str, ...]] | None:
    said = [as_dict(e.get("content")) for e in map(as_dict, account_data) if e.get("type") == "m.direct"]
    if not said:
        return None
    return {user: tuple(r for r in as_list(rooms) if isinstance(r, str)) for user, rooms in said[-1].items()}


def _rooms(rooms: dict[str, Any], key: str) -> Iterable[tuple[str, dict[str, Any]]]:
    return ((room_id, as_dict(room)) for room_id, room in as_dict(rooms.get(key)).items())


def _events(parent: dict[str, Any], key: str) -> list[Any]:
    return as_list(as_dict(parent.get(key)).get("events"))
