"""Wiring: a host with the product, a homeserver and a scripted model beside it, Minds on it, people in rooms.

The bed serves many scenes, one after the other: each has Minds of its own, and takes them away at its end.
"""

import json
import tomllib
from collections.abc import Sequence
from typing import Any

from tests.real.parts.chat_api import ChatApi
from tests.real.parts.person import Person
from tests.real.parts.scene import _toml, wait_until
from tests.real.parts.synapse import Homeserver
from tests.real.parts.systemd_bed import Bed
from tests.real.parts.systemd_product import PYTHON, Product

PASSWORD = "her long password"
QUICK = {"persona": {"linger_s": 2.0, "debounce_s": 0.0, "debounce_max_s": 0.5}}
MAKE_MANY = """
import json, sys
from mind_body.cli.create import NewMind, create_mind
from mind_body.config import find_home
for one in json.load(sys.stdin):
    secrets = {"matrix-password": sys.argv[1]}
    create_mind(find_home(None), NewMind(one["name"], one["values"], secrets, released=True, by="a scene"), "2026-11-30T00:00:00Z")
"""
STARTING = "7d4958e842da4a758f6c1cdc7b36dcc5"
"""SD_MESSAGE_UNIT_STARTING (sd-messages.h)."""
DAEMONS = ("mind-mouth.service", "mind-heartbeat.service", "mind-lease.service")


class Household:
    """One scene's Minds and people."""

    def __init__(self, product: Product, homeserver: Homeserver, api: ChatApi) -> None:
        self.product = product
        self.homeserver = homeserver
        self.api = api
        self._minds: list[str] = []

    @property
    def bed(self) -> Bed:
        return self.product.bed

    def person(self, name: str = "bob") -> Person:
        return self.homeserver.person(name)

    def new(self, name: str, /, *words: str, released: bool = True, start: bool = False, **tables: dict[str, Any]) -> str:
        """A Mind, made by `mind new` and with settings as an operator would edit them; her user id. Only with `start` does
        `mind new` start what is hers.
        """
        account = self.homeserver.register(self.homeserver.unique(name), PASSWORD)
        self.product.mind(
            "new", name, "--no-input", "--homeserver", self.homeserver.base_url, "--user", account.user_id, "--password-file", "-",
            *(words or ("--provider", "openai", "--base-url", self.api.base_url, "--model", "scripted")),
            *(["--release"] if released else []),
            *([] if start else ["--no-start"]), text=PASSWORD,
        )  # fmt: skip
        self._minds.append(name)
        self.set(name, **{table: {**QUICK.get(table, {}), **tables.get(table, {})} for table in (*QUICK, *tables)})
        return account.user_id

    def new_many(self, names: Sequence[str], **tables: dict[str, Any]) -> dict[str, str]:
        """Many at once, as `mind new` makes each of them; name → user id."""
        users = {name: self.homeserver.register(self.homeserver.unique(name), PASSWORD).user_id for name in names}
        model = {"provider": "openai", "base_url": self.api.base_url, "model": "scripted"}
        values = {"model": model, **QUICK, **tables}
        plans = [
            {"name": name, "values": {"matrix": {"homeserver": self.homeserver.base_url, "user": user}, **values}}
            for name, user in users.items()
        ]
        self.bed.run(PYTHON, "-c", MAKE_MANY, PASSWORD, text=json.dumps(plans), timeout_s=600)
        self._minds += names
        return users

    def set(self, name: str, /, **tables: dict[str, Any]) -> None:
        """Change settings of hers."""
        path = self.bed.path(f"/etc/mind/minds/{name}.toml")
        values = tomllib.loads(path.read_text())
        path.write_text(_toml({table: {**values.get(table, {}), **tables.get(table, {})} for table in (*values, *tables)}))

    def enable(self, *names: str) -> None:
        """As `mind new` does it by itself: who has the credentials is started anew."""
        self.bed.systemctl("try-restart", "mind-mouth.service", "mind-lease.service")
        self.bed.systemctl("enable", "--now", *(f"mind@{name}.target" for name in names), timeout_s=300)
        for daemon in DAEMONS:
            self.bed.wait_state(daemon)

    def host(self, **values: Any) -> None:
        """Settings of the host, all of them: what is not named is as it comes. The scene's end takes them back."""
        self.bed.path("/etc/mind/config.toml").write_text(
            "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
        )

    def talk(self, name: str, person: Person, her: str) -> str:
        """A direct room that she has joined."""
        room = person.create_room(invite=(her,), direct=True)
        wait_until(
            f"{name} to join",
            lambda: self.product.rows(name, "SELECT 1 FROM room WHERE room_id = ? AND membership = 'joined'", room),
        )
        return room

    def persona(self, name: str) -> int:
        """Processes of her Persona."""
        return len(self.bed.processes_of(f"mind-persona@{name}.service"))

    def self_key(self, name: str, text: str) -> None:
        """What her Self's calls are made with."""
        self.bed.write(f"/etc/mind/credentials/model/{name}.self-key", text, 0o600)

    def starts(self, unit: str) -> int:
        """How often a unit was started, in vain or not, since the bed began."""
        return len(self.bed.journal(f"UNIT={unit}", f"MESSAGE_ID={STARTING}"))

    def wait_gone(self, name: str, deadline_s: float = 30.0) -> None:
        """Until nothing of hers runs."""
        for half in ("persona", "self"):
            self.bed.wait_state(f"mind-{half}@{name}.service", "inactive", deadline_s)

    def close(self) -> None:
        """Take the Minds away; the daemons go on."""
        if not self.bed.pid:
            return
        for name in self._minds:
            units = (f"mind@{name}.target", f"mind-persona@{name}.service", f"mind-self@{name}.service")
            self.bed.systemctl("disable", "--now", *units, check=False)
            self.bed.path(f"/etc/mind/minds/{name}.toml").unlink(missing_ok=True)
            self.bed.run("sh", "-c", f"rm -rf /var/lib/mind/{name} /etc/mind/persona/{name}.* /etc/mind/control/{name}")
            self.bed.run("sh", "-c", f"rm -f /etc/mind/credentials/*/{name}.* /var/lib/mind/mouth.d/{name}.*")
