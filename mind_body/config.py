"""Door: the environment and the configuration files. The one home of `os.environ` and of TOML.

TOML in, frozen pydantic records out. An unknown key is an error that names the nearest known one; every error names the file, the
key and the way out. Nothing here writes: `mind new` and the control files have their own doors.
"""

import difflib
import os
import tempfile
import tomllib  # noqa: TID251 - its home
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from mind_body.clock import is_zone, list_zones
from mind_body.errors import ConfigError
from mind_body.home import NAME_PATTERN, Home, directory_home, system_home
from mind_body.ids import digest
from mind_body.settings import HostConfig, MindConfig, Settings

environment: Mapping[str, str] = os.environ  # noqa: TID251 - its home
"""Read-only by convention: children get environments built from nothing."""

S = TypeVar("S", bound=Settings)
Mark = tuple[int, int, int] | None


def find_home(option: str | None) -> Home:
    """`--home DIR`, else `MIND_HOME`, else systemd's layout.

    Where `DIR/run` is too deep for a socket, a private directory in XDG_RUNTIME_DIR or the temporary directory stands in; its name
    is made from the home's path and the user's id so that every command finds the same one.
    """
    root = option or environment.get("MIND_HOME")
    if not root:
        handed = environment.get("CREDENTIALS_DIRECTORY")
        return system_home(Path(handed) if handed else None)
    path = Path(root).expanduser().resolve()
    base = environment.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    short = Path(base) / f"mind-{os.getuid()}-{digest(str(path))[:12]}"
    return directory_home(path, short)


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file, or a ConfigError that names it, the line, and what to do."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError as error:
        raise ConfigError(f"{path} does not exist; `mind new` writes one") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def parse_settings(shape: type[S], values: dict[str, Any], where: str) -> S:
    """Checked values, or a ConfigError with one sentence per fault."""
    try:
        return shape.model_validate(values)
    except ValidationError as error:
        faults = "; ".join(_render_fault(shape, fault) for fault in error.errors())
        raise ConfigError(f"{where}: {faults}") from error


def read_host_config(home: Home) -> HostConfig:
    """`config.toml`; absent means every default."""
    if not home.config_file.exists():
        return HostConfig()
    host = parse_settings(HostConfig, read_toml(home.config_file), str(home.config_file))
    if not is_zone(host.time_zone):
        hint = _nearest_zone(host.time_zone)
        raise ConfigError(
            f"{home.config_file}: `time_zone` names no time zone (it says {host.time_zone!r}); did you mean {hint!r}?"
        )
    return host


def read_mind_config(home: Home, name: str) -> MindConfig:
    if not NAME_PATTERN.fullmatch(name):
        raise ConfigError(f"'{name}' is not a Mind's name: small letters, digits and '-', at most 32, a letter first")
    path = home.mind_file(name)
    if not path.exists():
        known = ", ".join(list_minds(home)) or "none yet"
        raise ConfigError(f"there is no Mind '{name}' ({path} does not exist); known: {known}")
    return parse_settings(MindConfig, read_toml(path), str(path))


class ConfigFiles:
    """The configuration files of one home, read anew whenever one is another. Asking costs a hundredth of parsing."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._known: dict[Path, tuple[Mark, Any]] = {}

    def read_host(self) -> HostConfig:
        """As `read_host_config`."""
        return self._read(self._home.config_file, lambda: read_host_config(self._home))

    def read_mind(self, name: str) -> MindConfig:
        """As `read_mind_config`."""
        return self._read(self._home.mind_file(name), lambda: read_mind_config(self._home, name))

    def _read(self, path: Path, read: Callable[[], S]) -> S:
        mark, known = _mark(path), self._known.get(path)
        if known is None or known[0] != mark:
            known = self._known[path] = (mark, read())
        found: S = known[1]
        return found


def list_minds(home: Home) -> list[str]:
    """The names of all Minds of the host, sorted."""
    return sorted(p.stem for p in home.minds_dir.glob("*.toml") if NAME_PATTERN.fullmatch(p.stem))


def _mark(path: Path) -> Mark:
    """Of the file that a link leads to: a cap that is lowered there is lowered."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns)


def _nearest_zone(name: str) -> str:
    """A city alone and small letters are understood: `berlin` is meant for `Europe/Berlin`."""
    by_folded = {zone.casefold(): zone for zone in list_zones()}
    folded = name.strip().replace(" ", "_").casefold()
    cities = [zone for zone in by_folded if zone == folded or zone.endswith(f"/{folded}")]
    near = sorted(cities, key=len) or difflib.get_close_matches(folded, by_folded, n=1, cutoff=0.5)
    return by_folded[near[0]] if near else "UTC"


def _render_fault(shape: type[BaseModel], fault: ErrorDetails) -> str:
    key = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "missing":
        return f"`{key}` is missing"
    if fault["type"] == "string_pattern_mismatch":
        wanted = _description(shape, fault["loc"])
        return f"`{key}` must be {wanted} (it says {fault['input']!r})"
    if fault["type"] == "value_error":
        return f"`{key}` {fault['ctx']['error']} (it says {fault['input']!r})"
    if fault["type"] != "extra_forbidden":
        return f"`{key}` {fault['msg'][0].lower()}{fault['msg'][1:]} (it says {fault['input']!r})"
    known = _keys_beside(shape, fault["loc"])
    near = difflib.get_close_matches(str(fault["loc"][-1]), known, n=1, cutoff=0.5)
    hint = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(known)}"
    return f"`{key}` is not a setting; {hint}"


def _description(shape: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    """What a field with a pattern wants, in its own words; the pattern where it has none."""
    for part in loc:
        field = shape.model_fields.get(str(part))
        if field is None:
            break
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            shape = field.annotation
        else:
            return field.description or _description_inside(field.annotation) or "of another form"
    return "of another form"


def _description_inside(annotation: object) -> str | None:
    """What each of a list wants: its form is told beside the type of one."""
    for part in get_args(annotation):
        if isinstance(part, FieldInfo) and part.description:
            return part.description
        if found := _description_inside(part):
            return found
    return None


def _keys_beside(shape: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    for part in loc[:-1]:
        field = shape.model_fields.get(str(part))
        if field is None or not isinstance(field.annotation, type) or not issubclass(field.annotation, BaseModel):
            return []
        shape = field.annotation
    return sorted(shape.model_fields)
