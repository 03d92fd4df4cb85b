"""Rule: what the service manager is told in an installation, and in which order.

1. What is due is written down before anything is done, so that a run that was cut off is finished by the next. What nobody would
   notice any more is due no longer.
2. Daemons begin anew one after the other: the lease first, which the others ask. Their sockets stay, so that nothing is lost
   meanwhile. Where a socket or a target is another one, all of them begin anew together: systemd knows their order.
3. Halves of Minds end by themselves. Where a release changes the shape of a mind's file, everything that knows the old one ends
   before, and begins after.
4. What was stopped stays stopped, what an operator disabled stays so.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

from mind_body.cli.install_shapes import Action, Due, Manager

TARGET = "mind.target"
DAEMONS = ("mind-lease.service", "mind-mouth.service", "mind-heartbeat.service")
HALVES = ("mind-persona@", "mind-self@")


def target_of(mind: str) -> str:
    return f"mind@{mind}.target"


def find_due(before: Collection[Due], manager: Manager, due: Collection[Due]) -> tuple[Due, ...]:
    """What is to be told, of what was put off and of what is new."""
    return tuple(word for word, is_needed in _NEEDED.items() if (word in before or word in due) and is_needed(manager))


_NEEDED: dict[Due, Callable[[Manager], bool]] = {
    "catalog": lambda _: True,
    "reload": lambda manager: manager.booted,
    "enable": lambda manager: TARGET not in manager.enabled,
    "restart": lambda manager: manager.booted and bool(_running(manager)),
    "start": lambda manager: manager.booted and TARGET not in manager.active,
}


def plan_manager(
    due: Sequence[Due], manager: Manager, *, changed: Collection[str], minds: Sequence[str], behind: Sequence[str], start: bool
) -> Iterator[Action]:
    """`changed`: units that are others now. `behind`: Minds whose file is to be migrated. `start`: may units be touched now?"""
    if "catalog" in due:
        yield _run("catalog", "journalctl -x reads it", "journalctl", "--update-catalog")
    if "reload" in due:
        yield _run("reload", "units are others", "systemctl", "daemon-reload")
    if "enable" in due:
        yield _run("enable", "at boot", "systemctl", "enable", TARGET, *map(target_of, minds))
    if behind and (start or not _running(manager)):
        yield from _migrate(manager, behind, changed)
    elif "restart" in due and start:
        yield from _restart(manager, changed, "restart")
    if "start" in due and start:
        yield _run("start", "now", "systemctl", "start", TARGET, *map(target_of, minds))


def _restart(manager: Manager, changed: Collection[str], verb: str) -> Iterator[Action]:
    if TARGET in manager.active and any(not name.endswith((".service", ".slice")) for name in changed):
        yield _run("restart", "sockets are others", "systemctl", "restart", TARGET)
        return
    running = _running(manager)
    for unit in running:
        yield _run("restart" if unit == running[-1] else None, "this release has another", "systemctl", verb, unit)


def _migrate(manager: Manager, behind: Sequence[str], changed: Collection[str]) -> Iterator[Action]:
    running = _running(manager)
    halves = sorted(unit for unit in manager.active if unit.startswith(HALVES) and unit.endswith(".service"))
    if running or halves:
        yield _run(None, "they know the old shape of minds", "systemctl", "stop", *reversed(running), *halves)
    for mind in behind:
        yield Action("migrate", mind, "this release has another shape of minds; the file is copied first")
    yield from _restart(manager, changed, "start")


def _running(manager: Manager) -> list[str]:
    return [unit for unit in DAEMONS if unit in manager.active]


def _run(settles: Due | None, why: str, *argv: str) -> Action:
    return Action("run", " ".join(argv), why, argv=argv, settles=settles)
