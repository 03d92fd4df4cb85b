"""Door: what the service manager says of our units: what state each is in, and what it says of itself. And one Mind's units as the
brake has them: stopped when she is held, started again when she is released.

The manager is asked for one list of all that are loaded, then for the details of those that do something: a thousand idle Minds are
one question.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mind_body.errors import ChildError
from mind_body.host.manager import PATTERNS, change, list_enabled, run_tool

DAEMONS = ("mouth", "heartbeat", "lease")
HALVES = ("persona", "self")
TARGET = "mind.target"
SOCKETS = ("mind-lease.socket", "mind-lease-stream.socket", "mind-mouth.socket", "mind-heartbeat.socket")
"""Where the daemons are poked, and the lease is asked."""
_DETAILS = ("Id", "StatusText", "Result", "ExecMainCode", "ExecMainStatus", "InvocationID")
_EXITED = "1"
"""CLD_EXITED: the main process ended by itself (waitid(2))."""
_STOP_S = 30.0
"""A half of a Mind has ten to end in."""
_AT_ONCE = 2_000
"""Units in one question: the kernel bounds a command line."""


@dataclass(frozen=True, slots=True)
class Unit:
    """As systemctl(1) names it."""

    name: str
    load: str
    active: str
    """`active`, `activating`, `deactivating`, `failed`, `inactive`, …"""
    sub: str
    """`running`, `listening`, `auto-restart`, `dead`, …"""
    status: str = ""
    """What it says of itself (STATUS=, sd_notify(3))."""
    result: str = ""
    """How it last ended: `success`, `exit-code`, `signal`, `watchdog`, `timeout`, …"""
    exit_status: int | None = None
    """Its exit code, where it ended by itself."""
    invocation: str = ""
    """Of its last start: what the journal has of exactly that."""

    @property
    def at_rest(self) -> bool:
        return self.active == "inactive"

    @property
    def runs(self) -> bool:
        """Or is about to, or is about to end."""
        return self.active not in {"inactive", "failed"}


Units = Mapping[str, Unit]
"""By name. What is not loaded is not in it, and at rest."""


def name_service(organ: str, mind: str | None = None) -> str:
    return f"mind-{organ}@{mind}.service" if mind else f"mind-{organ}.service"


def name_socket(organ: str, mind: str) -> str:
    return f"mind-{organ}@{mind}.socket"


def name_target(mind: str) -> str:
    return f"mind@{mind}.target"


def list_units_of(mind: str) -> tuple[str, ...]:
    """All that is one Mind's alone."""
    sockets = (name_socket(half, mind) for half in HALVES)
    return (name_target(mind), *sockets, *(name_service(half, mind) for half in HALVES))


def read_units() -> Units:
    """Of this host. Raises ChildError where the manager does not answer, or not to this user."""
    listed = _ask(["list-units", "--all", "--plain", "--no-legend", "--full", *PATTERNS])
    units = {unit.name: unit for unit in map(_parse_line, listed.splitlines()) if unit is not None}
    busy = [unit.name for unit in units.values() if unit.name.endswith((".service", ".socket")) and not unit.at_rest]
    for name, details in _read_details(busy).items():
        units[name] = _with_details(units[name], details)
    return units


def stop_minds(names: Iterable[str]) -> None:
    """Their halves, and the sockets that would start them; enabled they stay. Raises MindBodyError."""
    units = read_units()
    running = [unit for name in names for unit in list_units_of(name) if unit in units and units[unit].runs]
    if running:
        change(["systemctl", "stop", *running], _STOP_S)


def resume_minds(names: Iterable[str]) -> None:
    """Those of them that are enabled: their sockets are there again. Raises MindBodyError."""
    enabled = set(list_enabled())
    targets = [target for target in map(name_target, names) if target in enabled]
    if targets:
        change(["systemctl", "start", *targets])


def _read_details(names: Sequence[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for start in range(0, len(names), _AT_ONCE):
        told = _ask(["show", f"--property={','.join(_DETAILS)}", "--", *names[start : start + _AT_ONCE]])
        found |= {block["Id"]: block for block in _blocks(told) if block.get("Id") in names}
    return found


def _blocks(told: str) -> Iterator[dict[str, str]]:
    for block in told.split("\n\n"):
        pairs = (line.partition("=") for line in block.splitlines())
        yield {key: value for key, _, value in pairs}


def _parse_line(line: str) -> Unit | None:
    words = line.split(maxsplit=4)  # UNIT LOAD ACTIVE SUB, and a description
    return Unit(words[0], words[1], words[2], words[3]) if len(words) >= 4 else None


def _with_details(unit: Unit, details: Mapping[str, str]) -> Unit:
    ended = details.get("ExecMainCode") == _EXITED
    return replace(
        unit,
        status=details.get("StatusText", ""),
        result=details.get("Result", ""),
        exit_status=int(details["ExecMainStatus"]) if ended else None,
        invocation=details.get("InvocationID", ""),
    )


def _ask(words: Iterable[str]) -> str:
    argv = ["systemctl", *words]
    ran = run_tool(argv)
    if ran.code:
        raise ChildError(f"systemd does not answer: {' '.join((ran.err or ran.out).split())}")
    return ran.out
