"""Where the models' keys are while everybody works: in the credentials, the organs that call, and the header of a call alone.

`ada` talks over an OpenAI-like server and works over the `claude` CLI, `bea` talks over the CLI. Both servers quote the key back
when they refuse it. What children hold is looked for in their memory, too.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mind_body.host.process import list_descendants
from mind_body.host.secrets import write_secret
from tests.parts_present import require_part
from tests.real.parts.chat_api import ChatApi, Request, answer_with, fault, open_chat_api
from tests.real.parts.company import HOST, Company, new_mail
from tests.real.parts.memory import read_memory
from tests.real.parts.messages_api import Fault, MessagesApi, Prose, Structured, call, scripted_messages_api
from tests.real.parts.scene import Scene, wait_until
from tests.real.parts.synapse import Homeserver

pytestmark = pytest.mark.real

KEYS = {
    "ada.model-key": "sk-canary-4f1f06ad",
    "ada.self-key": "sk-ant-canary-9c0b77e2",
    "bea.model-key": "sk-ant-oat-canary-c1f35a",
}
CLI = {"model": "claude-sonnet-4-5", "credential": "api-key"}


class Cage:
    """The house, with every key in its place."""

    def __init__(self, scene: Scene, chat: ChatApi, works: MessagesApi, talks: MessagesApi) -> None:
        self.scene, self.chat, self.works, self.talks = scene, chat, works, talks
        self.company = Company(scene, chat)
        people = {"operators": [self.company.bob.user_id]}
        own = {**CLI, "enabled": True, "base_url": works.url, "linger_s": 0}
        self.company.add("ada", {"people": people, "model": {"credential": "api-key"}, "self": own})
        self.company.add("bea", {"model": {**CLI, "provider": "claude", "base_url": talks.url, "credential": "oauth-token"}})
        for name, key in KEYS.items():
            write_secret(scene.home.credentials / name, key)

    def children(self) -> list[int]:
        """Everything that runs below the organs."""
        return [child for pid in self.scene.organs() for child in list_descendants(pid)]

    def shown(self) -> bytes:
        """Environment and command line of `mind up`, the organs, and their children."""
        assert self.scene.process is not None
        near = {self.scene.process.pid, *self.scene.organs(), *self.children()}
        return b"".join(read(Path(f"/proc/{pid}/{name}")) for pid in near for name in ("environ", "cmdline"))

    def files_with_keys(self) -> set[str]:
        found = [path for path in self.scene.directory.rglob("*") if path.is_file() and holds_key(read(path))]
        return {str(path.relative_to(self.scene.directory)) for path in found}


@pytest.fixture
def cage(homeserver: Homeserver, tmp_path: Path) -> Iterator[Cage]:
    require_part("claude")
    require_part("bubblewrap")
    with ExitStack() as stack:
        chat = stack.enter_context(open_chat_api(answer_with(answer)))
        works = stack.enter_context(scripted_messages_api(Prose("I wrote it.")))
        talks = stack.enter_context(scripted_messages_api())
        scene = Scene(homeserver, tmp_path / "home", **HOST, log_level="debug")
        stack.callback(scene.close)
        yield Cage(scene, chat, works, talks)


def answer(request: Request) -> dict[str, Any]:
    """Work is begun at the word "work"."""
    mail = new_mail(request)
    if not mail:
        return {"say": [], "react": []}
    brief = {"brief": "Write it.", "asked_in": mail[-1].handle, "repo": "site", "campaign": None}
    say = {"room": mail[-1].room, "text": f"re: {mail[-1].text}", "reply_to": None, "thread": None}
    return {"say": [say], "react": [], "start_self_run": brief if mail[-1].text == "work" else None, "tell_self": None}


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has just ended
        return b""


def holds_key(text: bytes) -> bool:
    return any(key.encode() in text for key in KEYS.values())


def gateway_keys(pids: list[int]) -> set[bytes]:
    """What children call their organ's gateway with."""
    pattern = rb"\0ANTHROPIC_[A-Z_]+=([^\0]{16,})\0"
    return {found for pid in pids for found in re.findall(pattern, read(Path(f"/proc/{pid}/environ")))}


def test_a_models_key_is_nowhere_but_in_its_file_the_organs_and_the_calls(cage: Cage) -> None:
    scene, company = cage.scene, cage.company
    cage.talks.default = Structured({"say": [{"room": "r1", "text": "I hear you.", "reply_to": None, "thread": None}], "react": []})
    cage.works.script(
        call("Bash", command="env > env.txt; cat /proc/*/environ > all.txt; touch running; until [ -e go ]; do sleep 0.05; done")
    )
    scene.up()
    ada, bea = company.direct("ada"), company.direct("bea")
    company.bob.send(ada, "work")
    company.bob.send(bea, "hello")
    site = scene.home.work_dir("ada", "site")
    wait_until("the Self's tool", (site / "running").exists)
    company.bob.wait_text(bea, company.ids["bea"])
    children = cage.children()
    assert not holds_key(cage.shown())
    theirs, seen = gateway_keys(children), set[bytes]()
    assert theirs
    for pid in children:
        for piece in read_memory(pid):
            assert not holds_key(piece), f"a key is in the memory of {read(Path(f'/proc/{pid}/cmdline'))!r}"
            seen |= {key for key in theirs if key in piece}
    assert seen == theirs, "what they do hold is found by this look"
    (site / "go").touch()
    company.wait_settled()
    assert cage.files_with_keys() == {f"credentials/{name}" for name in KEYS}

    # Each server refuses the key and quotes it.
    cage.chat.default = fault(402, f"There is no credit left for {KEYS['ada.model-key']}")
    cage.talks.default = Fault(401, "authentication_error", f"invalid key {KEYS['bea.model-key']}")
    for room in (ada, bea):
        company.bob.send(room, "and now?")
    company.bob.wait_for("notices", lambda: company.notices(ada, "ada") and company.notices(bea, "bea"))
    assert not holds_key(cage.shown())
    scene.down()
    assert cage.files_with_keys() == {f"credentials/{name}" for name in KEYS}
    assert not holds_key(scene.journal().encode())
    assert {request.headers["authorization"] for request in cage.chat.requests} == {f"Bearer {KEYS['ada.model-key']}"}
    assert {request.headers["x-api-key"] for request in cage.works.requests} == {KEYS["ada.self-key"]}
    assert {request.headers["authorization"] for request in cage.talks.requests} == {f"Bearer {KEYS['bea.model-key']}"}
    bodies = [request.raw for request in cage.chat.requests]
    bodies += [request.raw for model in (cage.works, cage.talks) for request in model.requests + model.others]
    assert not any(map(holds_key, bodies))
