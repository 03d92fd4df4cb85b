"""Wiring: `mind organ lease`, one process for all Minds of the host: who holds the keys and the purse."""

import signal

import trio

from mind_body.home import Home
from mind_body.host.handover import adopt_stream_socket, open_stream_socket
from mind_body.host.limits import raise_descriptor_limit
from mind_body.host.post import Post, open_post
from mind_body.lease.desk import Desk
from mind_body.lease.serve import Server

STATUS_S = 1.0
"""The status is told no more often than this, however many calls are made."""


async def run(home: Home) -> int:
    """Until SIGTERM or SIGINT; 0. A ledger that cannot be used ends nothing: every call is refused, with the reason."""
    raise_descriptor_limit()
    post = open_post("lease", home)
    listener = open_stream_socket(home.lease_socket) if post.stream is None else adopt_stream_socket(post.stream)
    desk = Desk(home, post.journal)
    desk.prune()
    try:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with trio.open_nursery() as nursery:
                status = desk.look()
                nursery.start_soon(Server(home, desk, post.journal).serve, listener)
                nursery.start_soon(_keep_looking, desk, post, status)
                post.notify.ready(status)
                post.journal.note("lease.started", f"The lease lends keys and reserves calls: {status}.")
                async for _ in signals:
                    break
                nursery.cancel_scope.cancel()
    finally:
        post.notify.stopping()
        desk.close()
        post.pokes.close()
        post.hold.release()
    post.journal.note("lease.stopped", "The lease ended.")
    return 0


async def _keep_looking(desk: Desk, post: Post, told: str) -> None:
    """At a poke, and at least every `look_s`: the ledger, and what the manager is told."""
    look_s = min(post.host.look_s, (post.notify.watchdog_s or 120.0) / 2)
    while True:
        await post.pokes.wait(look_s)
        status = desk.look()
        if status != told:
            post.notify.status(status)
            told = status
        post.notify.progress()
        await trio.sleep(STATUS_S)
