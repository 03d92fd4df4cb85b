"""Door: systemd's notification socket. The one home of sdnotify; silent where nobody listens."""

from collections.abc import Mapping

import sdnotify  # noqa: TID251 - its home


class Notify:
    """READY, STATUS, WATCHDOG, STOPPING (sd_notify(3))."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._notifier = sdnotify.SystemdNotifier() if environment.get("NOTIFY_SOCKET") else None
        interval = environment.get("WATCHDOG_USEC", "")
        self.watchdog_s: float | None = int(interval) / 1e6 if interval.isdigit() else None
        """How long the manager waits for a sign of progress; None when it does not watch."""

    def ready(self, status: str) -> None:
        self._send(f"READY=1\nSTATUS={status}")

    def status(self, words: str) -> None:
        self._send(f"STATUS={words}")

    def progress(self) -> None:
        """Fed only by real progress: a completed sync, a look, a line from the child."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def _send(self, message: str) -> None:
        if self._notifier is not None:
            self._notifier.notify(message)
