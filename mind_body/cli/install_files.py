"""Rule: what becomes of each file, link and directory of an installation.

1. Ours is what has the digest that we put there. That is replaced; what somebody edited, or what was there before us, stays as it
   is, and the new one is laid beside it.
2. What was there before us, even if it is the very same, is not ours: we do not take it away.
3. A file of ours that a release no longer has goes, unless it was edited.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from mind_body.cli.install_shapes import NEW_SUFFIX, Action, Facts, Thing, WantedDirectory, WantedFile

EDITED = "it was edited"
FOREIGN = "it was there before, and is not ours"


@dataclass(slots=True)
class Sorted:
    """What to do about some files, and what of them is ours afterwards."""

    actions: list[Action] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    beside: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> tuple[str, ...]:
        """The files that are others now."""
        return tuple(action.about for action in self.actions if action.do in {"write", "remove"})


def sort_files(files: Iterable[WantedFile], facts: Facts) -> Sorted:
    """Each by itself."""
    done = Sorted()
    for file in files:
        _sort_file(file, facts, done)
    return done


def _sort_file(file: WantedFile, facts: Facts, done: Sorted) -> None:
    path, thing = file.path, facts.things.get(file.path)
    known = _known(facts, path)
    if thing is None:
        done.actions.append(Action("write", path, "it is not there" if known else "new"))
        done.files[path] = file.digest
    elif _is(thing, file.digest):
        _clear_beside(path, facts, done)
        done.files |= {path: file.digest} if known else {}
    elif _is(thing, *known):
        done.actions.append(Action("write", path, "this release has another"))
        done.files[path] = file.digest
        done.replaced[path] = thing.digest
        _clear_beside(path, facts, done)
    else:
        done.files |= {path: known[0]} if known else {}
        _lay_beside(file, facts, done, EDITED if known else FOREIGN)


def _lay_beside(file: WantedFile, facts: Facts, done: Sorted, why: str) -> None:
    path = file.path + NEW_SUFFIX
    thing, known = facts.things.get(path), _known(facts, path)
    done.kept[file.path] = f"{why}; {path} is the one of this release"
    if thing is None or _is(thing, *known):
        done.beside[path] = file.digest
        if thing is None or not _is(thing, file.digest):
            done.actions.append(Action("beside", path, why))
            done.replaced |= {path: thing.digest} if thing else {}
    elif not _is(thing, file.digest):
        done.kept[file.path] = f"{why}; {path} was edited, too"


def _clear_beside(path: str, facts: Facts, done: Sorted) -> None:
    beside = path + NEW_SUFFIX
    thing = facts.things.get(beside)
    if thing is not None and _is(thing, *_known(facts, beside)):
        done.actions.append(Action("remove", beside, f"{path} is the same now"))
        done.replaced[beside] = thing.digest


def sort_gone(paths: Iterable[str], facts: Facts, why: str) -> Sorted:
    """Files of ours that are not to be there."""
    done = Sorted()
    for path in paths:
        thing = facts.things.get(path)
        if thing is not None and _is(thing, *_known(facts, path)):
            done.actions.append(Action("remove", path, why))
            done.replaced[path] = thing.digest
        elif thing is not None:
            done.kept[path] = EDITED
    return done


def sort_links(links: Mapping[str, str], facts: Facts) -> Sorted:
    """A link of ours is made anew where it leads elsewhere, and goes where it is not wanted any more; anything else stays."""
    done = Sorted()
    for path, target in links.items():
        thing, known = facts.things.get(path), _known(facts, path)
        if thing is None or (_leads(thing, *known) and not _leads(thing, target)):
            done.actions.append(Action("link", path, target))
            done.links[path] = target
            done.replaced |= {path: thing.target} if thing else {}
        elif _leads(thing, target):
            done.links |= {path: target} if known else {}
        else:
            done.links |= {path: known[0]} if known else {}
            done.kept[path] = FOREIGN
    for path in [*facts.manifest.links, *facts.manifest.replaced] if facts.manifest else ():
        thing = facts.things.get(path)
        if path not in links and thing is not None and _leads(thing, *_known(facts, path)):
            done.actions.append(Action("unlink", path, "not needed any more"))
            done.replaced[path] = thing.target
    return done


def plan_parents(paths: Iterable[str], facts: Facts, apart: Iterable[str]) -> Iterator[Action]:
    """The directories that are not there yet, the outermost first; `apart` from those that have a mode of their own."""
    missing = {str(parent) for path in paths for parent in PurePosixPath(path).parents} - facts.things.keys() - {"/", *apart}
    for path in sorted(missing):
        yield Action("directory", path, "0755", mode=0o755)


def plan_directories(directories: Iterable[WantedDirectory], facts: Facts) -> Iterator[Action]:
    """Made, or given the owner and the mode without which the organs cannot work."""
    for one in directories:
        thing = facts.things.get(one.path)
        is_now = _render(thing.mode, thing.owner, thing.group) if thing else ""
        will_be = _render(one.mode, one.owner or (thing.owner if thing else ""), one.group or (thing.group if thing else ""))
        if thing is None:
            yield Action("directory", one.path, will_be, mode=one.mode, owner=one.owner, group=one.group)
        elif is_now != will_be:
            yield Action("own", one.path, f"{will_be}, is {is_now}", mode=one.mode, owner=one.owner, group=one.group)


def is_as_wanted(one: WantedDirectory, thing: Thing | None) -> bool:
    return thing is not None and (thing.mode, thing.owner, thing.group) == (one.mode, one.owner, one.group)


def _known(facts: Facts, path: str) -> tuple[str, ...]:
    """The digests or targets by which something there is ours: as it was put there, and as it was before a run that was cut off."""
    manifest = facts.manifest
    if manifest is None:
        return ()
    found = [table[path] for table in (manifest.files, manifest.beside, manifest.links, manifest.replaced) if path in table]
    return tuple(found)


def _is(thing: Thing, *digests: str) -> bool:
    return thing.kind == "file" and thing.digest in digests


def _leads(thing: Thing, *targets: str) -> bool:
    return thing.kind == "link" and thing.target in targets


def _render(mode: int, owner: str, group: str) -> str:
    return f"{mode:04o} {owner}:{group}".removesuffix(" :")
