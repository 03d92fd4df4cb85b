"""Door: what the operator has set for one half of a Mind, as the governor takes it, and when what may mend a pause was changed."""

import contextlib
from pathlib import Path

from mind_body.control.govern import House
from mind_body.home import Home
from mind_body.ids import digest
from mind_body.mind.records import RunKind
from mind_body.settings import HostConfig, MindConfig


def read_house(home: Home, name: str, kind: RunKind, config: MindConfig, host: HostConfig, *, paused: bool) -> House:
    """`paused`: there is a pause that a file may mend; else no file is asked for."""
    if not paused:
        return House(config, host, chance=chance_of(name))
    keyed_at = _changed_at(home.mind_file(name), *keys_of(home, name, kind))
    control = home.control_dir(name)
    words = words_of(home, name, config) if kind is RunKind.PERSONA_TURN else ()
    told = (home.config_file, control / "brake.toml", control / "dial.toml", *words)
    mended_at = max(keyed_at, _changed_at(*told))
    return House(config, host, mended_at, chance_of(name), keyed_at)


def chance_of(name: str) -> float:
    """In [0, 1), a Mind's own and always the same: no two Minds of a host go on at one instant, and no restart changes when."""
    return int(digest(name)[:8], 16) / 2**32


def keys_of(home: Home, name: str, kind: RunKind) -> tuple[Path, ...]:
    """The credentials that this half may borrow.

    Under systemd they are the lease's alone to see, handed to it at its start: its lock, written anew then, stands for them.
    """
    if home.root is None:
        return (home.lock_file("lease"),)
    return (home.model_key(name), *([home.self_key(name)] if kind is RunKind.SELF_RUN else []))


def words_of(home: Home, name: str, config: MindConfig) -> tuple[Path, ...]:
    """What her system part is made of: a file that is missing or not fit to read is a fault that an operator mends."""
    persona = home.persona_file(name)
    return (persona, *(persona.parent / one for one in config.persona.doctrine))


def _changed_at(*paths: Path) -> int:
    """When one of these files was last changed; by ctime, which no copying tool sets back."""
    found = 0
    for path in paths:
        with contextlib.suppress(OSError):
            # Of a link and of what it leads to: either may be another.
            found = max(found, path.lstat().st_ctime_ns // 1_000_000, path.stat().st_ctime_ns // 1_000_000)
    return found
