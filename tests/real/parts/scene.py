"""Wiring: a whole household for scenes: a home directory, Minds in it, `mind up` over them, people in rooms.

The Minds' model is whatever the scene scripted; the homeserver is the real Synapse. Everything that is started here is ended here,
by pid, and ends with us when we are killed. Organs' journals go to `up.log` in the home, so that a failed scene can be read.
"""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import psutil

from mind_body.config import find_home
from mind_body.control.effective import BrakeFile, DialFile
from mind_body.control.files import write_brake, write_dial
from mind_body.mind.store import open_mind
from tests.real.parts.person import Person
from tests.real.parts.synapse import Homeserver, die_with_parent

QUICK = {"look_s": 1.0, "start_grace_s": 8.0, "restart_min_s": 0.1, "restart_max_s": 1.0}
"""Host settings under which a scene does not wait for the real grace."""

Table = dict[str, Any]


class Scene:
    """One home. Not started until `up()`."""

    patience = 1.0
    """How many times as long as usual one waits for anything here."""
    victims: tuple[str, ...] = ("mouth", "heartbeat", "persona", "persona", "mouth", "lease", "up")
    """What a campaign of talk kills at random; `up` is everything at once (`cut`)."""

    def __init__(self, homeserver: Homeserver, directory: Path, **host: Any) -> None:
        self.homeserver = homeserver
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        tables = {key: value for key, value in host.items() if isinstance(value, dict)}
        plain = {key: value for key, value in host.items() if key not in tables}
        (directory / "config.toml").write_text(_toml({"": {**QUICK, **plain}, **tables}))
        self.home = find_home(str(directory))
        self.process: subprocess.Popen[bytes] | None = None
        self.log = directory / "up.log"
        self._mark = directory / "crashed"
        self._name_people()
        self._tables: dict[str, dict[str, Table]] = {}

    def _name_people(self) -> None:
        """Their names are this scene's alone: a homeserver serves many."""
        self._names = f"{time.time_ns():x}"[-9:]

    # -- who is there ------------------------------------------------------------------------------------------------

    def person(self, name: str = "bob") -> Person:
        """A fresh account with a client of its own."""
        return self.homeserver.person(f"{name}-{self._names}-")

    def add_mind(
        self,
        name: str,
        *,
        base_url: str = "",
        released: bool = True,
        persona_text: str = "",
        tables: dict[str, Table] | None = None,
    ) -> str:
        """A Mind with an account of her own; returns her user id. Tables are merged over quick defaults."""
        user_id = self.homeserver.register(self.homeserver.unique(f"{name}-{self._names}-"), "her long password").user_id
        defaults: dict[str, Table] = {
            "matrix": {"homeserver": self.homeserver.base_url, "user": user_id},
            "people": {},
            "model": {"provider": "openai", "model": "scripted", "base_url": base_url, "timeout_s": 30.0},
            "persona": {"linger_s": 5.0, "debounce_s": 0.0, "debounce_max_s": 0.5},
        }
        for path in (self.home.minds_dir, self.home.persona_file(name).parent, self.home.credentials):
            path.mkdir(parents=True, exist_ok=True)
        self.home.persona_file(name).write_text(persona_text or f"You are {name}, who answers in one sentence.\n")
        secret = self.home.credentials / f"{name}.matrix-password"
        secret.touch(0o600)
        secret.write_text("her long password")
        self.make_mind_file(name)
        write_dial(self.home, name, DialFile())
        write_brake(self.home, name, BrakeFile(state="released" if released else "held", by="a scene"))
        # The Mind's own file comes last: it is what makes organs see her.
        self._tables[name] = defaults
        self.configure(name, tables or {})
        return user_id

    def configure(self, name: str, tables: dict[str, Table]) -> None:
        """Change settings of hers, as an operator does: the rest stays as it was. Whoever reads sees all of it or nothing."""
        before = self._tables[name]
        merged = {key: {**before.get(key, {}), **tables.get(key, {})} for key in (*before, *(tables.keys() - before.keys()))}
        self._tables[name] = merged
        part = self.home.mind_file(name).with_suffix(".part")
        part.write_text(_toml(merged))
        part.rename(self.home.mind_file(name))

    def put_key(self, name: str, text: str) -> None:
        """What her model's calls are made with; whoever runs already may not see it."""
        key = self.home.model_key(name)
        key.touch(0o600)
        key.write_text(text)

    def brake(self, name: str, state: Literal["held", "released"]) -> None:
        """Turn the brake by its file alone: organs must see it without a poke."""
        write_brake(self.home, name, BrakeFile(state=state, by="a scene"))

    def dial(self, name: str, **values: float) -> None:
        write_dial(self.home, name, DialFile(**values))

    # -- the process tree --------------------------------------------------------------------------------------------

    def up(self, **env: str) -> None:
        """Start `mind up`, which ends with us however we end. Returns at once; scenes wait for what they want to see."""
        assert self.process is None
        environment = bare_environment(self.directory) | env
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mind_body", "--home", str(self.directory), "up"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one prctl, no lock
            )  # fmt: skip

    def down(self, how: int = signal.SIGTERM, deadline_s: float = 10.0) -> int:
        """End `mind up` and wait until nothing of it is left. Answers its exit code."""
        process, self.process = self.process, None
        assert process is not None
        process.send_signal(how)
        try:
            code = process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"`mind up` did not end within {deadline_s} s; see {self.log}") from None
        wait_until("every organ to be gone", lambda: not self.organs(), deadline_s)
        return code

    def cut(self) -> None:
        """All of it at one instant; it is not started again."""
        process, self.process = self.process, None
        assert process is not None
        process.kill()
        process.wait()

    def arm(self, point: str) -> dict[str, str]:
        """The variables under which it is died there once."""
        self._mark.unlink(missing_ok=True)
        return {"MIND_CRASH_AT": point, "MIND_CRASH_MARK": str(self._mark)}

    def died(self) -> bool:
        """At the point that was armed last."""
        return self._mark.exists()

    def organs(self) -> dict[int, str]:
        """pid → command line of every organ process of this home, found by its own --home argument."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    argv = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                except OSError:
                    continue
                if str(self.directory) in argv and "organ" in argv and "-c" not in argv:
                    found[int(entry.name)] = " ".join(argv)
        return found

    def left(self) -> list[str]:
        """Whatever has this household's directories among its mounts, where nothing should be left of it."""
        mine, found = str(self.directory), []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and mine in (entry / "mountinfo").read_text():
                    found.append((entry / "cmdline").read_text().replace("\0", " ")[:100])
        return found

    def organ_pid(self, organ: str) -> int | None:
        return next((pid for pid, line in self.organs().items() if f"organ {organ}" in line), None)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            for pid in self.organs():
                os.kill(pid, signal.SIGKILL)

    # -- what is in the mind -----------------------------------------------------------------------------------------

    def rows(self, name: str, sql: str, *args: Any) -> list[dict[str, Any]]:
        """Read her mind from outside, as a witness."""
        db = sqlite3.connect(f"file:{self.home.mind_db(name)}?mode=ro", uri=True, timeout=10)
        db.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in db.execute(sql, args)]
        finally:
            db.close()

    def ledger(self) -> Path:
        """What the lease has on record, for a witness, while nothing runs."""
        return self.home.ledger

    def make_mind_file(self, name: str) -> None:
        open_mind(self.home.mind_db(name), create=True).close()

    def forget(self, name: str, sql: str) -> None:
        """Change her mind by hand, while nothing runs."""
        with contextlib.closing(sqlite3.connect(self.home.mind_db(name), isolation_level=None)) as db:
            db.execute(sql)

    def wait_rows(
        self, name: str, what: str, sql: str, *args: Any, count: int = 1, deadline_s: float = 60.0
    ) -> list[dict[str, Any]]:
        found = wait_until(what, lambda: rows if len(rows := self.rows(name, sql, *args)) >= count else None, deadline_s)
        return list(found)

    def wait_joined(self, name: str, room: str, deadline_s: float = 60.0) -> None:
        self.wait_rows(
            name, f"{name} to join", "SELECT 1 FROM room WHERE room_id = ? AND membership = 'joined'", room, deadline_s=deadline_s
        )

    def wait_idle(self, name: str, deadline_s: float = 60.0) -> None:
        """Until nothing is pending, running, or waiting to be sent."""
        pending = """SELECT (SELECT count(*) FROM heard WHERE standing = 'mail' AND state = 'pending')
            + (SELECT count(*) FROM run WHERE ended_at IS NULL)
            + (SELECT count(*) FROM said WHERE state IN ('queued', 'attempted'))
            + (SELECT count(*) FROM gap) AS left"""
        wait_until(f"{name} to be idle", lambda: self.rows(name, pending)[0]["left"] == 0, deadline_s)

    def journal(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


def bare_environment(home: Path) -> dict[str, str]:
    """What a process of a scene gets: nothing of ours but where programs are, and where temporary files and sockets go."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "XDG_RUNTIME_DIR") if name in os.environ}
    return {**kept, "HOME": str(home), "LANG": "C.UTF-8"}


def wait_until(what: str, check: Callable[[], Any], deadline_s: float = 60.0) -> Any:
    """The first truthy answer, or an AssertionError that says what was waited for."""
    end = time.monotonic() + deadline_s
    while True:
        if found := check():
            return found
        assert time.monotonic() < end, f"waited {deadline_s} s in vain for {what}"
        time.sleep(0.05)


def is_gone(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


def _toml(tables: dict[str, Table]) -> str:
    lines = []
    for table, values in tables.items():
        lines += [f"[{table}]"] if table else []
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"
