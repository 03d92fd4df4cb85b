"""Door: a bed: a real systemd that is PID 1 of its own namespaces, over a throwaway overlay of this host. Only root can make one.

`systemd_bed.sh` makes it, and says what keeps the host as it is. From here it is entered as a person would: commands run in it, as
root or as somebody else; it is ended in order, or killed as by a power cut, and booted again with what it had written. It ends with
the process that opened it, also when that is killed.

The network is the host's own, so a homeserver and a model that listen on loopback are beside it.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.real.parts.scene import wait_until

SCRIPT = Path(__file__).with_suffix(".sh")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENTER = ("-m", "-p", "-i", "-u", "-C", "-r", "-w")
BOOT_S = 30.0


@dataclass(frozen=True)
class Process:
    """One process of the bed, as the host sees it."""

    pid: int
    user: int
    unit: str
    """The unit that it is in; empty for one that was entered from outside."""
    command: str


class Bed:
    """`boot` starts it; until then there is only where it lies."""

    def __init__(self, directory: Path, shown: Mapping[str, str]) -> None:
        """`shown`: directories of the host (source → place) that the bed shows, read-only."""
        pairs = [word for pair in shown.items() for word in pair]
        argv = ["unshare", "--mount", "--propagation=private", "sh", str(SCRIPT), str(directory), *pairs]
        directory.mkdir(parents=True, exist_ok=True)
        self.log = directory.with_suffix(".log")
        with self.log.open("ab") as log:
            # A session of its own: Ctrl-C is for the tests, which close it in order.
            self.holder = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1, start_new_session=True
            )
        self.pid = 0
        """Of the manager, as the host sees it; 0 while it is not running."""

    # -- its life ----------------------------------------------------------------------------------------------------

    def boot(self) -> float:
        """Start the manager; returns when every job of its start is done. How many seconds that took."""
        assert not self.pid
        began = time.monotonic()
        starter = psutil.Process(int(self._ask("boot")))
        self.pid = wait_until("the manager", lambda: [child.pid for child in starter.children()], 10)[0]
        wait_until(
            "the bed to be up", lambda: self.pid and self._enter("test", "-S", "/run/systemd/private").returncode == 0, BOOT_S
        )
        self.run("systemctl", "is-system-running", "--wait", check=False, timeout_s=BOOT_S)
        return time.monotonic() - began

    def end(self) -> None:
        """Shut it down in order, as `systemctl poweroff` does."""
        self._leave(signal.SIGRTMIN + 4)

    def kill(self) -> None:
        """As a power cut: at one instant nothing of it runs any more."""
        self._leave(signal.SIGKILL)

    def close(self) -> None:
        """Take it away, with all that it wrote."""
        assert self.holder.stdin is not None
        assert self.holder.stdout is not None
        self.holder.stdin.close()
        self.holder.stdout.close()
        self.holder.wait(30)
        self.pid = 0

    def _leave(self, how: int) -> None:
        os.kill(self.pid, how)
        assert self._ask("wait") == "ended"
        self.pid = 0

    def _ask(self, word: str) -> str:
        assert self.holder.stdin is not None
        assert self.holder.stdout is not None
        self.holder.stdin.write(f"{word}\n")
        answer = self.holder.stdout.readline().strip()
        assert answer, f"the bed could not be made or held; see {self.log}"
        return answer

    # -- in it -------------------------------------------------------------------------------------------------------

    def run(
        self,
        *argv: str,
        user: str = "",
        check: bool = True,
        text: str = "",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
    ) -> subprocess.CompletedProcess[str]:
        """A command in it, as root or as another user; `text` is its stdin. Its exit code is checked unless told not to."""
        done = self._enter(*argv, user=user, text=text, env=env, timeout_s=timeout_s)
        assert not check or done.returncode == 0, f"{argv} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done

    def systemctl(self, *words: str, check: bool = True, timeout_s: float = 60.0) -> str:
        return self.run("systemctl", *words, check=check, timeout_s=timeout_s).stdout.strip()

    def journal(self, *matches: str) -> list[dict[str, Any]]:
        """Lines of the journal, oldest first: `MIND=ada`, `-u`, `mind-mouth.service`, …"""
        lines = self.run("journalctl", "-q", "-o", "json", "--no-pager", *matches).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def told(self, *matches: str) -> str:
        """The same for people."""
        return self.run("journalctl", "-q", "--no-pager", "-o", "short-precise", *matches).stdout

    def path(self, inside: str) -> Path:
        """A file of the bed as seen from here, for plain reading and writing. (SQLite resolves such a path wrongly.)"""
        return Path(f"/proc/{self.pid}/root{inside}")

    def write(self, inside: str, text: str, mode: int = 0o644) -> None:
        path = self.path(inside)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def processes(self) -> list[Process]:
        """All that runs below its manager."""
        found = []
        for child in psutil.Process(self.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error, OSError):
                group = Path(f"/proc/{child.pid}/cgroup").read_text().rpartition("0::")[2].strip()
                found.append(Process(child.pid, child.uids().real, _unit_of(group), " ".join(child.cmdline())))
        return found

    def processes_of(self, unit: str) -> list[Process]:
        return [process for process in self.processes() if process.unit == unit]

    # -- units -------------------------------------------------------------------------------------------------------

    def show(self, unit: str, *names: str) -> dict[str, str]:
        """Properties of a unit."""
        words = self.systemctl("show", unit, *(f"--property={name}" for name in names))
        return dict(line.split("=", 1) for line in words.splitlines() if "=" in line)

    def state(self, unit: str) -> str:
        return self.show(unit, "ActiveState")["ActiveState"]

    def main_pid(self, unit: str) -> int:
        """Of its main process, as the bed sees it; 0 where there is none."""
        return int(self.show(unit, "MainPID")["MainPID"])

    def wait_state(self, unit: str, state: str = "active", deadline_s: float = 30.0) -> None:
        wait_until(f"{unit} to be {state}", lambda: self.state(unit) == state, deadline_s)

    def drop_in(self, unit: str, *lines: str, name: str = "scene", section: str = "Service") -> None:
        """As `systemctl edit` writes it. Without lines it is taken away again."""
        where = f"/etc/systemd/system/{unit}.d/{name}.conf"
        if lines:
            self.write(where, "\n".join([f"[{section}]", *lines]) + "\n")
        else:
            self.path(where).unlink(missing_ok=True)
        self.systemctl("daemon-reload")

    def _enter(
        self, *argv: str, user: str = "", text: str = "", env: Mapping[str, str] | None = None, timeout_s: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        become = ("setpriv", f"--reuid={user}", f"--regid={_group_of(user)}", "--init-groups", "--") if user else ()
        return subprocess.run(
            ["nsenter", "-t", str(self.pid), *ENTER, "--", *become, *argv],
            input=text, capture_output=True, text=True, check=False, timeout=timeout_s,
            env={"PATH": PATH, "LANG": "C.UTF-8", "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0", **(env or {})},
        )  # fmt: skip


@contextlib.contextmanager
def open_bed(directory: Path, shown: Mapping[str, str] | None = None) -> Iterator[Bed]:
    """A bed that is up, inside the block."""
    bed = Bed(directory, shown or {})
    try:
        bed.boot()
        yield bed
    finally:
        bed.close()


def _unit_of(group: str) -> str:
    parts: Sequence[str] = [part for part in group.split("/") if part.endswith((".service", ".scope"))]
    return parts[0] if parts else ""


def _group_of(user: str) -> str:
    return {"nobody": "nogroup"}.get(user, "mind" if user.startswith("mind-") else user)
