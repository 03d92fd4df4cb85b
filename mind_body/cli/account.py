"""Door: her account on the homeserver, looked at from the operator's side: is it there, does the secret fit, make it.

A login made here is a question, with a device of its own that is logged out at once: her real device is chosen and kept by the
mouth alone (design §3).
"""

import contextlib
import re
from dataclasses import dataclass, field
from typing import Literal

from mind_body.cli.homeserver import registration_mac
from mind_body.errors import (
    ConfigError,
    CredentialError,
    MatrixError,
    MatrixRefused,
    MatrixUnauthorised,
    MatrixUnreachable,
    OperatorError,
)
from mind_body.matrix.client import MatrixClient

CHECK_DEVICE = "MINDCHECK"


@dataclass(frozen=True, slots=True)
class Account:
    """Who she is and what she logs in with."""

    homeserver: str
    user: str
    login: Literal["password", "token"]
    secret: str = field(repr=False)


async def check_account(account: Account) -> None:
    """Raises CredentialError when the secret does not fit, MatrixUnreachable when nobody answers."""
    async with MatrixClient() as client:
        await _find_homeserver(client, account.homeserver)
        try:
            if account.login == "token":
                user, _ = await client.account(account.homeserver, account.secret).whoami()
            else:
                login = await client.login_password(account.homeserver, account.user, account.secret, CHECK_DEVICE)
                user = login.user_id
                with contextlib.suppress(MatrixError):
                    await client.account(account.homeserver, login.token).logout()
        except (MatrixRefused, MatrixUnauthorised) as error:
            raise CredentialError(f"the {account.login} of {account.user} does not fit: {error}") from error
    if user != account.user:
        raise CredentialError(f"the {account.login} belongs to {user}, not to {account.user}")


async def _find_homeserver(client: MatrixClient, homeserver: str) -> None:
    """A server that answers, but is none of Matrix, is a mistake of who named it, and not away. Raises ConfigError."""
    try:
        await client.versions(homeserver)
    except MatrixUnreachable as error:
        if not re.search(r" answered (2\d\d|3\d\d|404|405)\b", str(error)):
            raise
        raise ConfigError(
            f"no Matrix homeserver is at {homeserver} ({error}): its client API may be elsewhere; for a server example.org, "
            "https://example.org/.well-known/matrix/client names it"
        ) from error


async def register_account(account: Account, registration_secret: str, display_name: str) -> None:
    """Make the user by the homeserver's registration shared secret. Raises OperatorError with the homeserver's reason."""
    localpart = account.user[1:].partition(":")[0]
    async with MatrixClient() as client:
        await _find_homeserver(client, account.homeserver)
        try:
            nonce = await client.registration_nonce(account.homeserver)
            mac = registration_mac(registration_secret, nonce, localpart, account.secret)
            login = await client.register(
                account.homeserver,
                {"nonce": nonce, "username": localpart, "password": account.secret, "admin": False, "mac": mac},
            )
        except (MatrixRefused, MatrixUnauthorised) as error:
            raise OperatorError(f"{account.user} could not be registered: {error}") from error
        if login.user_id != account.user:
            raise OperatorError(f"the homeserver made {login.user_id}, not {account.user}: use the server name that is its own")
        fresh = client.account(account.homeserver, login.token)
        with contextlib.suppress(MatrixError):
            await fresh.set_display_name(login.user_id, display_name)
            await fresh.logout()
