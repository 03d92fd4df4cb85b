"""Wiring: do Minds live under a real systemd as they should, and what do many of them cost? Only root can run it.

    .venv/bin/python probes/systemd.py [--minds 1] [--asked 3]

The host is a bed: a real systemd as PID 1 over a throwaway copy of this one, with the product installed by its own `mind install`,
a homeserver and a scripted model beside it. Prints one JSON object:

    answered                 Minds that answered, of `asked`
    idle_persona_processes   processes of any Mind's own, before anybody spoke and after all has come to rest: must be 0
    exposure                 unit → figure of `systemd-analyze security`
    ready_s                  from the start of everything until every unit is active; `ready_s_by_minds` has fewer Minds, too, and
                             `syncing_s` is until the mouth hears for all of them
    rss_mb                   unit → resident megabytes (10^6 bytes) of its processes, at rest; `manager` is PID 1
    processes                how many the units have at rest: one per daemon
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.parts_present import PARTS
from tests.real.parts.chat_api import answer_with, open_chat_api
from tests.real.parts.echo import echo
from tests.real.parts.exposure import BOUNDS, parse_exposure
from tests.real.parts.person import Person
from tests.real.parts.scene import wait_until
from tests.real.parts.synapse import open_homeserver
from tests.real.parts.systemd_bed import Bed, open_bed
from tests.real.parts.systemd_product import Product, put_product, shown
from tests.real.parts.systemd_scene import DAEMONS, Household

HALVES = ("mind-persona@", "mind-self@")
REST_S = 3.0


def start_everything(household: Household, names: list[str]) -> tuple[float, float]:
    """As a host that boots: until every unit is active, and until every Mind's /sync is answered. Seconds."""
    bed = household.bed
    bed.systemctl("stop", "mind.target", timeout_s=300)
    began = time.monotonic()
    bed.systemctl("start", "mind.target", timeout_s=300)
    units = (*DAEMONS, *(f"mind@{name}.target" for name in names))
    wait_until("all to be active", lambda: set(bed.systemctl("is-active", *units, check=False).split()) == {"active"}, 300)
    ready = time.monotonic() - began
    wanted = f"{len(names)} Mind{'' if len(names) == 1 else 's'}, {len(names)} syncing"
    wait_until("every Mind to sync", lambda: bed.show(DAEMONS[0], "StatusText")["StatusText"] == wanted, 300)
    return ready, time.monotonic() - began


def count_halves(bed: Bed) -> int:
    return sum(process.unit.startswith(HALVES) for process in bed.processes())


def ask(household: Household, bob: Person, users: dict[str, str]) -> int:
    """Bob says something to each, all at once; how many answer."""
    rooms = {name: household.talk(name, bob, her) for name, her in users.items()}
    for room in rooms.values():
        bob.send(room, "hello")
    answered = 0
    for name, room in rooms.items():
        try:
            answered += bob.wait_text(room, users[name], deadline_s=120) == ["re: hello"]
        except AssertionError as error:
            print(f"{name}: {error}", file=sys.stderr)
    for name in users:
        household.wait_gone(name, 120)
    return answered


def weigh(bed: Bed) -> dict[str, float]:
    time.sleep(REST_S)
    found = {"manager": psutil.Process(bed.pid).memory_info().rss / 1e6}
    for process in bed.processes():
        if process.unit.startswith("mind-"):
            found[process.unit] = found.get(process.unit, 0.0) + psutil.Process(process.pid).memory_info().rss / 1e6
    return {unit: round(mb, 1) for unit, mb in sorted(found.items())}


def measure(household: Household, minds: int, asked: int) -> dict[str, object]:
    bed = household.bed
    exposure = {unit: parse_exposure(bed.run("systemd-analyze", "security", "--no-pager", unit).stdout) for unit in BOUNDS}
    users: dict[str, str] = {}
    ready: dict[int, float] = {}
    syncing: dict[int, float] = {}
    for count in sorted({1, (minds + 1) // 2, minds}):
        users |= household.new_many([f"m{n}" for n in range(len(users), count)])
        household.enable(*list(users))
        took = start_everything(household, list(users))
        ready[count], syncing[count] = (round(seconds, 2) for seconds in took)
    time.sleep(REST_S)
    idle = count_halves(bed)
    bob = household.person()
    answered = ask(household, bob, dict(list(users.items())[: min(asked, minds)]))
    rss = weigh(bed)
    return {
        "minds": minds,
        "asked": min(asked, minds),
        "answered": answered,
        "idle_persona_processes": idle + count_halves(bed),
        "exposure": exposure,
        "ready_s": ready[minds],
        "ready_s_by_minds": ready,
        "syncing_s": syncing[minds],
        "rss_mb": rss,
        "processes": sum(process.unit.startswith("mind-") for process in bed.processes()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minds", type=int, default=1)
    parser.add_argument("--asked", type=int, default=3, help="how many of them are talked to")
    options = parser.parse_args()
    if PARTS["systemd"].find() is None:
        print(json.dumps({"skipped": PARTS["systemd"].hint}))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started ends with the probe
    with tempfile.TemporaryDirectory(prefix="mind-systemd-") as scratch:
        root = Path(scratch)
        with (
            open_homeserver(root / "synapse", extra={"bcrypt_rounds": 4}) as homeserver,
            open_chat_api(answer_with(echo)) as api,
            open_bed(root / "host", shown()) as bed,
        ):
            put_product(bed)
            product = Product(bed)
            product.mind("install")
            found = measure(Household(product, homeserver, api), options.minds, options.asked)
    print(json.dumps(found))
    good = found["answered"] == found["asked"] and not found["idle_persona_processes"] and found["processes"] == len(DAEMONS)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
