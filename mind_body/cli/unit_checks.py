"""Door: what `mind doctor` looks at where systemd carries the Minds: the installation, the units, and what ended them.

The manager and the journal are asked before everything else: their tools are run to their end, one after the other.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mind_body.cli.finding import Check
from mind_body.cli.install_host import Host
from mind_body.cli.install_look import look_at
from mind_body.cli.installation import find_fault, find_installation
from mind_body.cli.render import list_words, render_plain
from mind_body.cli.unit_states import States, describe, read_states
from mind_body.config import list_minds
from mind_body.control.effective import Held
from mind_body.control.files import read_control
from mind_body.errors import EXIT_OPERATOR, MindBodyError
from mind_body.home import Home
from mind_body.host.manager import list_enabled, read_version, run_tool
from mind_body.host.units import DAEMONS, HALVES, SOCKETS, TARGET, Unit, name_service, name_socket, name_target

SHOWN = 3
"""Of what an installation lacks, so much is named."""
SAID = "mind: "
"""How the last sentence of a process begins that ends with an error (see `main`)."""
_LINES = 20


@dataclass(frozen=True, slots=True)
class Carried:
    """What systemd knows of this host's Minds."""

    states: States
    version: int | None = None
    enabled: frozenset[str] = frozenset()
    """Targets that start at boot."""
    said: Mapping[str, str] = field(default_factory=dict)
    """Unit that failed → the last sentence of its process, where it left one."""

    @property
    def home(self) -> Home:
        return self.states.home

    def find(self, name: str) -> Unit | None:
        return (self.states.units or {}).get(name)


def read_carried(home: Home) -> Carried | None:
    """None for a home directory, whose organs no unit runs."""
    if home.root is not None:
        return None
    states = read_states(home)
    if states.units is None:
        return Carried(states)
    ended = [unit for unit in states.units.values() if _has_failed(unit) and unit.invocation]
    said = {unit.name: words for unit in ended if (words := _read_last_words(unit))}
    return Carried(states, read_version(), frozenset(list_enabled()), said)


def check_carried(carried: Carried) -> list[Check]:
    """The host's own."""
    if carried.states.units is None:
        return [_no_manager(carried.states)]
    told = f"systemd {carried.version} carries this host's Minds"
    return [Check("systemd", ok=True, detail=told), _installation(carried.home), *_daemons(carried), *_strays(carried)]


def check_units_of(carried: Carried, name: str) -> list[Check]:
    """One Mind's: whether a poke would start her, as her brake has it."""
    if carried.states.units is None:
        return []
    failed = [_failed(carried, unit, name) for unit in _halves(carried, name) if _has_failed(unit)]
    return [_sockets(carried, name), *failed]


def _no_manager(states: States) -> Check:
    if states.fault:
        fix = "call it as root, or as somebody who may talk to systemd: `systemctl status mind.target`"
        return Check("systemd", ok=False, detail=states.fault, fix=fix)
    return Check("systemd", ok=True, detail="it does not run here: whether organs run is told from their locks alone")


def _installation(home: Home) -> Check:
    """Whether `mind install`, called from where this is, would change anything."""
    if os.geteuid() != 0:
        return Check("installation", ok=False, detail="only root sees all of it", fix="call `mind doctor` as root")
    host = Host(Path("/"))
    installation = find_installation(host.root)
    if fault := find_fault(installation, host.root):
        return Check("installation", ok=False, detail=fault, fix="call the `mind` that is installed, or install this one so")
    try:
        _, facts, plan = look_at(host, installation, read_version() or 0)
    except (MindBodyError, OSError) as error:
        return Check("installation", ok=False, detail=str(error), fix="mend it as it says, then `mind install`")
    if plan.actions:
        named = [f"{action.do} {action.about}" for action in plan.actions[:SHOWN]]
        more = f" and {len(plan.actions) - SHOWN} more" if len(plan.actions) > SHOWN else ""
        detail = f"not as release {installation.release} has it: {', '.join(named)}{more}"
        return Check("installation", ok=False, detail=detail, fix="`mind install` does it, and `mind install --dry-run` says what")
    where = facts.manifest.prefix if facts.manifest else ""
    edited = f"; edited, and left so: {', '.join(plan.kept)}" if plan.kept else ""
    return Check("installation", ok=True, detail=f"release {installation.release} of {home.etc}, units below {where}{edited}")


def _daemons(carried: Carried) -> Iterator[Check]:
    """One line where all is well, one for each that is not."""
    found = [check for check in (*_look_at_services(carried), *_look_at_sockets(carried), _look_at_boot(carried)) if check]
    if found:
        yield from found
    else:
        yield Check("units", ok=True, detail=f"{list_words(DAEMONS)} run, {len(SOCKETS)} sockets listen, {TARGET} starts at boot")


def _look_at_services(carried: Carried) -> Iterator[Check | None]:
    for organ in DAEMONS:
        unit, state = carried.find(name_service(organ)), carried.states.of_daemon(organ)
        if unit is not None and _has_failed(unit):
            yield _failed(carried, unit)
        elif state == "stopped":
            short = name_service(organ).removesuffix(".service")
            yield Check(f"unit {short}", ok=False, detail="it is stopped", fix=f"`systemctl start {short}`")
        elif unit is None or unit.at_rest:
            yield Check(f"unit mind-{organ}", ok=False, detail=f"it rests, and somebody runs the {organ} by hand", fix="end that")
        elif state != "running":
            yield Check(f"unit mind-{organ}", ok=True, detail=f"it is {state}")


def _look_at_sockets(carried: Carried) -> Iterator[Check]:
    for name in SOCKETS:
        unit = carried.find(name)
        if unit is None or unit.active != "active":
            state = describe(unit) if unit else "stopped"
            yield Check(f"unit {name}", ok=False, detail=f"it does not listen ({state})", fix=f"`systemctl restart {TARGET}`")


def _look_at_boot(carried: Carried) -> Check | None:
    if TARGET in carried.enabled:
        return None
    return Check(f"unit {TARGET}", ok=False, detail="it does not start at boot", fix=f"`systemctl enable --now {TARGET}`")


def _strays(carried: Carried) -> Iterator[Check]:
    """Targets of Minds that are not there any more."""
    known = {name_target(name) for name in list_minds(carried.home)} | {TARGET}
    for target in sorted(carried.enabled - known):
        detail = f"there is no Mind '{target.removeprefix('mind@').removesuffix('.target')}'"
        yield Check(f"unit {target}", ok=False, detail=detail, fix=f"`systemctl disable --now {target}`")


def _sockets(carried: Carried, name: str) -> Check:
    what, target = f"{name}: units", name_target(name)
    held, listens = isinstance(read_control(carried.home, name), Held), carried.states.is_started(name)
    at_boot = target in carried.enabled
    if listens:
        fix = "" if at_boot else f"`systemctl enable {target}`, or nothing starts her after the next boot"
        return Check(what, ok=True, detail=f"her sockets listen{'' if at_boot else '; she is not enabled'}", fix=fix)
    if held:
        fix = "" if at_boot else f"`systemctl enable {target}` before you release her"
        return Check(what, ok=True, detail=f"stopped, as she is held{'' if at_boot else '; she is not enabled'}", fix=fix)
    silent = [name_socket(half, name) for half in HALVES]
    silent = [socket for socket in silent if (unit := carried.find(socket)) is None or unit.active != "active"] or [target]
    detail = f"she is released, and nothing would start her: {list_words(silent)} {'is' if len(silent) == 1 else 'are'} not active"
    return Check(what, ok=False, detail=detail, fix=f"`systemctl enable --now {target}`")


def _halves(carried: Carried, name: str) -> list[Unit]:
    return [unit for half in HALVES if (unit := carried.find(name_service(half, name))) is not None]


def _failed(carried: Carried, unit: Unit, mind: str | None = None) -> Check:
    """How it ended, what it said last, and what mends that."""
    short = unit.name.removesuffix(".service")
    said = carried.said.get(unit.name, "")
    detail = f"{describe(unit)}{f': {said}' if said else ''}"
    look = f"`journalctl -xe -u {short}` has what led to it"
    if unit.exit_status != EXIT_OPERATOR:
        again = f"`systemctl reset-failed {short}` forgets it" if mind else f"`systemctl restart {short}` tries again"
        fix = f"{look}; {again}"
    elif mind:
        fix = f"mend that ({look}); she is started again when a file of hers has changed, or by `mind brake release {mind}`"
    else:
        fix = f"mend that ({look}), then `systemctl restart {short}`"
    return Check(f"{mind}: unit {short}" if mind else f"unit {short}", ok=False, detail=detail, fix=fix)


def _has_failed(unit: Unit) -> bool:
    return unit.name.endswith(".service") and (unit.active == "failed" or unit.sub == "auto-restart")


def _read_last_words(unit: Unit) -> str:
    """The journal's of exactly this start; nothing where it cannot be read."""
    match = f"_SYSTEMD_INVOCATION_ID={unit.invocation}"
    try:
        told = run_tool(["journalctl", "--quiet", "--no-pager", "--output=cat", f"--lines={_LINES}", match]).out
    except MindBodyError:
        return ""
    said = [line.removeprefix(SAID) for line in told.splitlines() if line.startswith(SAID)]
    return " ".join(render_plain(said[-1]).split()) if said else ""
