"""The persona as a process: what a kill at each boundary leaves, what the next start does, lingering, stopping."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from mind_body.clock import now_ms
from mind_body.host.liveness import read_holder
from mind_body.host.poke import open_poke_socket, send_poke
from mind_body.mind.records import Run, RunKind
from mind_body.mind.runs import open_run
from mind_body.persona.opening import Nothing
from tests.builders import hold, insert_run
from tests.persona_stage import CONVERSATION, ROOM, Stage, saying

ROOT = Path(__file__).parents[2]
DEADLINE_S = 20.0


class Process:
    """A stage whose persona runs in a process of her own."""

    def __init__(self, root: Path, toml: str) -> None:
        self.stage = Stage(root, toml)
        self.answers = root / "answer"
        self.calls = root / "calls"
        self.answers.write_text(json.dumps(saying("Hello.")))
        self.children: list[subprocess.Popen[str]] = []

    def open_run(self, cause: str = "mention") -> Run:
        with self.stage.mind.write() as tx:
            return open_run(tx, RunKind.PERSONA_TURN, [CONVERSATION], cause, "a test", now_ms())

    def start(self, crash_at: str = "") -> "subprocess.Popen[str]":
        command = [
            sys.executable,
            "-m",
            "tests.persona_stage",
            str(self.stage.home.root),
            "ada",
            str(self.answers),
            str(self.calls),
        ]
        environment = {**os.environ, "MIND_CRASH_AT": crash_at}
        child = subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stderr=subprocess.PIPE)
        self.children.append(child)
        return child

    def asks(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.calls.read_text().splitlines()] if self.calls.exists() else []

    def states(self) -> list[str]:
        return [row["state"] for row in self.stage.rows("SELECT state FROM turn ORDER BY rowid")]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def make_process(linger_s: float = 0, toml: str = "") -> Process:
        made.append(Process(tmp_path, f"[persona]\nlinger_s = {linger_s}\n{toml}"))
        return made[-1]

    yield make_process
    for process in made:
        for child in process.children:
            child.kill()
            child.wait()
            assert child.stderr is not None
            child.stderr.close()


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


async def answer_the_rest(stage: Stage) -> None:
    """What the next process does, in this one: starting one takes a second."""
    stage.restart()
    stage.provider.answer = lambda _: saying("Hello.")
    await stage.turn(run := stage.grant())
    assert isinstance(stage.open(run, turns=1), Nothing)


@pytest.mark.parametrize(
    ("point", "calls", "states", "said", "pending"),
    [
        ("persona.adopted", 0, [], 0, 1),
        ("persona.before-T3a", 0, [], 0, 1),
        ("persona.T3a", 0, ["opened"], 0, 1),
        ("persona.model-answered", 1, ["opened"], 0, 1),
        ("persona.T3b", 1, ["replied"], 1, 0),
        ("persona.run-ended", 1, ["replied"], 1, 0),
    ],
)
def test_a_kill_at_each_boundary_leaves_what_the_table_says_and_the_next_start_mends_it(
    make: Callable[..., Process], point: str, calls: int, states: list[str], said: int, pending: int
) -> None:
    scene = make()
    stage = scene.stage
    stage.hear("hello")
    run = scene.open_run()
    assert scene.start(point).wait(DEADLINE_S) == -signal.SIGKILL
    found = stage.run(run)
    assert found.holder is not None
    assert read_holder(stage.home.lock_file("persona", "ada")) is None, "dead is a free lock"
    assert (len(scene.asks()), scene.states(), len(stage.said()), len(stage.pending())) == (calls, states, said, pending)
    assert (found.ended_at is not None) == (point == "persona.run-ended")
    # What the heartbeat does, and the next start.
    if found.ended_at is None:
        stage.bury(run)
    if stage.pending():
        trio.run(answer_the_rest, stage)
    assert stage.said() == ["Hello."], "exactly once"
    assert stage.pending() == []
    assert stage.live() is None
    assert scene.states() == (["lost", "replied"] if states == ["opened"] else ["replied"])


def test_the_next_start_takes_a_lost_turns_batch_anew(make: Callable[..., Process]) -> None:
    scene = make()
    scene.stage.hear("hello")
    run = scene.open_run()
    assert scene.start("persona.T3a").wait(DEADLINE_S) == -signal.SIGKILL
    scene.stage.bury(run)
    scene.open_run()
    assert scene.start().wait(DEADLINE_S) == 0
    assert (scene.stage.said(), scene.states(), len(scene.asks())) == (["Hello."], ["lost", "replied"], 1)


def test_without_an_open_run_she_leaves_at_once(make: Callable[..., Process]) -> None:
    scene = make(linger_s=60)
    assert scene.start().wait(DEADLINE_S) == 0
    assert scene.asks() == []


def test_a_scheduled_wake_is_one_turn_in_a_run_that_ends_and_the_heartbeat_is_poked_after_it(make: Callable[..., Process]) -> None:
    scene = make(toml=f'beat = true\nhome_room = "{ROOM}"')
    stage = scene.stage
    scene.answers.write_text(json.dumps(saying("Good morning.") | {"urgency": 12, "tempo": 600}))
    pokes = open_poke_socket(stage.home.heartbeat_socket)
    run = scene.open_run("beat")
    child = scene.start()
    wait_until(lambda: stage.rows("SELECT * FROM pulse"))
    wait_until(lambda: select.select([pokes], [], [], 0)[0])
    assert child.wait(DEADLINE_S) == 0
    pokes.close()
    assert (stage.said(), scene.states(), stage.run(run).outcome) == (["Good morning."], ["replied"], "done")
    assert [(row["urgency"], row["tempo_s"]) for row in stage.rows("SELECT * FROM pulse")] == [(12, 600)]


def test_a_run_for_which_the_days_cap_is_reached_makes_no_call_and_says_why(make: Callable[..., Process]) -> None:
    scene = make(toml="[spend]\nday_usd = 0.5")
    stage = scene.stage
    seqs = stage.hear("hello")
    with stage.mind.write() as tx:
        insert_run(tx, id="work", kind="self_run", opened_at=now_ms(), ended_at=now_ms(), cost_micro_usd=500_000)
    run = scene.open_run()
    assert scene.start().wait(DEADLINE_S) == 0
    assert (stage.run(run).outcome, stage.pending(), scene.asks(), stage.said()) == ("spend", seqs, [], [])
    assert "$0.50 of the $0.50" in (stage.run(run).end_reason or "")


def test_while_held_she_adopts_nothing(make: Callable[..., Process]) -> None:
    scene = make(linger_s=60)
    scene.stage.hear("hello")
    run = scene.open_run()
    hold(scene.stage.home, "ada")
    assert scene.start().wait(DEADLINE_S) == 0
    assert (scene.stage.run(run).holder, scene.asks()) == (None, [])


def test_lingering_she_adopts_the_next_run_at_a_poke_in_the_same_session_and_then_leaves(make: Callable[..., Process]) -> None:
    scene = make(linger_s=1.5)
    stage = scene.stage
    stage.hear("one")
    scene.open_run()
    child = scene.start()
    wait_until(lambda: len(stage.said()) == 1 and stage.live() is None)
    stage.hear("two")
    scene.open_run()
    assert send_poke(stage.home.persona_socket("ada")) is None
    assert child.wait(DEADLINE_S) == 0
    first, second = scene.asks()
    assert second["blocks"][: len(first["blocks"])] == first["blocks"]
    assert stage.said() == ["Hello.", "Hello."]


def test_a_changed_configuration_holds_from_the_next_run_on(make: Callable[..., Process]) -> None:
    scene = make(linger_s=60)
    stage = scene.stage
    stage.hear("one")
    scene.open_run()
    child = scene.start()
    wait_until(lambda: stage.said() and stage.live() is None)
    file = stage.home.mind_file("ada")
    file.write_text(file.read_text().replace("linger_s = 60", "linger_s = 0"))
    stage.hear("two")
    scene.open_run()
    assert send_poke(stage.home.persona_socket("ada")) is None
    assert child.wait(DEADLINE_S) == 0, "she does not linger any more"
    assert stage.said() == ["Hello.", "Hello."]


def test_sigterm_in_the_middle_of_a_call_ends_the_run_in_order_within_five_seconds(make: Callable[..., Process]) -> None:
    scene = make(linger_s=60)
    stage = scene.stage
    scene.answers.write_text("wait")
    seqs = stage.hear("hello")
    run = scene.open_run()
    child = scene.start()
    wait_until(lambda: scene.states() == ["opened"])
    began = time.monotonic()
    child.terminate()
    assert child.wait(5) == 0
    assert time.monotonic() - began < 5
    assert (stage.run(run).outcome, scene.states(), stage.pending()) == ("stopped", ["failed"], seqs)


def test_sigterm_while_lingering_ends_her_at_once(make: Callable[..., Process]) -> None:
    scene = make(linger_s=60)
    scene.stage.hear("hello")
    scene.open_run()
    child = scene.start()
    wait_until(lambda: scene.stage.said() and scene.stage.live() is None)
    child.terminate()
    assert child.wait(5) == 0


def test_a_second_persona_of_a_mind_is_refused(make: Callable[..., Process]) -> None:
    scene = make(linger_s=60)
    scene.stage.hear("hello")
    scene.open_run()
    scene.start()
    wait_until(scene.stage.said)
    second = scene.start()
    _, errors = second.communicate(timeout=DEADLINE_S)
    assert second.returncode != 0
    assert "another process is the persona of 'ada' already" in errors


def test_a_missing_persona_file_ends_the_run_with_its_reason(make: Callable[..., Process]) -> None:
    scene = make()
    scene.stage.hear("hello")
    run = scene.open_run()
    scene.stage.home.persona_file("ada").unlink()
    child = scene.start()
    _, errors = child.communicate(timeout=DEADLINE_S)
    assert child.returncode != 0
    assert "ada.md does not exist" in errors
    assert scene.stage.run(run).outcome == "failed"
    assert "ada.md does not exist" in (scene.stage.run(run).end_reason or "")
