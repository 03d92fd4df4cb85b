"""Loop: poke whoever is to hold an open run, again and again until somebody does.

A poke follows what it points at. An open run that nobody adopts is poked again, each time after twice as long, until its grace is
over: this is who starts a half of a Mind again and again, so the back-off is here.
"""

from pathlib import Path

from mind_body.control.govern import backoff_ms
from mind_body.host.poke import send_poke
from mind_body.log import Journal
from mind_body.mind.records import Run
from mind_body.settings import HostConfig


class Rouser:
    """What is known of the pokes for one kind of run between two looks."""

    __slots__ = ("_host", "_path", "_poked_at", "_poked_run", "_pokes", "_whom")

    def __init__(self, whom: str, path: Path, host: HostConfig) -> None:
        self._whom = whom
        self._path = path
        self._host = host
        self._poked_run: str | None = None
        self._poked_at = 0
        self._pokes = 0

    def poke(self, run: Run, journal: Journal, now: int) -> int:
        """Poke if it is time to; the instant of the next one."""
        if self._poked_run != run.id:
            self._poked_run, self._pokes = run.id, 0
        elif abs(now - self._poked_at) < backoff_ms(self._pokes, self._host):
            return self._poked_at + backoff_ms(self._pokes, self._host)
        self._poked_at, self._pokes = now, self._pokes + 1
        refused = send_poke(self._path)
        if refused:
            journal.note("poke.refused", f"{self._whom} could not be poked: {refused}.", RUN=run.id, TRIES=self._pokes)
        return now + backoff_ms(self._pokes, self._host)
