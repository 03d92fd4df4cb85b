"""Door: systemd's notification socket. The one home of sdnotify; silent where nobody listens."""

from collections.abc import Mapping

import sdnotify  # noqa: TID251 - its home


class Notify:
    """READY, STATUS, WATCHDOG, STOPPING, EXTEND_TIMEOUT_USEC (sd_notify(3))."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._notifier = sdnotify.SystemdNotifier() if environment.get("NOTIFY_SOCKET") else None
        interval = environment.get("WATCHDOG_USEC", "")
        self.watchdog_s: float | None = int(interval) / 1e6 if interval.isdigit() else None
        """How long the manager waits for a sign of progress; None when it does not watch."""
        self._status = ""

    @property
    def listened(self) -> bool:
        """Somebody hears it: only then is it worth while to find out what to say."""
        return self._notifier is not None

    def ready(self, status: str) -> None:
        self._status = status
        self._send(f"READY=1\nSTATUS={status}")

    def status(self, words: str) -> None:
        """What it is doing; sent where it says something new."""
        if words != self._status:
            self._status = words
            self._send(f"STATUS={words}")

    def progress(self) -> None:
        """Fed only by real progress: a completed sync, a look, a line from the child."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def extend(self, seconds: float) -> None:
        """The end takes longer than the unit allows: so long from now on, if this is not said again."""
        self._send(f"EXTEND_TIMEOUT_USEC={round(seconds * 1e6)}")

    def _send(self, message: str) -> None:
        if self._notifier is not None:
            # sdnotify sends Latin-1, and the manager reads UTF-8.
            self._notifier.notify(message.encode("utf-8", "replace").decode("latin-1"))
