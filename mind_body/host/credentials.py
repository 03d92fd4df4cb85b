"""Door: the credentials that the manager handed to this unit (systemd.exec(5), `LoadCredential=`).

1. They are copies, made when the unit started: what the operator writes afterwards is there at the unit's next start.
2. Their directory is closed to everybody else, so a file's own mode says nothing: where the file system knows ACLs, the unit's user
   has his right by one, and that shows as a right of the group.
3. A sentence for the operator names the file that he keeps, and the unit to restart.
"""

from pathlib import Path

from mind_body.config import environment
from mind_body.home import MATRIX, MODEL, system_home

UNITS = {MATRIX: "mind-mouth", MODEL: "mind-lease"}
"""To whom each kind is handed."""


def is_handed(path: Path) -> bool:
    """Whether the manager put it there, for this process alone."""
    return environment.get("CREDENTIALS_DIRECTORY") == str(path.parent)


def kept_at(path: Path) -> Path:
    """The operator's file that this one is a copy of; itself where it is none."""
    kind, _, file = path.name.partition("_")
    if not is_handed(path) or kind not in UNITS:
        return path
    home = system_home()
    return (home.matrix_credentials if kind == MATRIX else home.model_credentials) / file


def then_restart(path: Path) -> str:
    """What has to follow a change of the operator's file: empty, or `, then …`."""
    unit = UNITS.get(path.name.partition("_")[0])
    return f", then `systemctl restart {unit}`" if unit and is_handed(path) else ""
