"""Door: the files of a new Mind. Never overwrites: what is there is kept, and a Mind of that name is refused.

Her own file in minds/ comes last: it is what makes the organs see her, and by then everything else is in its place. Her brake is
held until somebody releases it.

Under systemd the files are root's, and the organs, users of their own, read them as members of the group that the directories give
to what is made in them (`mind install` makes those).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mind_body.cli.template import render_host, render_mind
from mind_body.config import parse_settings
from mind_body.control.effective import BrakeFile, DialFile
from mind_body.control.files import write_brake, write_dial
from mind_body.errors import ConfigError, StorageError
from mind_body.home import NAME_PATTERN, Home
from mind_body.host.secrets import write_secret
from mind_body.mind.store import open_mind
from mind_body.settings import MindConfig

READ_BY_GROUP = 0o640
PERSONA = """You are {title}. You are kind, curious and exact. You answer in two or three sentences unless somebody asks for more.
When you do not know a thing, you say so.
"""
PERSONA_SMALL = """You are {title}. You like tea, music and good questions. You are kind and curious. You always say "I".

Examples of how you answer:
What is your name? {{"say": "My name is {title}."}}
How are you today? {{"say": "I am well, thank you. I just made some tea."}}
Hello! {{"say": "Hello! It is good to have a visitor."}}
What do you like? {{"say": "I like tea, music and good questions."}}
Are you a human? {{"say": "No, I am a small program, and my name is {title}."}}
"""
"""For `local`: examples in the shape of its answers do for a model of 135M what no instruction does."""


@dataclass(frozen=True, slots=True)
class NewMind:
    """What makes a Mind."""

    name: str
    values: Mapping[str, Any]
    """Of `minds/NAME.toml`; what is not here is its default."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Suffix in credentials/ → text: matrix-password, matrix-token, model-key."""
    persona: str = ""
    released: bool = False
    by: str = ""


def check_name(home: Home, name: str) -> None:
    """Raises ConfigError for a name that is none, or taken."""
    if not NAME_PATTERN.fullmatch(name):
        raise ConfigError(f"'{name}' is not a Mind's name: small letters, digits and '-', at most 32, a letter first")
    if home.mind_file(name).exists():
        raise ConfigError(f"there is a Mind '{name}' already ({home.mind_file(name)}); `mind new` never overwrites")


def create_mind(home: Home, new: NewMind, at: str) -> list[Path]:
    """Write what is missing; answers what was there and kept. `at` goes into the brake's file."""
    check_name(home, new.name)
    parse_settings(MindConfig, dict(new.values), f"the settings of {new.name}")
    kept: list[Path] = []
    mode = READ_BY_GROUP if home.root is None else None
    _write_new(home.config_file, render_host({}), kept, mode)
    for suffix, text in new.secrets.items():
        write_new_secret(home, new.name, suffix, text)
    _write_new(home.persona_file(new.name), new.persona or _default_persona(new), kept, mode)
    open_mind(home.mind_db(new.name), create=True).close()
    if not (home.control_dir(new.name) / "dial.toml").exists():
        write_dial(home, new.name, DialFile())
    if not (home.control_dir(new.name) / "brake.toml").exists():
        state, reason = ("released", "") if new.released else ("held", "new: read her files, then release her")
        write_brake(home, new.name, BrakeFile.model_validate({"state": state, "reason": reason, "by": new.by, "at": at}))
    _write_new(home.mind_file(new.name), render_mind(new.values), kept, mode)
    return [path for path in kept if path != home.config_file]


def _default_persona(new: NewMind) -> str:
    """Somebody to talk with from the first minute, until the operator writes who she really is."""
    provider = new.values.get("model", {}).get("provider", "local")
    return (PERSONA_SMALL if provider == "local" else PERSONA).format(title=new.name.capitalize())


def secret_path(home: Home, name: str, suffix: str) -> Path:
    """Where the operator keeps it."""
    return (home.matrix_credentials if suffix.startswith("matrix-") else home.model_credentials) / f"{name}.{suffix}"


def write_new_secret(home: Home, name: str, suffix: str, text: str) -> None:
    """Raises ConfigError where another secret is there already."""
    path = secret_path(home, name, suffix)
    if path.exists():
        if path.read_text().strip() == text:
            return
        raise ConfigError(f"{path} exists already and holds another secret; move it away first, nothing is overwritten")
    write_secret(path, text)


def _write_new(path: Path, text: str, kept: list[Path], mode: int | None) -> None:
    """`mode`: whatever the umask; without one, what that leaves."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            with part.open("w") as file:
                file.write(text)
                file.flush()
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            path.hardlink_to(part)  # whole, and never over what is there
        finally:
            part.unlink(missing_ok=True)
    except FileExistsError:
        kept.append(path)
    except OSError as error:
        raise StorageError(f"{path} could not be written: {error.strerror}") from error
