"""The thread of a Self run in a real room: one first message, one that is edited in place, one end; who steers, and who does not.

The mouth is the real one, as a process; the Self is one without a child (`parts/fake_self.py`), and in the last scene the real one.
The room is read by its people.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mind_body.clock import now_ms
from mind_body.host.poke import send_poke
from mind_body.host.secrets import write_secret
from mind_body.ids import new_id
from mind_body.matrix.speech import render_say
from mind_body.mind.follow_ups import admit_follow_up, open_self_run
from mind_body.mind.outbox import admit_said
from mind_body.mind.records import Run
from mind_body.mind.store import open_mind
from mind_body.mind.work_records import NewFollowUp
from tests.parts_present import require_part
from tests.real.parts.lease import start_lease
from tests.real.parts.messages_api import Prose, call, scripted_messages_api
from tests.real.parts.organ import Organ
from tests.real.parts.person import Event
from tests.real.parts.scene import Scene, wait_until
from tests.real.parts.synapse import Homeserver, die_with_parent

pytestmark = pytest.mark.real

STOPPED = "I was stopped before I was done."
PROJECT = Path(__file__).parents[2]


class Work:
    """A DM of bob's with her, and a Self at work in a thread of it."""

    def __init__(self, homeserver: Homeserver, directory: Path, **settings: Any) -> None:
        self.scene = Scene(homeserver, directory)
        self.mouth = Organ("mouth", self.scene.directory)
        self.bob, self.eve = self.scene.person("bob"), self.scene.person("eve")
        people = {"may_steer": [self.bob.user_id], "operators": [self.bob.user_id]}
        self.her = self.scene.add_mind("ada", tables={"people": people, "self": {"enabled": True, **settings}})
        self.organ = Organ("self", self.scene.directory, "ada")
        self.process: subprocess.Popen[str] | None = None
        self.told: list[dict[str, Any]] = []

    def open_room(self, *, direct: bool = True) -> str:
        self.mouth.start()
        room = self.bob.create_room(invite=(self.her,) if direct else (self.her, self.eve.user_id), direct=direct)
        self.scene.wait_joined("ada", room)
        if not direct:
            self.eve.join(room)
        return room

    def ask(self, room: str) -> tuple[str, Run]:
        """bob asks, and the run for it is open: the asking event and the run."""
        asked = self.bob.send(room, "please tidy the notes")
        mind = open_mind(self.scene.home.mind_db("ada"))
        work = NewFollowUp(f"direct:{room}", room, asked, self.bob.user_id, "Tidy the notes.", "notes")
        with mind.write() as tx:
            run = open_self_run(tx, admit_follow_up(tx, work, now_ms()), "a test", now_ms())
        mind.close()
        assert run is not None
        return asked, run

    def begin(self, pace_s: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.real.parts.fake_self", str(self.scene.directory), "ada", str(pace_s)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=PROJECT,
            env={"PATH": os.environ["PATH"], "HOME": str(self.scene.directory)},
            preexec_fn=die_with_parent,  # noqa: PLW1509 - one prctl, no lock
        )  # fmt: skip
        self._listener = threading.Thread(target=self._listen, args=(self.process.stdout,))
        self._listener.start()

    def _listen(self, stdout: Any) -> None:
        with stdout:
            for line in stdout:
                self.told.append(json.loads(line))

    def given(self) -> list[tuple[str, str]]:
        return [(one["kind"], one["text"]) for one in self.told if one["what"] == "given"]

    def wait_told(self, what: str, count: int = 1, deadline_s: float = 30) -> dict[str, Any]:
        found: list[dict[str, Any]] = wait_until(
            f"{count} × {what}", lambda: [one for one in self.told if one["what"] == what][count - 1 :], deadline_s
        )
        return found[0]

    def say(self, room: str, text: str) -> None:
        mind = open_mind(self.scene.home.mind_db("ada"))
        with mind.write() as tx:
            admit_said(tx, render_say(new_id(), room, text, thread=None, reply_to=None), None, now_ms())
        mind.close()
        send_poke(self.scene.home.mouth_socket)

    def hers(self, room: str) -> list[Event]:
        return self.bob.messages(room, self.her)

    def root(self, room: str, run: Run) -> Event:

        found: list[Event] = self.bob.wait_for(
            "the thread", lambda: [one for one in self.hers(room) if said(one) == run.thread_said]
        )
        return found[0]

    def progress(self, room: str, run: Run) -> list[Event]:
        return [one for one in self.hers(room) if said(one) == f"self-progress-{run.id}"]

    def edits(self, room: str, run: Run) -> list[Event]:
        return [one for one in self.hers(room) if said(one).startswith(f"self-progress-{run.id}.")]

    def wait_sent(self, deadline_s: float = 60) -> None:
        unsent = "SELECT count(*) AS n FROM said WHERE state IN ('queued', 'attempted')"
        wait_until("everything to be sent", lambda: self.scene.rows("ada", unsent)[0]["n"] == 0, deadline_s)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self._listener.join(10)
        self.organ.close()
        self.mouth.close()
        self.scene.close()


def said(event: Event) -> str:
    return str(event["content"].get("io.mind-body.said", ""))


def thread_of(event: Event) -> str | None:
    relation = event["content"].get("m.relates_to", {})
    return relation["event_id"] if relation.get("rel_type") == "m.thread" else None


@pytest.fixture
def open_work(tmp_path: Path) -> Iterator[Callable[..., Work]]:
    opened: list[Work] = []

    def begin(homeserver: Homeserver, **settings: Any) -> Work:
        opened.append(Work(homeserver, tmp_path / "home", **settings))
        return opened[-1]

    yield begin
    for work in opened:
        work.close()


def test_a_thread_under_a_rate_limit_one_message_is_edited_and_words_go_first(
    start_homeserver: Callable[..., Homeserver], open_work: Callable[..., Work]
) -> None:
    work = open_work(start_homeserver(limits={"rc_message": {"per_second": 0.2, "burst_count": 3}}))
    room = work.open_room()
    other = work.bob.create_room(invite=(work.her,), direct=True)
    work.scene.wait_joined("ada", other)
    asked, run = work.ask(room)
    work.begin(0.5)
    root = work.root(room, run)
    assert root["content"]["m.relates_to"] == {"m.in_reply_to": {"event_id": asked}}
    assert root["content"]["msgtype"] == "m.notice"
    assert work.bob.user_id in root["content"]["body"]
    work.scene.wait_rows("ada", "a limited edit", "SELECT 1 FROM said WHERE kind = 'edit' AND reason LIKE 'limited%'")

    # An answer and another one, in another room, while edits are queued twice a second: no edit goes in between.
    work.say(other, "one answer")
    work.say(room, "another answer")
    queued = time.monotonic()
    work.bob.wait_for("the answers", lambda: work.bob.texts(other, work.her) and work.bob.texts(room, work.her), 20)
    assert time.monotonic() - queued < 12

    work.bob.say_in_thread(room, root["event_id"], "finish: **They** are tidy.")
    work.wait_told("ended")
    work.bob.wait_for("the end", lambda: "tidy" in work.hers(room)[-1]["content"]["body"] or None, 30)
    work.wait_sent()
    (progress,) = work.progress(room, run)
    assert thread_of(progress) == root["event_id"]
    edits = work.edits(room, run)
    assert {one["content"]["m.relates_to"]["event_id"] for one in edits} == {progress["event_id"]}
    assert len({said(one) for one in edits}) == len(edits)
    assert all(one["content"]["m.new_content"]["msgtype"] == "m.notice" for one in edits)
    assert "$0.42" in edits[-1]["content"]["m.new_content"]["body"], "bob is an operator, and nobody else reads along"
    assert edits[-1]["content"]["m.new_content"]["body"].startswith("Was at work")
    times = sorted(one["origin_server_ts"] for one in edits)
    assert all(after - before >= 60_000 for before, after in zip(times, times[12:], strict=False)), "12 edits a minute"
    (end,) = [one for one in work.hers(room) if "tidy" in one["content"]["body"] and said(one).startswith("self-end")]
    assert thread_of(end) == root["event_id"]
    assert "<strong>They</strong>" in end["content"]["formatted_body"]
    states = work.scene.rows("ada", "SELECT state, count(*) AS n FROM said WHERE kind = 'edit' GROUP BY state ORDER BY state")
    assert {row["state"] for row in states} == {"sent", "superseded"}


def test_who_may_steer_reaches_the_self_in_order_others_are_told_once_and_a_stop_acts_within_a_second(
    homeserver: Homeserver, open_work: Callable[..., Work]
) -> None:
    work = open_work(homeserver)
    room = work.open_room(direct=False)
    _, run = work.ask(room)
    work.begin(5.0)
    root = work.root(room, run)["event_id"]
    for number in range(5):
        work.bob.say_in_thread(room, root, f"step {number}")
    work.wait_told("given", 5)
    for text in ("stop", "I said stop!"):
        work.eve.say_in_thread(room, root, text)
    (notice,) = work.eve.wait_for(
        "why not", lambda: [one for one in work.hers(room) if "take directions" in one["content"]["body"]]
    )
    assert thread_of(notice) == root
    outside = work.bob.say_to(room, work.her, "and how are you?")
    work.scene.wait_rows("ada", "all of it to be heard", "SELECT 1 FROM heard WHERE event_id = ?", outside)
    work.bob.say_in_thread(room, root, f"{work.her}: Stop!")
    asked_at = time.monotonic()
    stop = work.wait_told("given", 6)
    assert stop["at"] - asked_at < 1.0
    work.wait_told("ended")
    assert work.given() == [*(("steer", f"step {n}") for n in range(5)), ("stop", f"{work.her}: Stop!")]

    # The thread is an ordinary one now: what is said there is mail, and wakes her.
    work.bob.say_in_thread(room, root, "thank you")
    heard = "SELECT standing, state, body FROM heard WHERE thread = ? ORDER BY seq"
    work.scene.wait_rows("ada", "thanks to be heard", "SELECT 1 FROM heard WHERE body = 'thank you'")
    rows = work.scene.rows("ada", heard, root)
    assert [(row["standing"], row["state"]) for row in rows[:-1]] == [("context", "closed")] * 8
    assert (rows[-1]["standing"], rows[-1]["state"]) == ("mail", "pending")
    work.wait_sent()
    assert len([one for one in work.hers(room) if "take directions" in one["content"]["body"]]) == 1
    assert [one["content"]["body"] for one in work.hers(room) if said(one).startswith("self-end")] == [STOPPED]
    assert not any("$" in one["content"]["body"] for one in work.hers(room)), "eve reads along"


@pytest.mark.parametrize("point", ["voice.before-T4a", "voice.T4a", "voice.sent", "voice.T4b"])
@pytest.mark.parametrize("nth", [3, *(pytest.param(nth, marks=pytest.mark.long) for nth in (1, 2, 4))])
def test_a_mouth_that_dies_while_it_speaks_in_the_thread_doubles_nothing(
    homeserver: Homeserver, open_work: Callable[..., Work], point: str, nth: int
) -> None:
    work = open_work(homeserver)
    room = work.open_room()
    work.mouth.stop()
    _, run = work.ask(room)
    work.mouth.start(crash_at=f"{point}@{nth}")
    work.begin(0.3)
    work.mouth.wait_killed()
    work.mouth.start()
    root = work.root(room, run)
    work.bob.say_in_thread(room, root["event_id"], "finish: done")
    work.wait_told("ended")
    work.wait_sent()
    events = work.hers(room)
    assert len({said(one) for one in events}) == len(events), "everything was said once"
    assert [said(one) for one in events].count(str(run.thread_said)) == 1
    (progress,) = work.progress(room, run)
    assert thread_of(progress) == root["event_id"]
    shown = work.bob.call("GET", f"/rooms/{room}/event/{progress['event_id']}")["unsigned"]["m.relations"]["m.replace"]
    assert shown["content"]["m.new_content"]["body"].startswith("Was at work"), "the newest edit is what people see"
    assert not work.scene.rows("ada", "SELECT * FROM said WHERE state = 'refused'")


def test_a_mouth_that_dies_after_hearing_a_steer_gives_it_once_and_loses_none(
    homeserver: Homeserver, open_work: Callable[..., Work]
) -> None:
    work = open_work(homeserver)
    room = work.open_room()
    _, run = work.ask(room)
    work.begin(5.0)
    root = work.root(room, run)["event_id"]
    work.wait_sent()
    for point in ("ear.steer", "ear.T1", "ear.sync-answered"):
        work.mouth.stop()
        work.mouth.start(crash_at=point)
        work.bob.say_in_thread(room, root, f"at {point}")
        work.mouth.wait_killed()
        work.mouth.start()
        work.scene.wait_rows("ada", "it to be heard", "SELECT 1 FROM steer WHERE text = ?", f"at {point}")
    work.bob.say_in_thread(room, root, "stop")
    work.wait_told("ended")
    assert [text for _, text in work.given()] == ["at ear.steer", "at ear.T1", "at ear.sync-answered", "stop"]


def test_a_reaction_to_what_she_said_is_kept_also_from_behind_a_gap_until_it_is_taken_back(
    homeserver: Homeserver, open_work: Callable[..., Work]
) -> None:
    work = open_work(homeserver)
    room = work.open_room()
    _, run = work.ask(room)
    work.begin(60.0)
    root = work.root(room, run)["event_id"]
    work.wait_sent()
    work.mouth.stop()
    reaction = work.bob.send(room, {"m.relates_to": {"rel_type": "m.annotation", "event_id": root, "key": "✅"}}, "m.reaction")
    for number in range(60):
        work.bob.say_in_thread(room, root, f"step {number}")
    work.mouth.start()
    kept = "SELECT event_id, target, sender, key FROM reaction"
    work.scene.wait_rows("ada", "the reaction", kept)
    assert work.scene.rows("ada", kept) == [{"event_id": reaction, "target": root, "sender": work.bob.user_id, "key": "✅"}]
    work.wait_told("given", 60)
    assert [text for _, text in work.given()] == [f"step {number}" for number in range(60)], "in order, over a gap"
    work.bob.redact(room, reaction)
    wait_until("it to be gone", lambda: not work.scene.rows("ada", kept))


KEY = "sk-ant-real-58c1d09e77"


def running(argument: str) -> list[int]:
    """Processes that were given this argument, wherever they run."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and argument in (entry / "cmdline").read_bytes().decode(errors="replace").split("\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_a_real_self_reads_the_thread_in_the_middle_of_a_turn_and_a_stop_ends_its_tool_within_a_second(
    homeserver: Homeserver, open_work: Callable[..., Work]
) -> None:
    require_part("claude")
    require_part("bubblewrap")
    with scripted_messages_api(Prose("Nothing more.")) as api:
        settings = {"model": "claude-sonnet-4-5", "base_url": api.url, "credential": "api-key", "linger_s": 0}
        work = open_work(homeserver, **settings)
        write_secret(work.scene.home.credentials / "ada.self-key", KEY)
        api.script(call("Bash", command="until [ -e go ]; do sleep 0.05; done"), call("Bash", command="sleep 3071"))
        start_lease(work.scene.home)
        room = work.open_room()
        _, run = work.ask(room)
        work.organ.start()
        root = work.root(room, run)["event_id"]
        wait_until("the first request", lambda: api.requests)
        work.bob.say_in_thread(room, root, "use the blue one")
        work.scene.wait_rows("ada", "it to be given", "SELECT 1 FROM steer WHERE state = 'given'")
        workspace = work.scene.home.work_dir("ada", "notes")
        assert len(api.requests) == 1, "it is in the middle of a turn"
        (workspace / "go").touch()
        wait_until("the second request", lambda: len(api.requests) > 1)
        assert "use the blue one" in json.dumps(api.requests[1].body["messages"])
        wait_until("the long tool", lambda: running("3071"))
        work.bob.say_in_thread(room, root, "stop")
        asked_at = time.monotonic()
        wait_until("the tool to be gone", lambda: not running("3071"), 10)
        assert time.monotonic() - asked_at < 1.0
        ended = "SELECT outcome FROM run WHERE ended_at IS NOT NULL"
        assert work.scene.wait_rows("ada", "the end of the run", ended) == [{"outcome": "interrupted"}]
        work.bob.wait_for("the end in the room", lambda: [one for one in work.hers(room) if one["content"]["body"] == STOPPED])
        (progress,) = work.progress(room, run)
        assert thread_of(progress) == root
        assert not work.scene.rows(
            "ada", "SELECT * FROM heard WHERE standing = 'mail' AND state = 'pending' AND thread IS NOT NULL"
        )
