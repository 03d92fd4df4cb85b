"""Door: identities. The one home of uuid-utils; every id in the mind is made here."""

import hashlib
import secrets

import uuid_utils  # noqa: TID251 - its home


def new_id() -> str:
    """A UUIDv7: sorts by the time it was made, so that listings need no extra column."""
    return str(uuid_utils.uuid7())


def new_session_uuid() -> str:
    """A UUIDv4 for a model session: the `claude` CLI takes any UUID, and a session's id should say nothing."""
    return str(uuid_utils.uuid4())


def new_secret() -> str:
    """256 bits, URL-safe: a key for one gateway, worth nothing anywhere else."""
    return secrets.token_urlsafe(32)


def derived_id(prefix: str, *parts: str) -> str:
    """An id made from its cause: the same cause gives the same id in every process, which is how a thing is said once."""
    digest = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
    return f"{prefix}-{digest[:32]}"


def digest(text: str) -> str:
    """SHA-256 in hex of UTF-8 text: what a session was opened under."""
    return hashlib.sha256(text.encode()).hexdigest()
