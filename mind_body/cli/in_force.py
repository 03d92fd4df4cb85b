"""Door: credentials as the units that need them have them.

The manager hands copies over when a unit starts; what the operator writes afterwards is in force at its next start. In his own
place they may lie encrypted.
"""

from pathlib import Path

from mind_body.cli.finding import Check
from mind_body.errors import CredentialError
from mind_body.home import MATRIX, MODEL, Home
from mind_body.host.credentials import UNITS
from mind_body.host.secrets import read_secret

HANDED = Path("/run/credentials")
"""Where systemd puts what `LoadCredential=` names (systemd.exec(5)); root sees it, too."""


def check_in_force(home: Home, name: str) -> Check:
    """Whether the units have her credentials as they are now. Who does not run is another check's."""
    stale: list[tuple[str, str]] = []
    well: list[tuple[str, str]] = []
    for kind, place in ((MATRIX, home.matrix_credentials), (MODEL, home.model_credentials)):
        for kept in sorted(place.glob(f"{name}.*")) if (HANDED / f"{UNITS[kind]}.service").is_dir() else []:
            (well if _is_in_force(kept, _copy_of(kept)) else stale).append((kept.name, UNITS[kind]))
    if stale:
        detail = "; ".join(f"{unit} has not got {file} as it is now" for file, unit in stale)
        fix = f"`systemctl restart {' '.join(dict.fromkeys(unit for _, unit in stale))}`: each is handed over when its unit starts"
        return Check(f"{name}: handed over", ok=False, detail=detail, fix=fix)
    told = ", ".join(f"{file} to {unit}" for file, unit in well)
    return Check(f"{name}: handed over", ok=True, detail=told or "nothing: who would get it does not run, or needs nothing")


def read_in_force(kept: Path) -> str:
    """The secret as its unit has it, where that is what the operator keeps now; else as he keeps it. Raises CredentialError."""
    if kept.parent.name in UNITS and _is_in_force(kept, copy := _copy_of(kept)):
        try:
            return copy.read_text().strip()
        except UnicodeDecodeError as error:
            raise CredentialError(f"{kept} does not hold text") from error
    return read_secret(kept)


def _copy_of(kept: Path) -> Path:
    return HANDED / f"{UNITS[kept.parent.name]}.service" / f"{kept.parent.name}_{kept.name}"


def _is_in_force(kept: Path, handed: Path) -> bool:
    """The very same; or, where the operator's is encrypted, no older than it."""
    try:
        return kept.read_bytes() == handed.read_bytes() or handed.stat().st_ctime_ns >= kept.stat().st_ctime_ns
    except OSError:
        return False
