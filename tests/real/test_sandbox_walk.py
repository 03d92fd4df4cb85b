"""An attacker walks the inside of the real sandbox, as a Self's child would be held there, and gets nothing (design §8)."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from mind_body.config import find_home
from mind_body.control.effective import BrakeFile, DialFile
from mind_body.control.files import write_brake, write_dial
from mind_body.home import Home
from mind_body.host.fence import can_fence
from mind_body.host.peers import register_peer
from mind_body.host.process import start_child
from mind_body.host.secrets import write_secret
from mind_body.log import Journal
from mind_body.model.gateway import Gateway
from mind_body.model.http import open_client
from mind_body.model.lease import Lease, make_borrow, open_lease
from mind_body.model.price_file import read_prices
from mind_body.model.relay import Relay, Upstream
from mind_body.model.seat import Grant
from mind_body.self_run.launch import SWITCHES, WORK, SelfLaunch, render_argv, render_env
from tests.builders import make_home
from tests.parts_present import require_part
from tests.real.parts import walker
from tests.real.parts.lease import start_lease
from tests.real.parts.messages_api import MessagesApi, Prose, call, prefix, scripted_messages_api
from tests.real.parts.self_bed import KEY as SELF_KEY
from tests.real.parts.self_bed import SelfBed

pytestmark = pytest.mark.real

REAL = "sk-ant-real-7c41e0b2a9d6"
NEEDLE = "sk-ant-rea[l]-7c41e0b2a9d6"
"""Finds the credential and is not itself what it finds, so that the walker does not find itself."""
KEY = "mb-per-run-key"


@pytest.fixture(autouse=True)
def part() -> None:
    require_part("bubblewrap")


@dataclass
class Host:
    """What lies and runs outside, and must not be seen."""

    home: Home
    paths: list[str]
    sockets: list[str]
    abstract: list[str]
    pids: list[int]
    work: Path = field(init=False)
    config: Path = field(init=False)

    def __post_init__(self) -> None:
        self.work, self.config = self.home.mind_dir("ada") / "work" / "garden", self.home.mind_dir("ada") / "self" / "s1"
        for path in (self.work, self.config):
            path.mkdir(parents=True)
        (self.work / "walker.py").write_text(Path(walker.__file__).read_text())

    def launch(self, **changes: Any) -> SelfLaunch:
        fields: dict[str, Any] = {
            "binary": "/usr/bin/env",  # bound where claude would be; what runs is the walker
            "config_dir": str(self.config),
            "work_dir": str(self.work),
            "workspace": "garden",
            "model": "claude-sonnet-4-5",
            "session_id": "s1",
            "resume": False,
            "max_turns": 500,
            "run_cap_usd": 1.0,
            "gateway_url": "http://127.0.0.1:9",
            "key_kind": "api-key",
            "key": KEY,
        }
        return SelfLaunch(**(fields | changes))

    def walk(self) -> dict[str, Any]:
        """The walker in place of claude, under the same command line up to its name, with the same environment."""
        launch = self.launch()
        argv = render_argv(launch)
        told = {"needle": NEEDLE, "paths": self.paths, "sockets": self.sockets, "abstract": self.abstract, "pids": self.pids}
        argv[argv.index("--") + 1 :] = ["python3", "-IS", f"{WORK}/garden/walker.py", json.dumps(told)]
        done: dict[str, Any] = trio.run(_run, argv, render_env(launch))
        return done


async def _run(argv: list[str], env: dict[str, str]) -> dict[str, Any]:
    """As the driver starts its child: through the same door, from the main thread."""
    child = start_child(argv, env=env, stdin="null", stdout="pipe", stderr="null")
    try:
        assert child.stdout is not None
        with trio.fail_after(60):
            said = b"".join([chunk async for chunk in child.stdout])
            assert await child.wait() == 0, said
    finally:
        await child.aclose()
    found: dict[str, Any] = json.loads(said)
    return found


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A household with secrets, two Minds, sockets that listen, and a process that holds the credential in its memory."""
    (tmp_path / "home").mkdir()
    make_home(tmp_path / "home", "ada", "bea", toml='[self]\nenabled = true\ncredential = "api-key"\n')
    home = find_home(str(tmp_path / "home"))
    home.run.mkdir(mode=0o700, exist_ok=True)
    for name in ("ada", "bea"):
        write_brake(home, name, BrakeFile(state="released"))
        write_dial(home, name, DialFile())
        write_secret(home.credentials / f"{name}.self-key", REAL)
        write_secret(home.credentials / f"{name}.matrix-password", REAL)
    (home.mind_dir("bea") / "work" / "theirs").mkdir(parents=True)
    (home.mind_dir("bea") / "work" / "theirs" / "note.txt").write_text(REAL)
    left = Path("/tmp") / f"mind-walk-{os.getpid()}"
    left.write_text(REAL)
    here = (tmp_path, home.credentials, home.mind_db("ada"), home.mind_dir("bea"), home.run, home.ledger, left)
    paths = [str(path) for path in here]
    paths += ["/etc/shadow", "/etc/mind", "/var/lib/mind", "/run/mind", "/root", "/var", "/sys", "/boot", "/mnt"]
    with ExitStack() as stack:
        stack.callback(left.unlink)
        lease = start_lease(home)
        assert lease.process is not None
        ways = [str(home.heartbeat_socket), str(home.mouth_socket), str(home.persona_socket("ada"))]
        name = f"mind-walk-{os.getpid()}"
        for kind, address in ((socket.SOCK_STREAM, f"\0{name}"), *((socket.SOCK_DGRAM, way) for way in ways)):
            listening = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            listening.bind(address)
            if kind == socket.SOCK_STREAM:
                listening.listen()
        secretive = [sys.executable, "-c", f"import time; held = '{REAL}'; print(1, flush=True); time.sleep(600)"]
        other = stack.enter_context(subprocess.Popen(secretive, stdout=subprocess.PIPE, env={"TOKEN": REAL, "PATH": "/usr/bin"}))
        stack.callback(other.kill)
        assert other.stdout is not None
        other.stdout.readline()
        ways.append(str(home.lease_socket))
        yield Host(home, paths, ways, [name], [other.pid, lease.process.pid, os.getpid(), os.getppid()])


def test_nothing_outside_can_be_read_written_seen_or_reached(host: Host) -> None:
    got = host.walk()
    assert got["found"] == [], "the credential is inside"
    assert got["read"] == []
    assert got["written"] == ["/dev/shm", "/home/self", "/tmp", "/work/garden"]
    assert got["kernel"] == []
    assert got["mounted"] is False
    assert (got["peeked"], got["signalled"]) == ([], [])
    assert (got["sockets"], got["abstract"]) == ([], []) if can_fence() else ([], host.abstract)
    assert set(got["environ"].values()) & {REAL} == set()


def test_what_it_sees_is_the_sandbox_and_no_more(host: Host) -> None:
    got = host.walk()
    assert got["processes"]["1"].startswith("bwrap")
    assert all(line.startswith(("bwrap", "python3")) for line in got["processes"].values())
    assert set(got["traced"]) <= {int(pid) for pid in got["processes"]} | set(got["processes"])
    assert set(got["root"]) <= {
        "bin",
        "dev",
        "etc",
        "home",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "opt",
        "proc",
        "run",
        "sbin",
        "tmp",
        "usr",
        "work",
    }
    assert got["home"] == ["self"]
    assert (got["users"], got["me"]) == (["mind", "nobody"], ["mind", "/home/self", "mind"])
    assert not {"shadow", "mind", "machine-id", "ssh"} & set(got["etc"])
    assert set(got["devices"]) <= DEVICES
    assert {place for place in got["descriptors"].values() if place.startswith("/")} <= {"/dev/null", "/proc/self/fd", ""}
    assert set(got["environ"]) - set(SWITCHES) <= ENVIRONMENT


async def test_the_real_cli_s_own_tools_find_no_more_and_the_real_key_nowhere(host: Host, tmp_path: Path) -> None:
    require_part("claude")
    needle = f"{SELF_KEY[0]}[{SELF_KEY[1]}]{SELF_KEY[2:]}"
    with scripted_messages_api(Prose("I looked around.")) as api:
        bed = SelfBed(tmp_path / "self", api)
        told: dict[str, Any] = {
            "needle": needle,
            "paths": [*host.paths, *map(str, (bed.home.credentials, bed.home.mind_db("ada"), bed.home.ledger))],
        }
        mine = [str(bed.home.self_socket("ada")), str(bed.home.lease_socket)]
        told |= {"sockets": [*host.sockets, *mine], "abstract": host.abstract, "pids": host.pids}
        bed.work("site").mkdir(parents=True)
        (bed.work("site") / "walker.py").write_text(Path(walker.__file__).read_text())
        (bed.work("site") / "told.json").write_text(json.dumps(told))
        api.script(call("Bash", prefix(20_000), command='python3 -IS walker.py "$(cat told.json)" > got.json', timeout=60_000))
        run = bed.claim("Look around.")
        await bed.serve(within_s=90)
        assert bed.read(run).outcome == "result"
        got = json.loads((bed.work("site") / "got.json").read_text())
    assert (got["found"], got["read"], got["kernel"], got["peeked"], got["signalled"], got["sockets"]) == ([], [], [], [], [], [])
    assert got["abstract"] == ([] if can_fence() else host.abstract)
    assert got["written"] == ["/dev/shm", "/home/self", "/tmp", "/work/site"]
    assert {line.split(" ")[0].rpartition("/")[2] for line in got["processes"].values()} <= {
        "bwrap",
        "claude",
        "python3",
        "bash",
        "sh",
    }


DEVICES = {"console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm"} | {
    "stderr",
    "stdin",
    "stdout",
    "tty",
    "urandom",
    "zero",
}
ENVIRONMENT = {"PATH", "HOME", "LANG", "LC_CTYPE", "PWD", "CLAUDE_CONFIG_DIR", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"}


class Bed:
    """A gateway with one seat, before a scripted API, with the lease that a run would have."""

    def __init__(self, gateway: Gateway, lease: Lease, api: MessagesApi) -> None:
        self.gateway = gateway
        self.lease = lease
        self.api = api
        self.seat = gateway.open_seat()

    def grant(self) -> None:
        self.seat.grant = Grant(f"call-{next(RUNS)}", self.lease, whole_run=True)

    async def ask(self, key: str | None = None) -> int:
        body = {"model": "claude-sonnet-4-5", "max_tokens": 1000, "messages": [{"role": "user", "content": "hello"}]}
        async with httpx.AsyncClient(trust_env=False) as child:
            answer = await child.post(
                f"{self.gateway.url}/v1/messages", json=body, headers={"x-api-key": key or self.seat.key}, timeout=20
            )
        return answer.status_code


RUNS = count(1)


@asynccontextmanager
async def gateway(home: Home, *, cap_micro_usd: int) -> AsyncIterator[Bed]:
    write_dial(home, "ada", DialFile(heat=1.0, base_run_usd=cap_micro_usd / 1e6))
    write_brake(home, "ada", BrakeFile(state="released"))
    register_peer(home, os.getpid(), "self", "ada")
    journal = Journal("self", "ada")
    with scripted_messages_api(Prose("well")) as api:
        async with open_lease(home, "ada", journal) as lease, open_client(20.0) as client:
            lease.open_run(f"run-{next(RUNS)}")
            upstream = Upstream(api.url, "api-key", make_borrow(lease, "api-key"), read_prices(), "claude")
            door = Gateway(Relay(upstream, client, journal), journal)
            await door.listen()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(door.run)
                yield Bed(door, lease, api)
                nursery.cancel_scope.cancel()


async def test_the_key_opens_the_gateway_in_its_run_and_not_before_it_and_not_after_it(host: Host) -> None:
    async with gateway(host.home, cap_micro_usd=5_000_000) as bed:
        assert await bed.ask() == 403, "no run is live"
        bed.grant()
        assert [await bed.ask(), await bed.ask()] == [200, 200]
        assert await bed.ask(REAL) == 401, "the real one is no key here"
        bed.seat.close_grant()
        assert await bed.ask() == 403, "the run has ended"
        bed.gateway.close_seat(bed.seat)
        assert await bed.ask() == 401, "its child has ended"
        assert [request.headers.get("x-api-key") for request in bed.api.requests] == [REAL, REAL]


async def test_the_key_opens_nothing_beyond_the_runs_cap_or_while_she_is_held(host: Host) -> None:
    async with gateway(host.home, cap_micro_usd=20_000) as bed:
        bed.grant()
        answers = [await bed.ask() for _ in range(20)]
        assert answers[0] == 200
        assert answers[-1] == 403
        passed = answers.count(200)
        assert len(bed.api.requests) == passed < 20
    async with gateway(host.home, cap_micro_usd=5_000_000) as bed:
        bed.grant()
        write_brake(host.home, "ada", BrakeFile(state="held"))
        assert await bed.ask() == 403
        assert bed.api.requests == []
