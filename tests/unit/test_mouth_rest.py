"""A Mind to whom nobody speaks rests in the mouth, hears and speaks as before, and is roused by nothing that says nothing."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from mind_body.cli.mind_status import DEAF_AFTER_MS
from mind_body.clock import now_ms
from mind_body.home import Home
from mind_body.host.liveness import take_hold
from mind_body.host.notify import Notify
from mind_body.host.poke import Pokes, open_poke_socket, send_poke
from mind_body.host.post import Post
from mind_body.log import Journal
from mind_body.matrix.client import MatrixClient
from mind_body.mind.outbox import admit_said
from mind_body.mind.reports import read_figures
from mind_body.mind.rooms import save_position
from mind_body.mind.store import open_mind
from mind_body.mouth import ear
from mind_body.mouth.main import Mouth
from mind_body.settings import HostConfig
from tests.builders import NOW, insert_room, make_home, make_new_said, open_descriptors, pass_hours

HER, ROOM = "@ada:example.org", "!a:example.org"
LOOK_S, SYNC_S = 0.2, 0.05
DEADLINE_S = 10.0


class Homeserver:
    """Says nothing at each /sync, in SYNC_S, and takes what is sent."""

    def __init__(self) -> None:
        self.syncs = 0
        self.sent: list[str] = []
        self.refuses = False

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.endswith("/whoami"):
            return httpx.Response(200, json={"user_id": HER, "device_id": "D"})
        if path.endswith("/sync"):
            await trio.sleep(SYNC_S)
            self.syncs += 1
            return httpx.Response(200, json={"next_batch": f"s{self.syncs}"})
        if "/send/" in path and not self.refuses:
            self.sent.append(json.loads(request.content)["body"])
            return httpx.Response(200, json={"event_id": "$e"})
        return httpx.Response(502)


class Stage:
    """A mouth that carries Ada."""

    def __init__(self, home: Home, homeserver: Homeserver) -> None:
        self.home, self.homeserver = home, homeserver

    @property
    def rests(self) -> bool:
        return not open_descriptors(self.home.mind_db("ada"))

    def queue(self, *bodies: str) -> None:
        """As a persona does that comes and goes."""
        mind = open_mind(self.home.mind_db("ada"))
        with mind.write() as tx:
            admit_said(tx, [make_new_said(body, ROOM, body=body) for body in bodies], None, NOW)
        mind.close()

    def heard_until(self) -> int:
        """As `mind status` and `mind why` read it."""
        mind = open_mind(self.home.mind_db("ada"))
        with mind.read() as tx:
            found = read_figures(tx, now_ms()).heard_until
        mind.close()
        assert found is not None
        return found

    async def until(self, check: Callable[[], Any]) -> None:
        with trio.fail_after(DEADLINE_S):
            while not check():
                await trio.sleep(0.01)


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    home = make_home(tmp_path, "ada")
    config = home.mind_file("ada")
    config.write_text(config.read_text().replace("[matrix]", '[matrix]\nlogin = "token"'))
    home.matrix_secret("ada", "token").parent.mkdir(parents=True, exist_ok=True)
    home.matrix_secret("ada", "token").write_text("token")
    home.matrix_secret("ada", "token").chmod(0o600)
    mind = open_mind(home.mind_db("ada"))
    with mind.write() as tx:
        insert_room(tx, ROOM)
        save_position(tx, "s0", 1)
    mind.close()
    made = Stage(home, Homeserver())
    hold, pokes = take_hold(home.lock_file("mouth"), "m"), Pokes(open_poke_socket(home.mouth_socket))
    assert hold is not None
    host = HostConfig(look_s=LOOK_S, sync_timeout_s=SYNC_S)
    async with MatrixClient(transport=httpx.MockTransport(made.homeserver)) as client, trio.open_nursery() as nursery:
        nursery.start_soon(Mouth(home, Post(home, host, Journal("mouth"), pokes, Notify({}), hold), client).run, nursery)
        await made.until(lambda: made.homeserver.syncs > 1)
        pass_hours(monkeypatch, home.mind_dir("ada"))
        yield made
        nursery.cancel_scope.cancel()
    pokes.close()
    hold.release()


async def test_she_rests_through_looks_and_answers_that_say_nothing(stage: Stage) -> None:
    roused = 0

    def has_rested_for_20_answers() -> bool:
        nonlocal roused
        roused = roused if stage.rests else stage.homeserver.syncs
        return stage.homeserver.syncs > roused + 20

    await stage.until(has_rested_for_20_answers)


async def test_who_hears_nothing_but_hears_is_never_taken_for_deaf(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stage.heard_until() > now_ms() - DEAF_AFTER_MS, "it was long ago before the mouth began"
    for quarter in (1, 2):
        await stage.until(lambda: stage.rests)
        later = now_ms() + quarter * DEAF_AFTER_MS
        monkeypatch.setattr(ear, "now_ms", lambda later=later: later)
        await stage.until(lambda later=later: stage.heard_until() == later)  # type: ignore[misc]


@pytest.mark.parametrize("poked", [True, False])
async def test_what_is_queued_while_she_rests_is_said(stage: Stage, poked: bool) -> None:
    for number in range(3):
        await stage.until(lambda: stage.rests)
        stage.queue(f"word {number}")
        if poked:
            send_poke(stage.home.mouth_socket)
        await stage.until(lambda number=number: stage.homeserver.sent[number:])  # type: ignore[misc]
    assert stage.homeserver.sent == [f"word {number}" for number in range(3)]


async def test_what_waits_for_the_homeserver_lets_nobody_rest_and_goes_out(stage: Stage) -> None:
    stage.homeserver.refuses = True
    await stage.until(lambda: stage.rests)
    stage.queue("one", "two")
    await stage.until(lambda: not stage.rests)
    until = stage.homeserver.syncs + 20
    await stage.until(lambda: stage.rests or stage.homeserver.syncs > until)
    assert not stage.rests
    stage.homeserver.refuses = False
    await stage.until(lambda: len(stage.homeserver.sent) == 2)
    await stage.until(lambda: stage.rests)
