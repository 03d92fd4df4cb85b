"""Wiring: `mind organ heartbeat`, one process for all Minds of the host."""

import signal

import trio

from mind_body.heartbeat.look import Heartbeat, keep_looking
from mind_body.home import Home
from mind_body.host.limits import raise_descriptor_limit
from mind_body.host.post import open_post


async def run(home: Home) -> int:
    """Until SIGTERM or SIGINT; 0."""
    raise_descriptor_limit()
    post = open_post("heartbeat", home)
    heartbeat = Heartbeat(home, post.host, post.journal)
    try:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with trio.open_nursery() as nursery:
                ready = trio.Event()
                nursery.start_soon(keep_looking, heartbeat, post, ready)
                await ready.wait()
                post.notify.ready("Looking after every Mind of this host")
                post.journal.note("heartbeat.started", "The heartbeat looks after every Mind of this host.")
                async for _ in signals:
                    break
                nursery.cancel_scope.cancel()
    finally:
        post.notify.stopping()
        heartbeat.close()
        post.pokes.close()
        post.hold.release()
    post.journal.note("heartbeat.stopped", "The heartbeat ended.")
    return 0
