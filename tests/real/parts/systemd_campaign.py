"""Wiring: a household under a real systemd, for the crash campaigns: the same people, Minds and witnesses as with `mind up`.

Who dies is started again by its unit, by the heartbeat, or by a poke. A power cut is the end of the whole bed, which is booted
again on what it had written. Crash points are armed by drop-ins.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.real.parts.chat_api import ChatApi, answer_with, open_chat_api
from tests.real.parts.echo import echo
from tests.real.parts.scene import QUICK, Scene, Table, _toml, wait_until
from tests.real.parts.synapse import Homeserver
from tests.real.parts.systemd_bed import Bed, Process, open_bed
from tests.real.parts.systemd_product import CLAUDE, PYTHON, Product, put_product, shown
from tests.real.parts.systemd_scene import Household

DROP_IN = "/run/systemd/system"
UNITS = ("mind-mouth", "mind-heartbeat", "mind-lease", "mind-persona@", "mind-self@")
MARK = "/run/mind/crashed"
CHANGE = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=10) as db:
    db.execute(sys.argv[2])
"""


class HostScene(Scene):
    """One host. Its daemons run from `up()` to `down()`."""

    patience = 3.0
    victims = ("mouth", "heartbeat", "persona", "persona", "mouth", "lease", "up", "up")

    def __init__(self, product: Product, api: ChatApi, homeserver: Homeserver, directory: Path, **host: Any) -> None:
        self.homeserver, self.product, self.directory = homeserver, product, directory
        directory.mkdir(parents=True, exist_ok=True)
        self.log = directory / "journal.txt"
        self.household = Household(product, homeserver, api)
        self._name_people()
        self._minds: list[str] = []
        self._armed = False
        tables = {key: value for key, value in host.items() if isinstance(value, dict)}
        plain = {key: value for key, value in host.items() if key not in tables}
        self.bed.path("/etc/mind/config.toml").write_text(_toml({"": {**QUICK, **plain}, **tables}))
        self.down()

    @property
    def bed(self) -> Bed:
        return self.product.bed

    def add_mind(self, name: str, *, base_url: str = "", tables: dict[str, Table] | None = None, **_: Any) -> str:
        given: dict[str, Any] = dict(tables or {})
        if "self" in given:
            given["self"] = {"cli": f"{CLAUDE}/claude", **given["self"]}
        words = ("--provider", "openai", "--base-url", base_url, "--model", "scripted")
        user_id = self.household.new(name, *words, **given)
        self._minds.append(name)
        self.bed.systemctl("enable", f"mind@{name}.target")
        return user_id

    def configure(self, name: str, tables: dict[str, Table]) -> None:
        self.household.set(name, **tables)

    def put_key(self, name: str, text: str) -> None:
        self.bed.write(f"/etc/mind/credentials/model/{name}.model-key", text, 0o600)

    # -- units -------------------------------------------------------------------------------------------------------

    def up(self, **env: str) -> None:
        """Returns at once, as that of a scene; after a cut when the host has booted."""
        if not self.bed.pid:
            self.bed.boot()
            self._armed = False  # such a drop-in does not outlive a boot
        if env or self._armed:
            for unit in UNITS:
                lines = ["[Service]", *(f"Environment={key}={value}" for key, value in env.items())]
                self.bed.write(f"{DROP_IN}/{unit}.service.d/crash.conf", "\n".join(lines) + "\n")
            self.bed.systemctl("daemon-reload")
            self._armed = bool(env)
        self.bed.systemctl("start", "--no-block", "mind.target", *(f"mind@{name}.target" for name in self._minds))

    def down(self, how: int = 0, deadline_s: float = 30.0) -> int:
        """Stop them in order."""
        self.bed.systemctl("stop", "mind.target", timeout_s=4 * deadline_s)
        wait_until("every unit to be gone", lambda: not self.organs(), deadline_s)
        return how

    def cut(self) -> None:
        self.bed.kill()

    def arm(self, point: str) -> dict[str, str]:
        self.bed.path(MARK).unlink(missing_ok=True)
        return {"MIND_CRASH_AT": point, "MIND_CRASH_MARK": MARK}

    def died(self) -> bool:
        return self.bed.path(MARK).exists()

    def organs(self) -> dict[int, str]:
        return {process.pid: process.command for process in self._processes() if " organ " in process.command}

    def left(self) -> list[str]:
        return [f"{process.unit}: {process.command[:100]}" for process in self._processes()]

    def _processes(self) -> list[Process]:
        return [process for process in self.bed.processes() if process.unit.startswith("mind-")] if self.bed.pid else []

    def close(self) -> None:
        if self.bed.pid:
            self.log.write_text(self.bed.told())

    # -- what is in the mind -----------------------------------------------------------------------------------------

    def rows(self, name: str, sql: str, *args: Any) -> list[dict[str, Any]]:
        return self.product.rows(name, sql, *args)

    def forget(self, name: str, sql: str) -> None:
        db = f"/var/lib/mind/{name}/mind.db"
        self.bed.run(PYTHON, "-IS", "-c", CHANGE, db, sql, user="mind-heartbeat")

    def ledger(self) -> Path:
        """A copy, as it lies there: SQLite resolves a path into the bed wrongly."""
        copy = self.directory / "ledger.db"
        for end in ("", "-wal", "-shm"):
            lies, to = self.bed.path(f"/var/lib/mind/lease.d/ledger.db{end}"), copy.with_name(copy.name + end)
            to.unlink(missing_ok=True)
            if end != "-shm" and lies.exists():
                shutil.copyfile(lies, to)
        return copy

    def journal(self) -> str:
        return self.bed.told()


@contextmanager
def open_host(scratch: Path) -> Iterator[Product]:
    """A host with the product."""
    with open_bed(scratch / "bed" / "host", shown()) as bed:
        put_product(bed)
        product = Product(bed)
        product.mind("install")
        yield product


@contextmanager
def open_host_scene(scratch: Path) -> Iterator[Any]:
    """What makes the scene of a campaign."""
    with open_host(scratch) as product, open_chat_api(answer_with(echo)) as api:
        yield partial(HostScene, product, api)
