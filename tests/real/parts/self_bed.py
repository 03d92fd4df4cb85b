"""Wiring: the organ that works over the real `claude` CLI and the scripted Messages API, without homeserver and heartbeat.

A real lease is beside it, and this process is her Self before it. The test claims work as the heartbeat does, serves it in this
process (`bed.serve()`), and reads what is on record.
"""

import contextlib
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from mind_body.clock import now_ms
from mind_body.config import find_home
from mind_body.home import Home
from mind_body.host.peers import register_peer
from mind_body.host.poke import send_poke
from mind_body.host.process import list_descendants
from mind_body.host.secrets import write_secret
from mind_body.mind.follow_ups import admit_follow_up, open_self_run, read_open_follow_ups
from mind_body.mind.records import Run
from mind_body.mind.runs import read_run
from mind_body.mind.steers import admit_steer, carry_steers
from mind_body.mind.store import Mind, open_mind
from mind_body.mind.work_records import NewFollowUp
from mind_body.self_run import main
from tests.builders import insert_room, make_home, release
from tests.real.parts.lease import start_lease
from tests.real.parts.messages_api import MessagesApi, Request
from tests.real.parts.organ import Organ

OPERATOR = "@op:example.org"
ROOM = "!work:example.org"
KEY = "sk-ant-real-7d1c55e0a4"
NAME = "ada"


class SelfBed:
    """One Mind whose Self is before a scripted API."""

    def __init__(self, root: Path, api: MessagesApi, *, leased: bool = True, **settings: Any) -> None:
        self.api = api
        values = {
            "enabled": True,
            "model": "claude-sonnet-4-5",
            "base_url": api.url,
            "credential": "api-key",
            "linger_s": 0,
            **settings,
        }
        table = "\n".join(f"{key} = {json.dumps(value)}" for key, value in values.items())
        toml = f'[people]\noperators = ["{OPERATOR}"]\n[self]\n{table}\n'
        make_home(root, NAME, toml=toml, host='log_format = "json"\n')
        self.home: Home = find_home(str(root))
        self.home.run.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_secret(self.home.credentials / f"{NAME}.self-key", KEY)
        self.mind: Mind = open_mind(self.home.mind_db(NAME))
        release(self.home, NAME, base_run_usd=20.0)
        with self.mind.write() as tx:
            insert_room(tx, ROOM, direct=1)
        register_peer(self.home, os.getpid(), "self", NAME)
        self.lease = start_lease(self.home) if leased else None
        self._others = frozenset(list_descendants(os.getpid()))
        """What this process had already: a homeserver of the session's, the lease."""

    def work(self, workspace: str = "site") -> Path:
        return self.home.work_dir(NAME, workspace)

    def claim(self, brief: str = "Write hello into a.txt.", workspace: str = "site") -> Run:
        """Ask for work, and open a run for it."""
        with self.mind.write() as tx:
            new = NewFollowUp(f"direct:{ROOM}", ROOM, "$asked", OPERATOR, brief, workspace)
            admit_follow_up(tx, new, now_ms())
        return self.claim_next()

    def claim_next(self) -> Run:
        """A run for the oldest open work, as the heartbeat opens it."""
        with self.mind.write() as tx:
            work = read_open_follow_ups(tx)[0]
            run = open_self_run(tx, work, "a test", now_ms())
            assert run is not None
            carry_steers(tx, [one for one in (work.id, work.continues) if one], run.id)
        return run

    async def serve(self, within_s: float = 60.0) -> None:
        """The organ, until it leaves by itself."""
        with trio.fail_after(within_s):
            assert await main.run(self.home, NAME) == 0

    def organ(self) -> Organ:
        """The organ as a process of its own."""
        assert self.home.root is not None
        return Organ("self", self.home.root, NAME)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """The organ beside the body of this, which may wait for what it does."""
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.serve)
                yield

    def poke(self) -> None:
        send_poke(self.home.self_socket(NAME))

    def say(self, run: Run, text: str, kind: Any = "steer") -> None:
        """Somebody writes in the thread of the run."""
        with self.mind.write() as tx:
            assert admit_steer(tx, run.id, f"$said-{now_ms()}-{text[:10]}", kind, OPERATOR, text, now_ms())
        self.poke()

    def read(self, run: Run) -> Run:
        with self.mind.read() as tx:
            found = read_run(tx, run.id)
        assert found is not None
        return found

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        with self.mind.read() as tx:
            return [dict(row) for row in tx.execute(sql, values)]

    def said(self) -> list[str]:
        """Everything that the room is told, in order."""
        return [json.loads(row["content"])["body"] for row in self.rows("SELECT content FROM said ORDER BY place")]

    def children(self) -> list[int]:
        """Processes of ours that still live."""
        return [pid for pid in list_descendants(os.getpid()) if pid not in self._others]

    def processes(self) -> list[int]:
        """Processes on this host that know this Mind's directory: bwrap, and with it all that is inside."""
        mine = str(self.home.mind_dir(NAME)).encode()
        return [pid for pid in _pids() if pid != os.getpid() and mine in b"\0".join(map(os.fsencode, self.command(pid)))]

    @staticmethod
    def command(pid: int) -> list[str]:
        try:
            return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
        except OSError:
            return []

    def key_of_child(self) -> str:
        """The key that its child has in its environment."""
        for pid in self.children():
            for word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                if word.startswith(b"ANTHROPIC_API_KEY="):
                    return word.partition(b"=")[2].decode()
        raise AssertionError("no child has a key")

    @staticmethod
    def namespaces(above: Sequence[int] = ()) -> set[str]:
        """The pid namespaces of all processes that we see, or of those below the given ones; ours left out."""
        pids = [below for pid in above for below in list_descendants(pid)] if above else _pids()
        found = set()
        for pid in pids:
            with contextlib.suppress(OSError):
                found.add(str(Path(f"/proc/{pid}/ns/pid").readlink()))
        return found - {str(Path("/proc/self/ns/pid").readlink())}

    @staticmethod
    def journal(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
        """What the organ in this process has noted since this was last asked."""
        return [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]

    async def wait_file(self, name: str, workspace: str = "site") -> None:
        with trio.fail_after(30):
            while not (self.work(workspace) / name).exists():
                await trio.sleep(0.01)

    async def wait_given(self, run: Run) -> None:
        with trio.fail_after(30):
            while self.rows("SELECT 1 FROM steer WHERE run_id = ? AND state = 'queued'", run.id):
                await trio.sleep(0.01)

    async def wait_ended(self, run: Run) -> None:
        with trio.fail_after(40):
            while self.read(run).ended_at is None:
                await trio.sleep(0.01)

    async def wait_requests(self, count: int) -> list[Request]:
        with trio.fail_after(30):
            while len(self.api.requests) < count:
                await trio.sleep(0.01)
        return self.api.requests


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
