"""A direct room for questions, over a homeserver of a few lines: made once, whatever it answers and whoever dies."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
import trio
from trio.testing import MockClock

from mind_body.mind.questions import admit_question, mark_asked
from mind_body.mouth.question_room import PATIENCE_S, QuestionRoom
from mind_body.mouth.seat import Seat
from tests.builders import hold, insert, insert_room, make_config, make_question, release
from tests.unit.test_ear_waits import Told, seated

HER, CHIEF, EVE = "@ada:h.example", "@chief:h.example", "@eve:h.example"
PEOPLE = {"operators": ("@*:elsewhere.example", CHIEF)}


class Server:
    """Rooms by id and by alias, and what `m.direct` says; answers go missing as the test likes."""

    def __init__(self) -> None:
        self.rooms: dict[str, dict[str, Any]] = {}
        self.aliases: dict[str, str] = {}
        self.direct: dict[str, list[str]] = {}
        self.invited: list[tuple[str, str]] = []
        self.may_alias = True
        self.lose_answers = 0
        self.refusals: list[tuple[int, str]] = []
        self.asked = 0

    async def answer(self, request: httpx.Request) -> httpx.Response:
        path = unquote(request.url.path).removeprefix("/_matrix/client/v3")
        body = json.loads(request.content) if request.content else {}
        self.asked += 1
        if self.refusals and path == "/createRoom":
            status, code = self.refusals.pop(0)
            return httpx.Response(status, json={"errcode": code, "retry_after_ms": 2000})
        found = self._act(request.method, path, body)
        if self.lose_answers and path == "/createRoom":
            self.lose_answers -= 1
            raise httpx.ReadError("gone")
        return found

    def _act(self, method: str, path: str, body: dict[str, Any]) -> httpx.Response:
        if path == "/createRoom":
            return self._create(body)
        if path.startswith("/directory/room/"):
            room_id = self.aliases.get(path.removeprefix("/directory/room/"))
            return httpx.Response(200, json={"room_id": room_id}) if room_id else refusal(404, "M_NOT_FOUND")
        if path == "/joined_rooms":
            return httpx.Response(200, json={"joined_rooms": list(self.rooms)})
        if path.endswith("/account_data/m.direct"):
            if method == "PUT":
                self.direct = body
            return httpx.Response(200, json=self.direct if method == "GET" else {})
        if "/state/m.room.member/" in path:
            room_id, _, user_id = path.removeprefix("/rooms/").partition("/state/m.room.member/")
            self.invited.append((room_id, user_id))
            return httpx.Response(200, json={"event_id": "$e"})
        raise AssertionError(f"{method} {path}")

    def _create(self, body: dict[str, Any]) -> httpx.Response:
        alias = f"#{body['room_alias_name']}:h.example" if "room_alias_name" in body else None
        if alias and not self.may_alias:
            return refusal(403, "M_FORBIDDEN")
        if alias in self.aliases:
            return refusal(400, "M_ROOM_IN_USE")
        room_id = f"!made{len(self.rooms)}:h.example"
        self.rooms[room_id] = body
        if alias:
            self.aliases[alias] = room_id
        return httpx.Response(200, json={"room_id": room_id})


def refusal(status: int, code: str) -> httpx.Response:
    return httpx.Response(status, json={"errcode": code})


@asynccontextmanager
async def asking(root: Path, server: Server, **people: Any) -> AsyncIterator[tuple[Seat, Told]]:
    """Ada's seat with a question that nobody was asked yet."""
    async with seated(root, server.answer) as (seat, told):
        seat.config = make_config(matrix={"homeserver": "http://h.example", "user": HER}, people={**PEOPLE, **people})
        assert seat.identity is not None
        seat.identity = type(seat.identity)(HER, "D")
        with seat.mind.write() as tx:
            admit_question(tx, make_question())
        yield seat, told


def see(seat: Seat, room_id: str, *, direct: bool = True, membership: str = "invite", **columns: Any) -> None:
    """What /sync says of the room and of the operator in it."""
    conversation = f"direct:{room_id}" if direct else f"room:{room_id}"
    with seat.mind.write() as tx:
        tx.execute("DELETE FROM room WHERE room_id = ?", (room_id,))
        tx.execute("DELETE FROM member WHERE room_id = ?", (room_id,))
        insert_room(tx, room_id, name="ada", direct=direct, conversation=conversation, joined_members=1, **columns)
        insert(tx, "member", room_id=room_id, user_id=CHIEF, name="", membership=membership)


async def test_it_is_direct_with_the_first_operator_who_is_no_glob(tmp_path: Path, autojump_clock: MockClock) -> None:
    server = Server()
    async with asking(tmp_path, server) as (seat, told):
        await QuestionRoom(seat).open()
        ((room_id, made),) = server.rooms.items()
        assert (made["invite"], made["is_direct"], made["preset"]) == ([CHIEF], True, "trusted_private_chat")
        assert server.direct == {CHIEF: [room_id]}
        assert told.kinds == ["question.room-made"]
        see(seat, room_id)
        await trio.sleep(2 * PATIENCE_S)
        await QuestionRoom(seat).open()
    assert len(server.rooms) == 1


@pytest.mark.parametrize("there", ["join", "invite"])
async def test_none_is_made_where_an_operator_can_be_asked_already(tmp_path: Path, autojump_clock: MockClock, there: str) -> None:
    server = Server()
    async with asking(tmp_path, server) as (seat, _):
        see(seat, "!dm:h.example", membership=there, invited_by=CHIEF)
        await QuestionRoom(seat).open()
    assert server.asked == 0


async def test_none_is_made_without_a_question_or_where_it_was_asked(tmp_path: Path, autojump_clock: MockClock) -> None:
    server = Server()
    async with asking(tmp_path, server) as (seat, _):
        with seat.mind.write() as tx:
            mark_asked(tx, "question-1", "!gone:h.example", "said")
        await QuestionRoom(seat).open()
    assert server.asked == 0


async def test_a_held_mind_makes_no_room_until_she_is_released(tmp_path: Path, autojump_clock: MockClock) -> None:
    server = Server()
    async with asking(tmp_path, server) as (seat, _):
        room = QuestionRoom(seat)
        hold(seat.home, "ada", "a test")
        await room.open()
        assert server.asked == 0
        release(seat.home, "ada")
        await room.open()
    assert len(server.rooms) == 1


async def test_a_lost_answer_makes_no_second_room(tmp_path: Path, autojump_clock: MockClock) -> None:
    server = Server()
    server.lose_answers = 3
    async with asking(tmp_path, server) as (seat, told):
        await QuestionRoom(seat).open()
    (room_id,) = server.rooms
    assert server.direct == {CHIEF: [room_id]}
    assert "question.room-waits" in told.kinds


async def test_a_death_before_anything_is_remembered_makes_no_second_room(tmp_path: Path, autojump_clock: MockClock) -> None:
    server = Server()
    async with asking(tmp_path, server) as (seat, _):
        await QuestionRoom(seat).open()
        server.direct = {}  # as if it had died before
        await QuestionRoom(seat).open()
    (room_id,) = server.rooms
    assert server.direct == {CHIEF: [room_id]}


async def test_a_limit_is_waited_out(tmp_path: Path, autojump_clock: MockClock) -> None:
    server = Server()
    server.refusals = [(429, "M_LIMIT_EXCEEDED"), (502, ""), (403, "M_RESOURCE_LIMIT_EXCEEDED")]
    async with asking(tmp_path, server) as (seat, told):
        began = trio.current_time()
        await QuestionRoom(seat).open()
        assert trio.current_time() - began >= 2
    assert (len(server.rooms), told.kinds.count("question.room-waits")) == (1, 3)


async def test_an_alias_that_a_stranger_has_taken_leads_nobody_into_the_strangers_room(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    server = Server()
    async with asking(tmp_path, server) as (seat, _):
        await QuestionRoom(seat).open()
        (alias,) = server.aliases
        server.rooms.clear()
        server.aliases[alias] = "!trap:h.example"
        await QuestionRoom(seat).open()
    assert "!trap:h.example" not in str(server.direct)
    assert [made["invite"] for made in server.rooms.values()] == [[CHIEF]]


@pytest.mark.parametrize("known", ["by /sync", "not yet"])
async def test_without_aliases_a_room_is_made_once_and_known_again(tmp_path: Path, autojump_clock: MockClock, known: str) -> None:
    server = Server()
    server.may_alias = False
    async with asking(tmp_path, server) as (seat, _):
        room = QuestionRoom(seat)
        await room.open()
        (room_id,) = server.rooms
        server.direct = {}
        if known == "by /sync":
            see(seat, room_id, direct=False)
            room = QuestionRoom(seat)  # begun anew
        await trio.sleep(2 * PATIENCE_S)
        await room.open()
        assert list(server.rooms) == [room_id]
        assert server.direct == {CHIEF: [room_id]}


async def test_an_operator_who_has_left_is_invited_again_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    server = Server()
    async with asking(tmp_path, server) as (seat, told):
        room = QuestionRoom(seat)
        await room.open()
        (room_id,) = server.rooms
        see(seat, room_id, membership="leave")
        for _ in range(5):
            await trio.sleep(2 * PATIENCE_S)
            await room.open()
    assert server.invited == [(room_id, CHIEF)]
    assert len(server.rooms) == 1
    assert told.kinds == ["question.room-made", "question.invited", "question.no-room"]


async def test_a_room_that_the_homeserver_encrypts_is_not_made_again_and_again(tmp_path: Path, autojump_clock: MockClock) -> None:
    server = Server()
    async with asking(tmp_path, server) as (seat, told):
        room = QuestionRoom(seat)
        await room.open()
        (room_id,) = server.rooms
        see(seat, room_id, direct=False, encrypted=1)
        for _ in range(5):
            await trio.sleep(2 * PATIENCE_S)
            await room.open()
    assert len(server.rooms) == 1
    assert told.kinds == ["question.room-made", "question.no-room"]


async def test_a_homeserver_that_will_not_is_asked_once_and_told(tmp_path: Path, autojump_clock: MockClock) -> None:
    server = Server()
    server.refusals = [(403, "M_FORBIDDEN")] * 20
    async with asking(tmp_path, server) as (seat, told):
        room = QuestionRoom(seat)
        for _ in range(5):
            await trio.sleep(2 * PATIENCE_S)
            await room.open()
    assert len(server.refusals) == 18, "with an alias and without"
    assert told.kinds == ["question.no-room"]


async def test_globs_name_nobody_who_could_be_asked(tmp_path: Path, autojump_clock: MockClock) -> None:
    server = Server()
    async with asking(tmp_path, server, operators=("@*:h.example",)) as (seat, told):
        room = QuestionRoom(seat)
        await room.open()
        await room.open()
    assert (server.asked, told.kinds) == (0, ["question.no-room"])


async def test_a_dm_that_a_third_has_joined_is_no_place_to_ask_and_another_is_made(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    server = Server()
    async with asking(tmp_path, server) as (seat, _):
        room = QuestionRoom(seat)
        await room.open()
        (first,) = server.rooms
        see(seat, first, direct=False, widened=1)
        await trio.sleep(2 * PATIENCE_S)
        await room.open()
    assert len(server.rooms) == 2
