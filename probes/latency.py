"""Wiring: how soon does a message reach the model, and how soon is an organ ready?

    .venv/bin/python probes/latency.py [--messages 200] [--starts 7]

Every message is timed twice in the same run, from its sender starting to send it: until the model request has left (persona
lingering, provider instant, debounce 0), and until a bare long-poll client has received it. `median_ratio` and `p99_ratio` compare
the two, `added_ms_median` is the median of their difference message by message: four durable commits included (T1, T2, adoption,
T3a). `start_ratio` is the worst organ's start until READY against the bare import of the same third-party modules, in pairs.
`cold_ms` is the median from send to model request where the persona has to be started first.
"""

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.real.parts.chat_api import ChatApi, open_chat_api, reply
from tests.real.parts.person import Person
from tests.real.parts.scene import Scene, wait_until
from tests.real.parts.synapse import Homeserver, open_homeserver

ORGANS = ("mouth", "heartbeat", "persona")
_IMPORTS = """
import sys
import mind_body.cli.main, mind_body.cli.organ, mind_body.{organ}.main
{more}
def foreign(name, module):
    ours = name.startswith(("mind_body", "__editable__", "_distutils"))
    return not ours and "site-packages" in (getattr(module, "__file__", None) or "")
print(','.join(name for name, module in sys.modules.items() if foreign(name, module)))
"""
"""Every third-party module that an organ has loaded when it starts: submodules too, since packages load them late."""

PERSONA = {"linger_s": 600.0, "debounce_s": 0.0, "counterpart_turns": 100_000}
"""She is asked more often than one account may ask her in a day."""


QUIET_S = 0.05
"""Before each message, both wait in a /sync of theirs: what became of the one before is over."""


class BareClient:
    """A client that does nothing but receive: /sync again and again, noting when each message came.

    After a message it rests until it is told to listen: its next /sync, and what that costs the homeserver, would be in the way of
    what is measured beside it.
    """

    def __init__(self, person: Person) -> None:
        self.seen: dict[str, float] = {}
        self._person = person
        self._stop = threading.Event()
        self._listen = threading.Event()
        person.sync()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        while not self._stop.is_set():
            self._listen.wait()
            answer = self._person.sync(2.0)
            now = time.monotonic()
            for joined in answer.get("rooms", {}).get("join", {}).values():
                for event in joined["timeline"]["events"]:
                    self._listen.clear()
                    self.seen[event["event_id"]] = now

    def listen(self) -> None:
        self._listen.set()

    def close(self) -> None:
        self._stop.set()
        self._listen.set()
        self._thread.join()


def measure_messages(homeserver: Homeserver, api: ChatApi, directory: Path, count: int, cold: int) -> dict[str, float]:
    scene = Scene(homeserver, directory)
    her = scene.add_mind("ada", base_url=api.base_url, tables={"persona": PERSONA})
    bob, witness = scene.person("bob"), scene.person("witness")
    scene.up()
    try:
        room = bob.create_room(invite=(her, witness.user_id))
        witness.join(room)
        scene.wait_joined("ada", room)
        bare = BareClient(witness)
        ours, theirs = [], []
        for number in range(count + 5):
            bare.listen()
            time.sleep(QUIET_S)
            began, request, event_id = ask(scene, api, bob, room, number)
            received = wait_until("the bare client", lambda event=event_id: bare.seen.get(event))  # type: ignore[misc]
            if number >= 5:  # the first open connections and the persona
                ours.append((request - began) * 1000)
                theirs.append((received - began) * 1000)
        colds = [ask_cold(scene, api, bob, room, count + 5 + n) for n in range(cold)]
        bare.close()
    finally:
        scene.close()
    return {
        "messages": count,
        "median_ratio": round(statistics.median(ours) / statistics.median(theirs), 3),
        "p99_ratio": round(percentile(ours, 99) / percentile(theirs, 99), 3),
        "added_ms_median": round(statistics.median(a - b for a, b in zip(ours, theirs, strict=True)), 2),
        "request_ms_median": round(statistics.median(ours), 2),
        "bare_ms_median": round(statistics.median(theirs), 2),
        "cold_ms": round(statistics.median(colds), 1),
    }


def ask(scene: Scene, api: ChatApi, bob: Person, room: str, number: int) -> tuple[float, float, str]:
    """When sending began, when the model request was there, and the event's id. Returns when she is at rest again."""
    before = len(api.requests)
    began = time.monotonic()
    event_id = bob.say_to(room, her_id(scene), f"message {number}")
    request = api.wait_for(before + 1, 30)[before].at
    scene.wait_idle("ada")
    return began, request, event_id


def her_id(scene: Scene) -> str:
    return str(scene.rows("ada", "SELECT user_id FROM identity")[0]["user_id"])


def ask_cold(scene: Scene, api: ChatApi, bob: Person, room: str, number: int) -> float:
    pid = scene.organ_pid("persona")
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        wait_until("the persona to leave", lambda: scene.organ_pid("persona") is None)
    began, request, _ = ask(scene, api, bob, room, number)
    return (request - began) * 1000


def percentile(values: list[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def measure_starts(homeserver: Homeserver, api: ChatApi, directory: Path, pairs: int) -> dict[str, float]:
    """Organ start to READY against a bare import of the same packages, in turn."""
    scene = Scene(homeserver, directory)
    scene.add_mind("ada", base_url=api.base_url)
    found = {}
    for organ in ORGANS:
        more = "import mind_body.model.openai" if organ == "persona" else ""
        packages = subprocess.run(
            [sys.executable, "-c", _IMPORTS.format(organ=organ, more=more)], check=True, capture_output=True, text=True
        ).stdout.strip()
        bare = [sys.executable, "-c", f"import {packages}"]
        ready, imported = [], []
        for _ in range(pairs + 1):
            ready.append(time_to_ready(scene, organ))
            began = time.monotonic()
            subprocess.run(bare, check=True, stderr=subprocess.DEVNULL)
            imported.append(time.monotonic() - began)
        found[organ] = statistics.median(ready[1:]) / statistics.median(imported[1:])
    return {
        "start_ratio": round(max(found.values()), 3),
        **{f"start_ratio_{organ}": round(ratio, 3) for organ, ratio in found.items()},
    }


def time_to_ready(scene: Scene, organ: str) -> float:
    path = scene.directory / "notify.sock"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(path))
        notify.settimeout(30)
        argv = [sys.executable, "-m", "mind_body", "--home", str(scene.directory), "organ", organ]
        argv += ["--mind", "ada"] if organ == "persona" else []
        environment = {"PATH": os.environ["PATH"], "HOME": str(scene.directory), "LANG": "C.UTF-8", "NOTIFY_SOCKET": str(path)}
        began = time.monotonic()
        with scene.log.open("ab") as log, subprocess.Popen(argv, env=environment, stdout=log, stderr=log) as process:
            try:
                while b"READY=1" not in notify.recv(4096):
                    pass
                took = time.monotonic() - began
            finally:
                process.terminate()
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--cold", type=int, default=5)
    parser.add_argument("--starts", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mind-latency-") as scratch:
        root = Path(scratch)
        with open_homeserver(root / "synapse") as homeserver, open_chat_api(reply({"say": [], "react": []})) as api:
            found = measure_messages(homeserver, api, root / "a", options.messages, options.cold)
            found |= measure_starts(homeserver, api, root / "b", options.starts)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
