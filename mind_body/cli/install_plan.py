"""Rule: what `mind install` does, from what is wanted and what is found. The same again does nothing.

In the order in which one needs the other: accounts, what boot makes, directories, files, then the manager told and units begun.
What becomes of a file is `install_files`' to say, what the manager is told `manager_plan`'s.
"""

from collections.abc import Iterable, Iterator, Sequence

from mind_body.cli.install_files import Sorted, is_as_wanted, plan_directories, plan_parents, sort_files, sort_gone, sort_links
from mind_body.cli.install_shapes import NEW_SUFFIX, Action, Due, Facts, Manifest, Plan, Wanted
from mind_body.cli.manager_plan import find_due, plan_manager

UNIT_SUFFIXES = (".service", ".socket", ".target", ".slice")


def plan_install(wanted: Wanted, facts: Facts, *, start: bool = True) -> Plan:
    """`start`: whether units may be started and restarted now."""
    before = facts.manifest
    own = [one.path for one in wanted.directories]
    parents = list(plan_parents([*(file.path for file in wanted.files), *wanted.links, *own], facts, own))
    boot = [sort_files([file], facts) for file in (wanted.sysusers, wanted.tmpfiles)]
    files = sort_files([*wanted.units, *wanted.catalogs], facts)
    gone = sort_gone(_gone(wanted, facts), facts, "this release has no such file")
    links = sort_links(wanted.links, facts)
    directories = list(plan_directories(wanted.directories, facts))
    accounts = _missing_accounts(wanted, facts)
    changed = [*files.changed, *gone.changed, *_changed_by_others(wanted, facts)]
    due = _find_due(wanted, facts, changed)
    actions = [
        *parents,
        *boot[0].actions,
        *_make_accounts(wanted, accounts),
        *boot[1].actions,
        *_make_runtime(wanted, facts),
        *directories,
        *files.actions,
        *gone.actions,
        *links.actions,
        *_tell_manager(facts, due, changed, start=start),
    ]
    done = _join([*boot, files, gone, links])
    manifest = Manifest(
        release=wanted.release,
        code=wanted.code,
        prefix=wanted.prefix,
        files=done.files,
        beside=done.beside,
        links=done.links,
        directories=_add(before.directories if before else (), [a.about for a in (*parents, *directories) if a.do == "directory"]),
        accounts=_add(before.accounts if before else (), accounts),
        seen={file.path: file.digest for file in wanted.files},
        pending=list(due),
    )
    first = manifest.model_copy(update={"replaced": done.replaced})
    return Plan(tuple(actions), manifest, first, done.kept)


def _gone(wanted: Wanted, facts: Facts) -> list[str]:
    own = {file.path for file in wanted.files}
    if facts.manifest is None:
        return []
    before = dict.fromkeys((*facts.manifest.files, *facts.manifest.beside, *facts.manifest.replaced))
    return [path for path in before if path not in own and path.removesuffix(NEW_SUFFIX) not in own and _is_file(facts, path)]


def _is_file(facts: Facts, path: str) -> bool:
    return path in facts.things and facts.things[path].kind == "file"


def _missing_accounts(wanted: Wanted, facts: Facts) -> list[str]:
    return [name for name in wanted.accounts if name not in facts.accounts] if facts.manager else []


def _make_accounts(wanted: Wanted, missing: Sequence[str]) -> Iterator[Action]:
    if missing:
        argv = ("systemd-sysusers", wanted.sysusers.path)
        yield Action("run", " ".join(argv), f"makes {', '.join(missing)}", argv=argv)


def _make_runtime(wanted: Wanted, facts: Facts) -> Iterator[Action]:
    if facts.manager and not is_as_wanted(wanted.runtime, facts.things.get(wanted.runtime.path)):
        argv = ("systemd-tmpfiles", "--create", wanted.tmpfiles.path)
        yield Action("run", " ".join(argv), f"makes {wanted.runtime.path}", argv=argv)


def _changed_by_others(wanted: Wanted, facts: Facts) -> list[str]:
    """A package puts its files there itself, before anybody looks."""
    seen = facts.manifest.seen if facts.manifest else {}
    there = [file for file in wanted.files if file.path in facts.things and facts.things[file.path].digest == file.digest]
    return [file.path for file in there if seen.get(file.path) != file.digest]


def _find_due(wanted: Wanted, facts: Facts, changed: Sequence[str]) -> tuple[Due, ...]:
    if facts.manager is None:
        return ()
    before = facts.manifest
    due: set[Due] = set()
    if any(path.endswith(UNIT_SUFFIXES) for path in changed):
        due |= {"reload", "restart"}
    if any(path.endswith(".catalog") for path in changed):
        due.add("catalog")
    if before is None or not before.code:
        due |= {"enable", "start"}
    elif before.code != wanted.code:
        due.add("restart")
    return find_due(before.pending if before else (), facts.manager, due)


def _tell_manager(facts: Facts, due: Sequence[Due], changed: Sequence[str], *, start: bool) -> Iterable[Action]:
    if facts.manager is None:
        return ()
    names = [path.rpartition("/")[2] for path in changed if path.endswith(UNIT_SUFFIXES)]
    return plan_manager(due, facts.manager, changed=names, minds=facts.minds, behind=facts.behind, start=start)


def _join(parts: Iterable[Sorted]) -> Sorted:
    whole = Sorted()
    for part in parts:
        whole.kept |= part.kept
        whole.files |= part.files
        whole.beside |= part.beside
        whole.links |= part.links
        whole.replaced |= part.replaced
    return whole


def _add(known: Iterable[str], new: Iterable[str]) -> list[str]:
    """Each once, in the order in which they came."""
    return list(dict.fromkeys((*known, *new)))
