"""Wiring: what do the organs, and each further Mind, cost in resident memory?

    .venv/bin/python probes/memory.py [--minds 50] [--no-local]

Megabytes (10^6 bytes) resident, idle: nobody has spoken for two looks of the organs, so that every Mind rests (see `mind.store`),
and neither mouth nor heartbeat holds a descriptor of a mind. `per_mind_mb` is what mouth and heartbeat together grow by for each
further idle Mind, each with a room of her own; `persona_mb` is a lingering persona of an `openai` provider; `local_model_mb` is the
child that holds the embedded model. `idle_persona_processes` must be 0: a Mind that nobody talks to has no process of her own.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.real.parts.chat_api import ChatApi, open_chat_api, reply
from tests.real.parts.person import Person
from tests.real.parts.scene import Scene, wait_until
from tests.real.parts.synapse import Homeserver, open_homeserver

LOOK_S = 5.0
REST_WITHIN_S = 120.0
"""Twice two looks, since whoever closes a file last rouses the other once, and time for a slow machine."""


def resident_mb(pid: int | None) -> float:
    assert pid is not None
    return float(psutil.Process(pid).memory_info().rss) / 1e6


def holds_a_mind(pid: int | None) -> bool:
    assert pid is not None
    return any("/mind.db" in file.path for file in psutil.Process(pid).open_files())


def weigh(scene: Scene) -> tuple[float, float]:
    organs = [scene.organ_pid(organ) for organ in ("mouth", "heartbeat")]
    wait_until("every Mind to rest", lambda: not any(map(holds_a_mind, organs)), REST_WITHIN_S)
    return resident_mb(scene.organ_pid("mouth")), resident_mb(scene.organ_pid("heartbeat"))


def add_minds(scene: Scene, api: ChatApi, bob: Person, names: list[str]) -> None:
    rooms = {}
    for name in names:
        her = scene.add_mind(name, base_url=api.base_url)
        rooms[name] = bob.create_room(invite=(her,), direct=True)
    for name, room in rooms.items():
        wait_until(f"{name} to be known", lambda name=name: scene.home.mind_db(name).exists())  # type: ignore[misc]
        scene.wait_joined(name, room, 120)


def measure(homeserver: Homeserver, api: ChatApi, directory: Path, minds: int) -> dict[str, float]:
    scene = Scene(homeserver, directory, look_s=LOOK_S)
    bob = scene.person("bob")
    scene.up()
    try:
        add_minds(scene, api, bob, ["ada"])
        wait_until("no persona", lambda: scene.organ_pid("persona") is None)
        mouth, heartbeat = weigh(scene)
        add_minds(scene, api, bob, [f"m{n}" for n in range(minds)])
        more_mouth, more_heartbeat = weigh(scene)
        idle = sum("organ persona" in line for line in scene.organs().values())
        room = bob.create_room(invite=(her_id(scene, "ada"),), direct=True)
        scene.wait_joined("ada", room)
        bob.send(room, "hello")
        api.wait_for(1, 30)
        scene.wait_idle("ada")
        persona = resident_mb(scene.organ_pid("persona"))
    finally:
        scene.close()
    return {
        "minds": minds + 1,
        "mouth_mb": round(mouth, 1),
        "heartbeat_mb": round(heartbeat, 1),
        "persona_mb": round(persona, 1),
        "per_mind_mb": round((more_mouth + more_heartbeat - mouth - heartbeat) / minds, 3),
        "idle_persona_processes": idle,
    }


def measure_local(homeserver: Homeserver, directory: Path) -> float:
    scene = Scene(homeserver, directory)
    her = scene.add_mind(
        "eve", tables={"model": {"provider": "local", "model": "", "base_url": ""}, "persona": {"linger_s": 120.0}}
    )
    bob = scene.person("bob")
    scene.up()
    try:
        room = bob.create_room(invite=(her,), direct=True)
        scene.wait_joined("eve", room)
        bob.send(room, "What is your name?")
        bob.wait_text(room, her, deadline_s=120)
        children = psutil.Process(scene.organ_pid("persona")).children(recursive=True)
        return round(max(float(child.memory_info().rss) for child in children) / 1e6, 1)
    finally:
        scene.close()


def her_id(scene: Scene, name: str) -> str:
    return str(scene.rows(name, "SELECT user_id FROM identity")[0]["user_id"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minds", type=int, default=50)
    parser.add_argument("--no-local", action="store_true", help="leave the embedded model out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mind-memory-") as scratch:
        root = Path(scratch)
        with open_homeserver(root / "synapse") as homeserver, open_chat_api(reply({"say": [], "react": []})) as api:
            found: dict[str, float | None] = {**measure(homeserver, api, root / "a", options.minds)}
            found["local_model_mb"] = None if options.no_local else measure_local(homeserver, root / "b")
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
