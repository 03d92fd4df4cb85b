"""Door: what `mind doctor` looks at of users and rights where systemd carries the Minds.

1. Five users share, by their group, what is a Mind's; some of it is one organ's own. Files that came by another way than
   `mind new`, out of a backup or from another host, are whoever's.
2. A unit sees less than the operator: where her Self is to work, it must be let.
"""

import grp
import os
import pwd
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mind_body.cli.finding import Check
from mind_body.cli.in_force import check_in_force
from mind_body.cli.install_shapes import ACCOUNTS, GROUP
from mind_body.cli.seen import find_unseen, may
from mind_body.errors import MindBodyError
from mind_body.home import Home
from mind_body.host.manager import call_tool
from mind_body.host.units import name_service
from mind_body.settings import MindConfig, SelfConfig

READER, PERSONA, SELF = "mind-heartbeat", "mind-persona", "mind-self"
"""Who reads what all organs read; whose a half's own directories are."""
R, RX, RW, RWX = 4, 5, 6, 7


@dataclass(frozen=True, slots=True)
class _Fault:
    """What is amiss, and the command that mends it."""

    detail: str
    fix: str


def check_users() -> Check:
    """Each organ's user is in the group, by birth: what it makes is the group's."""
    try:
        group = grp.getgrnam(GROUP).gr_gid
        strange = [user for user in ACCOUNTS if user != GROUP and pwd.getpwnam(user).pw_gid != group]
    except KeyError as error:
        return Check("users", ok=False, detail=f"not there: {error.args[0].rpartition(': ')[2]}", fix="`mind install` makes them")
    if strange:
        detail = f"the group of {', '.join(strange)} is not '{GROUP}': nobody else reads what they write"
        return Check("users", ok=False, detail=detail, fix="; ".join(f"`usermod -g {GROUP} {user}`" for user in strange))
    return Check("users", ok=True, detail=f"{', '.join(ACCOUNTS[1:])}, in the group '{GROUP}'")


async def check_rights(home: Home, name: str, config: MindConfig) -> list[Check]:
    """Of one Mind. Nothing where the users are not there yet: that is another check's."""
    what = f"{name}: rights"
    try:
        faults = [*_find_unreadable(home, name, config), *_find_unshared(home, name), *_find_strange(home, name)]
        faults += _find_foreign(home, name)
        reach = await _check_reach(name, config.self)
    except KeyError:
        return []
    except OSError as error:
        detail = f"{error.filename}: {error.strerror}"
        return [Check(what, ok=False, detail=detail, fix="call `mind doctor` as root")]
    return [
        _render(what, faults, "what organs share is theirs, what is one organ's is its own"),
        check_in_force(home, name),
        *reach,
    ]


def _render(what: str, faults: list[_Fault], well: str) -> Check:
    detail = "; ".join(fault.detail for fault in faults) or well
    return Check(what, not faults, detail, "; ".join(dict.fromkeys(fault.fix for fault in faults)))


def _find_unreadable(home: Home, name: str, config: MindConfig) -> Iterator[_Fault]:
    """Configuration is read by every organ."""
    persona = home.persona_file(name)
    for path in (home.config_file, home.mind_file(name), persona, *(persona.parent / one for one in config.persona.doctrine)):
        if path.exists() and not may(READER, path, R):
            yield _Fault(f"{path} cannot be read by organs", f"`chgrp {GROUP} {path} && chmod 640 {path}`")
    control = home.control_dir(name)
    if control.is_dir() and not (may(READER, control, RX) and all(may(READER, path, R) for path in control.glob("*.toml"))):
        told = f"{control} cannot be read by organs, so that she is held"
        yield _Fault(told, f"`chmod 755 {control} && chmod 644 {control}/*.toml`")


def _find_unshared(home: Home, name: str) -> Iterator[_Fault]:
    """Her memory is written by four of them."""
    directory, db = home.mind_dir(name), home.mind_db(name)
    if not directory.exists():
        return
    if not all(may(user, directory, RWX) for user in (READER, PERSONA, SELF)):
        yield _Fault(f"{directory} is not the group's", f"`chgrp {GROUP} {directory} && chmod 2770 {directory}`")
    for path in (db.with_name(db.name + suffix) for suffix in ("", "-wal", "-shm")):
        if not _is_shared(path):
            yield _Fault(f"{path} cannot be written by all organs", f"`chgrp {GROUP} {path} && chmod 660 {path}`")


def _is_shared(path: Path) -> bool:
    """A log that is not there is: it goes when the last who has the file open closes it, at any moment."""
    try:
        return all(may(user, path, RW) for user in (READER, PERSONA, SELF))
    except FileNotFoundError:
        return True


def _find_strange(home: Home, name: str) -> Iterator[_Fault]:
    """What a half keeps for itself, and the mouth's token."""
    directory = home.mind_dir(name)
    own = {"claude": PERSONA, "claude-quiet": PERSONA, "self": SELF, "work": SELF}
    places = [(directory / part, user) for part, user in own.items()]
    for path, user in [*places, (home.matrix_session(name), "mind-mouth")]:
        inside = path.iterdir() if path.is_dir() else ()
        uid = pwd.getpwnam(user).pw_uid
        if path.exists() and any(one.lstat().st_uid != uid for one in (path, *inside)):
            yield _Fault(f"{path}, or what is in it, is not {user}'s", f"`chown -R {user}:{GROUP} {path}`")


def _find_foreign(home: Home, name: str) -> Iterator[_Fault]:
    """The manager hands on whatever lies there: it must be root who puts it there."""
    for place in (home.matrix_credentials, home.model_credentials):
        for path in sorted(place.glob(f"{name}.*")):
            if path.lstat().st_uid not in {0, os.getuid()}:
                yield _Fault(f"{path} is not root's", f"`chown root:root {path}`")


async def _check_reach(name: str, config: SelfConfig) -> list[Check]:
    """Where her Self is told to work outside the Mind's own directory."""
    written = [*map(_outside, config.workspaces.values()), *map(_outside, config.binds_writable)]
    read = [_outside(path) for path in config.binds_readable]
    if not config.enabled or not (written or read):
        return []
    unit = name_service("self", name)
    writable = await _read_writable(unit)
    faults = [fault for path in (*written, *read) for fault in _find_unseen(path)]
    for path in (path for path in written if not find_unseen(path)):
        if not any(path.is_relative_to(place) for place in writable):
            edit = f"`systemctl edit {unit.removesuffix('.service')}`, there: [Service], ReadWritePaths={path}"
            faults.append(_Fault(f"her unit may not write to {path}", edit))
        if path.exists() and not may(SELF, path, RWX if path.is_dir() else RW):
            faults.append(_Fault(f"{SELF} may not write to {path}", f"`chgrp {GROUP} {path} && chmod g+rwX {path}`"))
    return [_render(f"{name}: self reach", faults, ", ".join(map(str, (*written, *read))))]


def _find_unseen(path: Path) -> Iterator[_Fault]:
    if place := find_unseen(path):
        yield _Fault(
            f"her unit sees nothing of {place}, so not {path}", f"put it elsewhere, say below /srv, and mend [self]: {path}"
        )


def _outside(bind: str) -> Path:
    """Of a workspace or a bind: the place out here."""
    return Path(bind.partition(":")[0]).expanduser()


async def _read_writable(unit: str) -> list[Path]:
    """Where the unit may write, also by what an operator has added."""
    try:
        told = await call_tool(["systemctl", "show", "--property=ReadWritePaths", "--value", "--", unit])
    except MindBodyError:
        return []
    return [Path(word.removeprefix("-").removeprefix("+")) for word in told.out.split()]
