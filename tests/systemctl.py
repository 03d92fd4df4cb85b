"""A manager that answers `systemctl` as the real one does, for tests of verbs; and a host laid out as under systemd."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from mind_body.home import Home
from mind_body.host.manager import Ran
from mind_body.host.units import DAEMONS, HALVES, SOCKETS, TARGET, Unit, list_units_of, name_service, name_socket, name_target

ASKERS = ("mind_body.cli.unit_states.is_booted", "mind_body.cli.control.is_booted")


@dataclass
class Systemctl:
    """Units by name. What is done to them is done at once, and remembered."""

    units: dict[str, Unit] = field(default_factory=dict)
    enabled: set[str] = field(default_factory=set)
    done: list[tuple[str, ...]] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)
    """Unit → what its last process said last."""
    watch: Callable[[str], None] = lambda _: None
    """Called with the verb before anything is done."""
    deaf: bool = False
    refuses: bool = False

    def put(self, name: str, active: str, sub: str = "", **more: Any) -> None:
        self.units[name] = Unit(name, "loaded", active, sub or active, **more)

    def carry(self, *names: str) -> None:
        """A host as `mind install` and `mind new` leave it."""
        self.put(TARGET, "active")
        for socket in SOCKETS:
            self.put(socket, "active", "running", result="success")
        for organ in DAEMONS:
            self.put(name_service(organ), "active", "running", status=f"the {organ} is well", result="success", invocation=organ)
        for name in names:
            self.enabled.add(name_target(name))
            self.put(name_target(name), "active")
            for half in HALVES:
                self.put(name_socket(half, name), "active", "listening", result="success")
                self.put(name_service(half, name), "inactive", "dead")

    def run(self, argv: Sequence[str], within_s: float = 1.0) -> Ran:
        assert within_s > 0
        if self.deaf:
            return Ran(1, "", "Failed to connect to bus: Permission denied")
        match tuple(argv):
            case ("systemctl", "list-units", *_):
                return Ran(0, "\n".join(f"{u.name} {u.load} {u.active} {u.sub} Somebody: does it" for u in self.units.values()), "")
            case ("systemctl", "show", _, "--", *names):
                return Ran(0, "\n\n".join(self._show(self.units[name]) for name in names), "")
            case ("systemctl", "stop" | "start" as verb, *names):
                return self._change(verb, names)
            case ("journalctl", *words):
                return Ran(0, self.words.get(words[-1].partition("=")[2], ""), "")
        raise AssertionError(argv)

    @staticmethod
    def _show(unit: Unit) -> str:
        code = 0 if unit.exit_status is None else 1
        more = "" if unit.name.endswith(".socket") else f"StatusText={unit.status}\nExecMainCode={code}\n"
        return f"{more}ExecMainStatus={unit.exit_status or 0}\nResult={unit.result}\nId={unit.name}\nInvocationID={unit.invocation}"

    def _change(self, verb: str, names: Sequence[str]) -> Ran:
        self.watch(verb)
        self.done.append((verb, *names))
        if self.refuses:
            return Ran(1, "", "Job failed.")
        wanted = {"stop": ("inactive", "dead"), "start": ("active", "listening")}[verb]
        own = {
            unit for name in names if name.startswith("mind@") for unit in list_units_of(name.partition("@")[2].partition(".")[0])
        }
        for name in {*names, *own}:
            if name in self.units and not (verb == "start" and name.endswith(".service")):
                self.units[name] = replace(self.units[name], active=wanted[0], sub=wanted[1])
        return Ran(0, "", "")


def stand_in(monkeypatch: pytest.MonkeyPatch) -> Systemctl:
    """The manager of this host, as verbs see it; it carries nobody yet."""
    found = Systemctl()
    for asker in ASKERS:
        monkeypatch.setattr(asker, lambda: True)
    for tool in ("mind_body.host.units.run_tool", "mind_body.host.manager.run_tool"):
        monkeypatch.setattr(tool, found.run)
    monkeypatch.setattr("mind_body.host.units.list_enabled", lambda: tuple(found.enabled))
    return found


def as_host(home: Home) -> Home:
    """The same places, as systemd's layout has them: credentials by kind, no root of its own."""
    under = Home(None, home.etc, home.state, home.run)
    for place, pattern in ((under.matrix_credentials, "*.matrix-*"), (under.model_credentials, "*-key")):
        place.mkdir(mode=0o700, exist_ok=True)
        for file in home.credentials.glob(pattern):
            file.rename(place / file.name)
    return under


def call_verb(command: click.Command, home: Home, *words: str) -> Result:
    """A verb on such a host, in this process."""
    return CliRunner().invoke(command, list(words), obj=home)
