"""The voice over a fake homeserver: once, in order, as long as it takes; an hour passes at once."""

import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from mind_body.errors import MatrixError, MatrixLimited, MatrixRefused, MatrixUnauthorised, MatrixUnreachable, StorageError
from mind_body.home import Home
from mind_body.log import Journal
from mind_body.matrix.events import SAID_KEY
from mind_body.matrix.parse import parse_events
from mind_body.matrix.speech import render_reaction, render_say
from mind_body.matrix.wire import MessagesPage
from mind_body.mind import outbox
from mind_body.mind.records import Identity, NewSaid, Said, SaidKind, SaidState
from mind_body.mind.store import Mind
from mind_body.mouth.voice import Voice
from tests.builders import NOW, hold, make_home, make_mind, make_new_said, release

HER = "@ada:example.org"
LOOK_S = 30.0


@dataclass
class Homeserver:
    """Takes events as a homeserver does: the same transaction id is the same event, until it is forgotten."""

    faults: list[MatrixError | None] = field(default_factory=list)
    """What the next requests come to; None is no fault, and so is the end of the list."""
    lose_answers: int = 0
    """So many events are taken and the answer is lost."""
    rate: Callable[[str], int] | None = None
    """Asked before an event is taken: how many ms too early it is."""
    slow_rooms: Mapping[str, float] = field(default_factory=dict)
    sent: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    """(room, transaction id, content), one per event."""
    asked: list[tuple[str, str, float]] = field(default_factory=list)
    """(room, transaction id, when), one per request."""
    transactions: dict[str, str] = field(default_factory=dict)
    pages: int = 0

    async def send(self, room_id: str, event_type: str, txn_id: str, content: Mapping[str, Any]) -> str:
        self.asked.append((room_id, txn_id, trio.current_time()))
        await trio.sleep(self.slow_rooms.get(room_id, 0))
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        if self.rate is not None and (early := self.rate(room_id)) > 0:
            raise MatrixLimited("429", early)
        if txn_id not in self.transactions:
            self.sent.append((room_id, txn_id, dict(content)))
            self.transactions[txn_id] = f"$event-{len(self.sent)}"
        if self.lose_answers > 0:
            self.lose_answers -= 1
            raise MatrixUnreachable("the answer was lost")
        return self.transactions[txn_id]

    async def messages_before(self, room_id: str, start: str | None) -> MessagesPage:
        """Two events a page, newest first."""
        self.pages += 1
        events = [
            {"event_id": f"$event-{n}", "sender": HER, "type": "m.room.message", "origin_server_ts": NOW, "content": content}
            for n, (room, _, content) in enumerate(self.sent, start=1)
            if room == room_id
        ][::-1]
        at = int(start or 0)
        return MessagesPage(parse_events(events[at : at + 2]), (), str(at + 2) if at + 2 < len(events) else None)

    def bodies(self, room_id: str = "!a:example.org") -> list[str]:
        return [content["body"] for room, _, content in self.sent if room == room_id]


@dataclass
class Stage:
    home: Home
    mind: Mind
    homeserver: Homeserver
    device_id: str = "DEVICE"
    started: float = 0.0

    def now(self) -> int:
        return NOW + int(trio.current_time() * 1000)

    def queue(self, *rows: NewSaid) -> None:
        with self.mind.write() as tx:
            outbox.admit_said(tx, rows, None, self.now())

    def row(self, said_id: str) -> Said:
        with self.mind.read() as tx:
            found = outbox.read_said(tx, said_id)
        assert found is not None
        return found

    def unsent(self) -> int:
        with self.mind.read() as tx:
            return outbox.count_unsent(tx)

    def voice(self) -> Voice:
        identity = Identity(HER, self.device_id)
        journal = Journal("mouth", "ada")
        shared = {"identity": identity, "journal": journal, "account": self.homeserver, "look_s": LOOK_S, "now": self.now}
        return Voice(self.home, "ada", self.mind, **shared)  # type: ignore[arg-type]

    @asynccontextmanager
    async def speaking(self) -> AsyncIterator[Voice]:
        """A mouth that is there for the length of the block, and is then killed."""
        voice = self.voice()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(voice.run)
            yield voice
            nursery.cancel_scope.cancel()

    async def until(self, condition: Callable[[], bool], step_s: float = 0.05) -> None:
        with trio.fail_after(100_000):
            while not condition():
                await trio.sleep(step_s)

    async def say_all(self) -> float:
        """Speak until nothing is left; how long it took."""
        started = trio.current_time()
        async with self.speaking():
            await self.until(lambda: self.unsent() == 0, 0.5)
        return trio.current_time() - started


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    home = make_home(tmp_path, "ada")
    mind = make_mind(tmp_path / "m")
    yield Stage(home, mind, Homeserver())
    mind.close()


async def test_what_is_queued_goes_out_in_order_and_its_receipt_is_kept(autojump_clock: MockClock, stage: Stage) -> None:
    stage.queue(*[make_new_said(f"s{n}", body=f"part {n}") for n in range(5)])
    assert await stage.say_all() < 1
    assert stage.homeserver.bodies() == [f"part {n}" for n in range(5)]
    assert stage.row("s0").state is SaidState.SENT
    assert stage.row("s0").event_id == "$event-1"
    assert stage.row("s0").device_id == "DEVICE"


async def test_what_is_queued_while_she_listens_goes_out_at_a_look_and_by_itself_soon_after(
    autojump_clock: MockClock, stage: Stage
) -> None:
    async with stage.speaking() as voice:
        await trio.sleep(1)
        stage.queue(make_new_said("s1"))
        voice.look()
        await trio.sleep(0.1)
        assert len(stage.homeserver.sent) == 1
        stage.queue(make_new_said("s2"))
        await trio.sleep(LOOK_S + 1)
        assert len(stage.homeserver.sent) == 2


async def test_d5_an_answer_that_was_lost_is_asked_for_again_and_said_once(autojump_clock: MockClock, stage: Stage) -> None:
    stage.homeserver.lose_answers = 3
    stage.queue(make_new_said("s1"), make_new_said("s2"))
    await stage.say_all()
    assert [txn for _, txn, _ in stage.homeserver.asked] == ["s1"] * 4 + ["s2"]
    assert len(stage.homeserver.sent) == 2


async def test_d5_a_mouth_that_died_between_the_put_and_the_receipt_makes_the_same_put_again(
    autojump_clock: MockClock, stage: Stage
) -> None:
    stage.homeserver.slow_rooms = {"!a:example.org": 5}
    stage.queue(make_new_said("s1"))
    async with stage.speaking():
        await stage.until(lambda: bool(stage.homeserver.asked))
    assert stage.row("s1").state is SaidState.ATTEMPTED
    stage.homeserver.transactions["s1"] = "$arrived"
    await stage.say_all()
    assert stage.row("s1").event_id == "$arrived"
    assert stage.homeserver.pages == 0


@pytest.mark.parametrize("change", ["twenty hours passed", "another device"])
async def test_an_old_attempt_is_looked_for_in_the_rooms_history_before_it_is_made_again(
    autojump_clock: MockClock, stage: Stage, change: str
) -> None:
    stage.homeserver.lose_answers = 1
    stage.queue(*render_say("s1", "!a:example.org", "once", thread=None, reply_to=None))
    async with stage.speaking():
        await stage.until(lambda: bool(stage.homeserver.sent))
    # Others have spoken since, and the homeserver has forgotten its transaction ids.
    stage.homeserver.sent += [("!a:example.org", f"other-{n}", {"msgtype": "m.text", "body": "later"}) for n in range(5)]
    stage.homeserver.transactions.clear()
    if change == "another device":
        stage.device_id = "OTHER"
    else:
        await trio.sleep(21 * 3600)
    await stage.say_all()
    assert stage.homeserver.bodies().count("once") == 1
    assert stage.row("s1").event_id == "$event-1"
    assert stage.homeserver.pages == 3


async def test_an_old_attempt_that_never_arrived_is_made_anew(autojump_clock: MockClock, stage: Stage) -> None:
    stage.homeserver.faults = [MatrixUnreachable("away")]
    stage.queue(make_new_said("s1"))
    async with stage.speaking():
        await stage.until(lambda: bool(stage.homeserver.asked))
    await trio.sleep(21 * 3600)
    await stage.say_all()
    assert len(stage.homeserver.sent) == 1
    attempted_at = stage.row("s1").attempted_at
    assert attempted_at is not None
    assert attempted_at > NOW + 21 * 3_600_000


async def test_x1_a_429_waits_as_told_and_is_remembered_across_a_restart(autojump_clock: MockClock, stage: Stage) -> None:
    stage.homeserver.faults = [MatrixLimited("429", 40_000)]
    stage.queue(make_new_said("s1"))
    async with stage.speaking():
        await stage.until(lambda: bool(stage.homeserver.asked))
        await trio.sleep(1)
    took = await stage.say_all()
    assert len(stage.homeserver.asked) == 2
    assert 38 < took < 41


def token_bucket(per_second: float, burst: int) -> Callable[[str], int]:
    """Synapse's `rc_message`: of the account, whatever the room."""
    state = {"level": 0.0, "at": 0.0}

    def early(_room: str) -> int:
        now = trio.current_time()
        state["level"] = max(0.0, state["level"] - (now - state["at"]) * per_second)
        state["at"] = now
        if state["level"] + 1 > burst:
            return int((state["level"] + 1 - burst) / per_second * 1000)
        state["level"] += 1
        return 0

    return early


async def test_x1_a_reply_in_eight_parts_keeps_its_order_and_holds_up_no_other_room(
    autojump_clock: MockClock, stage: Stage
) -> None:
    stage.homeserver.rate = token_bucket(0.2, 3)
    stage.queue(*[make_new_said(f"a{n}", body=f"part {n}") for n in range(8)])
    async with stage.speaking() as voice:
        await trio.sleep(6)
        stage.queue(
            make_new_said("b1", "!b:example.org", body="other"), make_new_said("n1", "!b:example.org", SaidKind.NOTICE, body="n")
        )
        voice.look()
        asked_at = trio.current_time()
        await stage.until(lambda: bool(stage.homeserver.bodies("!b:example.org")))
        # Two turns of the bucket at most: the long reply does not take every token.
        assert trio.current_time() - asked_at < 11
        await stage.until(lambda: stage.unsent() == 0)
    assert stage.homeserver.bodies() == [f"part {n}" for n in range(8)]
    # The notice went last: replies before notices, in whatever room.
    assert stage.homeserver.sent[-1][1] == "n1"
    # Nobody hammered: told waits, so few requests more than events.
    assert len(stage.homeserver.asked) < 30


async def test_x1_a_room_that_is_slow_to_answer_holds_up_no_other(autojump_clock: MockClock, stage: Stage) -> None:
    stage.homeserver.slow_rooms = {"!a:example.org": 50}
    stage.queue(make_new_said("a1"), make_new_said("b1", "!b:example.org"))
    async with stage.speaking():
        await trio.sleep(1)
        assert stage.homeserver.bodies("!b:example.org") == ["hi"]
        assert stage.homeserver.bodies() == []


async def test_a_homeserver_that_is_away_is_asked_less_and_less_often_but_at_every_look(
    autojump_clock: MockClock, stage: Stage
) -> None:
    stage.homeserver.faults = [MatrixUnreachable("away")] * 20
    stage.queue(make_new_said("s1"))
    await stage.say_all()
    times = [when for _, _, when in stage.homeserver.asked]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert gaps[0] < 1
    assert max(gaps) <= LOOK_S + 0.1
    assert gaps[-1] >= LOOK_S - 1


async def test_what_the_homeserver_refuses_is_given_up_with_its_reason_and_the_next_goes_out(
    autojump_clock: MockClock, stage: Stage
) -> None:
    stage.homeserver.faults = [MatrixRefused("403 you are not in the room", "M_FORBIDDEN")]
    stage.queue(make_new_said("s1"), make_new_said("s2"))
    await stage.say_all()
    assert (stage.row("s1").state, stage.row("s1").reason) == (SaidState.REFUSED, "403 you are not in the room")
    assert stage.row("s2").state is SaidState.SENT


async def test_a_refusal_of_the_account_loses_nothing(autojump_clock: MockClock, stage: Stage) -> None:
    stage.homeserver.faults = [MatrixRefused("403 the server is full", "M_RESOURCE_LIMIT_EXCEEDED")] * 4
    stage.queue(make_new_said("s1"))
    await stage.say_all()
    assert stage.row("s1").state is SaidState.SENT


async def test_while_held_nothing_is_sent_and_nothing_is_lost(autojump_clock: MockClock, stage: Stage) -> None:
    hold(stage.home, "ada")
    stage.queue(make_new_said("s1"), make_new_said("s2"))
    async with stage.speaking() as voice:
        await trio.sleep(100)
        assert stage.homeserver.asked == []
        assert not voice.speaking
        release(stage.home, "ada")
        voice.look()
        await stage.until(lambda: stage.unsent() == 0)
    assert [txn for _, txn, _ in stage.homeserver.sent] == ["s1", "s2"]


async def test_a_brake_between_two_parts_holds_the_second(autojump_clock: MockClock, stage: Stage) -> None:
    stage.homeserver.slow_rooms = {"!a:example.org": 5}
    stage.queue(make_new_said("s1"), make_new_said("s2"))
    async with stage.speaking() as voice:
        await trio.sleep(1)
        hold(stage.home, "ada")
        assert voice.speaking
        await trio.sleep(100)
        assert [txn for _, txn, _ in stage.homeserver.sent] == ["s1"]
        assert not voice.speaking


async def test_a_token_that_is_worth_nothing_ends_the_voice_and_keeps_the_row(autojump_clock: MockClock, stage: Stage) -> None:
    stage.homeserver.faults = [MatrixUnauthorised("401")]
    stage.queue(make_new_said("s1"))
    with pytest.raises(MatrixUnauthorised):
        await stage.voice().run()
    assert stage.row("s1").state is SaidState.ATTEMPTED
    await stage.say_all()
    assert len(stage.homeserver.sent) == 1


async def test_a_full_disk_sends_nothing_that_could_not_be_recorded(
    autojump_clock: MockClock, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageError("disk full")

    stage.queue(make_new_said("s1"))
    monkeypatch.setattr(outbox, "mark_attempted", full)
    with pytest.raises(StorageError):
        await stage.voice().run()
    assert stage.homeserver.asked == []


async def test_relations_are_resolved_when_it_is_sent(autojump_clock: MockClock, stage: Stage) -> None:
    (reply,) = render_say("s1", "!a:example.org", "yes", thread="$root", reply_to="$asked")
    late = NewSaid(
        "s2", SaidKind.REACTION, "!a:example.org", "m.reaction", {SAID_KEY: "s2", "m.relates_to": {"key": "👍"}}, after_said="s1"
    )
    stage.queue(reply, render_reaction("s3", "!a:example.org", "👍", "$liked"), late)
    await stage.say_all()
    sent = {txn: content["m.relates_to"] for _, txn, content in stage.homeserver.sent}
    assert sent["s1"]["event_id"] == "$root"
    assert sent["s1"]["m.in_reply_to"] == {"event_id": "$asked"}
    assert sent["s3"]["event_id"] == "$liked"
    assert sent["s2"]["event_id"] == stage.row("s1").event_id


async def test_a_reaction_to_what_was_refused_is_given_up(autojump_clock: MockClock, stage: Stage) -> None:
    stage.homeserver.faults = [MatrixRefused("403", "M_FORBIDDEN")]
    late = NewSaid("s2", SaidKind.REACTION, "!a:example.org", "m.reaction", {"m.relates_to": {"key": "👍"}}, after_said="s1")
    stage.queue(make_new_said("s1"), late)
    await stage.say_all()
    assert stage.row("s2").state is SaidState.REFUSED
    assert stage.homeserver.sent == []


def progress(number: int = 0) -> NewSaid:
    """The notice in the thread (0), or its nth edit."""
    body = f"at work: {number}"
    if number == 0:
        return make_new_said("p", kind=SaidKind.NOTICE, body=body, thread_said="root")
    new = {"msgtype": "m.notice", "body": body}
    content = {**new, "body": f"* {body}", "m.new_content": new, SAID_KEY: f"p.{number}"}
    return NewSaid(f"p.{number}", SaidKind.EDIT, "!a:example.org", "m.room.message", content, edits="p")


def root() -> NewSaid:
    return make_new_said("root", kind=SaidKind.NOTICE, body="I work on this")


async def test_the_messages_of_a_thread_are_queued_before_its_root_is_sent_and_edits_find_their_event(
    autojump_clock: MockClock, stage: Stage
) -> None:
    stage.queue(progress(1), root(), progress())
    await stage.say_all()
    (_, first, _), (_, second, in_thread), (_, third, edit) = stage.homeserver.sent
    assert (first, second, third) == ("root", "p", "p.1")
    assert in_thread["m.relates_to"]["event_id"] == "$event-1"
    assert edit["m.relates_to"] == {"rel_type": "m.replace", "event_id": "$event-2"}
    assert edit["m.new_content"] == {"msgtype": "m.notice", "body": "at work: 1"}


async def test_an_edit_of_what_was_refused_is_dropped_and_a_thread_without_a_root_goes_on_in_the_room(
    autojump_clock: MockClock, stage: Stage
) -> None:
    stage.homeserver.faults = [MatrixRefused("403", "M_FORBIDDEN")]
    stage.queue(root(), progress(), progress(1))
    await stage.say_all()
    assert stage.homeserver.bodies() == ["at work: 0", "* at work: 1"]
    assert "m.relates_to" not in stage.homeserver.sent[0][2]
    stage.homeserver.faults = [MatrixRefused("403", "M_FORBIDDEN")]
    stage.queue(make_new_said("q", kind=SaidKind.NOTICE), replace(progress(2), edits="q"))
    await stage.say_all()
    assert stage.row("p.2").state is SaidState.REFUSED
    assert len(stage.homeserver.sent) == 2


async def test_under_a_limit_words_go_first_and_edits_are_few_and_newest(autojump_clock: MockClock, stage: Stage) -> None:
    stage.homeserver.rate = token_bucket(0.2, 3)
    stage.queue(root(), progress())
    async with stage.speaking() as voice:
        for number in range(1, 61):
            stage.queue(progress(number))
            voice.look()
            await trio.sleep(2)
        asked_at = trio.current_time()
        stage.queue(make_new_said("s1", "!b:example.org", body="an answer"), make_new_said("s2", body="another"))
        voice.look()
        await stage.until(lambda: "another" in stage.homeserver.bodies() and bool(stage.homeserver.bodies("!b:example.org")))
        # At the worst every token was an edit's; both words have the next two, and no edit goes in between.
        assert trio.current_time() - asked_at < 11
        await stage.until(lambda: stage.unsent() == 0)
    edits = [content["m.new_content"]["body"] for _, txn, content in stage.homeserver.sent if txn.startswith("p.")]
    assert edits[-1] == "at work: 60"
    assert len(edits) < 30
    assert [int(body.split()[-1]) for body in edits] == sorted(int(body.split()[-1]) for body in edits)


async def test_an_old_attempt_at_an_edit_is_found_in_the_history(autojump_clock: MockClock, stage: Stage) -> None:
    stage.queue(root(), progress())
    await stage.say_all()
    stage.homeserver.lose_answers = 1
    stage.queue(progress(1))
    async with stage.speaking():
        await stage.until(lambda: len(stage.homeserver.sent) == 3)
    stage.homeserver.transactions.clear()
    stage.device_id = "OTHER"
    await stage.say_all()
    assert len(stage.homeserver.sent) == 3
    assert stage.row("p.1").event_id == "$event-3"
