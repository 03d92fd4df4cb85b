"""Shapes: a nudge from one task to another of the same process: "look". Any number before the look is one."""

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

    async def wait(self, timeout_s: float) -> bool:
        """True for a nudge, False when `timeout_s` has passed."""
        with trio.move_on_after(timeout_s):
            await self._event.wait()
        return self._event.is_set()
