"""Door: what the units see of this host: less than who calls a verb. Under a home directory organs see what their caller sees."""

import os
import pwd
import shutil
import stat
from pathlib import Path

from mind_body.cli.installation import UNSEEN
from mind_body.errors import ConfigError
from mind_body.home import Home
from mind_body.model.claude_files import find_cli

UNIT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
"""Where a unit looks for programs (systemd.exec(5)); a home's own are not there."""


def find_seen_cli(home: Home, named: str) -> Path:
    """The `claude` CLI as an organ finds it. Raises ConfigError with the way out."""
    cli = find_cli(named)
    if home.root is not None:
        return cli
    by_path = shutil.which("claude")
    if not named and by_path and Path(by_path).resolve() == cli and shutil.which("claude", path=UNIT_PATH) is None:
        raise ConfigError(f"{by_path} is on your PATH, and not on that of units ({UNIT_PATH}); name it: cli = …")
    if unseen := find_unseen(cli):
        raise ConfigError(f"{cli} lies below {unseen}, of which units see nothing; install it elsewhere, say below /opt")
    return cli


def find_unseen(path: Path) -> str | None:
    """The place of which units see nothing, where it lies below one."""
    return next((place for place in UNSEEN if path.is_relative_to(place)), None)


def may(user: str, path: Path, bits: int) -> bool:
    """Whether that user has these rights (as in `rwx`: 4, 2, 1) there, by owner, group or all others. Raises OSError, KeyError."""
    who, found = pwd.getpwnam(user), path.stat()
    groups = os.getgrouplist(user, who.pw_gid)
    shift = 6 if found.st_uid == who.pw_uid else 3 if found.st_gid in groups else 0
    return stat.S_IMODE(found.st_mode) >> shift & bits == bits
