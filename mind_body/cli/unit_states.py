"""Door: whether each organ runs: by the service manager where that carries this host, by the locks that organs hold elsewhere.

1. A lock is the truth about a process: who is run by hand, beside its unit, runs. The manager knows the rest: what is being
   started, what has failed, whether a poke would start anything.
2. Where the manager does not answer, the locks are what is known; `fault` says so.
"""

from dataclasses import dataclass

from mind_body.errors import EXIT_OPERATOR, MindBodyError
from mind_body.home import Home
from mind_body.host.liveness import read_holder
from mind_body.host.manager import is_booted
from mind_body.host.units import DAEMONS, HALVES, Unit, Units, name_service, name_socket, name_target, read_units

_WORDS = {"active": "running", "reloading": "running", "activating": "starting", "deactivating": "stopping", "failed": "failed"}
RESTS = ("idle", "stopped", "failed")
"""What a unit may be whose organ somebody runs by hand."""


@dataclass(frozen=True, slots=True)
class States:
    """Of one host, at one instant."""

    home: Home
    units: Units | None
    """What the manager says; None where it carries nobody here, or does not answer."""
    fault: str = ""

    def of_daemon(self, organ: str) -> str:
        """`running`, `stopped`; under systemd also `starting`, `restarting`, `stopping`, `failed`."""
        said = "stopped" if self.units is None else _say(self.units.get(name_service(organ)), "stopped")
        return self._by_lock(said, organ)

    def of_half(self, half: str, name: str) -> str:
        """The same, and `idle`: a poke starts it. Without a manager that can only be taken for granted."""
        if self.units is None:
            return self._by_lock("idle", half, name)
        listens = _is_active(self.units.get(name_socket(half, name)))
        return self._by_lock(_say(self.units.get(name_service(half, name)), "idle" if listens else "stopped"), half, name)

    def is_started(self, name: str) -> bool | None:
        """Whether her sockets listen, all of them; None where no manager has them."""
        if self.units is None:
            return None
        sockets = [self.units.get(name_socket(half, name)) for half in HALVES]
        return all(map(_is_active, sockets)) and _is_active(self.units.get(name_target(name)))

    def list_told(self, names: list[str]) -> list[Unit]:
        """The daemons, then of these Minds' halves those that do not rest: who has something to say of itself."""
        if self.units is None:
            return []
        daemons = [self.units.get(name_service(organ)) or Unit(name_service(organ), "", "inactive", "dead") for organ in DAEMONS]
        halves = [self.units.get(name_service(half, name)) for name in names for half in HALVES]
        return [*daemons, *(unit for unit in halves if unit is not None and not unit.at_rest)]

    def _by_lock(self, said: str, organ: str, name: str | None = None) -> str:
        if said in RESTS and read_holder(self.home.lock_file(organ, name)) is not None:
            return "running"
        return said


def read_states(home: Home) -> States:
    """Never raises: a manager that does not answer is a fault beside what the locks say."""
    if home.root is not None or not is_booted():
        return States(home, None)
    try:
        return States(home, read_units())
    except MindBodyError as error:
        return States(home, None, str(error))


def describe(unit: Unit) -> str:
    """Its state in a word or two, and how it failed."""
    word = _say(unit, "stopped")
    if unit.exit_status == EXIT_OPERATOR and word in {"failed", "restarting"}:
        return f"{word}: it ended with {EXIT_OPERATOR}, an operator must act"
    if word not in {"failed", "restarting"}:
        return word
    how = f"it ended with {unit.exit_status}" if unit.result == "exit-code" else f"{unit.result or 'no reason given'}"
    return f"{word}: {how}"


def _say(unit: Unit | None, otherwise: str) -> str:
    if unit is None or unit.at_rest:
        return otherwise
    return "restarting" if unit.sub == "auto-restart" else _WORDS.get(unit.active, unit.active)


def _is_active(unit: Unit | None) -> bool:
    return unit is not None and unit.active == "active"
