"""Door: a real Synapse for tests and probes. Up in about three seconds; ends with whoever started it, even if that is killed."""

import contextlib
import ctypes
import itertools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from mind_body.cli.homeserver import (
    SERVER_NAME,
    SynapseOptions,
    registration_mac,
    start_command,
    write_synapse_config,
)
from tests.real.parts.person import Person

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
START_DEADLINE_S = 60.0
REGISTER = "/_synapse/admin/v1/register"


@dataclass(frozen=True, slots=True)
class Account:
    user_id: str
    password: str = field(repr=False)
    token: str = field(repr=False)
    device_id: str


class Homeserver:
    """One Synapse on one port for its whole life: stopped and started again it is the same server."""

    def __init__(
        self,
        directory: Path,
        *,
        limits: dict[str, Any] | None = None,
        access_token_ms: int | None = None,
        extra: dict[str, Any] | None = None,
        server_name: str = SERVER_NAME,
    ) -> None:
        self.directory = directory
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.server_name = server_name
        self.registration_secret = secrets.token_urlsafe(24)
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._persons: list[Person] = []
        self._options = SynapseOptions(
            port=self.port,
            registration_secret=self.registration_secret,
            limits=limits,
            access_token_ms=access_token_ms,
            extra=extra or {},
            server_name=server_name,
        )
        self._config = write_synapse_config(directory, self._options)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Returns when it answers."""
        assert self._process is None, "started already"
        with (self.directory / "stderr.log").open("ab") as log:
            self._process = subprocess.Popen(
                start_command(self._config),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one prctl, no lock
            )
        deadline = time.monotonic() + START_DEADLINE_S
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.base_url}/_matrix/client/versions", trust_env=False, timeout=5).status_code == 200:
                    return
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop(hard=True)
                raise AssertionError(f"Synapse did not start:\n{self.log_tail()}")
            time.sleep(0.05)

    def stop(self, *, hard: bool = False) -> None:
        """SIGTERM, or SIGKILL at once; returns when it is gone. Stopping twice is nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGKILL if hard else signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """It takes connections and answers nothing, as an overloaded one does."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def log_tail(self) -> str:
        texts = [path.read_text(errors="replace")[-2000:] for path in sorted(self.directory.glob("*.log"))]
        return "\n".join(texts)

    def unique(self, stem: str) -> str:
        """A user name that this server has not seen yet."""
        return f"{stem}{next(self._numbers)}"

    def user_id(self, localpart: str) -> str:
        return f"@{localpart}:{self.server_name}"

    def register(self, localpart: str, password: str = "a long enough password", *, admin: bool = False) -> Account:
        nonce = httpx.get(self.base_url + REGISTER, trust_env=False, timeout=30).json()["nonce"]
        body = {
            "nonce": nonce,
            "username": localpart,
            "password": password,
            "admin": admin,
            "mac": registration_mac(self.registration_secret, nonce, localpart, password, admin=admin),
        }
        answer = httpx.post(self.base_url + REGISTER, json=body, trust_env=False, timeout=30)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        return Account(found["user_id"], password, found["access_token"], found["device_id"])

    def login(self, localpart: str, password: str, device_id: str | None = None) -> Account:
        """A further device of an account."""
        body: dict[str, Any] = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": localpart},
            "password": password,
            **({"device_id": device_id} if device_id else {}),
        }
        answer = httpx.post(f"{self.base_url}/_matrix/client/v3/login", json=body, trust_env=False, timeout=30)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        return Account(found["user_id"], password, found["access_token"], found["device_id"])

    def person(self, stem: str) -> Person:
        """A new account at a client of its own."""
        return self.person_of(self.register(self.unique(stem)))

    def person_of(self, account: Account) -> Person:
        person = Person(self.base_url, account.user_id, account.token)
        self._persons.append(person)
        return person

    def close(self) -> None:
        """Stopped, and everybody's connections with it."""
        for person in self._persons:
            person.close()
        self.stop()


@contextlib.contextmanager
def open_homeserver(directory: Path | None = None, **options: Any) -> Iterator[Homeserver]:
    """Running inside the block; its directory (a temporary one unless given) is gone after it."""
    home = directory or Path(tempfile.mkdtemp(prefix="mind-synapse-"))
    try:
        server = Homeserver(home, **options)
        try:
            server.start()
            yield server
        finally:
            server.close()
    finally:
        if directory is None:
            shutil.rmtree(home, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def die_with_parent() -> None:
    # Called between fork and exec, in the child of the main thread: PDEATHSIG fires when the forking thread ends.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
