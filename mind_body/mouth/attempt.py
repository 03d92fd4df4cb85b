"""Loop: one attempt at something that the homeserver may do later, though not now."""

from collections.abc import Awaitable, Callable

from mind_body.errors import MatrixError, MatrixLimited, MatrixRefused, MatrixUnauthorised, MatrixUnreachable
from mind_body.matrix.client import Account
from mind_body.mouth.seat import Seat
from mind_body.mouth.speak import CURABLE


async def attempt(seat: Seat, account: Account, deed: Callable[[], Awaitable[None]]) -> MatrixError | None:
    """None when it is done, else why it must be tried again. Raises MatrixRefused for what never will be."""
    try:
        await deed()
    except MatrixUnauthorised as error:
        seat.refuse(account)
        return error
    except (MatrixLimited, MatrixUnreachable) as error:
        return error
    except MatrixRefused as error:
        if error.code not in CURABLE:
            raise
        return error
    return None


def asked_s(why: MatrixError) -> float:
    return why.retry_after_ms / 1000 if isinstance(why, MatrixLimited) else 0.0
