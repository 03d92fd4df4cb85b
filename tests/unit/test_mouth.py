"""The mouth as one process: which Minds it carries, and when it notices that they are others."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio

from mind_body.cli.acted import carry_out
from mind_body.control.effective import DialFile
from mind_body.control.files import write_dial
from mind_body.home import Home
from mind_body.host.liveness import take_hold
from mind_body.host.notify import Notify
from mind_body.host.poke import Pokes, open_poke_socket, send_poke
from mind_body.host.post import Post
from mind_body.log import Journal
from mind_body.matrix.client import MatrixClient
from mind_body.mouth.main import Mouth
from mind_body.settings import HostConfig
from tests.builders import add_mind, make_home

DEADLINE_S = 5.0


class Stage:
    """A mouth over a home of its own, its homeserver away; and what it wrote into the journal."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.lines: list[Any] = []

    def told(self, kind: str) -> list[str]:
        return [line["event"] for line in self.lines if line["kind"] == kind]

    async def until(self, check: Callable[[], Any]) -> None:
        with trio.fail_after(DEADLINE_S):
            while not check():
                await trio.sleep(0.01)


@pytest.fixture
def look_s() -> float:
    return 60.0


@pytest.fixture
async def stage(tmp_path: Path, look_s: float) -> AsyncIterator[Stage]:
    made = Stage(make_home(tmp_path, "ada"))
    hold, pokes = take_hold(made.home.lock_file("mouth"), "m"), Pokes(open_poke_socket(made.home.mouth_socket))
    assert hold is not None
    post = Post(made.home, HostConfig(look_s=look_s), Journal("mouth"), pokes, Notify({}), hold)
    with structlog.testing.capture_logs() as made.lines:
        async with MatrixClient() as client, trio.open_nursery() as nursery:
            nursery.start_soon(Mouth(made.home, post, client).run, nursery)
            await made.until(lambda: made.told("mouth.started"))
            yield made
            nursery.cancel_scope.cancel()
    pokes.close()
    hold.release()


async def test_it_says_for_how_many_it_is_there(stage: Stage) -> None:
    assert stage.told("mouth.started") == ["The mouth hears and speaks for 1 Mind."]


async def test_the_dial_of_a_mind_that_was_just_made_is_acknowledged_at_once(stage: Stage) -> None:
    add_mind(stage.home, "bea")
    turn = DialFile(heat=1.5)
    assert await carry_out(stage.home, ["bea"], lambda name: write_dial(stage.home, name, turn), DEADLINE_S, lambda _: None) == {}


@pytest.mark.parametrize("look_s", [0.5])
async def test_a_file_that_was_edited_is_noticed_however_many_pokes_come(stage: Stage, nursery: trio.Nursery) -> None:
    async def rain() -> None:
        while True:
            send_poke(stage.home.mouth_socket)
            await trio.sleep(0.05)

    nursery.start_soon(rain)
    with stage.home.mind_file("ada").open("a") as file:
        file.write('[persona]\nlanguage = "de"\n')
    await stage.until(lambda: stage.told("mouth.mind-changed"))
    nursery.cancel_scope.cancel()
