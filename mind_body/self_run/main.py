"""Wiring: `mind organ self --mind NAME`, started by a poke, gone when idle."""

import contextlib
from collections.abc import AsyncIterator

from mind_body.config import environment, read_mind_config
from mind_body.errors import ConfigError, MindBodyError
from mind_body.home import Home
from mind_body.host.beside import background
from mind_body.host.post import Post, keep_half
from mind_body.mind.sessions import read_open_sessions
from mind_body.mind.store import Mind, open_mind
from mind_body.model.claude import ANTHROPIC
from mind_body.model.gateway import Gateway
from mind_body.model.http import open_client
from mind_body.model.lease import Lease, make_borrow, open_lease
from mind_body.model.price_file import read_prices
from mind_body.model.relay import Relay, Upstream
from mind_body.self_run.files import SelfFiles
from mind_body.self_run.opening import Bench
from mind_body.self_run.place import Place, make_constants
from mind_body.self_run.stay import give_back, has_open_run, stay
from mind_body.settings import MindConfig

TIME_DIVISOR = "MIND_TIME_DIVISOR"
"""An environment variable by which every span of time of a run is divided: for tests that cannot wait."""


async def run(home: Home, name: str) -> int:
    """Until there is nothing to do, or SIGTERM; 0. Raises MindBodyError for what an operator must mend."""
    return await keep_half("self", home, name, _serve)


async def _serve(post: Post, name: str) -> None:
    mind = open_mind(post.home.mind_db(name))
    try:
        post.pokes.drain()
        again = has_open_run(mind)
        while again:
            try:
                again = await _serve_configured(post, name, mind)
            except MindBodyError as error:
                _give_back(post, mind, error)
                # Nothing is open now, and the heartbeat pokes again for what it opens: one that is left would start it in vain.
                post.pokes.drain()
                raise
        post.notify.ready("Nothing to do")
    finally:
        mind.close()


async def _serve_configured(post: Post, name: str, mind: Mind) -> bool:
    """Serve under the configuration as it is now; True when it has changed and is to be read again."""
    config = read_mind_config(post.home, name)
    if not config.self.enabled:
        raise ConfigError(f"{post.home.mind_file(name)} has no Self: [self] enabled is false")
    async with (
        open_lease(post.home, name, post.journal) as lease,
        _open_place(post, name, config, mind, lease) as place,
    ):
        post.notify.ready("Ready to work")
        try:
            return await stay(place)
        finally:
            await place.bench.let_go()


@contextlib.asynccontextmanager
async def _open_place(post: Post, name: str, config: MindConfig, mind: Mind, lease: Lease) -> AsyncIterator[Place]:
    """Gateway, files and bench, for the life of the context."""
    own, files = config.self, SelfFiles(post.home, name, config.self)
    with mind.read() as tx:
        files.sweep({session.id for session in read_open_sessions(tx, "work:") if session.cursor})
    base_url, borrow = own.base_url.rstrip("/") or ANTHROPIC, make_borrow(lease, own.credential)
    upstream = Upstream(base_url, own.credential, borrow, read_prices(post.home), f"self:{base_url.partition('//')[2]}")
    constants = make_constants(own).scaled(int(environment.get(TIME_DIVISOR) or 1))
    async with open_client(own.stall_s) as client:
        gateway = Gateway(Relay(upstream, client, post.journal), post.journal)
        await gateway.listen()
        async with background() as nursery:
            nursery.start_soon(gateway.run)
            bench = Bench(own, constants, files, gateway, mind, nursery)
            yield Place(post, name, config, mind, post.journal, bench, lease, constants)


def _give_back(post: Post, mind: Mind, error: MindBodyError) -> None:
    reason, run = str(error), give_back(mind, post.hold.holder, error)
    post.journal.note("self.failed", f"Her Self cannot work: {reason}", level="error", RUN=run.id if run else None, REASON=reason)
