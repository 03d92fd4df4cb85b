"""Door: what an operator lets a Self see of the host: looked up where it lies, refused where it would open the Mind itself.

1. Neither a place of the Mind's (its configuration, credentials, state, sockets; those of the whole host, too), nor what contains
   one, nor what lies in one. Only her own workspaces are hers to see.
2. Links are followed first, at every start: who may write beside a place could have put one there.
"""

from collections.abc import Sequence
from pathlib import Path

from mind_body.errors import ConfigError
from mind_body.home import Home, system_home
from mind_body.self_run.launch import parse_binds


def find_binds(home: Home, name: str, binds: Sequence[str]) -> dict[str, str]:
    """Real paths outside to paths inside. Raises ConfigError."""
    found: dict[str, str] = {}
    for outside, inside in parse_binds(binds).items():
        place = Path(outside).expanduser()
        shown = place if inside == outside else Path(inside)
        if not place.is_absolute() or not shown.is_absolute() or shown == Path("/") or ".." in shown.parts:
            raise ConfigError(f"the bind '{outside}:{inside}' in [self] needs whole paths, and more than '/'")
        if not place.exists():
            raise ConfigError(f"{place} is named in [self], and not there")
        found[str(check_place(home, name, place))] = str(shown)
    return found


def check_place(home: Home, name: str, place: Path) -> Path:
    """Where it really lies. Raises ConfigError with what it would open."""
    real = place.resolve()
    for kept in _kept(home):
        if real in {kept, *kept.parents} or (kept in real.parents and home.work_dir(name, "").resolve() not in real.parents):
            raise ConfigError(f"[self] names {place}, which would show her Self {kept}: no sandbox may hold that")
    return real


def _kept(home: Home) -> list[Path]:
    """What no Self may see."""
    below = [home.config_file, home.minds_dir, home.persona_file("x").parent, home.control_dir("x").parent, home.credentials]
    host = system_home()
    return [path.resolve() for path in (*below, home.state, home.run, host.etc, host.state, host.run)]
