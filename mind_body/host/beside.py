"""Door: tasks that run beside a body of code and end with it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def background() -> AsyncIterator[trio.Nursery]:
    """A nursery for tasks that end with the body, whose own error comes out as it is and not in a group."""
    failed: BaseException | None = None
    async with trio.open_nursery() as nursery:
        try:
            yield nursery
        except BaseException as error:  # noqa: BLE001 - raised again below, outside the nursery
            failed = error
        nursery.cancel_scope.cancel()
    if failed is not None:
        raise failed
