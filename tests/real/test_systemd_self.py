"""Where the real CLI runs in its real sandbox in the real units: a Self that works, and a Persona that speaks through the CLI."""

import contextlib
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.real.parts.messages_api import Held, MessagesApi, Prose, Request, Structured, call, prefix
from tests.real.parts.scene import wait_until
from tests.real.parts.systemd_product import CLAUDE
from tests.real.parts.systemd_scene import Household

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("systemd-lives"), pytest.mark.early]
CLI = f"{CLAUDE}/claude"
SELF = "mind-self@ada.service"
KEY = "sk-ant-real-5f0c77d1"
HANDOFF = "Goal: hello. Files: a.txt is written, b.txt is not. Next: write b.txt."


@pytest.fixture
def room(household: Household, works: MessagesApi) -> str:
    """Ada, whose Self works for bob, and their direct room."""
    bob = household.person()
    values: dict[str, Any] = {"enabled": True, "base_url": works.url, "credential": "api-key", "cli": CLI, "linger_s": 0.0}
    her = household.new(
        "ada", self={**values, "model": "claude-sonnet-4-5"}, people={"operators": [bob.user_id]}, spend={"day_usd": 100.0}
    )
    household.self_key("ada", KEY)
    household.enable("ada")
    household.product.mind("dial", "ada", "--base-run-usd", "20")
    return household.talk("ada", bob, her)


def ask(household: Household, brief: str = "Write hello into a.txt.") -> None:
    household.product.mind("run", "start", "ada", "--brief", brief, "--workspace", "site")


def runs(household: Household) -> list[dict[str, Any]]:
    return household.product.rows("ada", "SELECT * FROM run WHERE kind = 'self_run' ORDER BY opened_at")


def wait_ended(household: Household, count: int = 1, deadline_s: float = 60.0) -> list[dict[str, Any]]:
    def ended() -> list[dict[str, Any]] | None:
        found = [run for run in runs(household) if run["ended_at"] is not None]
        return found if len(found) >= count else None

    return list(wait_until(f"{count} runs to end", ended, deadline_s))


def work(household: Household, name: str) -> Path:
    return household.bed.path(f"/var/lib/mind/ada/work/site/{name}")


def is_flush(request: Request) -> bool:
    return "answer with the hand-off" in json.dumps(request.body["messages"])


def test_a_self_works_in_its_sandbox_inside_its_hardened_unit(household: Household, works: MessagesApi, room: str) -> None:
    works.script(
        call("Bash", prefix(20_000), command="id -u > who; cat /proc/self/status > /dev/null && echo hello > a.txt"),
        call(
            "Bash", prefix(21_000), command="until [ -e go ]; do sleep 0.05; done; ls /run/mind /etc/mind /var/lib/mind > seen 2>&1"
        ),
    )
    ask(household)
    wait_until("its first file", lambda: work(household, "a.txt").exists(), 40)
    bed = household.bed
    status = wait_until(
        "its figures", lambda: words if "prefix 2" in (words := bed.show(SELF, "StatusText")["StatusText"]) else "", 10
    )
    assert status.startswith("Working · turn "), status
    assert "echo hello" not in status
    inside = {process.command.split()[0]: process for process in bed.processes_of(SELF)}
    assert {process.user for process in inside.values()} == {int(bed.run("id", "-u", "mind-self").stdout)}
    assert any(command.endswith("bwrap") for command in inside)
    for process in inside.values():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a `sleep` of the loop has ended meanwhile
            for place in ("environ", "cmdline"):
                assert KEY.encode() not in Path(f"/proc/{process.pid}/{place}").read_bytes()
    work(household, "go").touch()
    (run,) = wait_ended(household)
    assert (run["outcome"], run["result"]) == ("result", "I wrote it.")
    assert work(household, "a.txt").read_text() == "hello\n"
    assert work(household, "who").read_text() == "1000\n"
    seen = work(household, "seen").read_text()
    assert seen.count("No such file") == 3, seen
    assert {request.headers["x-api-key"] for request in works.requests} == {KEY}, "the real key is the gateway's"
    household.wait_gone("ada")


def test_a_self_in_the_middle_of_its_flush_is_let_finish_it(household: Household, works: MessagesApi, room: str) -> None:
    gate = threading.Event()
    more = call("Bash", prefix(150_000), command="sleep 0.2")
    works.default = lambda request: Held(gate, Prose(HANDOFF, usage=prefix(151_000))) if is_flush(request) else more
    ask(household)
    wait_until("the flush", lambda: any(map(is_flush, list(works.requests))), 60)
    bed = household.bed
    assert "Writing its hand-off" in wait_until(
        "status", lambda: s if "hand" in (s := bed.show(SELF, "StatusText")["StatusText"]) else "", 5
    )
    began = time.monotonic()
    bed.systemctl("stop", "--no-block", SELF)
    time.sleep(13)  # longer than TimeoutStopSec
    assert bed.state(SELF) == "deactivating"
    works.default = Prose("Both are written.", usage=prefix(20_000))
    gate.set()
    (run, *_) = wait_ended(household)
    assert time.monotonic() - began < 30
    assert run["outcome"] == "flushed"
    handoffs = household.product.rows("ada", "SELECT text, origin FROM handoff")
    assert handoffs == [{"text": HANDOFF, "origin": "model"}]
    assert not bed.journal(f"UNIT={SELF}", "UNIT_RESULT=timeout")
    (_, again, *_) = wait_ended(household, 2)
    assert again["outcome"] == "result"
    assert HANDOFF in json.dumps(works.requests[-1].body)


def test_a_self_in_the_middle_of_its_work_ends_in_time_and_goes_on_later(
    household: Household, works: MessagesApi, room: str
) -> None:
    works.script(call("Bash", prefix(20_000), command="echo a > a.txt; sleep 600"))
    ask(household)
    wait_until("its first file", lambda: work(household, "a.txt").exists(), 40)
    bed, began = household.bed, time.monotonic()
    bed.systemctl("stop", SELF)
    assert time.monotonic() - began < 5
    (run, *_) = wait_ended(household)
    assert run["outcome"] == "held"
    (_, again, *_) = wait_ended(household, 2)
    assert (again["outcome"], again["result"]) == ("result", "I wrote it.")


def test_a_self_that_goes_round_for_too_long_is_ended_in_order_and_goes_on_later(
    household: Household, works: MessagesApi, room: str
) -> None:
    bed = household.bed
    assert bed.show(SELF, "RuntimeMaxUSec")["RuntimeMaxUSec"] == "2d"
    works.script(call("Bash", prefix(20_000), command="echo a > a.txt; sleep 600"))
    try:
        bed.drop_in(SELF, "RuntimeMaxSec=8")
        ask(household)
        (run, *_) = wait_ended(household)
        assert (run["outcome"], work(household, "a.txt").read_text()) == ("held", "a\n")
    finally:
        bed.drop_in(SELF)
    (_, again, *_) = wait_ended(household, 2)
    assert again["outcome"] == "result"


@pytest.mark.parametrize("how", ["killed", "hung"])
def test_a_self_that_is_killed_or_hangs_leaves_no_process_and_its_work_is_taken_up_again(
    household: Household, works: MessagesApi, room: str, how: str
) -> None:
    bed, mark = household.bed, "/run/mind/hung"
    bed.path(mark).unlink(missing_ok=True)
    try:
        if how == "hung":
            bed.drop_in(SELF, f"Environment=MIND_CRASH_AT=self.fed:hang MIND_CRASH_MARK={mark}", "WatchdogSec=4")
            works.default = Prose("I wrote it.")
        else:
            works.script(call("Bash", prefix(20_000), command="echo a > a.txt; setsid sleep 600 & sleep 600"))
        ask(household)
        if how == "hung":
            wait_until("it to hang", lambda: bed.path(mark).exists(), 40)
            wait_until("the watchdog", lambda: bed.journal(f"UNIT={SELF}", "UNIT_RESULT=watchdog"), 20)
        else:
            wait_until("its first file", lambda: work(household, "a.txt").exists(), 40)
            old = [process.pid for process in bed.processes_of(SELF)]
            bed.systemctl("kill", "--kill-whom=main", "--signal=KILL", SELF)
            wait_until("all of it to be gone", lambda: not [pid for pid in old if Path(f"/proc/{pid}").exists()], 5)
        first, last, *_ = wait_ended(household, 2)
        assert first["outcome"] == "dead"
        assert (last["outcome"], last["result"]) == ("result", "I wrote it.")
        household.wait_gone("ada")
    finally:
        bed.drop_in(SELF)


def test_a_persona_speaks_through_the_cli_in_its_sandbox_inside_her_unit(household: Household, works: MessagesApi) -> None:
    bob = household.person()
    words = ("--provider", "claude", "--base-url", works.url, "--model", "claude-sonnet-4-5")
    her = household.new(
        "ada", *words, model={"cli": CLI, "credential": "api-key"}, spend={"day_usd": 100.0}, persona={"linger_s": 3.0}
    )
    household.bed.write("/etc/mind/credentials/model/ada.model-key", KEY, 0o600)
    household.enable("ada")
    household.product.mind("dial", "ada", "--base-run-usd", "20")
    room = household.talk("ada", bob, her)
    said = {"room": "r1", "text": "hello yourself", "reply_to": None, "thread": None}
    works.default = Structured({"say": [said], "react": []})
    bob.send(room, "hello")
    assert bob.wait_text(room, her) == ["hello yourself"]
    unit = "mind-persona@ada.service"
    processes = household.bed.processes_of(unit)
    assert {process.user for process in processes} == {int(household.bed.run("id", "-u", "mind-persona").stdout)}
    assert any("bwrap" in process.command for process in processes)
    assert " · warm 4 m · " in wait_until(
        "the figures", lambda: s if "Waiting" in (s := household.bed.show(unit, "StatusText")["StatusText"]) else "", 5
    )
    assert {request.headers["x-api-key"] for request in works.requests} == {KEY}
    household.wait_gone("ada")
    assert not household.bed.processes_of(unit)
