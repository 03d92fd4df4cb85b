"""Loop: a person's end of a conversation on Matrix: one account, one room, lines out, messages in.

1. What is heard is what others said after the talk was opened, in the homeserver's order, each once.
2. A homeserver that does not answer is asked again, with a growing wait that is told; what was said meanwhile comes afterwards.
3. A line is sent under one transaction id until the homeserver has it: never twice.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field

import trio

from mind_body.errors import MatrixLimited, MatrixUnreachable
from mind_body.ids import new_id
from mind_body.matrix.client import Account
from mind_body.matrix.events import Edit, Encrypted, Event, Member, Message, Reaction
from mind_body.matrix.wire import JoinedRoom, Sync

Direct = Mapping[str, tuple[str, ...]]
"""`m.direct`: user id → room ids."""

POLL_S = 30.0
WAIT_MAX_S = 15.0


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that somebody else did in the room."""

    event_id: str
    sender: str
    name: str
    kind: str
    """`text`, `notice`, `reaction`, `edit`, `encrypted`."""
    text: str = field(repr=False)


class Talk:
    """Open: joined, in step with the room."""

    def __init__(self, account: Account, user_id: str, room_id: str, since: str, tell: Callable[[str], None]) -> None:
        self.room_id = room_id
        self._account = account
        self._user = user_id
        self._since = since
        self._tell = tell
        self._names: dict[str, str] = {}

    async def say(self, text: str, mention: str | None = None) -> str:
        """Send one line; its event id. Waits as the homeserver tells."""
        content: dict[str, object] = {"msgtype": "m.text", "body": text}
        if mention:
            content["m.mentions"] = {"user_ids": [mention]}
        txn, wait_s = new_id(), 0.5
        while True:
            try:
                return await self._account.send(self.room_id, "m.room.message", txn, content)
            except MatrixLimited as error:
                await trio.sleep(error.retry_after_ms / 1000)
            except MatrixUnreachable as error:
                wait_s = await self._wait(error, wait_s)

    async def listen(self) -> AsyncGenerator[Line, None]:
        """What others do in the room, for ever."""
        wait_s = 0.5
        while True:
            try:
                sync = await self._account.sync(self._since, POLL_S)
            except MatrixLimited as error:
                await trio.sleep(error.retry_after_ms / 1000)
                continue
            except MatrixUnreachable as error:
                wait_s = await self._wait(error, wait_s)
                continue
            self._since, wait_s = sync.next_batch, 0.5
            for event in self._events(sync):
                line = await self._line(event)
                if line is not None:
                    yield line

    def _events(self, sync: Sync) -> list[Event]:
        room = next((room for room in sync.joined if room.room_id == self.room_id), None)
        return [event for event in room.timeline.events if event.sender != self._user] if room else []

    async def _line(self, event: Event) -> Line | None:
        name = await self._name(event.sender)
        match event:
            case Message():
                return Line(event.event_id, event.sender, name, "notice" if event.msgtype == "m.notice" else "text", event.body)
            case Edit():
                return Line(event.event_id, event.sender, name, "edit", event.body)
            case Reaction():
                return Line(event.event_id, event.sender, name, "reaction", event.key)
            case Encrypted():
                return Line(event.event_id, event.sender, name, "encrypted", "an encrypted message that cannot be read here")
            case _:
                return None

    async def _name(self, user_id: str) -> str:
        if user_id not in self._names:
            try:
                self._names[user_id] = await self._account.profile_name(user_id) or user_id
            except (MatrixUnreachable, MatrixLimited):
                return user_id
        return self._names[user_id]

    async def _wait(self, error: MatrixUnreachable, wait_s: float) -> float:
        self._tell(f"{error}; trying again in {wait_s:g} s")
        await trio.sleep(wait_s)
        return min(wait_s * 2, WAIT_MAX_S)


async def open_talk(
    account: Account, user_id: str, tell: Callable[[str], None], *, room_id: str | None = None, other: str | None = None
) -> Talk:
    """In `room_id`, or in the direct message with `other`, which is made where there is none yet."""
    # Synapse answers a first sync from a cache of two minutes: what is new since then comes with the second one.
    first = await account.sync(None, 0)
    second = await account.sync(first.next_batch, 0)
    if room_id is not None:
        room_id = await account.join(room_id)
    elif other is not None:
        room_id = _direct_room(first, second, other) or await _make_direct(account, user_id, other, _direct(first, second))
    assert room_id is not None, "a room or somebody to talk to"
    # From here on: what was said before the talk was opened is history.
    return Talk(account, user_id, room_id, (await account.sync(second.next_batch, 0)).next_batch, tell)


async def _make_direct(account: Account, user_id: str, other: str, direct: Direct) -> str:
    room_id = await account.create_room({"invite": [other], "is_direct": True, "preset": "trusted_private_chat"})
    rooms = {user: list(told) for user, told in direct.items()}
    rooms.setdefault(other, []).append(room_id)
    await account.set_account_data(user_id, "m.direct", rooms)
    return room_id


def _direct(first: Sync, second: Sync) -> Direct:
    return second.direct if second.direct is not None else first.direct or {}


def _direct_room(first: Sync, second: Sync, other: str) -> str | None:
    """A room that is told to be the direct message with `other`, and that both are still in."""
    told = _direct(first, second).get(other, ())
    gone = {room.room_id for room in second.left}
    rooms = [room for room in (*second.joined, *first.joined) if room.room_id in told and room.room_id not in gone]
    left = {room.room_id for room in rooms if _has_left(room, other)}
    return next((room.room_id for room in rooms if room.room_id not in left), None)


def _has_left(room: JoinedRoom, user_id: str) -> bool:
    seen = [e for e in (*room.state, *room.timeline.events) if isinstance(e, Member) and e.user_id == user_id]
    return bool(seen) and seen[-1].membership in {"leave", "ban"}
