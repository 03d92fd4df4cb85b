"""Shapes: a nudge from one task to another of the same process: "look". Any number before the look is one."""

from collections.abc import Callable

import trio


class Nudge:
    """An event that can be cleared. Clear first, look after: a nudge during the look is not lost."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        if self._event.is_set():
            self._event = trio.Event()

    async def wait(self, timeout_s: float, sleep_on: Callable[[], bool] = lambda: False) -> bool:
        """True for a nudge; False when `timeout_s` has passed, and as often again as `sleep_on` then said so."""
        while True:
            with trio.move_on_after(timeout_s):
                await self._event.wait()
            if self._event.is_set() or not sleep_on():
                return self._event.is_set()
