"""Loop: everything that `mind demo` stands on, in one directory: a private homeserver, a Mind, her organs, a person.

1. What is started here ends with this process, however that ends: each child asks the kernel to be killed with its parent.
2. The person's first word may be said before the organs are up: they catch up.
"""

import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio

from mind_body.cli.account import Account, register_account
from mind_body.cli.create import NewMind, create_mind
from mind_body.cli.homeserver import (
    SERVER_NAME,
    SynapseOptions,
    start_command,
    synapse_is_installed,
    write_synapse_config,
)
from mind_body.cli.organ import DAEMONS
from mind_body.clock import now_ms, render_utc
from mind_body.config import environment, find_home
from mind_body.errors import ChildError, ConfigError, MatrixUnreachable
from mind_body.home import Home
from mind_body.host.liveness import read_holder
from mind_body.host.ports import free_port
from mind_body.host.process import Child, start_child
from mind_body.ids import new_secret
from mind_body.matrix.client import MatrixClient
from mind_body.model.local import find_gguf

NAME = "ada"
YOU = f"@you:{SERVER_NAME}"
PERSONA = """\
You are Ada, a lighthouse keeper. You live in a white lighthouse by the sea with your cat, Pip. You like tea, storms and old maps. \
You are kind and curious. You answer in one or two short sentences. You always say "I".

Examples of how you answer:
What is your name? {"say": "My name is Ada. I keep the lighthouse here."}
How are you today? {"say": "I am well, thank you. The wind is strong, and my tea is hot."}
Where do you live? {"say": "I live in a white lighthouse by the sea, with my cat Pip."}
Hello! {"say": "Hello! It is good to have a visitor."}
What do you like? {"say": "I like tea, storms and old maps."}
Tell me a story. {"say": "One night a ship lost its way, and my light brought it home."}
Are you a human? {"say": "No, I am a small program that plays a lighthouse keeper."}
"""
"""For a model of 135M, examples in the shape of its answers do what no instruction does. Nothing may stand after them."""
HOMESERVER_START_S = 60.0
ORGANS_START_S = 30.0
END_S = 6.0
"""`mind up` ends within 5 s."""
HOMESERVER_END_S = 1.0
"""Nobody is left who talks to it, and its database survives a kill."""
_TETHERED = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "  # PR_SET_PDEATHSIG, SIGKILL: it survives exec
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)

Step = Callable[[str], None]
"""Told when a step is done."""


@dataclass(frozen=True, slots=True)
class Sandpit:
    """What the demo has made."""

    home: Home
    homeserver: str
    mind_user: str
    token: str = field(repr=False)
    """The person's."""


@asynccontextmanager
async def open_sandpit(directory: Path, step: Step) -> AsyncIterator[Sandpit]:
    """Everything below `directory` (which is there), running; ended again when the block is left."""
    check_parts()
    async with MatrixClient() as client:
        homeserver = f"http://127.0.0.1:{free_port()}"
        secret = new_secret()
        synapse = _start_synapse(directory / "synapse", homeserver, secret)
        try:
            await _wait_for_homeserver(client, homeserver, synapse, directory)
            step("a private homeserver (Synapse)")
            mind = Account(homeserver, f"@{NAME}:{SERVER_NAME}", "password", new_secret())
            you = Account(homeserver, YOU, "password", new_secret())
            await register_account(mind, secret, NAME.capitalize())
            await register_account(you, secret, "You")
            token = (await client.login_password(homeserver, YOU, you.secret, "DEMO")).token
            home = _make_mind(directory, mind)
            step("a Mind and two accounts")
            organs = _start(directory, "up.log", [sys.executable, "-m", "mind_body", "--home", str(directory / "home"), "up"])
            try:
                await _wait_for_organs(home, organs, directory)
                step("her organs")
                yield Sandpit(home, homeserver, mind.user, token)
            finally:
                await _end(organs, END_S)
                if home.run.parent != home.root:  # the short one of a deep directory
                    shutil.rmtree(home.run, ignore_errors=True)
        finally:
            await _end(synapse, HOMESERVER_END_S)


def check_parts() -> None:
    """Raises ConfigError where a part is not installed."""
    if not synapse_is_installed():
        raise ConfigError("the demo needs Synapse: `make venv`, or pip install 'mind-body[demo,local]'")
    find_gguf("")


def _make_mind(directory: Path, account: Account) -> Home:
    home = find_home(str(directory / "home"))
    values = {
        "matrix": {"homeserver": account.homeserver, "user": account.user},
        "people": {"operators": [YOU]},
        "model": {"provider": "local"},
        # One person on one machine: nobody is in the middle of a second breath.
        "persona": {"debounce_s": 0.2, "debounce_max_s": 1.0, "linger_s": 600.0},
    }
    secrets = {"matrix-password": account.secret}
    create_mind(home, NewMind(NAME, values, secrets, PERSONA, released=True, by="mind demo"), render_utc(now_ms()))
    return home


def _start_synapse(directory: Path, homeserver: str, secret: str) -> Child:
    port = int(homeserver.rpartition(":")[2])
    config = write_synapse_config(directory, SynapseOptions(port, secret))
    return _start(directory, "start.log", start_command(config))


async def _wait_for_homeserver(client: MatrixClient, homeserver: str, synapse: Child, directory: Path) -> None:
    async def answers() -> bool:
        try:
            return bool(await client.versions(homeserver))
        except MatrixUnreachable:
            return False

    await _wait_for("the homeserver", answers, synapse, directory / "synapse" / "start.log", HOMESERVER_START_S)


async def _wait_for_organs(home: Home, organs: Child, directory: Path) -> None:
    async def run() -> bool:
        await trio.lowlevel.checkpoint()
        return all(read_holder(home.lock_file(organ)) for organ in DAEMONS)

    await _wait_for("her organs", run, organs, directory / "up.log", ORGANS_START_S)


async def _wait_for(what: str, ready: Callable[[], Awaitable[bool]], child: Child, log: Path, deadline_s: float) -> None:
    async with trio.open_nursery() as nursery:

        async def notice_end() -> None:
            code = await child.wait()
            raise ChildError(f"{what} ended at once (exit {code}): {_last_words(log)}")

        nursery.start_soon(notice_end)
        with trio.move_on_after(deadline_s) as waited:
            while not await ready():  # noqa: ASYNC110 - another process's readiness
                await trio.sleep(0.05)
        if waited.cancelled_caught:
            raise ChildError(f"{what} did not start within {deadline_s:g} s: {_last_words(log)}")
        nursery.cancel_scope.cancel()


def _start(directory: Path, log: str, argv: list[str]) -> Child:
    """A child that dies with us, writing into `directory/log`."""
    tethered = [sys.executable, "-c", _TETHERED, str(os.getpid()), *argv]
    passed = {name: environment[name] for name in ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "XDG_RUNTIME_DIR") if name in environment}
    env = {"LANG": "C.UTF-8", "HOME": str(directory), "PYTHONPATH": str(Path(__file__).resolve().parents[2]), **passed}
    # Its words go to a file, by a shell: an organ must never wait for us to read them.
    shell = ["/bin/sh", "-c", 'exec "$@" >>"$0" 2>&1', str(directory / log)]
    return start_child([*shell, *tethered], env=env, stdin="null")


async def _end(child: Child, grace_s: float) -> None:
    with trio.CancelScope(shield=True):
        await child.end(grace_s)
        await child.aclose()


def _last_words(log: Path) -> str:
    try:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return "it left no words"
    return lines[-1][-400:] if lines else "it left no words"
