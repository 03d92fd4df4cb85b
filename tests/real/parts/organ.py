"""Door: one organ by itself, as a process of a test's own. Ends with the test even when that is killed."""

import signal
import subprocess
import sys
from pathlib import Path

from mind_body.config import find_home
from mind_body.host.peers import register_peer
from tests.real.parts.scene import bare_environment
from tests.real.parts.synapse import die_with_parent


class Organ:
    """`mind organ WHICH` over a home, for one Mind where it is a half; started, killed and started again by the test.

    A half is registered as one, as `mind up` does it; the lease that it asks is the test's (parts/lease.py).
    """

    def __init__(self, which: str, directory: Path, mind: str = "") -> None:
        self.which = which
        self.mind = mind
        self.whose = ["--mind", mind] if mind else []
        self.directory = directory
        self.log = directory / f"{which}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *, crash_at: str = "") -> None:
        assert self.process is None
        environment = bare_environment(self.directory)
        if crash_at:
            environment["MIND_CRASH_AT"] = crash_at
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mind_body", "--home", str(self.directory), "organ", self.which, *self.whose],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one prctl, no lock
            )
        if self.mind:
            register_peer(find_home(str(self.directory)), self.process.pid, self.which, self.mind)

    def stop(self) -> int:
        """SIGTERM; its exit code. It must be gone within 5 s."""
        process, self.process = self.process, None
        assert process is not None
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the {self.which} did not end within 5 s; see {self.log}") from None

    def wait_killed(self, deadline_s: float = 30.0) -> None:
        """Until it has killed itself at its crash point."""
        process, self.process = self.process, None
        assert process is not None
        try:
            assert process.wait(deadline_s) == -signal.SIGKILL, self.journal()
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the {self.which} never came to its crash point:\n{self.journal()}") from None

    def kill(self) -> None:
        process, self.process = self.process, None
        assert process is not None
        process.kill()
        process.wait()

    def close(self) -> None:
        if self.process is not None:
            self.kill()

    def journal(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""
