"""Door: somebody at matrix-nio (`nio_client.py`), for scenes. Two asyncio-free sides: calls go in, what was seen comes out."""

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.parts_present import ROOT
from tests.real.parts.synapse import Account, die_with_parent

Seen = dict[str, Any]


class SecondClient:
    """One account at a nio client in a process of its own. `seen` grows as things arrive."""

    def __init__(self, base_url: str, account: Account) -> None:
        self.user_id = account.user_id
        self.seen: list[Seen] = []
        self._answers: queue.Queue[Seen] = queue.Queue()
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.real.parts.nio_client", base_url, account.user_id, account.token],
            cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent,  # noqa: PLW1509
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def call(self, method: str, **words: Any) -> Seen:
        """nio's AsyncClient.method(**words); what it answered. An error answer is a failed test."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([method, words]) + "\n")
        self._process.stdin.flush()
        answer = self._answers.get(timeout=60)
        assert "Error" not in answer["kind"], f"{method}: {answer['kind']}"
        return answer

    def create_room(self, *invite: str, direct: bool = False, public: bool = False) -> str:
        preset = "public_chat" if public else "trusted_private_chat" if direct else "private_chat"
        return str(self.call("room_create", invite=invite, is_direct=direct, preset=preset)["room"])

    def send(self, room: str, body: str, **extra: Any) -> str:
        content = {"msgtype": "m.text", "body": body, **extra}
        return str(self.call("room_send", room_id=room, message_type="m.room.message", content=content)["event"])

    def wait_for(self, what: str, check: Callable[[], Any], deadline_s: float = 60.0) -> Any:
        """The first truthy answer of `check`, looked at whenever something was seen."""
        end = time.monotonic() + deadline_s
        with self._changed:
            while not (found := check()):
                left = end - time.monotonic()
                assert left > 0, f"waited {deadline_s} s in vain for {what}; seen: {self.seen[-10:]}"
                self._changed.wait(left)
        return found

    def messages(self, room: str, sender: str) -> list[Seen]:
        """What somebody said in a room, as this client has it."""
        return [one for one in self.seen if (one["what"], one["room"], one.get("sender")) == ("message", room, sender)]

    def close(self) -> None:
        """It ends with its standard input."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            ((kind, what),) = json.loads(line).items()
            if kind == "answer":
                self._answers.put(what)
                continue
            with self._changed:
                self.seen.append(what)
                self._changed.notify_all()
        self._answers.put({"kind": "Error: the client has ended"})
