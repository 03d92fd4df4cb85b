"""The heartbeat over work in a real mind: what it claims, buries, drops, pokes and tells."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mind_body.heartbeat.breaker import FLUSHES_MAX
from mind_body.heartbeat.look import Heartbeat
from mind_body.host.liveness import take_hold
from mind_body.host.poke import Pokes, open_poke_socket
from mind_body.mind.asking_records import Answer, Question
from mind_body.mind.campaigns import close_campaign, open_campaign, read_campaign
from mind_body.mind.follow_ups import admit_follow_up, read_follow_up
from mind_body.mind.handoffs import read_handoff
from mind_body.mind.outbox import admit_said, mark_sent
from mind_body.mind.questions import answer_question, read_questions
from mind_body.mind.reactions import admit_reaction
from mind_body.mind.records import Pause, Run, RunKind
from mind_body.mind.runs import adopt_run, end_run, live_run, recent_runs, set_pause
from mind_body.mind.self_runs import end_self_run, write_progress
from mind_body.mind.steers import admit_steer, mark_given, read_queued_steers
from mind_body.mind.store import open_mind
from mind_body.mind.work_records import FATES, FollowUp, Progress, Reaction, SelfRunEnd
from mind_body.settings import HostConfig
from tests.builders import NOW, OPERATOR, hold, insert, insert_room, make_campaign, make_home, make_new_said, release
from tests.fakes import Notes
from tests.unit.test_work import BOB, CONVERSATION, ROOM, make_work

HOST = HostConfig(start_grace_s=2.0, restart_min_s=0.5, restart_max_s=8.0)
TOML = f'[people]\noperators = ["{OPERATOR}"]\nmay_start = ["@bob:example.org"]\n[self]\nenabled = true\n'
DM = "!dm:example.org"
DAY = 24 * 3_600_000


class Yard:
    """Ada with a Self that nobody runs, and a heartbeat that looks when told to."""

    def __init__(self, root: Path) -> None:
        self.home = make_home(root, "ada", toml=TOML)
        self.notes = Notes()
        self.heartbeat = Heartbeat(self.home, HOST, self.notes)
        self.mind = open_mind(self.home.mind_db("ada"))
        self.pokes = Pokes(open_poke_socket(self.home.self_socket("ada")))
        self.mouth = Pokes(open_poke_socket(self.home.mouth_socket))
        with self.mind.write() as tx:
            insert_room(tx, ROOM, number=1)

    async def look(self, now: int = NOW) -> int | None:
        return await self.heartbeat.look_round(now, thorough=False)

    def ask(self, **columns: Any) -> FollowUp:
        confirm = columns.pop("confirm_said", None)
        with self.mind.write() as tx:
            return admit_follow_up(tx, make_work(**columns), NOW, confirm_said=confirm)

    def work(self, one: FollowUp) -> FollowUp:
        with self.mind.read() as tx:
            found = read_follow_up(tx, one.id)
        assert found is not None
        return found

    def live(self) -> Run | None:
        with self.mind.read() as tx:
            return live_run(tx, RunKind.SELF_RUN)

    def run(self) -> Run:
        found = self.live()
        assert found is not None
        return found

    def outcomes(self) -> list[str | None]:
        with self.mind.read() as tx:
            return [run.outcome for run in recent_runs(tx, RunKind.SELF_RUN, 50)]

    def adopt(self, holder: str = "gone") -> Run:
        run = self.run()
        with self.mind.write() as tx:
            assert adopt_run(tx, run.id, holder, NOW)
        return run

    def begin(self) -> None:
        """The thread's root was sent."""
        said_id = self.run().thread_said
        assert said_id is not None
        with self.mind.write() as tx:
            admit_said(tx, [make_new_said(said_id, ROOM)], None, NOW)
            mark_sent(tx, said_id, "$root")

    def end(self, outcome: str, now: int = NOW) -> None:
        run = self.adopt()
        with self.mind.write() as tx:
            assert end_self_run(tx, run, "gone", SelfRunEnd(outcome, "a test", "text", FATES[outcome]), now)

    def said(self, room_id: str = ROOM) -> list[tuple[str, str | None]]:
        with self.mind.read() as tx:
            rows = tx.execute(
                "SELECT content, thread FROM said WHERE kind = 'notice' AND room_id = ? ORDER BY place", (room_id,)
            ).fetchall()
        return [(json.loads(row["content"])["body"], row["thread"]) for row in rows]

    def operators_room(self, membership: str = "join") -> None:
        with self.mind.write() as tx:
            insert_room(tx, DM, conversation=f"direct:{DM}", direct=1)
            insert(tx, "member", room_id=DM, user_id=OPERATOR, membership=membership)

    def questions(self) -> list[Question]:
        with self.mind.read() as tx:
            return read_questions(tx)

    def answer(self, answer: Answer) -> None:
        with self.mind.write() as tx:
            assert answer_question(tx, self.questions_in(tx)[0].id, answer, OPERATOR, NOW)

    def questions_in(self, tx: Any) -> list[Question]:
        return [one for one in read_questions(tx) if one.answer is None]

    async def come_to_nothing(self, times: int, now: int = NOW, outcome: str = "died") -> int:
        for _ in range(times):
            await self.look(now)
            self.end(outcome, now)
            now += 60_000
        return now

    def close(self) -> None:
        self.heartbeat.close()
        self.mind.close()
        self.pokes.close()
        self.mouth.close()


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    made = Yard(tmp_path)
    yield made
    made.close()


async def test_work_is_claimed_its_run_opened_and_the_self_poked_until_somebody_holds_it(yard: Yard) -> None:
    work = yard.ask()
    await yard.look()
    run = yard.run()
    assert (run.conversations, run.follow_up_id, yard.work(work).run_id) == ((CONVERSATION,), work.id, run.id)
    assert yard.pokes.drain()
    assert yard.notes.take() == ["run.opened", "control.seen"]
    await yard.look(NOW + 400)
    assert not yard.pokes.drain()
    await yard.look(NOW + 500)
    assert yard.pokes.drain(), "a poke may be lost"
    with yard.mind.read() as tx:
        assert live_run(tx, RunKind.PERSONA_TURN) is None


async def test_a_run_of_the_self_keeps_no_mail_waiting(yard: Yard) -> None:
    yard.ask()
    await yard.look()
    with yard.mind.write() as tx:
        tx.execute(
            "INSERT INTO heard (event_id, room_id, sender, sender_name, kind, body, sent_at, heard_at, standing, reason) "
            "VALUES ('$m', ?, ?, 'Bob', 'm.text', 'hi', ?, ?, 'mail', '')",
            (ROOM, BOB, NOW, NOW),
        )
    await yard.look(NOW + 60_000)
    with yard.mind.read() as tx:
        assert live_run(tx, RunKind.PERSONA_TURN) is not None


async def test_held_and_without_a_self_work_waits_and_it_is_said_once(yard: Yard) -> None:
    hold(yard.home, "ada")
    yard.ask()
    for step in range(3):
        await yard.look(NOW + step)
    assert yard.live() is None
    assert yard.notes.kinds().count("work.skipped") == 1
    release(yard.home, "ada")
    await yard.look(NOW + 10)
    assert yard.live() is not None


async def test_s4_a_run_whose_holder_died_is_buried_its_work_taken_again_and_its_thread_told_once(yard: Yard) -> None:
    work = yard.ask()
    await yard.look()
    run = yard.adopt()
    yard.begin()
    with yard.mind.write() as tx:
        write_progress(tx, Progress(run.id, "Bash: dig", 1, 2, 3, 4, 5, NOW))
        admit_steer(tx, run.id, "$steer", "steer", BOB, "deeper", NOW)
    await yard.look(NOW + 1000)
    assert yard.outcomes() == ["dead"]
    assert yard.work(work).state == "open"
    with yard.mind.read() as tx:
        handoff = read_handoff(tx, run.id)
    assert handoff is not None
    assert (handoff.origin, "Bash: dig" in handoff.text) == ("record", True)
    assert [thread for _, thread in yard.said()] == ["$root"]
    assert "interrupted" in yard.said()[0][0]
    assert yard.mouth.drain()
    due = await yard.look(NOW + 1001)
    assert due == NOW + 1500, "after its back-off"
    await yard.look(NOW + 1500)
    again = yard.run()
    assert (again.thread_said, again.cause) == (run.thread_said, "again")
    with yard.mind.read() as tx:
        assert [one.text for one in read_queued_steers(tx, again.id)] == ["deeper"]
    assert len(yard.said()) == 1


@pytest.mark.parametrize("given", [True, False])
async def test_work_that_a_person_stopped_is_over_though_its_run_died_before_it_could_end(yard: Yard, given: bool) -> None:
    work = yard.ask()
    await yard.look()
    run = yard.adopt()
    yard.begin()
    with yard.mind.write() as tx:
        stop = admit_steer(tx, run.id, "$stop", "stop", BOB, "stop", NOW)
        assert stop
        assert not given or mark_given(tx, stop)
    await yard.look(NOW + 1000)
    await yard.look(NOW + DAY)
    found = yard.work(work)
    assert (yard.outcomes(), found.state, found.why) == (["dead"], "dropped", f"{BOB} stopped it")
    assert [("was stopped" in body, thread) for body, thread in yard.said()] == [(True, "$root")]


async def test_what_a_dead_run_was_told_is_known_to_the_next_one(yard: Yard) -> None:
    yard.ask()
    await yard.look()
    run = yard.adopt()
    with yard.mind.write() as tx:
        steer = admit_steer(tx, run.id, "$steer", "steer", BOB, "plant roses, no tulips", NOW)
        assert steer
        assert mark_given(tx, steer)
    await yard.look(NOW + 1000)
    with yard.mind.read() as tx:
        handoff = read_handoff(tx, run.id)
    assert handoff is not None
    assert f"{BOB}: plant roses, no tulips" in handoff.text


async def test_while_its_holder_lives_a_run_is_left_alone(yard: Yard) -> None:
    yard.ask()
    await yard.look()
    held = take_hold(yard.home.lock_file("self", "ada"), "alive")
    assert held is not None
    run = yard.adopt("alive")
    await yard.look(NOW + DAY)
    assert yard.live() == yard.run()
    assert yard.run().id == run.id
    held.release()
    await yard.look(NOW + DAY)
    assert yard.outcomes() == ["dead"]


async def test_nobody_is_told_of_a_run_that_nobody_saw_begin(yard: Yard) -> None:
    yard.ask()
    await yard.look()
    await yard.look(NOW + 2000)
    await yard.look(NOW + 10_000)
    yard.adopt()
    await yard.look(NOW + 10_001)
    assert yard.outcomes() == ["dead", "dead"]
    assert yard.said() == []


async def test_m4_after_three_runs_that_came_to_nothing_its_operators_are_asked_once_and_it_stays_open(yard: Yard) -> None:
    yard.operators_room()
    work, now = yard.ask(), NOW
    now = await yard.come_to_nothing(3)
    yard.mouth.drain()
    for _ in range(10):
        yard.heartbeat.close()
        yard.heartbeat = Heartbeat(yard.home, HOST, yard.notes)  # started anew
        await yard.look(now)
        now += DAY
    assert (yard.live(), yard.work(work).state) == (None, "open")
    (question,) = yard.questions()
    assert (question.kind, question.about, question.room_id) == ("breaker", f"work:{work.id}", DM)
    ((body, _),) = yard.said(DM)
    assert question.text in body
    assert "reopen" in body
    assert yard.said() == [], "the people of the room have nothing to decide"
    assert yard.mouth.drain()
    assert yard.notes.kinds().count("question.asked") == 1


async def test_what_is_reopened_has_three_tries_again_and_then_is_asked_about_anew(yard: Yard) -> None:
    yard.operators_room()
    yard.ask()
    now = await yard.come_to_nothing(3)
    await yard.look(now)
    yard.answer("reopen")
    now = await yard.come_to_nothing(3, now)
    await yard.look(now)
    await yard.look(now + DAY)
    assert yard.outcomes() == ["died"] * 6
    assert [one.answer for one in yard.questions()] == [None, "reopen"]
    assert len(yard.said(DM)) == 2


async def test_what_is_retired_is_dropped_and_its_thread_told_once(yard: Yard) -> None:
    yard.operators_room()
    work = yard.ask()
    await yard.look()
    yard.begin()
    yard.end("died")
    now = await yard.come_to_nothing(2, NOW + 60_000)
    await yard.look(now)
    yard.answer("retire")
    await yard.look(now)
    await yard.look(now + DAY)
    assert (yard.live(), yard.work(work).state) == (None, "dropped")
    assert [("3 times" in body, thread) for body, thread in yard.said()] == [(True, "$root")]
    assert yard.notes.kinds().count("work.dropped") == 1


async def test_a_question_waits_on_record_until_there_is_a_room_to_ask_it_in(yard: Yard) -> None:
    yard.ask()
    now = await yard.come_to_nothing(3)
    yard.mouth.drain()
    await yard.look(now)
    assert [one.room_id for one in yard.questions()] == [None]
    assert yard.mouth.drain(), "who makes the room"
    yard.operators_room(membership="invite")
    await yard.look(now + 1)
    await yard.look(now + 2)
    assert [one.room_id for one in yard.questions()] == [DM]
    assert len(yard.said(DM)) == 1


@pytest.mark.parametrize("room", [{"membership": "left"}, {"encrypted": 1}, {"conversation": "room:!dm"}])
async def test_nothing_is_asked_where_no_operator_reads_it(yard: Yard, room: dict[str, Any]) -> None:
    with yard.mind.write() as tx:
        insert_room(tx, DM, **({"conversation": f"direct:{DM}"} | room))
        insert(tx, "member", room_id=DM, user_id=OPERATOR, membership="join")
        insert_room(tx, "!bob:example.org", conversation="direct:!bob:example.org", invited_by=BOB)
    yard.ask()
    await yard.look(await yard.come_to_nothing(3))
    assert [one.room_id for one in yard.questions()] == [None]
    assert yard.said(DM) == yard.said("!bob:example.org") == []


async def test_work_of_a_campaign_is_asked_about_together_and_retiring_closes_it(yard: Yard) -> None:
    yard.operators_room()
    with yard.mind.write() as tx:
        open_campaign(tx, make_campaign("spring"))
    works = [yard.ask(campaign="spring") for _ in range(2)]
    other = yard.ask()
    await yard.look()
    yard.end("died")
    await yard.look()
    yard.end("died")
    await yard.look(NOW + 100)
    yard.end("result", NOW + 100)
    assert yard.work(other).state == "done"
    await yard.look(NOW + 60_000)
    yard.end("died", NOW + 60_000)
    await yard.look(NOW + DAY)
    (question,) = yard.questions()
    assert question.about == "campaign:spring"
    yard.answer("retire")
    await yard.look(NOW + DAY)
    with yard.mind.read() as tx:
        campaign = read_campaign(tx, "spring")
    assert campaign is not None
    assert campaign.closed_at is not None
    assert yard.live() is None
    assert [yard.work(one).state for one in works] == ["open", "open"]
    assert "the campaign spring is closed" in yard.notes.lines[-1][1]


async def test_work_of_a_closed_campaign_is_skipped_with_that_reason_told_once(yard: Yard) -> None:
    with yard.mind.write() as tx:
        open_campaign(tx, make_campaign("spring"))
        close_campaign(tx, "spring", NOW)
    yard.ask(campaign="spring")
    for step in range(3):
        await yard.look(NOW + step)
    assert yard.live() is None
    told = [sentence for kind, sentence, _ in yard.notes.lines if kind == "work.skipped"]
    assert told == ["1 piece of work waits: the campaign spring is closed."]


async def test_a_flushed_run_is_taken_up_again_at_once_and_flushes_without_an_end_are_asked_about(yard: Yard) -> None:
    yard.operators_room()
    yard.ask()
    for _ in range(FLUSHES_MAX):
        await yard.look()
        yard.end("flushed")
    await yard.look()
    assert yard.outcomes() == ["flushed"] * FLUSHES_MAX
    assert yard.live() is None
    (question,) = yard.questions()
    assert f"last {FLUSHES_MAX} runs only handed off" in question.text
    yard.answer("reopen")
    await yard.look()
    assert yard.live() is not None


async def test_a_cap_of_spending_holds_work_off_asks_once_and_reopening_goes_on(yard: Yard) -> None:
    yard.operators_room()
    with yard.mind.write() as tx:
        insert(
            tx,
            "run",
            id="dear",
            kind="self_run",
            conversations="[]",
            cause="request",
            reason="",
            opened_at=NOW,
            ended_at=NOW,
            outcome="result",
            cost_micro_usd=10_000_000,
        )
        set_pause(tx, Pause("self-spend", NOW + 3_600_000, "the cap of the day", since=NOW))
    yard.ask()
    for step in range(3):
        await yard.look(NOW + step)
    assert yard.live() is None
    (question,) = yard.questions()
    assert (question.kind, question.about.partition(":")[0]) == ("purse", "day")
    assert len(yard.said(DM)) == 1
    yard.answer("reopen")
    await yard.look(NOW + 9)
    assert yard.live() is not None


async def test_runs_never_overlap_and_work_is_done_in_its_order(yard: Yard) -> None:
    works = [yard.ask() for _ in range(3)]
    done = []
    for _ in works:
        await yard.look()
        await yard.look()
        done.append(yard.run().follow_up_id)
        yard.end("result")
    assert done == [work.id for work in works]


async def test_the_askers_reaction_opens_a_proposal_and_the_run_with_it(yard: Yard) -> None:
    with yard.mind.write() as tx:
        admit_said(tx, [make_new_said("ask", ROOM)], None, NOW)
        mark_sent(tx, "ask", "$ask")
    work = yard.ask(confirm_said="ask")
    assert await yard.look() == NOW + DAY
    assert yard.live() is None
    with yard.mind.write() as tx:
        admit_reaction(tx, Reaction("$1", ROOM, "$ask", "@eve:example.org", "✅", NOW))
    await yard.look()
    assert yard.live() is None
    with yard.mind.write() as tx:
        admit_reaction(tx, Reaction("$2", ROOM, "$ask", BOB, "✅", NOW))
    await yard.look()
    assert yard.run().follow_up_id == work.id


async def test_an_unanswered_proposal_is_dropped_after_a_day_and_a_declined_one_at_once(yard: Yard) -> None:
    with yard.mind.write() as tx:
        for number in (1, 2):
            admit_said(tx, [make_new_said(f"ask{number}", ROOM)], None, NOW)
            mark_sent(tx, f"ask{number}", f"$ask{number}")
        admit_reaction(tx, Reaction("$no", ROOM, "$ask2", BOB, "❌", NOW))
    first, second = yard.ask(confirm_said="ask1"), yard.ask(confirm_said="ask2")
    await yard.look()
    assert (yard.work(first).state, yard.work(second).state) == ("proposed", "dropped")
    await yard.look(NOW + DAY)
    assert (yard.work(first).state, yard.work(first).why) == ("dropped", "nobody confirmed it within a day")
    assert yard.live() is None


async def test_a_pause_of_the_self_is_no_pause_of_the_persona_and_the_operator_ends_what_they_mended(yard: Yard) -> None:
    await yard.look()
    with yard.mind.write() as tx:
        set_pause(tx, Pause("self-authentication", NOW + DAY, "HTTP 401"))
    yard.ask()
    assert await yard.look() == NOW + DAY
    release(yard.home, "ada", heat=0.5)
    await yard.look(NOW + 5)
    assert yard.live() is not None


async def test_she_is_woken_once_where_her_work_is_over(yard: Yard) -> None:
    yard.ask()
    await yard.look()
    yard.end("result")
    await yard.look()
    with yard.mind.write() as tx:
        run = live_run(tx, RunKind.PERSONA_TURN)
        assert run is not None
        assert (run.cause, run.conversations) == ("self_run", (CONVERSATION,))
        adopt_run(tx, run.id, "her", NOW)
        tx.execute("UPDATE run SET told_turn = 'a turn' WHERE kind = 'self_run'")
        tx.execute("UPDATE run SET turns = 1 WHERE id = ?", (run.id,))
        end_run(tx, run.id, "her", "done", "", NOW)
    await yard.look(NOW + DAY)
    with yard.mind.read() as tx:
        assert live_run(tx, RunKind.PERSONA_TURN) is None


CLAIMS = """
import sys, trio
from pathlib import Path
from mind_body import crash
from mind_body.heartbeat.look import Heartbeat
from mind_body.home import directory_home
from mind_body.settings import HostConfig
from tests.fakes import Notes
root = Path(sys.argv[1])
crash.arm(sys.argv[2])
trio.run(lambda: Heartbeat(directory_home(root, root / "r"), HostConfig(), Notes()).look_round(int(sys.argv[3]), thorough=False))
"""


@pytest.mark.parametrize(("point", "claimed"), [("heartbeat.before-claim", False), ("heartbeat.claimed", True)])
async def test_a_heartbeat_that_dies_around_the_claim_leaves_all_of_it_or_nothing(yard: Yard, point: str, claimed: bool) -> None:
    work = yard.ask()
    root = str(yard.home.root)
    died = subprocess.run(
        [sys.executable, "-c", CLAIMS, root, point, str(NOW)], cwd=Path(__file__).parents[2], env=os.environ, check=False
    )
    assert died.returncode == -signal.SIGKILL
    assert (yard.work(work).state, yard.live() is not None) == (("claimed", True) if claimed else ("open", False))
    await yard.look()
    assert yard.run().follow_up_id == work.id
    assert yard.pokes.drain()


async def test_a_heartbeat_that_dies_after_a_question_is_committed_has_asked_it_and_asks_it_once(yard: Yard) -> None:
    yard.operators_room()
    yard.ask()
    now = await yard.come_to_nothing(3)
    root = str(yard.home.root)
    died = subprocess.run(
        [sys.executable, "-c", CLAIMS, root, "heartbeat.asked", str(now)],
        cwd=Path(__file__).parents[2],
        env=os.environ,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL
    await yard.look(now)
    assert [one.room_id for one in yard.questions()] == [DM]
    assert len(yard.said(DM)) == 1
