"""Door: the environment and the configuration files. The one home of `os.environ` and of TOML.

TOML in, frozen pydantic records out. An unknown key is an error that names the nearest known one; every error names the file, the
key and the way out. Nothing here writes: `mind new` and the control files have their own doors.
"""

import difflib
import os
import tempfile
import tomllib  # noqa: TID251 - its home
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from mind_body.errors import ConfigError
from mind_body.home import NAME_PATTERN, Home, directory_home, system_home
from mind_body.ids import digest

environment: Mapping[str, str] = os.environ  # noqa: TID251 - its home
"""Read-only by convention: children get environments built from nothing."""

Seconds = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
S = TypeVar("S", bound="Settings")


class Settings(BaseModel):
    """A table of one of our own files: frozen, and closed to keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class HostConfig(Settings):
    """`config.toml`: what holds for every Mind of the host."""

    look_s: Positive = 30.0
    """How often each daemon looks by itself; pokes only make it sooner (design §2)."""
    start_grace_s: Positive = 120.0
    """A run that nobody adopted is closed as dead after this (design §3)."""
    restart_min_s: Positive = 0.5
    restart_max_s: Positive = 60.0
    """`mind up` restarts what died after a wait that doubles from the first to the second."""
    sync_timeout_s: Positive = 30.0
    """How long the homeserver may hold one /sync open."""
    gap_max_events: Annotated[int, Field(ge=1)] = 1000
    gap_max_days: Positive = 7.0
    """How far a hole in a room's timeline is paged back; beyond it she is told how many she missed."""
    context_keep_days: Positive = 30.0
    """Context (what nobody addressed to her) is deleted after this."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"


class MatrixConfig(Settings):
    """`[matrix]`: who she is."""

    homeserver: Annotated[str, Field(pattern=r"^https?://")]
    user: Annotated[str, Field(pattern=r"^@[^:\s]+:\S+$")]
    login: Literal["password", "token"] = "password"
    """What `credentials/NAME.matrix-password` or `credentials/NAME.matrix-token` holds."""


class PeopleConfig(Settings):
    """`[people]`: three lists of user ids or globs (`@*:example.org`), and the rooms she acts in. Roles come from the id alone."""

    operators: tuple[str, ...] = ()
    may_address: tuple[str, ...] = ("*",)
    """Whose messages can be mail. An operator always may."""
    may_steer: tuple[str, ...] = ()
    """Who may steer her work; read by the Self organ when it exists, and shown to her as a role now."""
    may_invite: tuple[str, ...] = ("*",)
    """Whose invites are accepted. An operator's always are."""
    bots: tuple[str, ...] = ()
    """Accounts that are not persons."""
    rooms: tuple[str, ...] = ("*",)
    """Room ids or globs where anything can be mail."""
    open_rooms: tuple[str, ...] = ()
    """Rooms that share one conversation with the public ones (design §5)."""


class ModelConfig(Settings):
    """`[model]`: whose answers she speaks."""

    provider: Literal["local", "openai", "claude"] = "local"
    model: str = ""
    """The provider's name for it; empty is the provider's default."""
    base_url: str = ""
    """`openai`: the server, up to and including /v1. `claude`: the Messages API, empty for Anthropic's own."""
    window_tokens: Annotated[int, Field(ge=2048)] | None = None
    """The context window where the provider does not tell it; unknown counts as 128,000."""
    max_output_tokens: Annotated[int, Field(ge=16)] | None = None
    timeout_s: Positive = 600.0
    """A model call without a byte for this long is a fault."""
    credential: Literal["none", "api-key", "oauth-token"] = "none"
    """What `credentials/NAME.model-key` holds."""
    cli: str = ""
    """`claude`: path of the binary; empty looks in the places that `mind doctor` names."""
    sandbox: bool = True
    """`claude`: hold the child in bubblewrap. Off only where the kernel forbids namespaces, which `mind doctor` says."""


class PersonaConfig(Settings):
    """`[persona]`: how she takes turns."""

    linger_s: Seconds = 60.0
    """How long she stays, session open and without a run, after her last turn."""
    children: Annotated[int, Field(ge=1)] = 2
    """`claude`: lingering children at most; the longest idle is closed first."""
    max_turns: Annotated[int, Field(ge=1, le=64)] = 4
    """Turns in one run (design §3)."""
    acts: tuple[Literal["say", "react"], ...] = ("say", "react")
    """The fields of a reply that this Mind may use."""
    silence: Literal["allowed", "never-when-addressed"] = "allowed"
    doctrine: tuple[str, ...] = ()
    """Files beside `persona/NAME.md` that go before it in her system prompt; together at most 96 KiB."""
    language: Literal["en"] = "en"
    """The catalogue that fixed notices are taken from."""
    debounce_s: Seconds = 1.5
    debounce_max_s: Seconds = 5.0
    """A message waits this long for the next one of the same breath, at most the second from the first on (design §9)."""
    beat: bool = False
    """A scheduled wake every `base_cooldown_s / heat` of the dial, even when nobody spoke."""


class MindConfig(Settings):
    """`minds/NAME.toml`: one Mind."""

    matrix: MatrixConfig
    people: PeopleConfig = PeopleConfig()
    model: ModelConfig = ModelConfig()
    persona: PersonaConfig = PersonaConfig()


def find_home(option: str | None) -> Home:
    """`--home DIR`, else `MIND_HOME`, else systemd's layout.

    Where `DIR/run` is too deep for a socket, a private directory in XDG_RUNTIME_DIR or the temporary directory stands in; its name
    is made from the home's path and the user's id so that every command finds the same one.
    """
    root = option or environment.get("MIND_HOME")
    if not root:
        return system_home()
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
    except tomllib.TOMLDecodeError as error:
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
    return parse_settings(HostConfig, read_toml(home.config_file), str(home.config_file))


def read_mind_config(home: Home, name: str) -> MindConfig:
    if not NAME_PATTERN.fullmatch(name):
        raise ConfigError(f"'{name}' is not a Mind's name: small letters, digits and '-', at most 32, a letter first")
    path = home.mind_file(name)
    if not path.exists():
        known = ", ".join(list_minds(home)) or "none yet"
        raise ConfigError(f"there is no Mind '{name}' ({path} does not exist); known: {known}")
    return parse_settings(MindConfig, read_toml(path), str(path))


def list_minds(home: Home) -> list[str]:
    """The names of all Minds of the host, sorted."""
    return sorted(p.stem for p in home.minds_dir.glob("*.toml") if NAME_PATTERN.fullmatch(p.stem))


def _render_fault(shape: type[BaseModel], fault: ErrorDetails) -> str:
    key = ".".join(str(part) for part in fault["loc"])
    if fault["type"] != "extra_forbidden":
        return f"`{key}` {fault['msg'][0].lower()}{fault['msg'][1:]} (it says {fault['input']!r})"
    known = _keys_beside(shape, fault["loc"])
    near = difflib.get_close_matches(str(fault["loc"][-1]), known, n=1, cutoff=0.5)
    hint = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(known)}"
    return f"`{key}` is not a setting; {hint}"


def _keys_beside(shape: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    for part in loc[:-1]:
        field = shape.model_fields.get(str(part))
        if field is None or not isinstance(field.annotation, type) or not issubclass(field.annotation, BaseModel):
            return []
        shape = field.annotation
    return sorted(shape.model_fields)
