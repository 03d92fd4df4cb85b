"""Shapes: where things lie. One home directory for people without systemd; the system's own directories under it.

    --home DIR / MIND_HOME        under systemd
    config.toml                   /etc/mind/config.toml
    minds/NAME.toml               /etc/mind/minds/NAME.toml
    persona/NAME.md               /etc/mind/persona/NAME.md
    control/NAME/                 /etc/mind/control/NAME/
    credentials/NAME.matrix-*     /etc/mind/credentials/matrix/NAME.matrix-*
    credentials/NAME.*-key        /etc/mind/credentials/model/NAME.*-key
    credentials/NAME.matrix-session   /var/lib/mind/mouth.d/NAME.matrix-session
    state/NAME/mind.db            /var/lib/mind/NAME/mind.db
    state/NAME/self/SESSION/      /var/lib/mind/NAME/self/SESSION/
    state/NAME/work/WORKSPACE/    /var/lib/mind/NAME/work/WORKSPACE/
    state/lease.d/ledger.db       /var/lib/mind/lease.d/ledger.db
    run/*.sock                    /run/mind/*.sock
    run/lease.stream              /run/mind/lease.stream

Under systemd no organ may look into /etc/mind/credentials. The manager hands a unit copies of what is in the one that it needs
(`LoadCredential=`): there NAME.model-key is called model_NAME.model-key.

A unix socket's path is at most 107 bytes (unix(7)); where the home is too deep for that, `run` is a short private directory that
`mind status` names.
"""

import re
from dataclasses import dataclass
from pathlib import Path

SOCKET_PATH_MAX = 100
"""Bytes; 107 is the kernel's limit, the rest is room for a suffix."""
MATRIX, MODEL = "matrix", "model"
"""The two kinds of credentials: directories below /etc/mind/credentials, and ids of `LoadCredential=`."""
NAME_PATTERN = re.compile(r"[a-z][a-z0-9-]{0,31}")
"""A Mind's name: it becomes a unit instance, a file name and a socket name."""


@dataclass(frozen=True, slots=True)
class Home:
    """Every path of one host's Minds."""

    root: Path | None
    """The home directory, or None under systemd's layout."""
    etc: Path
    state: Path
    run: Path
    handed: Path | None = None
    """Where the manager has put this unit's credentials ($CREDENTIALS_DIRECTORY); None for everybody who is no unit."""

    @property
    def config_file(self) -> Path:
        return self.etc / "config.toml"

    @property
    def minds_dir(self) -> Path:
        return self.etc / "minds"

    def mind_file(self, name: str) -> Path:
        return self.minds_dir / f"{name}.toml"

    def persona_file(self, name: str) -> Path:
        return self.etc / "persona" / f"{name}.md"

    def control_dir(self, name: str) -> Path:
        return self.etc / "control" / name

    @property
    def credentials(self) -> Path:
        return self.etc / "credentials"

    @property
    def matrix_credentials(self) -> Path:
        """Where the operator keeps what the mouth signs in with."""
        return self.credentials if self.root else self.credentials / MATRIX

    @property
    def model_credentials(self) -> Path:
        """Where the operator keeps what the lease lends."""
        return self.credentials if self.root else self.credentials / MODEL

    def matrix_secret(self, name: str, kind: str) -> Path:
        """`password` or `token`, as this process may read it."""
        return self._secret(MATRIX, f"{name}.matrix-{kind}")

    def matrix_session(self, name: str) -> Path:
        """The token of her last login: the mouth's own, which no operator writes."""
        own = self.credentials if self.root else self.state / "mouth.d"
        return own / f"{name}.matrix-session"

    def model_key(self, name: str) -> Path:
        """What her provider asks for, where it asks for anything, as this process may read it."""
        return self._secret(MODEL, f"{name}.model-key")

    def self_key(self, name: str) -> Path:
        """The same for her Self, where it has one of its own."""
        return self._secret(MODEL, f"{name}.self-key")

    def _secret(self, kind: str, file: str) -> Path:
        if self.handed is not None:
            return self.handed / f"{kind}_{file}"
        return (self.matrix_credentials if kind == MATRIX else self.model_credentials) / file

    def mind_dir(self, name: str) -> Path:
        return self.state / name

    def mind_db(self, name: str) -> Path:
        return self.mind_dir(name) / "mind.db"

    def self_dir(self, name: str) -> Path:
        """Where the `claude` CLI keeps its own things: one directory per Self session."""
        return self.mind_dir(name) / "self"

    def work_dir(self, name: str, workspace: str) -> Path:
        """A workspace that the configuration places nowhere else."""
        return self.mind_dir(name) / "work" / workspace

    @property
    def mouth_socket(self) -> Path:
        return self.run / "mouth.sock"

    @property
    def heartbeat_socket(self) -> Path:
        return self.run / "heartbeat.sock"

    def persona_socket(self, name: str) -> Path:
        return self.run / f"persona@{name}.sock"

    def self_socket(self, name: str) -> Path:
        return self.run / f"self@{name}.sock"

    @property
    def lease_socket(self) -> Path:
        """Where the lease is asked: a stream, and the one conversation between organs."""
        return self.run / "lease.stream"

    @property
    def ledger(self) -> Path:
        """What was reserved and settled. No Mind's directory has a dot in its name."""
        return self.state / "lease.d" / "ledger.db"

    @property
    def peers_dir(self) -> Path:
        """Under `mind up`: one file per process that may ask the lease, written by who started it."""
        return self.run / "peers"

    def socket_of(self, organ: str, name: str | None = None) -> Path:
        """Where an organ is poked."""
        return self.run / (f"{organ}@{name}.sock" if name else f"{organ}.sock")

    def lock_file(self, organ: str, name: str | None = None) -> Path:
        """What who holds a run (or is the daemon of this host) holds an flock on."""
        return self.run / (f"{organ}@{name}.lock" if name else f"{organ}.lock")


def system_home(handed: Path | None = None) -> Home:
    return Home(root=None, etc=Path("/etc/mind"), state=Path("/var/lib/mind"), run=Path("/run/mind"), handed=handed)


def directory_home(root: Path, short_run: Path) -> Home:
    """The layout below one directory. `short_run` stands in for `root/run` where a socket's path would not fit."""
    run = root / "run"
    longest = run / f"persona@{'x' * 32}.sock"
    if len(bytes(longest)) > SOCKET_PATH_MAX:
        run = short_run
    return Home(root=root, etc=root, state=root / "state", run=run)
