"""Door: the process's own watchdog: a thread that ends it where its loop has made no progress for too long (design §9).

A loop that hangs feeds nothing and notices nothing; it is ended, and whoever started it (systemd, `mind up`) starts it anew. The
thread goes by the monotonic clock, which stands still while a machine sleeps: waking up is not a hang.
"""

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable, Iterator

EXIT_HUNG = 70
"""EX_SOFTWARE of sysexits.h."""


class Watchdog:
    """Ends the process when `progress` was not called for `limit_s` seconds."""

    def __init__(
        self,
        limit_s: float,
        what: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._limit_s = limit_s
        self._what = what
        self._clock = clock
        self._end = end
        self._at = clock()
        self._over = threading.Event()

    def progress(self) -> None:
        """Something was done. Costs a reading of the clock."""
        self._at = self._clock()

    def left_s(self) -> float:
        """Seconds until it is enough."""
        return self._at + self._limit_s - self._clock()

    def watch(self) -> None:
        """The thread's work: until `stop`, or the end of the process."""
        while not self._over.wait(max(self.left_s(), 0.01)):
            if self.left_s() <= 0:
                _tell(f"{self._what} has made no progress for {self._limit_s:g} s; it ends, to be started anew.\n")
                self._end(EXIT_HUNG)
                return

    def stop(self) -> None:
        self._over.set()


@contextlib.contextmanager
def open_watchdog(limit_s: float, what: str) -> Iterator[Watchdog]:
    """Watched inside the block."""
    watchdog = Watchdog(limit_s, what)
    threading.Thread(target=watchdog.watch, name="watchdog", daemon=True).start()
    try:
        yield watchdog
    finally:
        watchdog.stop()


def _tell(sentence: str) -> None:
    """On stderr, unless what hangs is stderr itself: then nobody reads it, and the end must not wait for that."""
    with contextlib.suppress(OSError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, sentence.encode())
