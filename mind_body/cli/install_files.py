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
    thing, known = facts.things.get(file.path), _known(facts, file.path)
    if thing is None:
        done.actions.append(Action("write", file.path, "it is not there" if known else "new"))
        done.files[file.path] = file.digest
    elif _is(thing, file.digest):
        done.actions += _clear_beside(file.path, facts)
        if known:
            done.files[file.path] = file.digest
    elif known and _is(thing, known):
        done.actions += [Action("write", file.path, "this release has another"), *_clear_beside(file.path, facts)]
        done.files[file.path] = file.digest
    else:
        if known:
            done.files[file.path] = known
        _lay_beside(file, facts, done, EDITED if known else FOREIGN)


def _lay_beside(file: WantedFile, facts: Facts, done: Sorted, why: str) -> None:
    path = file.path + NEW_SUFFIX
    thing, known = facts.things.get(path), facts.manifest.beside.get(path) if facts.manifest else None
    done.kept[file.path] = f"{why}; {path} is the one of this release"
    if thing is not None and not _is(thing, file.digest) and not (known and _is(thing, known)):
        done.kept[file.path] = f"{why}; {path} was edited, too"
        return
    if thing is None or not _is(thing, file.digest):
        done.actions.append(Action("beside", path, why))
    if thing is None or known:
        done.beside[path] = file.digest


def _clear_beside(path: str, facts: Facts) -> Iterator[Action]:
    beside = path + NEW_SUFFIX
    thing, known = facts.things.get(beside), facts.manifest.beside.get(beside) if facts.manifest else None
    if thing is not None and known and _is(thing, known):
        yield Action("remove", beside, f"{path} is the same now")


def sort_gone(paths: Iterable[str], facts: Facts, why: str) -> Sorted:
    """Files of ours that are not to be there."""
    done = Sorted()
    for path in paths:
        thing, known = facts.things.get(path), _known(facts, path) or (facts.manifest.beside.get(path) if facts.manifest else None)
        if thing is not None and known and _is(thing, known):
            done.actions.append(Action("remove", path, why))
        elif thing is not None:
            done.kept[path] = EDITED
    return done


def sort_links(links: Mapping[str, str], facts: Facts) -> Sorted:
    """A link of ours is made anew where it leads elsewhere; anything else stays."""
    done = Sorted()
    for path, target in links.items():
        thing, known = facts.things.get(path), facts.manifest.links.get(path) if facts.manifest else None
        if thing is None or (known and thing.kind == "link" and thing.target == known != target):
            done.actions.append(Action("link", path, target))
            done.links[path] = target
        elif thing.kind == "link" and thing.target == target:
            done.links |= {path: target} if known else {}
        else:
            done.links |= {path: known} if known else {}
            done.kept[path] = FOREIGN
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


def _known(facts: Facts, path: str) -> str | None:
    return facts.manifest.files.get(path) if facts.manifest else None


def _is(thing: Thing, digest: str) -> bool:
    return thing.kind == "file" and thing.digest == digest


def _render(mode: int, owner: str, group: str) -> str:
    return f"{mode:04o} {owner}:{group}".removesuffix(" :")
