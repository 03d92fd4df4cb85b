"""Door: the credential files of Minds: which one a half's calls are made with, lending it, and telling one from another.

1. A Persona's is `NAME.model-key`, as `[model] credential` says; a Self's is `NAME.self-key`, or `NAME.model-key` where that is not
   there, as `[self] credential` says.
2. What is lent is a descriptor that can only be read, and that shares its position with nobody.
3. Two Minds with the same secret for the same server share what is wrong with it: what another server says of it is that one's
   alone. Its name in the ledger is a digest keyed by the ledger, so that it is worth nothing elsewhere, and a guess cannot be tried
   without the ledger. The secret itself is kept nowhere.
"""

import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mind_body.home import Home
from mind_body.host.peers import Peer
from mind_body.host.secrets import open_secret, read_secret
from mind_body.settings import MindConfig

Mark = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Key:
    """What one half's calls are made with."""

    kind: Literal["none", "api-key", "oauth-token"]
    path: Path
    server: str = ""
    """Whom it is shown to; empty for Anthropic's own."""


def find_key(home: Home, config: MindConfig, peer: Peer) -> Key:
    """Where its credential lies, and of which kind it is."""
    shared = home.model_key(peer.mind)
    if peer.organ == "persona":
        return Key(config.model.credential, shared, config.model.base_url.rstrip("/"))
    own = home.self_key(peer.mind)
    server = config.self.base_url.rstrip("/")
    return Key(config.self.credential, own if own.exists() or not shared.exists() else shared, server)


def lend_key(key: Key) -> int:
    """An open descriptor of its file; the caller's to close. Raises CredentialError."""
    read_secret(key.path)  # one that is empty, or no text, is not lent
    return open_secret(key.path)


class Digests:
    """What credentials are called in the ledger."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Path, str], tuple[Mark, str]] = {}

    def read(self, key: Key, peer: Peer, digest_key: str) -> str:
        """The same for the same secret and server, whatever its file. Without one, each half is alone. Raises CredentialError."""
        if key.kind == "none":
            return f"none:{peer.organ}@{peer.mind}"
        mark = _mark(key.path)
        known = self._known.get((digest_key, key.path, key.server))
        if known is None or mark is None or known[0] != mark:
            shown = f"{key.server}\n{read_secret(key.path)}"
            known = (mark or (0, 0, 0, 0), hmac.new(digest_key.encode(), shown.encode(), hashlib.sha256).hexdigest())
            self._known[digest_key, key.path, key.server] = known
        return known[1]


def _mark(path: Path) -> Mark | None:
    """Changes whenever the file is replaced or written, or its mode or owner changed."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
