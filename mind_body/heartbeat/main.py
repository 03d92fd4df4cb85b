"""Wiring: `mind organ heartbeat`, one process for all Minds of the host. It never stops looking: a look that has not happened for
twice its interval ends the process, and whoever started it starts it anew.
"""

import signal

import trio

from mind_body.heartbeat.look import Heartbeat, keep_looking, look_interval_s
from mind_body.home import Home
from mind_body.host.limits import raise_descriptor_limit
from mind_body.host.post import Post, open_post
from mind_body.host.watchdog import open_watchdog

HUNG_MIN_S = 5.0
"""However small the interval: a busy machine is no hang."""


async def run(home: Home) -> int:
    """Until SIGTERM or SIGINT; 0."""
    raise_descriptor_limit()
    post = open_post("heartbeat", home)
    try:
        await _look_after(home, post)
    finally:
        post.notify.stopping()
        post.pokes.close()
        post.hold.release()
    post.journal.note("heartbeat.stopped", "The heartbeat ended.")
    return 0


async def _look_after(home: Home, post: Post) -> None:
    hung_s = max(2 * look_interval_s(post), HUNG_MIN_S)
    with open_watchdog(hung_s, "The heartbeat") as watchdog, trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        heartbeat = Heartbeat(home, post.host, post.journal, watchdog.progress)
        try:
            async with trio.open_nursery() as nursery:
                ready = trio.Event()
                nursery.start_soon(keep_looking, heartbeat, post, ready, watchdog.progress)
                await ready.wait()
                post.notify.ready("Looking after every Mind of this host")
                post.journal.note("heartbeat.started", "The heartbeat looks after every Mind of this host.")
                async for _ in signals:
                    break
                nursery.cancel_scope.cancel()
        finally:
            heartbeat.close()
