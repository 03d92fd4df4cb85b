"""Loop: a direct room in which an operator can be asked, where a question is open and there is none (design §9).

1. Made once: its alias is made from Mind and operator. Where an answer was lost, or a process died between the room and its
   remembrance, the same request finds the alias in use, and the room by it: hers, if she is in it, and nobody's otherwise.
2. A homeserver that lets nobody name an alias is asked for a room without one. That one is known again by its name, which comes
   with /sync; so nothing is made before this process has heard a first time.
3. That it is direct is kept in the account's own list, and comes into the mind with /sync like everything about a room.
4. The brake is read first: a Mind that is held makes no rooms. What the homeserver cannot do now is asked for again; what it will
   not do ends the matter until the mouth begins anew, and is told. The question is in the mind, whatever becomes of this.
"""

from typing import Any

import trio

from mind_body.control.asking import first_operator, is_asking_room
from mind_body.control.effective import Held
from mind_body.control.files import read_control
from mind_body.crash import crash_point
from mind_body.errors import MatrixRefused
from mind_body.ids import derived_id
from mind_body.matrix.client import Account
from mind_body.mind.questions import read_open_questions
from mind_body.mind.records import Membership, Room
from mind_body.mind.rooms import read_members, read_room, read_rooms
from mind_body.mouth.attempt import asked_s, attempt
from mind_body.mouth.question_plan import find_ours, is_there
from mind_body.mouth.seat import Seat
from mind_body.mouth.speak import CURABLE

PATIENCE_S = 60.0
"""What was made comes into the mind with /sync; for so long it is not looked at again."""


class QuestionRoom:
    """One Mind's. `open` is a chore of her ear."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._patient_until = 0.0
        self._settled: set[str] = set()
        """Operators about whom nothing more can be done."""
        self._made: str | None = None
        """A room without an alias that /sync may not have shown yet."""
        self._invited: set[str] = set()

    async def open(self) -> None:
        """Until there is a room or nothing more to be done about it."""
        seat, tries = self._seat, 0
        while (operator := self._wanted()) is not None:
            account = await seat.account()
            try:
                why = await attempt(seat, account, lambda: self._make(account, operator))  # noqa: B023 - awaited in this round
            except MatrixRefused as error:
                self._settle(operator, f"She has no direct room in which she could ask {operator}: {error}")
                return
            if why is None:
                self._patient_until = trio.current_time() + PATIENCE_S
                return
            seat.journal.note("question.room-waits", f"A direct room for questions has to wait: {why}.", level="warning")
            await seat.wait_out(tries, asked_s(why))
            tries += 1

    def _wanted(self) -> str | None:
        """The operator whom a room has to be made with."""
        seat = self._seat
        with seat.mind.read() as tx:
            if all(one.room_id is not None for one in read_open_questions(tx)):
                return None
            rooms = read_rooms(tx, Membership.JOINED)
            if any(is_asking_room(room, read_members(tx, room.room_id), seat.config.people) for room in rooms):
                return None
        operator = first_operator(seat.config.people)
        if operator is None:
            self._settle("", "A question is open, and `people.operators` names nobody whom she could ask: there are only globs")
        if operator is None or operator in self._settled or trio.current_time() < self._patient_until:
            return None
        return None if isinstance(read_control(seat.home, seat.name), Held) else operator

    async def _make(self, account: Account, operator: str) -> None:
        ours = self._ours(operator)
        if ours is None:
            await account.mark_direct(self._seat.user_id, operator, await self._create(account, operator))
            return
        room, there = ours
        if room.encrypted:
            raise MatrixRefused(f"{room.handle} is encrypted by its homeserver, and she cannot read it", "ENCRYPTED")
        if room.direct and there:
            raise MatrixRefused(f"{room.handle} shares a conversation with other rooms", "NOT_DIRECT")
        if not there and room.room_id in self._invited:
            raise MatrixRefused(f"{operator} is not in {room.handle}, invited or not", "NOT_THERE")
        if not there:
            await account.invite_direct(room.room_id, operator)
            self._invited.add(room.room_id)
            self._note("question.invited", f"{operator} was invited to {room.handle} again, where she has something to ask.")
        await account.mark_direct(self._seat.user_id, operator, room.room_id)

    def _ours(self, operator: str) -> tuple[Room, bool] | None:
        """A room that was made here before, and whether the operator is there."""
        with self._seat.mind.read() as tx:
            found = find_ours(
                [(room, read_members(tx, room.room_id)) for room in read_rooms(tx, Membership.JOINED)], self._seat.name, operator
            )
        return (found[0], is_there(found[1], operator)) if found else None

    async def _create(self, account: Account, operator: str) -> str:
        """The room's id, made now or found again."""
        if self._made is not None:
            return self._made
        local = derived_id("mind-questions", self._seat.user_id, operator)
        try:
            room_id = await account.create_room({**self._content(operator), "room_alias_name": local})
        except MatrixRefused as error:
            if error.code in CURABLE:
                raise
        else:
            return self._created(room_id, operator)
        found = await _find_alias(account, f"#{local}:{self._seat.user_id.partition(':')[2]}")
        if found is not None and not self._knows(found):
            return found
        self._made = await account.create_room(self._content(operator))
        return self._created(self._made, operator)

    def _knows(self, room_id: str) -> bool:
        """Whether /sync has shown her in it: then it is no DM any more, or it would have been found by what is known of it."""
        with self._seat.mind.read() as tx:
            room = read_room(tx, room_id)
        return room is not None and room.membership is Membership.JOINED

    def _content(self, operator: str) -> dict[str, Any]:
        return {"name": self._seat.name, "is_direct": True, "preset": "trusted_private_chat", "invite": [operator]}

    def _created(self, room_id: str, operator: str) -> str:
        crash_point("ear.question-room")
        self._note("question.room-made", f"A direct room was made in which {operator} can be asked.", ROOM=room_id)
        return room_id

    def _settle(self, operator: str, why: str) -> None:
        if operator not in self._settled:
            self._settled.add(operator)
            self._note("question.no-room", f"{why}. `mind questions` shows what is open.", level="warning")

    def _note(self, kind: str, sentence: str, **fields: Any) -> None:
        self._seat.journal.note(kind, sentence, **fields)


async def _find_alias(account: Account, alias: str) -> str | None:
    """The room that is called so, if she is in it: anybody may take an alias for a room of their own."""
    found = await account.resolve_alias(alias)
    return found if found and found in await account.joined_rooms() else None
