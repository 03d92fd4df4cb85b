"""Wiring: the provider that a Mind's configuration names. Imported late, so that a persona carries only what it uses."""

import contextlib
from collections.abc import AsyncIterator

import trio

from mind_body.home import Home
from mind_body.log import Journal
from mind_body.model.lease import Lease, make_borrow
from mind_body.model.price_file import read_prices
from mind_body.model.prices import PriceBook
from mind_body.model.session import Provider
from mind_body.model.spend import Borrow
from mind_body.settings import MindConfig

CLOSE_S = 3.0
"""Ending takes no longer, so that SIGTERM is obeyed within 5 s."""


@contextlib.asynccontextmanager
async def open_provider(home: Home, name: str, config: MindConfig, lease: Lease, journal: Journal) -> AsyncIterator[Provider]:
    """Raises ConfigError, CredentialError or StorageError for what cannot be used."""
    prices, borrow = read_prices(home), make_borrow(lease, config.model.credential)
    if config.model.provider == "claude":
        from mind_body.model.claude import open_claude  # noqa: PLC0415 - see the first line

        opened = open_claude(home, name, config.model, prices=prices, purse=lease, credential=borrow, journal=journal)
        async with opened as claude:
            yield claude
        return
    provider = _make_provider(config, prices, lease, borrow, journal)
    try:
        yield provider
    finally:
        with trio.move_on_after(CLOSE_S) as scope:
            scope.shield = True
            await provider.aclose()


def _make_provider(config: MindConfig, prices: PriceBook, lease: Lease, borrow: Borrow, journal: Journal) -> Provider:
    if config.model.provider == "openai":
        from mind_body.model.openai import OpenAIProvider  # noqa: PLC0415 - see the first line

        return OpenAIProvider(config.model, prices=prices, purse=lease, credential=borrow, journal=journal)
    from mind_body.model.local import LocalProvider  # noqa: PLC0415 - see the first line

    return LocalProvider(config.model, prices=prices, purse=lease, journal=journal)
