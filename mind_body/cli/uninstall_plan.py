"""Rule: what `mind uninstall` does: it takes back what `mind install` put there, and nothing else.

1. Units are stopped and disabled first. Then the files that are as we put them; an edited one stays, and is named.
2. Minds are their operator's: their configuration, memory and credentials stay, and with them the users whose files they are, and
   the note of what was made for them. Where there is none of that, or with `purge`, all of it goes.
"""

from collections.abc import Iterator, Sequence

from mind_body.cli.install_files import sort_gone, sort_links
from mind_body.cli.install_plan import UNIT_SUFFIXES
from mind_body.cli.install_shapes import GROUP, Action, Facts, Manifest, Plan

WHY = "as it was put there"


def plan_uninstall(facts: Facts, places: Sequence[str], runtime: str, *, purge: bool) -> Plan:
    """`places`: where configuration and state lie. `runtime`: what is gone at the next boot."""
    before = facts.manifest or Manifest(release="")
    everything = purge or not facts.left
    files = dict.fromkeys((*before.files, *before.beside, *before.replaced))
    gone = sort_gone([path for path in files if path not in before.links], facts, WHY)
    gone.actions += sort_links({}, facts).actions
    actions = [
        *_stop(facts),
        *gone.actions,
        *_tell(facts, [action.about for action in gone.actions]),
        *([Action("clear", runtime, "sockets and locks")] if runtime in facts.things else []),
    ]
    cleared: list[str] = []
    if everything:
        actions += _remove_accounts(before, facts)
        cleared = [place for place in places if place in facts.things and (purge or place in before.directories)]
        actions += [Action("clear", place, "configuration" if place.startswith("/etc") else "state") for place in cleared]
    kept_directories = [] if everything else [path for path in before.directories if _is_of(path, places)]
    others = [path for path in before.directories if path not in kept_directories and not _is_of(path, cleared)]
    actions += _remove_directories(others, facts)
    manifest = None
    if not everything:
        manifest = Manifest(release=before.release, directories=kept_directories, accounts=before.accounts)
    return Plan(tuple(actions), manifest, kept=gone.kept)


def _stop(facts: Facts) -> Iterator[Action]:
    if facts.manager is None:
        return
    if facts.manager.enabled:
        yield _run("not at boot any more", "systemctl", "disable", *sorted(facts.manager.enabled))
    if facts.manager.booted and facts.manager.active:
        yield _run("before their files go", "systemctl", "stop", *sorted(facts.manager.active))


def _tell(facts: Facts, removed: Sequence[str]) -> Iterator[Action]:
    if facts.manager is None:
        return
    if facts.manager.booted and any(path.endswith(UNIT_SUFFIXES) for path in removed):
        yield _run("units are gone", "systemctl", "daemon-reload")
    if any(path.endswith(".catalog") for path in removed):
        yield _run("its explanations are gone", "journalctl", "--update-catalog")


def _remove_accounts(before: Manifest, facts: Facts) -> Iterator[Action]:
    """Users before the group that is theirs."""
    made = [name for name in before.accounts if name in facts.accounts] if facts.manager else []
    for name in sorted(made, key=lambda name: name == GROUP):
        yield _run("it was made for its organ", "groupdel" if name == GROUP else "userdel", name)


def _remove_directories(paths: Sequence[str], facts: Facts) -> Iterator[Action]:
    for path in sorted((path for path in paths if path in facts.things), reverse=True):
        yield Action("rmdir", path, "if nothing is in it")


def _is_of(path: str, places: Sequence[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _run(why: str, *argv: str) -> Action:
    return Action("run", " ".join(argv), why, argv=argv)
