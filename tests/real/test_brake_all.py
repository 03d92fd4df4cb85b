"""`mind brake hold --all` in the middle of everything: three Selfs at work over the real `claude` CLI, three turns that think.

Every request that leaves is recorded with its instant by the scripted models; when the command began to act is when it wrote the
first brake file, by the disk.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mind_body.host.process import list_descendants, resident_mb
from mind_body.host.secrets import write_secret
from mind_body.matrix.notices import NoticeKey, render_sentence
from tests.parts_present import require_part
from tests.real.parts.chat_api import ChatApi, Request, answer_with, open_chat_api
from tests.real.parts.company import HOST, Company, new_mail
from tests.real.parts.messages_api import Answer, Held, MessagesApi, Prose, call, scripted_messages_api
from tests.real.parts.messages_api import Request as SelfRequest
from tests.real.parts.scene import Scene, bare_environment, wait_until
from tests.real.parts.synapse import Homeserver

pytestmark = pytest.mark.real

NAMES = ("ada", "bea", "cyd")
SLEEP = "4071"
WITHIN_S = 1.0
DONE = render_sentence("en", NoticeKey.SELF_ENDED_RESULT)


class Hive:
    """Three Minds with both halves. The Self of ada is in a long tool, bea's waits for its model, cyd's calls often."""

    def __init__(self, scene: Scene, api: ChatApi, selves: dict[str, MessagesApi]) -> None:
        self.scene, self.api, self.selves = scene, api, selves
        self.company = Company(scene, api)
        self.released = threading.Event()
        """From now on every model answers at once, and work is over at the first call."""
        api.default = answer_with(self.answer)
        people = {"operators": [self.company.bob.user_id]}
        for name, model in selves.items():
            model.default = {"ada": self.work_long, "bea": self.think_long, "cyd": self.work_often}[name]
            settings = {
                "enabled": True,
                "model": "claude-sonnet-4-5",
                "base_url": model.url,
                "credential": "api-key",
                "linger_s": 0,
            }
            self.company.add(name, {"people": people, "self": settings})
            write_secret(scene.home.credentials / f"{name}.self-key", f"sk-ant-real-of-{name}")

    def answer(self, request: Request) -> dict[str, Any]:
        mail = new_mail(request)
        if not mail:
            return {"say": [], "react": []}
        start, words = None, "I begin."
        if mail[-1].text == "work":
            start = {"brief": "Write it.", "asked_in": mail[-1].handle, "repo": None, "campaign": None}
        else:
            assert self.released.wait(60)
            words = "re: " + ", ".join(one.text for one in mail)
        say = {"room": mail[-1].room, "text": words, "reply_to": None, "thread": None}
        return {"say": [say], "react": [], "start_self_run": start, "tell_self": None}

    def work_long(self, _: SelfRequest) -> Answer:
        return Prose("I wrote it.") if self.released.is_set() else call("Bash", command=f"sleep {SLEEP}", timeout=600_000)

    def think_long(self, _: SelfRequest) -> Answer:
        return Prose("I wrote it.") if self.released.is_set() else Held(self.released, Prose("too late"))

    def work_often(self, _: SelfRequest) -> Answer:
        return Prose("I wrote it.") if self.released.is_set() else call("Bash", command="true")

    def begin(self) -> None:
        """Until all six are in the middle of what they do."""
        self.scene.up()
        self.rooms = {name: self.company.direct(name) for name in NAMES}
        for room in self.rooms.values():
            self.company.bob.send(room, "work")
        wait_until("ada's tool", lambda: running(SLEEP))
        wait_until("bea's call", lambda: self.selves["bea"].requests)
        wait_until("cyd's calls", lambda: len(self.selves["cyd"].requests) > 3)
        for name in NAMES:
            self.scene.wait_rows(name, "the first turn's end", "SELECT 1 FROM turn WHERE state = 'replied'")
        for room in self.rooms.values():
            self.company.bob.send(room, "question")
        wait_until("three turns", lambda: len(self.questions()) == len(NAMES))

    def questions(self) -> list[Request]:
        return [request for request in list(self.api.requests) if "question" in [mail.text for mail in new_mail(request)]]

    def instants(self) -> list[float]:
        """When each model request came, of both halves."""
        found: list[Request | SelfRequest] = list(self.api.requests)
        for model in self.selves.values():
            found += list(model.requests)
        return [request.at for request in found]

    def children(self) -> list[int]:
        """What runs below the halves."""
        halves = [pid for pid, line in self.scene.organs().items() if "organ persona" in line or "organ self" in line]
        return [child for pid in halves for child in list_descendants(pid)]

    def brake(self, verb: str) -> None:
        home = self.scene.directory
        words = [sys.executable, "-m", "mind_body", "--home", str(home), "brake", verb, "--all"]
        done = subprocess.run(words, env=bare_environment(home), capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr

    def first_written_at(self) -> float:
        """When the first of the brakes was written, on the clock of `instants`."""
        written = min((self.scene.home.control_dir(name) / "brake.toml").stat().st_mtime for name in NAMES)
        return written - time.time() + time.monotonic()


@pytest.fixture
def hive(homeserver: Homeserver, tmp_path: Path) -> Iterator[Hive]:
    require_part("claude")
    require_part("bubblewrap")
    with ExitStack() as stack:
        selves = {name: stack.enter_context(scripted_messages_api()) for name in NAMES}
        api = stack.enter_context(open_chat_api())
        scene = Scene(homeserver, tmp_path / "home", **HOST)
        stack.callback(scene.close)
        hive = Hive(scene, api, selves)
        stack.callback(hive.released.set)
        yield hive


def running(argument: str) -> bool:
    """Whether a process was given this argument, wherever it runs."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and argument.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


def test_a_hold_of_all_lets_no_request_leave_after_a_second_and_everything_goes_on_at_the_release(hive: Hive) -> None:
    hive.begin()
    scene, company = hive.scene, hive.company
    children = hive.children()
    assert len(children) >= len(NAMES), "the children of three Selfs"
    hive.brake("hold")
    began = hive.first_written_at()
    held = "SELECT DISTINCT kind FROM run WHERE outcome = 'held'"
    for name in NAMES:
        scene.wait_rows(name, "both halves to end their runs", held, count=2)
    assert not running(SLEEP)
    wait_until("their children to be gone", lambda: not any(map(resident_mb, children)))
    # Whoever would still call has had the time: nothing of either half runs any more.
    wait_until(
        "the halves to leave", lambda: not any("organ persona" in one or "organ self" in one for one in scene.organs().values())
    )
    late = [at - began for at in hive.instants() if at > began + WITHIN_S]
    assert not late
    asked = len(hive.instants())
    for room in hive.rooms.values():
        company.bob.send(room, "another")
    for name in NAMES:
        scene.wait_rows(name, "it to be heard", "SELECT 1 FROM heard WHERE body = 'another' AND state = 'pending'")
    assert len(hive.instants()) == asked

    hive.released.set()
    hive.brake("release")
    company.wait_settled()
    for name in NAMES:
        room = hive.rooms[name]
        assert company.said(room, name) == ["I begin.", "re: question, another"]
        assert [text for text in company.notices(room, name) if text.startswith(DONE)] == [f"{DONE}\n\nI wrote it."]
        assert not scene.rows(name, "SELECT 1 FROM follow_up WHERE state IN ('open', 'claimed')")
        ended = scene.rows(name, "SELECT outcome FROM run WHERE kind = 'self_run' ORDER BY opened_at")
        assert [row["outcome"] for row in ended] == ["held", "result"]
