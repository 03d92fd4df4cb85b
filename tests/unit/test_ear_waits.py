"""How an ear waits, over a homeserver of a few lines: limits, failures, answers that come at once, rooms that go on elsewhere."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from trio.testing import MockClock

from mind_body.log import Journal
from mind_body.matrix.client import GREETING_MAX, MatrixClient
from mind_body.mind.records import Identity, Membership, Room
from mind_body.mind.rooms import read_room
from mind_body.mouth.ear import Ear
from mind_body.mouth.invites import answer_invite, follow_upgrade
from mind_body.mouth.seat import Seat
from mind_body.mouth.sign_in import keep_signed_in
from mind_body.mouth.waits import MOST_S
from mind_body.settings import HostConfig
from tests.builders import hold, insert, insert_room, make_config, make_home, make_mind, release

HER = "@ada:example.org"
ROOM, OLD, NEXT = "!a:example.org", "!old:example.org", "!next:other.example"
Handler = Callable[[httpx.Request], Coroutine[None, None, httpx.Response]]


class Told(Journal):
    def __init__(self) -> None:
        super().__init__("mouth", "ada")
        self.kinds: list[str] = []

    def note(self, kind: str, sentence: str, **fields: Any) -> None:
        self.kinds.append(kind)


@asynccontextmanager
async def seated(root: Path, answer: Handler) -> AsyncIterator[tuple[Seat, Told]]:
    """Ada's seat, signed in, over a homeserver that is a function."""
    home = make_home(root, "ada")
    release(home, "ada")
    mind, told = make_mind(root), Told()
    try:
        async with MatrixClient(transport=httpx.MockTransport(answer)) as client:
            seat = Seat(
                name="ada",
                home=home,
                host=HostConfig(),
                config=make_config(matrix={"homeserver": "http://h.example", "user": HER}),
                mind=mind,
                client=client,
                journal=told,
                poke_heartbeat=lambda: None,
                progress=lambda: None,
            )
            seat.admit(client.account("http://h.example", "token"), Identity(HER, "D"))
            yield seat, told
    finally:
        mind.close()


async def listen(seat: Seat, for_s: float) -> None:
    with trio.move_on_after(for_s):
        await Ear(seat).run(lambda: None)


def room_of(seat: Seat, room_id: str) -> Room:
    with seat.mind.read() as tx:
        found = read_room(tx, room_id)
    assert found is not None
    return found


def upgrade(seat: Seat) -> Room:
    with seat.mind.write() as tx:
        insert_room(tx, OLD, number=7, upgraded_to=NEXT)
    return room_of(seat, OLD)


async def test_a_homeserver_that_never_holds_a_sync_open_is_not_asked_as_fast_as_it_answers(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    asked = []

    async def answer(_: httpx.Request) -> httpx.Response:
        await trio.sleep(0.001)
        asked.append(trio.current_time())
        return httpx.Response(200, json={"next_batch": f"s{len(asked)}"})

    async with seated(tmp_path, answer) as (seat, _):
        await listen(seat, 60)
    assert len(asked) < 80


async def test_a_homeserver_that_is_away_for_a_night_is_told_a_few_times(tmp_path: Path, autojump_clock: MockClock) -> None:
    async def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(502, text="bad gateway")

    async with seated(tmp_path, answer) as (seat, told):
        await listen(seat, 8 * 3600)
    assert 8 <= told.kinds.count("ear.waits") <= 12


async def test_a_limit_is_waited_out_at_most_an_hour_and_the_watchdog_is_fed_meanwhile(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    asked, fed = [], []

    async def answer(_: httpx.Request) -> httpx.Response:
        asked.append(trio.current_time())
        return httpx.Response(429, json={"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 900_000_000_000})

    async with seated(tmp_path, answer) as (seat, _):
        seat.progress = lambda: fed.append(trio.current_time())
        began = trio.current_time()
        await listen(seat, 4000)
    assert [round(at - began) for at in asked] == [0, 3600]
    assert all(after - before <= MOST_S + 1 for before, after in zip([began, *fed], fed, strict=False))


@pytest.mark.parametrize(
    "refusals",
    [[(429, "M_LIMIT_EXCEEDED"), (502, "")], [(403, "M_RESOURCE_LIMIT_EXCEEDED"), (403, "M_USER_LOCKED")]],
)
async def test_an_invite_and_an_upgrade_are_tried_until_the_homeserver_can(
    tmp_path: Path, autojump_clock: MockClock, refusals: list[tuple[int, str]]
) -> None:
    joins: list[tuple[str, str]] = []
    due = [*refusals]

    async def answer(request: httpx.Request) -> httpx.Response:
        if due:
            status, code = due.pop(0)
            return httpx.Response(status, json={"errcode": code, "retry_after_ms": 2000})
        joins.append((request.url.path.rpartition("/")[2], request.url.params.get("via", "")))
        return httpx.Response(200, json={"room_id": ROOM})

    async with seated(tmp_path, answer) as (seat, _):
        with seat.mind.write() as tx:
            insert_room(tx, ROOM, membership="invited", invited_by="@bob:example.org")
        await answer_invite(seat, ROOM)
        assert room_of(seat, ROOM).membership is Membership.INVITED, "that she is in a room is what /sync says"
        due += refusals
        await follow_upgrade(seat, upgrade(seat))
    assert joins == [(ROOM, ""), (NEXT, "example.org")]


async def test_a_room_that_may_not_be_followed_is_asked_for_once_and_told(tmp_path: Path, autojump_clock: MockClock) -> None:
    asked = []

    async def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(403, json={"errcode": "M_FORBIDDEN"})

    async with seated(tmp_path, answer) as (seat, told):
        await follow_upgrade(seat, upgrade(seat))
    assert (len(asked), told.kinds) == (1, ["room.upgrade-refused"])


async def test_a_held_mind_follows_nowhere_before_she_is_released(tmp_path: Path, autojump_clock: MockClock) -> None:
    joined = []

    async def answer(_: httpx.Request) -> httpx.Response:
        joined.append(trio.current_time())
        return httpx.Response(200, json={"room_id": NEXT})

    async with seated(tmp_path, answer) as (seat, _):
        hold(seat.home, "ada", "a test")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow_upgrade, seat, upgrade(seat))
            await trio.sleep(600)
            assert joined == []
            release(seat.home, "ada")
    assert len(joined) == 1


async def test_minds_that_start_together_sign_in_a_few_at_a_time(tmp_path: Path, autojump_clock: MockClock) -> None:
    at_once, most, done = 0, 0, 0

    async def answer(_: httpx.Request) -> httpx.Response:
        nonlocal at_once, most, done
        at_once += 1
        most = max(most, at_once)
        await trio.sleep(0.1)
        at_once -= 1
        done += 1
        return httpx.Response(200, json={"user_id": HER, "device_id": "D"})

    async with seated(tmp_path, answer) as (seat, _):
        seat.config = make_config(matrix={"homeserver": "http://h.example", "user": HER, "login": "token"})
        secret = seat.home.credentials / "ada.matrix-token"
        secret.parent.mkdir(exist_ok=True)
        secret.touch(mode=0o600)
        secret.write_text("token")
        with seat.mind.write() as tx:
            insert(tx, "identity", one=1, user_id=HER, device_id="D")
        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(keep_signed_in, seat)
            await trio.sleep(10)
            nursery.cancel_scope.cancel()
    assert (most, done) == (GREETING_MAX, 100)
