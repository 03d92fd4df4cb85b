"""The heartbeat's rounds over real mind files: what it opens, closes, pokes, tells, and what it does not read."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio

from mind_body.clock import now_ms
from mind_body.control.files import read_control
from mind_body.control.govern import SPREAD_MS
from mind_body.heartbeat.look import Heartbeat
from mind_body.home import Home
from mind_body.host.liveness import take_hold
from mind_body.host.poke import Pokes, open_poke_socket, send_poke
from mind_body.mind.acks import is_acked
from mind_body.mind.records import Pause, Run, RunKind
from mind_body.mind.runs import adopt_run, end_run, live_run, recent_runs, set_pause
from mind_body.mind.store import Mind, open_mind
from mind_body.settings import HostConfig
from mind_body.sqlite_file import Weighing
from tests.builders import NOW, add_mind, hold, insert_heard, insert_room, make_home, open_descriptors, pass_hours, release
from tests.fakes import Notes

KIND = RunKind.PERSONA_TURN
HOST = HostConfig(start_grace_s=2.0, restart_min_s=0.5, restart_max_s=8.0)
LATER = NOW + 60_000


class Scene:
    """One Mind, `ada`, a heartbeat that looks when told to, and her persona's socket and lock."""

    def __init__(self, root: Path) -> None:
        self.home: Home = make_home(root, "ada")
        self.notes = Notes()
        self.heartbeat = Heartbeat(self.home, HOST, self.notes)
        self.mind: Mind = open_mind(self.home.mind_db("ada"))
        self.pokes = Pokes(open_poke_socket(self.home.persona_socket("ada")))
        with self.mind.write() as tx:
            insert_room(tx)

    async def look(self, now: int, *, thorough: bool = False) -> int | None:
        return await self.heartbeat.look_round(now, thorough=thorough)

    def hear(self, at: int = NOW) -> None:
        with self.mind.write() as tx:
            insert_heard(tx, at=at)

    def live(self) -> Run | None:
        with self.mind.read() as tx:
            return live_run(tx, KIND)

    def outcomes(self) -> list[str | None]:
        with self.mind.read() as tx:
            return [run.outcome for run in recent_runs(tx, KIND, 50)]

    def adopt(self, holder: str) -> None:
        run = self.live()
        assert run is not None
        with self.mind.write() as tx:
            assert adopt_run(tx, run.id, holder, NOW)

    def close(self) -> None:
        self.heartbeat.close()
        self.mind.close()
        self.pokes.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


@pytest.fixture
def short_scene() -> Iterator[Scene]:
    """In a path short enough that a real organ finds the same sockets."""
    with TemporaryDirectory(prefix="mind-") as directory:
        made = Scene(Path(directory))
        yield made
        made.close()


async def test_releasing_the_brake_or_turning_the_dial_ends_a_pause_that_an_operator_mends(scene: Scene) -> None:
    await scene.look(NOW)
    with scene.mind.write() as tx:
        set_pause(tx, Pause("authentication", LATER + 3_600_000, "HTTP 401"))
        set_pause(tx, Pause("limited", LATER, "until then"))
    scene.hear()
    release(scene.home, "ada", heat=0.5)
    await scene.look(NOW + 5_000)
    assert scene.live() is None, "a limit is nobody's to lift"
    await scene.look(LATER + SPREAD_MS)
    assert scene.live() is not None


@pytest.mark.parametrize("cause", ["authentication", "limited"])
@pytest.mark.parametrize("file", ["mind", "key", "link"])
async def test_another_key_or_configuration_ends_a_pause_by_itself(scene: Scene, file: str, cause: str) -> None:
    path = scene.home.mind_file("ada") if file == "mind" else scene.home.model_key("ada")
    path.parent.mkdir(exist_ok=True)
    (path.parent / "older").write_text("the right one, which lay there already")
    await scene.look(began := now_ms())
    with scene.mind.write() as tx:
        set_pause(tx, Pause(cause, began + 3_600_000, "HTTP 401", 1, since=began))
    scene.hear(began - 10_000)
    await scene.look(began)
    assert scene.live() is None
    while now_ms() <= began:
        await trio.sleep(0.001)
    if file == "link":
        path.symlink_to(path.parent / "older")
    else:
        path.write_text(path.read_text() + "\n" if file == "mind" else "the right one")
    await scene.look(now_ms() + 1_000)
    assert scene.live() is not None


@pytest.mark.parametrize("file", ["words", "doctrine"])
async def test_writing_the_words_that_were_missing_ends_the_pause_and_is_seen_without_a_poke(scene: Scene, file: str) -> None:
    mind_file, persona = scene.home.mind_file("ada"), scene.home.persona_file("ada")
    mind_file.write_text(mind_file.read_text() + '[persona]\ndoctrine = ["kind.md"]\n')
    path = persona if file == "words" else persona.parent / "kind.md"
    path.unlink(missing_ok=True)
    await scene.look(began := now_ms())
    with scene.mind.write() as tx:
        set_pause(tx, Pause("fault", began + 3_600_000, f"{path} does not exist", 1, since=began))
    scene.hear(began - 10_000)
    await scene.look(began)
    await scene.look(began + 1)
    assert scene.live() is None
    while now_ms() <= began:
        await trio.sleep(0.001)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("Be kind.")
    await scene.look(now_ms() + 1_000)
    assert scene.live() is not None


async def test_a_release_says_try_now_also_where_she_was_not_held(scene: Scene) -> None:
    await scene.look(began := now_ms())
    with scene.mind.write() as tx:
        set_pause(tx, Pause("payment", began + 3_600_000, "HTTP 402", 1, since=began))
    scene.hear(began - 10_000)
    await scene.look(began)
    assert scene.live() is None
    while now_ms() <= began:
        await trio.sleep(0.001)
    release(scene.home, "ada")
    await scene.look(now_ms() + 1_000)
    assert scene.live() is not None, "the lease tries the credential anew at a release, and so does she"


async def test_another_cap_of_the_host_ends_a_wait_for_it_at_once_and_a_broken_file_changes_nothing(scene: Scene) -> None:
    await scene.look(began := now_ms())
    with scene.mind.write() as tx:
        set_pause(tx, Pause("spend", began + 3_600_000, "of the $50.00 that all Minds together may spend", 1, since=began))
    scene.hear(began - 10_000)
    await scene.look(began)
    assert scene.live() is None
    while now_ms() <= began:
        await trio.sleep(0.001)
    scene.home.config_file.write_text("[spend]\nday_usd = 'many'\n")
    await scene.look(began + 1)
    assert scene.live() is None
    assert "host.fault" in scene.notes.kinds()
    scene.home.config_file.write_text('time_zone = "Europe/Berlin"\n[spend]\nday_usd = 60\n')
    await scene.look(now_ms() + 1_000)
    assert scene.live() is not None
    assert "host.changed" in scene.notes.kinds()


async def test_mail_opens_one_run_and_pokes_her(scene: Scene) -> None:
    scene.hear()
    assert await scene.look(NOW) == NOW + 1500
    assert scene.live() is None
    await scene.look(NOW + 1500)
    run = scene.live()
    assert run is not None
    assert run.conversations == ("room:!a:example.org",)
    assert scene.pokes.drain()
    assert "run.opened" in scene.notes.take()
    await scene.look(NOW + 1501)
    assert scene.live() == run
    assert "run.opened" not in scene.notes.kinds()


async def test_mail_during_a_run_waits_for_its_end_and_then_opens_another(scene: Scene) -> None:
    scene.hear()
    await scene.look(LATER)
    lock = take_hold(scene.home.lock_file("persona", "ada"), "me")
    assert lock is not None
    scene.adopt("me")
    scene.hear(LATER)
    await scene.look(LATER + 9000)
    run = scene.live()
    assert run is not None
    assert run.holder == "me"
    assert scene.notes.kinds().count("wake.queued") == 1
    with scene.mind.write() as tx:
        tx.execute("UPDATE run SET turns = 1")
        assert end_run(tx, run.id, "me", "done", "x", LATER + 9000)
    await scene.look(LATER + 9001)
    assert scene.live() is not None
    assert scene.outcomes() == ["done"]
    lock.release()


async def test_a_persona_that_died_is_found_at_the_next_poke_and_the_mail_is_taken_up_again(scene: Scene) -> None:
    scene.hear()
    await scene.look(LATER)
    lock = take_hold(scene.home.lock_file("persona", "ada"), "me")
    assert lock is not None
    scene.adopt("me")
    await scene.look(LATER + 1)
    assert scene.outcomes() == []
    lock.release()
    due = await scene.look(LATER + 2)
    assert scene.outcomes() == ["dead"]
    assert due == LATER + 2 + 500
    await scene.look(due)
    assert scene.live() is not None
    assert "run.closed" in scene.notes.kinds()


async def test_another_process_with_the_lock_does_not_keep_a_dead_run_alive(scene: Scene) -> None:
    scene.hear()
    await scene.look(LATER)
    scene.adopt("one that is gone")
    lock = take_hold(scene.home.lock_file("persona", "ada"), "the next one")
    await scene.look(LATER + 1)
    assert scene.outcomes() == ["dead"]
    assert lock is not None
    lock.release()


async def test_a_run_that_nobody_adopts_is_poked_again_and_again_and_never_blocks_longer_than_its_grace(scene: Scene) -> None:
    scene.hear()
    due = await scene.look(LATER)
    pokes = [LATER]
    scene.pokes.drain()
    while not scene.outcomes():
        assert due is not None
        assert due <= LATER + 2000
        now = due
        due = await scene.look(now)
        if scene.pokes.drain():
            pokes.append(now)
    assert [at - LATER for at in pokes] == [0, 500, 1500]
    assert scene.outcomes() == ["dead"]
    assert due is not None
    await scene.look(due)
    assert scene.live() is not None


async def test_looking_more_often_does_not_poke_more_often(scene: Scene) -> None:
    scene.hear()
    for step in range(100):
        await scene.look(LATER + step)
    assert scene.pokes.drain()
    assert not scene.pokes.drain()


async def test_a_refused_poke_is_a_fact_in_the_journal(scene: Scene) -> None:
    scene.home.persona_socket("ada").unlink()
    scene.hear()
    await scene.look(LATER)
    assert "poke.refused" in scene.notes.kinds()
    assert scene.live() is not None


async def test_a_held_mind_is_not_woken_and_its_mail_waits_with_a_reason(scene: Scene) -> None:
    hold(scene.home, "ada", "I say so")
    scene.hear()
    assert await scene.look(LATER) is None
    assert scene.live() is None
    assert not scene.pokes.drain()
    assert ("wake.skipped", "1 message waits: held: I say so.") in [line[:2] for line in scene.notes.lines]
    release(scene.home, "ada")
    await scene.look(LATER + 1)
    assert scene.live() is not None


async def test_holding_ends_the_run_that_nobody_adopted_and_is_acknowledged(scene: Scene) -> None:
    scene.hear()
    await scene.look(LATER)
    hold(scene.home, "ada", "now")
    await scene.look(LATER + 1)
    assert scene.live() is None
    assert scene.outcomes() == ["held"]
    with scene.mind.read() as tx:
        assert is_acked(tx, "heartbeat", read_control(scene.home, "ada"))


@pytest.mark.parametrize("deed", ["unlink", "chmod", "garbage"])
async def test_a_brake_that_cannot_be_trusted_any_more_is_noticed_without_a_poke_from_anyone(scene: Scene, deed: str) -> None:
    await scene.look(LATER)
    brake = scene.home.control_dir("ada") / "brake.toml"
    if deed == "unlink":
        brake.unlink()
    elif deed == "chmod":
        brake.chmod(0o666)
    else:
        brake.write_text("?")
    scene.hear()
    await scene.look(LATER + 10_000)
    assert scene.live() is None


async def test_minds_come_and_go_while_it_runs(scene: Scene) -> None:
    await scene.look(NOW)
    add_mind(scene.home, "eve")
    eve = open_mind(scene.home.mind_db("eve"))
    with eve.write() as tx:
        insert_room(tx)
        insert_heard(tx)
    await scene.look(LATER)
    with eve.read() as tx:
        assert live_run(tx, KIND) is not None
    eve.close()
    scene.home.mind_file("eve").unlink()
    await scene.look(LATER + 1)
    assert "mind.left" in scene.notes.kinds()
    assert scene.heartbeat.render_status() == "1 Mind, 0 awake"


@pytest.mark.parametrize("fault", ["corrupt", "missing", "config"])
async def test_one_minds_fault_is_told_once_stops_no_other_and_is_forgotten_when_mended(scene: Scene, fault: str) -> None:
    add_mind(scene.home, "abel")  # before ada
    database, config = scene.home.mind_db("abel"), scene.home.mind_file("abel")
    good = database.read_bytes(), config.read_text()
    if fault == "corrupt":
        database.write_bytes(b"SQLite format 3\0" + os.urandom(8192))
    elif fault == "missing":
        database.unlink()
    else:
        config.write_text(good[1] + "\n[people]\noperater = []\n")
    scene.hear()
    for step in range(3):
        await scene.look(LATER + step, thorough=True)
    assert scene.live() is not None
    [sentence] = [line[1] for line in scene.notes.lines if line[0] == "mind.fault"]
    assert str(config if fault == "config" else database) in sentence
    for leftover in database.parent.glob("mind.db-*"):
        leftover.unlink()
    database.write_bytes(good[0])
    config.write_text(good[1])
    await scene.look(LATER + 9, thorough=True)
    assert scene.notes.kinds().count("mind.recovered") == 1


async def test_a_settings_change_is_taken_up_without_a_restart(scene: Scene) -> None:
    await scene.look(NOW)
    with scene.home.mind_file("ada").open("a") as file:
        file.write("[persona]\ndebounce_s = 0.0\n")
    scene.hear(LATER)
    await scene.look(LATER)
    assert scene.live() is not None


async def test_a_quiet_mind_is_not_read_however_often_it_is_asked(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    await scene.look(NOW, thorough=True)
    reads = 0

    def count(original: Callable[[Mind], Any]) -> Callable[[Mind], Any]:
        def counted(self: Mind) -> Any:
            nonlocal reads
            reads += 1
            return original(self)

        return counted

    for way in ("read", "weigh"):
        monkeypatch.setattr(Mind, way, count(getattr(Mind, way)))
    for step in range(50):
        await scene.look(NOW + step)
    await scene.look(NOW + 50, thorough=True)
    assert reads == 0
    scene.hear()
    await scene.look(NOW + 51)
    assert reads == 2, "once for her work, once for her wake"


async def test_what_comes_while_she_is_looked_at_is_in_the_run_that_is_opened(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.hear()
    await scene.look(NOW)
    original = Weighing.act

    def act(self: Weighing) -> bool:
        with scene.mind.write() as tx:
            insert_room(tx, "!other:x", conversation="other")
            insert_heard(tx, room_id="!other:x", event_id="$other")
        return original(self)

    monkeypatch.setattr(Weighing, "act", act)
    await scene.look(LATER)
    run = scene.live()
    assert run is not None
    assert "other" in run.conversations


async def test_a_mind_for_whom_nothing_happens_rests_and_is_woken_by_a_message(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = scene.home.mind_db("ada")
    await scene.look(NOW, thorough=True)
    held = len(open_descriptors(database))
    await scene.look(NOW + 1, thorough=True)
    assert len(open_descriptors(database)) == held, "somebody has just written"
    pass_hours(monkeypatch, database.parent)
    await scene.look(NOW + 2)
    await scene.look(NOW + 3, thorough=True)
    assert len(open_descriptors(database)) < held
    held = len(open_descriptors(database))
    for step in range(4, 8):
        await scene.look(NOW + step, thorough=step % 2 == 0)
    assert len(open_descriptors(database)) == held
    scene.hear()
    await scene.look(LATER)
    assert scene.live() is not None


async def test_a_mind_with_a_live_run_does_not_rest(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.hear()
    await scene.look(LATER, thorough=True)
    assert scene.live() is not None
    held = len(open_descriptors(scene.home.mind_db("ada")))
    pass_hours(monkeypatch, scene.home.mind_dir("ada"))
    for step in range(1, 4):
        await scene.look(LATER + step, thorough=True)
    assert len(open_descriptors(scene.home.mind_db("ada"))) == held


async def test_a_full_disk_under_one_mind_is_told_and_nothing_is_half_done(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.hear()
    await scene.look(NOW)
    pages = "PRAGMA max_page_count=1"
    original = Mind.weigh

    def full(self: Mind) -> Any:
        self._db.execute(pages)
        return original(self)

    with monkeypatch.context() as patch:
        patch.setattr("mind_body.heartbeat.launch.open_run", _fill_the_disk)
        patch.setattr(Mind, "weigh", full)
        await scene.look(LATER)
    assert [line[1] for line in scene.notes.lines if line[0] == "mind.fault"]
    assert scene.live() is None
    await scene.look(LATER + 1, thorough=True)
    assert scene.live() is not None


def _fill_the_disk(tx: Any, *_: Any) -> None:
    tx.execute("CREATE TABLE filler (x)")
    tx.execute("INSERT INTO filler VALUES (zeroblob(10000000))")


ORGAN = [sys.executable, "-m", "mind_body", "--home"]


def start_heartbeat(home: Home, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*ORGAN, str(home.root), "organ", "heartbeat"], env=os.environ | env, stderr=subprocess.PIPE)


async def until(condition: Any, seconds: float = 15.0) -> None:
    with trio.fail_after(seconds):
        while not condition():
            await trio.sleep(0.02)


@pytest.mark.parametrize("point", ["heartbeat.before-T2", "heartbeat.T2"])
async def test_dying_around_t2_loses_nothing_and_opens_one_run(short_scene: Scene, point: str) -> None:
    scene = short_scene
    scene.hear(int(time.time() * 1000) - 60_000)
    first = start_heartbeat(scene.home, MIND_CRASH_AT=point)
    await trio.to_thread.run_sync(first.communicate)
    assert first.returncode == -signal.SIGKILL
    assert (scene.live() is not None) is (point == "heartbeat.T2")
    assert not scene.pokes.drain()
    second = start_heartbeat(scene.home)
    try:
        await until(scene.pokes.drain)
        assert scene.live() is not None
        assert scene.outcomes() == []
    finally:
        second.send_signal(signal.SIGTERM)
        _, lines = await trio.to_thread.run_sync(second.communicate)
    assert second.returncode == 0, lines


async def test_a_poke_makes_the_real_organ_look_at_once_and_a_second_one_refuses_to_run(short_scene: Scene) -> None:
    scene = short_scene
    organ = start_heartbeat(scene.home)
    try:
        await until(lambda: send_poke(scene.home.heartbeat_socket) is None)
        second = start_heartbeat(scene.home)
        _, lines = await trio.to_thread.run_sync(second.communicate)
        assert second.returncode == 1
        assert b"already" in lines
        scene.hear(int(time.time() * 1000) - 60_000)
        assert send_poke(scene.home.heartbeat_socket) is None
        await until(scene.pokes.drain, 5)
    finally:
        organ.send_signal(signal.SIGTERM)
        await trio.to_thread.run_sync(organ.communicate)
    assert organ.returncode == 0
