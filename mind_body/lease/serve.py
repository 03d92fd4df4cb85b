"""Loop: who connects is looked at, heard, answered, and sent away: many at once, one question each.

1. The kernel says who it is, before a byte is read. Nobody is heard who is no half of a Mind; of who has nothing to ask, as
   `mind doctor`, that much is seen.
2. Nobody waits for anybody: who is slow or silent has so many seconds, and one process so many connections.
3. A half line, one over the cap, and nonsense end in a closed connection and a line in the journal, seldom the same one.
4. A half may come before it has a question, and may go without one: that is no complaint.
5. The answering itself does not wait, so that a question is answered whole or not at all, also at the organ's end.
6. Nothing is reserved or lent for who has hung up: he may have said already that he will not make the call.
"""

import os
from collections import Counter

import trio

from mind_body.clock import now_ms
from mind_body.home import Home
from mind_body.host.handover import has_hung_up, receive_line, send_line, will_ask_nothing
from mind_body.host.peers import Peer, find_peer, read_pid
from mind_body.lease.desk import Desk
from mind_body.lease.grant import refuse
from mind_body.lease.reserve import bind_peer
from mind_body.lease.seldom import Seldom
from mind_body.log import Journal
from mind_body.model.lease_lines import LINE_MAX, Borrow, Reserve, parse_question, render_line

DEADLINE_S = 5.0
"""For all of a question and its answer, from its first byte on: a half asks at once and reads at once."""
EARLY_S = 5.0
"""For the first byte. Who is sent away then comes again."""
STRANGER_S = 1.0
"""For a stranger to show that he has nothing to ask; he has had his answer."""
AT_ONCE = 64
"""Connections of one process: a Self's requests go side by side."""


class Server:
    """Serves for the life of the organ."""

    def __init__(self, home: Home, desk: Desk, journal: Journal) -> None:
        self._home = home
        self._desk = desk
        self._journal = journal
        self._seldom = Seldom()
        self._open: Counter[int] = Counter()

    async def serve(self, listener: trio.SocketListener) -> None:
        """Until cancelled."""
        await trio.serve_listeners(self._serve, [listener])

    async def _serve(self, stream: trio.SocketStream) -> None:
        pid = read_pid(stream)
        self._open[pid] += 1
        try:
            await self._converse(stream, pid)
        finally:
            self._open.subtract([pid])
            if not self._open[pid]:
                del self._open[pid]
            await trio.aclose_forcefully(stream)

    async def _converse(self, stream: trio.SocketStream, pid: int) -> None:
        peer = find_peer(self._home, stream)
        if isinstance(peer, str):
            await self._dismiss(stream, peer)
        elif self._open[pid] > AT_ONCE:
            self._complain(f"her {peer.organ}", f"it has more than {AT_ONCE} connections", peer)
        else:
            silent = True
            with trio.move_on_after(EARLY_S):
                silent = await will_ask_nothing(stream)
            if not silent:
                await self._hear(stream, peer)

    async def _hear(self, stream: trio.SocketStream, peer: Peer) -> None:
        with trio.move_on_after(DEADLINE_S) as deadline:
            heard = await receive_line(stream, LINE_MAX)
            if isinstance(heard, str):
                self._complain(f"her {peer.organ}", heard, peer)
                return
            if heard.descriptor is not None:
                os.close(heard.descriptor)
            await self._answer(stream, peer, heard.line)
        if deadline.cancelled_caught:
            self._complain(f"her {peer.organ}", f"it took more than {DEADLINE_S:g} s", peer)

    async def _dismiss(self, stream: trio.SocketStream, stranger: str) -> None:
        await send_line(stream, render_line(refuse("peer", f"nothing is lent to {stranger}")))
        only_looks = False
        with trio.move_on_after(STRANGER_S):
            only_looks = await will_ask_nothing(stream)
        if only_looks:
            self._journal.note("peer.looked", f"Somebody looked whether the lease answers: {stranger}.", level="debug")
        else:
            self._complain(stranger, "it is no half of a Mind")

    async def _answer(self, stream: trio.SocketStream, peer: Peer, line: bytes) -> None:
        question = parse_question(line)
        if isinstance(question, str):
            self._complain(f"her {peer.organ}", f"it is no question: {question}", peer)
            return
        if isinstance(question, Borrow | Reserve) and has_hung_up(stream):
            return
        answer, descriptor = self._desk.answer(peer, question)
        try:
            await send_line(stream, render_line(answer), descriptor)
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _complain(self, who: str, why: str, peer: Peer | None = None) -> None:
        # Strangers are told as one: there may be a new process with every try.
        kept = self._seldom.count(f"{peer} {why}", now_ms())
        if kept is not None:
            journal = bind_peer(self._journal, peer) if peer else self._journal
            journal.note("peer.refused", f"Sent away: {who}: {why}.", level="warning", REASON=why, NOT_TOLD=kept or None)
