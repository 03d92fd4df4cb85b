"""Loop: signing in, and staying so.

1. The device id is chosen and stored before the first login and never changes: transaction ids are remembered per device.
2. /whoami comes before anything is processed: her id is what the homeserver says, compared exactly with the configured one.
3. With a password: the token of the last login is used while it is good; else one login. With a token: its device is what
   /whoami says. A login may follow a logout, with which the homeserver forgets what it took from that device (Synapse does): what
   was attempted is then looked for before it is sent again, which is stored before the login.
4. What only an operator can mend is told once, and tried again when a file has changed or after five minutes. What may mend itself
   is waited for, with back-off.
5. So many sign in at a time: a thousand Minds that start together are neither a stampede at the homeserver nor a thousand first
   syncs in one instant.
"""

import contextlib

import trio

from mind_body.errors import (
    ConfigError,
    CredentialError,
    MatrixLimited,
    MatrixRefused,
    MatrixUnauthorised,
    MatrixUnreachable,
    OperatorError,
    StorageError,
)
from mind_body.host.credentials import kept_at, then_restart
from mind_body.host.secrets import read_secret, write_secret
from mind_body.ids import new_id
from mind_body.matrix.client import Account
from mind_body.mind.outbox import forget_devices
from mind_body.mind.records import Identity
from mind_body.mind.rooms import read_identity, save_identity
from mind_body.mouth.seat import Seat

RETRY_S = 300.0
"""An account may have been mended on the homeserver; asking more often would lock it."""


async def keep_signed_in(seat: Seat) -> None:
    """For ever."""
    while True:
        account, identity = await _sign_in(seat)
        seat.admit(account, identity)
        seat.journal.note("matrix.signed-in", f"Signed in as {identity.user_id}.", DEVICE=identity.device_id)
        await seat.wait_refused()
        seat.journal.note("matrix.signed-out", "The homeserver no longer takes her token.", level="warning")


async def _sign_in(seat: Seat) -> tuple[Account, Identity]:
    tries = 0
    while True:
        try:
            async with seat.client.greeting:
                return await (_by_token(seat) if seat.config.matrix.login == "token" else _by_password(seat))
        except OperatorError as error:
            _tell(seat, str(error), level_error=True)
            await _wait_for_operator(seat)
        except (MatrixUnreachable, MatrixLimited) as error:
            _tell(seat, str(error), level_error=False)
            await seat.wait_out(tries, error.retry_after_ms / 1000 if isinstance(error, MatrixLimited) else 0.0)
            tries += 1


async def _by_token(seat: Seat) -> tuple[Account, Identity]:
    path = seat.home.matrix_secret(seat.name, "token")
    account = seat.client.account(seat.config.matrix.homeserver, read_secret(path))
    try:
        user_id, device_id = await account.whoami()
    except (MatrixUnauthorised, MatrixRefused) as error:
        words = f"the token in {kept_at(path)} is refused: {error}; put a good one there{then_restart(path)}"
        raise CredentialError(words) from error
    return account, _admit_identity(seat, user_id, device_id)


async def _by_password(seat: Seat) -> tuple[Account, Identity]:
    mine = seat.config.matrix
    session = seat.home.matrix_session(seat.name)
    identity = _chosen_identity(seat)
    # No session yet, or signed out on the homeserver: the password gives a new token for the same device.
    with contextlib.suppress(CredentialError, MatrixUnauthorised, MatrixRefused):
        account = seat.client.account(mine.homeserver, read_secret(session))
        if await account.whoami() == (identity.user_id, identity.device_id):
            return account, identity
    path = seat.home.matrix_secret(seat.name, "password")
    with seat.mind.write() as tx:
        forget_devices(tx)
    try:
        login = await seat.client.login_password(mine.homeserver, mine.user, read_secret(path), identity.device_id)
    except (MatrixUnauthorised, MatrixRefused) as error:
        words = f"the password in {kept_at(path)} is refused: {error}; put the right one there{then_restart(path)}"
        raise CredentialError(words) from error
    try:
        write_secret(session, login.token)
    except StorageError as error:
        # Good until this process ends; failing here would log in again and again, until the homeserver locks the account.
        seat.journal.note("matrix.token-not-kept", f"Her new token is not kept for the next start: {error}.", level="warning")
    account = seat.client.account(mine.homeserver, login.token)
    return account, _admit_identity(seat, *await account.whoami())


def _chosen_identity(seat: Seat) -> Identity:
    with seat.mind.read() as tx:
        known = read_identity(tx)
    if known is None:
        known = Identity(seat.config.matrix.user, f"MIND{new_id().replace('-', '')[-12:].upper()}")
        with seat.mind.write() as tx:
            save_identity(tx, known)
    _check_user(seat, known.user_id)
    return known


def _admit_identity(seat: Seat, user_id: str, device_id: str) -> Identity:
    _check_user(seat, user_id)
    found = Identity(user_id, device_id)
    with seat.mind.read() as tx:
        known = read_identity(tx)
    if known is not None and known.user_id != user_id:
        raise ConfigError(f"{seat.mind.path} is the mind of {known.user_id}, and the homeserver says that this is {user_id}")
    if known != found:
        with seat.mind.write() as tx:
            save_identity(tx, found)
    return found


def _check_user(seat: Seat, user_id: str) -> None:
    if user_id != seat.config.matrix.user:
        raise ConfigError(
            f"{seat.home.mind_file(seat.name)} says `matrix.user` is {seat.config.matrix.user}, but the account is {user_id}"
        )


def _tell(seat: Seat, sentence: str, *, level_error: bool) -> None:
    """Once per sentence."""
    if seat.trouble == sentence:
        return
    seat.trouble = sentence
    if level_error:
        seat.journal.note("matrix.credential", f"She cannot sign in: {sentence}.", level="error")
    else:
        seat.journal.note("matrix.waiting", f"She waits for the homeserver: {sentence}.", level="warning")


async def _wait_for_operator(seat: Seat) -> None:
    before = _stamps(seat)
    with trio.move_on_after(RETRY_S):
        while _stamps(seat) == before:
            await trio.sleep(min(seat.host.look_s, 5.0))
            seat.progress()


def _stamps(seat: Seat) -> list[tuple[int, int, int]]:
    secrets = [seat.home.matrix_secret(seat.name, kind) for kind in ("password", "token")]
    found = []
    for path in (*secrets, seat.home.matrix_session(seat.name)):
        try:
            stat = path.stat()
            found.append((stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size))
        except OSError:
            found.append((0, 0, 0))
    return found
