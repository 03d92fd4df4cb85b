"""Door: what `mind doctor` looks at behind a Mind's Self: the CLI and its window, the sandbox, the key, the directories.

The window is asked of the CLI itself, as a run does it: started in its sandbox, without a key and without a server, so no model is
called and nothing is paid.
"""

import tempfile
from pathlib import Path

import trio

from mind_body.cli.finding import Check, look
from mind_body.cli.model_checks import see_sandbox
from mind_body.cli.seen import find_seen_cli
from mind_body.errors import ChildError, ConfigError
from mind_body.home import Home
from mind_body.host.fence import can_fence
from mind_body.host.secrets import read_secret
from mind_body.ids import new_session_uuid
from mind_body.mind.records import Membership
from mind_body.mind.rooms import read_room
from mind_body.mind.store import open_mind
from mind_body.model.claude_files import check_sandbox
from mind_body.model.claude_launch import SETTINGS
from mind_body.model.lines import ControlResponse, Event
from mind_body.self_run.child import start_self
from mind_body.self_run.constants import Constants
from mind_body.self_run.files import SelfFiles
from mind_body.self_run.launch import SETTINGS_FILE, SelfLaunch, render_control
from mind_body.self_run.place import make_constants
from mind_body.self_run.seen import INITIALIZE, WINDOW
from mind_body.settings import MindConfig, SelfConfig

CEILING_LEAST = 40_000
"""Tokens: the CLI's instructions and tools are some 20,000, a hand-off up to 16,000."""
NOWHERE = "http://127.0.0.1:9"
"""The discard port: nobody answers there."""


async def check_self(home: Home, name: str, config: MindConfig) -> list[Check]:
    """Nothing where she has no Self."""
    own = config.self
    if not own.enabled:
        return []
    checks = [
        await look(f"{name}: self", lambda: _window(home, own), "see [self] model and cli; the window is the model's"),
        await look(f"{name}: self workspaces", lambda: _places(home, name, own), "make the directory, or mend [self]"),
    ]
    if own.credential != "none":
        checks.append(await look(f"{name}: self key", lambda: _key(home, name), f"write {home.self_key(name)}, mode 600"))
    if own.home_room:
        checks.append(
            await look(f"{name}: home room", lambda: _room(home, name, own), "invite her there, or mend [self] home_room")
        )
    if own.sandbox:
        fix = "apt-get install bubblewrap; where the kernel forbids user namespaces, allow them or set [self] sandbox = false"
        checks.append(await look(f"{name}: self sandbox", _sandbox, fix))
    return checks


async def _window(home: Home, config: SelfConfig) -> str:
    cli = find_seen_cli(home, config.cli)
    check_sandbox(wanted=config.sandbox)
    return f"{cli}; {judge_window(config, await _ask_window(config, cli))}"


def judge_window(config: SelfConfig, window: int) -> str:
    """What a Self can do with it. Raises ConfigError where that is nothing: each run would ask for its hand-off at once."""
    least = Constants().window_min_tokens
    if window < least:
        raise ConfigError(f"{config.model or 'the default model'} has a window of {window:,} tokens; a Self needs {least:,}")
    ceiling = make_constants(config).ceiling(window)
    if ceiling < CEILING_LEAST:
        raise ConfigError(
            f"its hand-off would be asked for at {ceiling:,} tokens, which the CLI's own instructions fill: "
            f"[self] ceiling_tokens, and the window of {window:,} less flush_headroom_tokens, must be {CEILING_LEAST:,} or more"
        )
    return f"window {window:,} tokens, flush at {ceiling:,}"


async def _ask_window(config: SelfConfig, cli: Path) -> int:
    """Raises ChildError when it does not say."""
    answers: list[ControlResponse] = []
    told = trio.Event()

    def see(event: Event) -> None:
        if isinstance(event, ControlResponse):
            answers.append(event)
            if event.request_id == WINDOW:
                told.set()

    with tempfile.TemporaryDirectory(prefix="mind-doctor-") as scratch:
        child = start_self(_launch(config, cli, Path(scratch)))
        child.on_event, child.on_change = see, lambda: told.set() if child.exited else None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child.run)
            child.put(render_control(INITIALIZE, "initialize"))
            child.put(render_control(WINDOW, "get_context_usage", detail="summary"))
            try:
                await told.wait()
            finally:
                await child.aclose()
    window = next((one.response.get("rawMaxTokens") for one in answers if one.request_id == WINDOW), None)
    if not isinstance(window, int):
        raise ChildError(f"{cli} does not tell its window: {child.words or 'it said nothing'}")
    return window


def _launch(config: SelfConfig, cli: Path, scratch: Path) -> SelfLaunch:
    places = [scratch / "config", scratch / "work"]
    for place in places:
        place.mkdir()
    (places[0] / SETTINGS_FILE).write_text(SETTINGS)
    return SelfLaunch(
        binary=str(cli),
        config_dir=str(places[0]),
        work_dir=str(places[1]),
        workspace="doctor",
        model=config.model,
        session_id=new_session_uuid(),
        resume=False,
        max_turns=1,
        run_cap_usd=0.0,
        gateway_url=NOWHERE,
        key_kind="api-key",
        key="no-key",
        sandboxed=config.sandbox,
    )


async def _places(home: Home, name: str, config: SelfConfig) -> str:
    await trio.lowlevel.checkpoint()
    files = SelfFiles(home, name, config)
    named = [str(files.find_workspace(workspace)) for workspace in config.workspaces]
    bound = [path for binds in files.find_binds() for path in binds]
    if config.config_seed:
        files.check_seed()
    return ", ".join([*named, *bound]) or f"below {home.work_dir(name, '')}"


async def _key(home: Home, name: str) -> str:
    await trio.lowlevel.checkpoint()
    own, shared = home.self_key(name), home.model_key(name)
    key = own if own.exists() or not shared.exists() else shared
    read_secret(key)
    return str(key)


async def _room(home: Home, name: str, config: SelfConfig) -> str:
    await trio.lowlevel.checkpoint()
    mind = open_mind(home.mind_db(name))
    try:
        with mind.read() as tx:
            room = read_room(tx, config.home_room)
    finally:
        mind.close()
    if room is None or room.membership is not Membership.JOINED:
        raise ConfigError(f"{name} is not in {config.home_room}")
    return room.name or room.room_id


async def _sandbox() -> str:
    seen = await see_sandbox()
    return seen if can_fence() else f"{seen}; this kernel (before Linux 6.12) leaves it the host's abstract sockets"
