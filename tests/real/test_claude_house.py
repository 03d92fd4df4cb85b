"""A Persona over the real `claude` CLI, in her house: real Synapse, the organs under `mind up`, a person elsewhere."""

import itertools
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mind_body.host.process import list_descendants, resident_mb
from mind_body.host.secrets import write_secret
from mind_body.model.prefix import canonical_blocks, find_break
from tests.parts_present import require_part
from tests.real.parts.echo import read_mail
from tests.real.parts.lease import read_ledger
from tests.real.parts.messages_api import Held, MessagesApi, Request, Structured, scripted_messages_api
from tests.real.parts.person import Person
from tests.real.parts.scene import Scene, wait_until
from tests.real.parts.synapse import Homeserver

pytestmark = pytest.mark.real

REAL = "sk-ant-real-77c1e0d4"


def newest(request: Request) -> str:
    return str(request.body["messages"][-1]["content"][-1]["text"])


def echo(request: Request) -> Structured:
    """Answers the newest message; what goes before it in a fresh session is the last dialogue."""
    mail = read_mail(newest(request))[-1]
    return Structured({"say": [{"room": mail.room, "text": f"re: {mail.text}", "reply_to": None, "thread": None}], "react": []})


class ClaudeHouse:
    def __init__(self, scene: Scene, api: MessagesApi) -> None:
        self.scene = scene
        self.api = api
        model = {"provider": "claude", "model": "claude-sonnet-4-5", "base_url": api.url, "credential": "api-key"}
        self.her = scene.add_mind("ada", tables={"model": model, "persona": {"linger_s": 30.0}})
        write_secret(scene.home.credentials / "ada.model-key", REAL)
        self.bob: Person = scene.person("bob")

    def direct(self) -> str:
        room = self.bob.create_room(invite=(self.her,), direct=True)
        self.scene.wait_joined("ada", room)
        return room

    def ask(self, room: str, text: str, count: int) -> None:
        self.bob.send(room, text)
        self.bob.wait_text(room, self.her, count, 60)

    def persona(self) -> int:
        return int(wait_until("a persona", lambda: self.scene.organ_pid("persona"), 30))


@pytest.fixture
def house(homeserver: Homeserver, tmp_path: Path) -> Iterator[ClaudeHouse]:
    require_part("claude")
    require_part("bubblewrap")
    with scripted_messages_api(echo) as api:
        scene = Scene(homeserver, tmp_path / "home")
        try:
            yield ClaudeHouse(scene, api)
        finally:
            scene.close()


def test_20_turns_with_a_restart_of_the_organ_in_the_middle_are_one_growing_prefix(house: ClaudeHouse) -> None:
    house.scene.up()
    room = house.direct()
    texts = [f"message {number}" for number in range(20)]
    for number, text in enumerate(texts[:10], 1):
        house.ask(room, text, number)
    house.scene.wait_idle("ada")
    first = house.persona()
    child = list_descendants(first)
    assert child, "her child lingers"
    near = [first, *child, *house.scene.organs()]
    assert house.scene.organ_pid("lease") in near
    looked = b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for pid in near for name in ("environ", "cmdline"))
    os.kill(first, signal.SIGTERM)
    wait_until("the persona and her child to be gone", lambda: not any(map(resident_mb, [first, *child])), 10)
    for number, text in enumerate(texts[10:], 11):
        house.ask(room, text, number)
    house.scene.wait_idle("ada")
    assert house.persona() != first
    assert house.bob.texts(room, house.her) == [f"re: {text}" for text in texts]
    assert len(house.api.requests) == 20
    assert not house.api.others
    blocks = [canonical_blocks(request.body) for request in house.api.requests]
    assert [why for before, after in itertools.pairwise(blocks) if (why := find_break(before, after))] == []
    assert {request.headers["x-api-key"] for request in house.api.requests} == {REAL}
    assert REAL.encode() not in looked
    assert REAL not in house.scene.journal()
    assert "prefix.broken" not in house.scene.journal()
    assert len({row["session_id"] for row in house.scene.rows("ada", "SELECT session_id FROM turn")}) == 1
    house.scene.down()
    calls = read_ledger(house.scene.home, "SELECT mind, half, conversation, state, run, cost FROM call")
    assert len(calls) == 20
    assert {(row["mind"], row["half"], row["conversation"], row["state"]) for row in calls} == {
        ("ada", "persona", f"direct:{room}", "settled")
    }
    for run in house.scene.rows("ada", "SELECT id, cost_micro_usd FROM run"):
        assert sum(row["cost"] for row in calls if row["run"] == run["id"]) == run["cost_micro_usd"]
    files = [path for path in house.scene.directory.rglob("*") if path.is_file()]
    holding = [path for path in files if REAL.encode() in path.read_bytes()]
    assert [path.name for path in holding] == ["ada.model-key"]


def test_kill_9_in_the_middle_of_a_call_leaves_no_child_and_one_answer(house: ClaudeHouse) -> None:
    house.scene.up()
    room = house.direct()
    house.ask(room, "one", 1)
    house.scene.wait_idle("ada")
    gate = threading.Event()
    house.api.script(Held(gate, Structured({"say": [], "react": []})))
    house.bob.send(room, "two")
    wait_until("the call", lambda: len(house.api.requests) == 2, 30)
    persona = house.persona()
    child = list_descendants(persona)
    assert child
    os.kill(persona, signal.SIGKILL)
    wait_until("her child to be gone", lambda: not any(map(resident_mb, child)), 10)
    gate.set()
    assert house.bob.wait_text(room, house.her, 2, 60) == ["re: one", "re: two"]
    house.scene.wait_idle("ada")
    assert house.bob.texts(room, house.her) == ["re: one", "re: two"]
    sessions = [row["end_reason"] for row in house.scene.rows("ada", "SELECT end_reason FROM session ORDER BY opened_at")]
    assert len(sessions) == 2, "the transcript was ahead of the record, so it was not resumed"
    again = newest(house.api.requests[-1])
    assert "two" in again
    assert re.search("one", house.api.requests[-1].raw.decode()), "the last dialogue goes along"


def test_an_organ_that_ends_takes_at_most_five_seconds(house: ClaudeHouse) -> None:
    house.scene.up()
    room = house.direct()
    house.ask(room, "one", 1)
    house.scene.wait_idle("ada")
    child = list_descendants(house.persona())
    assert house.scene.down(deadline_s=5.0) == 0
    wait_until("her child to be gone", lambda: not any(map(resident_mb, child)), 2)


def test_an_organ_that_is_told_to_end_in_the_middle_of_a_call_ends_in_time_and_answers_later(house: ClaudeHouse) -> None:
    house.scene.up()
    room = house.direct()
    gate = threading.Event()
    house.api.script(Held(gate, Structured({"say": [], "react": []})))
    house.bob.send(room, "one")
    wait_until("the call", lambda: len(house.api.requests) == 1, 30)
    child = list_descendants(house.persona())
    assert house.scene.down(deadline_s=5.0) == 0
    wait_until("her child to be gone", lambda: not any(map(resident_mb, child)), 2)
    gate.set()
    house.scene.up()
    assert house.bob.wait_text(room, house.her, 1, 60) == ["re: one"]
