"""Door: named crash points, inert unless armed.

`crash_point(name)` stands at every boundary of design §3. When wiring has armed exactly that name (from `MIND_CRASH_AT`), the
process kills itself there with SIGKILL, as a power cut would, so that a test can stop the world between two transactions.

`MIND_CRASH_AT=name` dies the first time; `name@3` the third time; `name:hang` stops there for ever instead (what a watchdog is
for). `MIND_CRASH_MARK=FILE` makes it happen once: the file is made just before, and where it exists nothing happens.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from mind_body.errors import ConfigError

POINTS: dict[str, str] = {
    "ear.sync-answered": "the homeserver answered /sync, nothing is stored",
    "ear.T1": "T1 is committed: heard rows and position",
    "ear.gap-page": "one page of a gap is committed with its cursor",
    "ear.question-room": "the homeserver has made a room for questions, nothing is stored of it",
    "ear.steer": "T1 of a message for the running Self is committed, nobody was poked",
    "heartbeat.before-T2": "the heartbeat decided to open a run, nothing is stored",
    "heartbeat.T2": "T2 is committed: the run is open, nobody was poked",
    "heartbeat.before-claim": "the heartbeat decided to claim a follow-up, nothing is stored",
    "heartbeat.claimed": "the follow-up is claimed and its run open, nobody was poked",
    "heartbeat.asked": "a question to the operators is committed, nobody was poked",
    "heartbeat.look": "a look begins: what hangs here is what the watchdog is for",
    "lease.before-reserve": "a call may be made, its reservation is not stored",
    "lease.reserved": "the reservation is committed, who asked was not told",
    "lease.before-settle": "a settlement came, nothing is stored",
    "lease.settled": "the settlement is committed, who sent it was not told",
    "persona.adopted": "the lock is held and the run adopted",
    "persona.before-T3a": "the batch is chosen, nothing is stored",
    "persona.T3a": "T3a is committed: the turn is open, the model was not called",
    "persona.model-answered": "the model answered, nothing is stored",
    "persona.T3b": "T3b is committed: reply and said rows, nobody was poked",
    "persona.run-ended": "the run is ended, nobody was poked",
    "self.adopted": "the lock is held and the Self run adopted",
    "self.spawned": "the child is started, it was told nothing",
    "self.fed": "the child was given the message",
    "self.flush-asked": "the child was asked for the flush",
    "self.handoff-stored": "the hand-off is committed, the run is not ended",
    "self.before-end": "the run is over, nothing of its end is stored",
    "self.run-ended": "the end is committed: outcome, result, follow-up; nobody was poked",
    "voice.before-T4a": "a said row is chosen, nothing is stored",
    "voice.T4a": "T4a is committed: attempted, nothing is sent",
    "voice.sent": "the homeserver answered the PUT, no receipt is stored",
    "voice.T4b": "T4b is committed: the event id is stored",
}
"""Every name and what has just happened there. `docs/crash-points.md` is held to this table by a test."""


@dataclass
class _Armed:
    name: str | None = None
    hang: bool = False
    countdown: int = 1
    mark: Path | None = None


_armed = _Armed()


def arm(spec: str | None, mark: str | None = None) -> None:
    """Arm one point, or none. An unknown name is an error, lest a test pass because nothing crashed."""
    _armed.name = None
    if not spec:
        return
    name, _, action = spec.partition(":")
    name, _, nth = name.partition("@")
    if name not in POINTS or action not in {"", "hang"} or (nth and not nth.isdigit()):
        raise ConfigError(f"MIND_CRASH_AT={spec}: no such crash point; the names are in docs/crash-points.md")
    _armed.name, _armed.hang, _armed.countdown = name, action == "hang", int(nth or 1)
    _armed.mark = Path(mark) if mark else None


def crash_point(name: str) -> None:
    """Die here if armed for `name`. A name outside POINTS is a programming error, caught by the architecture test."""
    if _armed.name != name:
        return
    _armed.countdown -= 1
    if _armed.countdown > 0:
        return
    if _armed.mark is not None:
        try:
            _armed.mark.touch(exist_ok=False)
        except FileExistsError:
            return
    if _armed.hang:
        while True:
            time.sleep(3600)  # noqa: TID251 - a hang is a blocked loop, which is the point
    os.kill(os.getpid(), signal.SIGKILL)
