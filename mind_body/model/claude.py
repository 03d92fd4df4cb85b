"""Door: the `claude` CLI as a provider: tool-less, held to a schema, one session over many turns, behind the gateway.

The provider owns what its sessions share: the Mind's configuration directory, locked for this process; the gateway; a nursery for
the gateway and for the children's readers. It takes no turn itself (claude_session.py).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from mind_body.errors import SessionGone
from mind_body.home import Home
from mind_body.host.beside import background
from mind_body.log import Journal
from mind_body.model.claude_files import ClaudeFiles, check_sandbox, find_cli
from mind_body.model.claude_session import ClaudeSession, Shared, parse_cursor
from mind_body.model.gateway import Gateway
from mind_body.model.http import open_client
from mind_body.model.prices import PriceBook
from mind_body.model.relay import Relay, Upstream
from mind_body.model.session import SessionPlan
from mind_body.model.spend import Borrow, Purse
from mind_body.settings import ModelConfig

ANTHROPIC = "https://api.anthropic.com"
DEFAULT_MODEL = "claude-sonnet-4-5"
WINDOW = 200_000
"""The least that any model it serves has; the first result tells the real one (wire.md §4)."""
OUTPUT_CAP = 8_192


class ClaudeProvider:
    """A `Provider` over the CLI; made by `open_claude`."""

    keeps_transcript = True
    small = False

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    @property
    def instance(self) -> str:
        return _instance(self._shared.config)

    @property
    def model(self) -> str:
        return self._shared.model

    @property
    def window_tokens(self) -> int:
        return self._shared.config.window_tokens or self._shared.window or WINDOW

    @property
    def output_cap(self) -> int:
        return self._shared.output_cap

    async def open(self, plan: SessionPlan) -> ClaudeSession:
        """Raises ConfigError for a part that is missing, SessionGone for a cursor that leads nowhere."""
        await trio.lowlevel.checkpoint()
        shared = self._shared
        find_cli(shared.config.cli)
        check_sandbox(wanted=shared.config.sandbox)
        if plan.session_id in shared.taken:
            raise SessionGone("this session is open here already")
        leaf, _ = parse_cursor(plan.cursor)
        if plan.cursor is not None:
            shared.files.check_resumable(plan.session_id, leaf or "")
        session = shared.taken[plan.session_id] = ClaudeSession(shared, plan)
        return session

    async def aclose(self) -> None:
        async with trio.open_nursery() as nursery:
            for session in list(self._shared.taken.values()):
                nursery.start_soon(session.aclose)


@asynccontextmanager
async def open_claude(
    home: Home,
    name: str,
    config: ModelConfig,
    *,
    prices: PriceBook,
    purse: Purse,
    credential: Borrow,
    journal: Journal,
) -> AsyncIterator[ClaudeProvider]:
    """The provider, its gateway and its readers, for the life of the context. Raises StorageError."""
    files = ClaudeFiles(home, name)
    base_url, kind = config.base_url.rstrip("/") or ANTHROPIC, config.credential
    hold = files.hold()
    try:
        async with open_client(config.timeout_s) as client:
            gateway = Gateway(Relay(Upstream(base_url, kind, credential, prices, _instance(config)), client, journal), journal)
            await gateway.listen()
            async with background() as nursery:
                nursery.start_soon(gateway.run)
                model, cap = config.model or DEFAULT_MODEL, config.max_output_tokens or OUTPUT_CAP
                provider = ClaudeProvider(Shared(config, files, gateway, purse, nursery, journal, model, cap))
                try:
                    yield provider
                finally:
                    with trio.CancelScope(shield=True):
                        await provider.aclose()
    finally:
        hold.release()


def _instance(config: ModelConfig) -> str:
    return f"claude:{(config.base_url or ANTHROPIC).rstrip('/').partition('//')[2]}"
