"""Shapes: what an installation is made of, what is found of it on a host, and what is to be done."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from mind_body.settings import Settings

GROUP = "mind"
"""Of what the organs share."""
ACCOUNTS = (GROUP, "mind-lease", "mind-mouth", "mind-heartbeat", "mind-persona", "mind-self")
"""What sysusers.d makes."""
NEW_SUFFIX = ".new"
"""What would replace a file that somebody edited lies beside it under this name."""


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file of ours: 0644, root's."""

    path: str
    content: bytes = field(repr=False)
    digest: str


@dataclass(frozen=True, slots=True)
class WantedDirectory:
    """Owner and group are empty where they cannot be known: in a package that is being made."""

    path: str
    mode: int
    owner: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What this release puts on a host. Files in the order in which they are needed."""

    release: str
    code: str
    """A digest of the program: another one has other organs."""
    prefix: str
    sysusers: WantedFile
    tmpfiles: WantedFile
    units: tuple[WantedFile, ...]
    catalogs: tuple[WantedFile, ...]
    directories: tuple[WantedDirectory, ...]
    runtime: WantedDirectory
    """What tmpfiles.d makes, at every boot."""
    links: Mapping[str, str]
    """Path → target."""
    accounts: tuple[str, ...]
    """Users and the group that sysusers.d makes: the group first."""

    @property
    def files(self) -> tuple[WantedFile, ...]:
        return (self.sysusers, self.tmpfiles, *self.units, *self.catalogs)


@dataclass(frozen=True, slots=True)
class Thing:
    """What is at a path."""

    kind: Literal["file", "directory", "link", "other"]
    digest: str = ""
    target: str = ""
    mode: int = 0
    owner: str = ""
    group: str = ""


Due = Literal["catalog", "reload", "enable", "restart", "start"]
"""What the manager can be told, in this order."""


class Manifest(Settings):
    """What `mind install` has put on this host, and what it has left to do.

    Written before anything else is, and again at the end: a run that was cut off knows what it has put there, and what it was about
    to replace.
    """

    version: Literal[1] = 1
    release: str
    code: str = ""
    """Empty where all of it was taken back."""
    prefix: str = ""
    """Where units went."""
    files: dict[str, str] = Field(default_factory=dict)
    """Path → digest, as it was put there."""
    beside: dict[str, str] = Field(default_factory=dict)
    """The same of what lies beside an edited file."""
    links: dict[str, str] = Field(default_factory=dict)
    """Path → target."""
    replaced: dict[str, str] = Field(default_factory=dict)
    """Path → what was there of ours when this run began, which is to be another or gone. Empty at its end."""
    directories: list[str] = Field(default_factory=list)
    """Those that were not there before, the outermost first."""
    accounts: list[str] = Field(default_factory=list)
    """Those that were not there before."""
    seen: dict[str, str] = Field(default_factory=dict)
    """Path → digest of every file of this release, whoever has put it there: a package may have."""
    pending: list[Due] = Field(default_factory=list)
    """What the manager is still to be told, should this run end before."""


@dataclass(frozen=True, slots=True)
class Manager:
    """What systemd says."""

    booted: bool
    """It runs this host. In an image that is being made it does not."""
    active: tuple[str, ...] = ()
    """Of our units those that are not inactive, in no order."""
    enabled: tuple[str, ...] = ()
    """Of our targets those that start at boot."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is found on a host, or below a directory."""

    things: Mapping[str, Thing]
    """By path; what is not there is not in it."""
    accounts: frozenset[str] = frozenset()
    manifest: Manifest | None = None
    manager: Manager | None = None
    """None below a directory: nobody is to be told of anything."""
    minds: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    """The Minds whose files this release would migrate."""
    left: tuple[str, ...] = ()
    """Configuration and state that somebody's Minds are made of."""


Doing = Literal["write", "beside", "remove", "link", "unlink", "directory", "own", "rmdir", "clear", "run", "migrate"]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do, `about` a path, a unit or a Mind."""

    do: Doing
    about: str
    why: str = ""
    mode: int = 0
    owner: str = ""
    group: str = ""
    """Of `directory` and `own`."""
    argv: tuple[str, ...] = ()
    """Of `run`."""
    settles: Due | None = None
    """Which of the manifest's `pending` is done with it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do, in this order."""

    actions: tuple[Action, ...]
    manifest: Manifest | None
    """What is to be known afterwards; None for nothing."""
    first: Manifest | None = None
    """What is to be known before; None for what is known."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """Path → why it is left as it is."""
