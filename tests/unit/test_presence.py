"""X3 over a fake homeserver: typing while she thinks, and no longer; read receipts when a batch is closed."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from mind_body.errors import MatrixError, MatrixRefused, MatrixUnauthorised, MatrixUnreachable
from mind_body.home import Home
from mind_body.host.liveness import Hold, take_hold
from mind_body.log import Journal
from mind_body.mind.records import Identity
from mind_body.mind.store import Mind
from mind_body.mouth.presence import Presence
from tests.builders import hold, insert, insert_heard, insert_room, make_home, make_mind

ROOM = "!a:example.org"
HOLDER = "holder-1"


@dataclass
class Homeserver:
    """Shows typing until it is stopped or runs out, as a homeserver does."""

    until: dict[str, float] = field(default_factory=dict)
    receipts: list[tuple[str, str, str | None]] = field(default_factory=list)
    faults: list[MatrixError] = field(default_factory=list)
    calls: int = 0

    async def typing(self, room_id: str, user_id: str, timeout_s: float | None) -> None:
        self.calls += 1
        if self.faults:
            raise self.faults.pop(0)
        self.until[room_id] = trio.current_time() + (timeout_s or 0)

    async def read_receipt(self, room_id: str, event_id: str, thread: str | None = None) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.receipts.append((room_id, event_id, thread))

    def shows_typing(self, room_id: str = ROOM) -> bool:
        return self.until.get(room_id, 0.0) > trio.current_time()


@dataclass
class Stage:
    home: Home
    mind: Mind
    homeserver: Homeserver
    persona: Hold

    @asynccontextmanager
    async def present(self) -> AsyncIterator[Presence]:
        async with trio.open_nursery() as nursery:
            presence = Presence(
                self.home,
                "ada",
                self.mind,
                identity=Identity("@ada:example.org", "DEVICE"),
                journal=Journal("mouth", "ada"),
                account=self.homeserver,
                look_s=30,
            )
            nursery.start_soon(presence.run)
            yield presence
            nursery.cancel_scope.cancel()

    def begin_turn(self) -> int:
        with self.mind.write() as tx:
            insert_room(tx, ROOM)
            seq = insert_heard(tx, ROOM)
            insert(
                tx, "run", id="run", kind="persona_turn", conversations="[]", cause="mail", reason="r", opened_at=1, holder=HOLDER
            )
            texts = dict.fromkeys(
                ("provider", "model", "instructions", "instructions_digest", "schema_json", "schema_digest", "rehydration"), ""
            )
            insert(tx, "session", id="session", conversation="c", opened_at=1, last_used_at=1, **texts)
            insert(
                tx,
                "turn",
                id="turn",
                run_id="run",
                session_id="session",
                number=1,
                conversation="c",
                state="opened",
                opened_at=1,
                input="",
            )
            insert(tx, "turn_heard", turn_id="turn", seq=seq, role="mail")
        return seq

    def end_turn(self, state: str) -> None:
        with self.mind.write() as tx:
            tx.execute("UPDATE turn SET state = ?, ended_at = 2", (state,))
            if state in {"replied", "unreadable"}:
                tx.execute("UPDATE heard SET state = 'closed', turn_id = 'turn'")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    home = make_home(tmp_path, "ada")
    mind = make_mind(tmp_path / "m")
    persona = take_hold(home.lock_file("persona", "ada"), HOLDER)
    assert persona is not None
    yield Stage(home, mind, Homeserver(), persona)
    persona.release()
    mind.close()


@pytest.mark.parametrize("outcome", ["replied", "unreadable", "failed", "lost"])
async def test_x3_typing_lasts_as_long_as_the_turn_whatever_comes_of_it(
    autojump_clock: MockClock, stage: Stage, outcome: str
) -> None:
    async with stage.present() as presence:
        await trio.sleep(1)
        assert not stage.homeserver.shows_typing()
        stage.begin_turn()
        presence.look()
        for _ in range(100):
            await trio.sleep(1)
            assert stage.homeserver.shows_typing()
        assert stage.homeserver.calls < 10
        stage.end_turn(outcome)
        presence.look()
        await trio.sleep(0.1)
        assert not stage.homeserver.shows_typing()
        await trio.sleep(100)
        assert not stage.homeserver.shows_typing()


async def test_x3_a_persona_that_was_killed_types_no_more(autojump_clock: MockClock, stage: Stage) -> None:
    stage.begin_turn()
    async with stage.present():
        await trio.sleep(1)
        assert stage.homeserver.shows_typing()
        stage.persona.release()
        await trio.sleep(6)
        assert not stage.homeserver.shows_typing()


async def test_x3_a_mouth_that_ends_stops_typing_first(autojump_clock: MockClock, stage: Stage) -> None:
    stage.begin_turn()
    async with stage.present():
        await trio.sleep(1)
        assert stage.homeserver.shows_typing()
    assert not stage.homeserver.shows_typing()


async def test_a_held_mind_types_nothing_and_reads_nothing(autojump_clock: MockClock, stage: Stage) -> None:
    stage.begin_turn()
    async with stage.present() as presence:
        await trio.sleep(1)
        hold(stage.home, "ada")
        presence.look()
        await trio.sleep(1)
        assert not stage.homeserver.shows_typing()
        stage.end_turn("replied")
        await trio.sleep(100)
    assert stage.homeserver.receipts == []


async def test_typing_that_cannot_be_shown_is_no_reason_to_stop(autojump_clock: MockClock, stage: Stage) -> None:
    stage.begin_turn()
    stage.homeserver.faults = [MatrixUnreachable("away")]
    async with stage.present():
        await trio.sleep(1)
        assert not stage.homeserver.shows_typing()
        await trio.sleep(30)
        assert stage.homeserver.shows_typing()


async def test_a_batch_that_was_closed_is_read_and_an_open_one_is_not(autojump_clock: MockClock, stage: Stage) -> None:
    seq = stage.begin_turn()
    with stage.mind.read() as tx:
        event_id = tx.execute("SELECT event_id FROM heard WHERE seq = ?", (seq,)).fetchone()[0]
    async with stage.present() as presence:
        await trio.sleep(100)
        assert stage.homeserver.receipts == []
        stage.end_turn("replied")
        presence.look()
        await trio.sleep(100)
    assert stage.homeserver.receipts == [(ROOM, event_id, None)]


@pytest.mark.parametrize(("fault", "receipts"), [(MatrixUnreachable("away"), 1), (MatrixRefused("gone", "M_NOT_FOUND"), 0)])
async def test_a_receipt_waits_for_a_homeserver_that_is_away_and_not_for_an_event_that_is_gone(
    autojump_clock: MockClock, stage: Stage, fault: MatrixError, receipts: int
) -> None:
    stage.begin_turn()
    stage.end_turn("replied")
    stage.homeserver.faults = [fault]
    async with stage.present():
        await trio.sleep(10)
        assert stage.homeserver.receipts == []
        await trio.sleep(100)
    assert len(stage.homeserver.receipts) == receipts


async def test_a_token_that_is_worth_nothing_ends_presence(autojump_clock: MockClock, stage: Stage) -> None:
    stage.begin_turn()
    stage.homeserver.faults = [MatrixUnauthorised("401")]
    with pytest.raises(ExceptionGroup) as caught:
        async with stage.present():
            await trio.sleep(10)
    assert caught.group_contains(MatrixUnauthorised)
