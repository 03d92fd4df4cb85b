"""Rule: a credential is blotted out of what a server says, before anybody reads it.

A server that refuses a key may quote it. What it says goes on to a child, and as a reason into the mind, the ledger and the
journal, and none of them ever has a credential (design §2, §10). What stands in its place is as long, so that lengths told before
stay true.
"""

from collections.abc import Mapping


def blot(text: bytes, secret: str | None) -> bytes:
    """A whole text."""
    return text.replace(secret.encode(), b"*" * len(secret.encode())) if secret else text


def blot_headers(headers: Mapping[str, str], secret: str | None) -> dict[str, str]:
    return {name: value.replace(secret, "*" * len(secret)) if secret else value for name, value in headers.items()}


class Blotter:
    """A text that comes in pieces: nothing is kept back but an end that may be the beginning of the secret."""

    def __init__(self, secret: str | None) -> None:
        self._secret = secret
        self._kept = b""

    def feed(self, chunk: bytes) -> bytes:
        """What of it may go on."""
        if not self._secret:
            return chunk
        text = blot(self._kept + chunk, self._secret)
        keep = _begun(text, self._secret.encode())
        self._kept = text[len(text) - keep :]
        return text[: len(text) - keep]

    def end(self) -> bytes:
        """What was kept back and turned out to be nothing."""
        kept, self._kept = self._kept, b""
        return kept


def _begun(text: bytes, secret: bytes) -> int:
    """How many bytes at its end the secret begins with."""
    return next((n for n in range(min(len(text), len(secret) - 1), 0, -1) if text.endswith(secret[:n])), 0)
