"""Door: the gateway that a `claude` child talks to instead of the Messages API (design §2): loopback, one key per child.

1. The key names the child's seat, compared in constant time; it is worth nothing elsewhere, and nothing here once the seat is
   closed.
2. What may pass is a message and the counting of its tokens, while the seat has a grant (for a turn, or for a run). Everything else
   is refused as the API spells its errors, with `x-should-retry: false`: the CLI then gives up at once.
3. What passes is the relay's business. No key, no credential and no text is in a log line or a repr.
"""

from collections.abc import Sequence

import h11  # noqa: TID251 - its home
import trio

from mind_body.log import Journal
from mind_body.model.passage import COUNT, MESSAGES, Refusal, read_key, render_error, same_key
from mind_body.model.relay import Relay, Request
from mind_body.model.seat import Seat

BODY_CAP = 64 * 1024 * 1024
"""Bytes of one request; the API itself takes half of that."""
_READ = 65_536


class Gateway:
    """Serves for the life of `run`."""

    def __init__(self, relay: Relay, journal: Journal) -> None:
        self._relay = relay
        self._journal = journal
        self._seats: list[Seat] = []
        self._listeners: Sequence[trio.SocketListener] = ()
        self.url = ""

    async def listen(self) -> None:
        """Take a free port; connections wait until `run`."""
        self._listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.url = f"http://127.0.0.1:{self._listeners[0].socket.getsockname()[1]}"

    async def run(self) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as nursery:
            await trio.serve_listeners(self._serve, list(self._listeners), handler_nursery=nursery)

    def open_seat(self) -> Seat:
        seat = Seat()
        self._seats.append(seat)
        return seat

    def close_seat(self, seat: Seat) -> None:
        seat.close_grant()
        self._seats = [one for one in self._seats if one is not seat]

    async def _serve(self, stream: trio.SocketStream) -> None:
        line = Line(stream)
        try:
            while (request := await line.next_request()) is not None:
                await self._answer(line, request)
        except (h11.ProtocolError, trio.BrokenResourceError, trio.ClosedResourceError):
            return  # the child went away or spoke nonsense: there is nobody to tell
        finally:
            await trio.aclose_forcefully(stream)

    async def _answer(self, line: "Line", request: Request) -> None:
        path, seat = request.target.partition("?")[0], self._find_seat(read_key(request.headers))
        if seat is None:
            self._note("A model request with a key that opens nothing was refused.")
            await line.refuse(Refusal(401, "authentication_error", "this key opens nothing here"))
        elif request.method != "POST" or path not in {MESSAGES, COUNT}:
            self._note("A request that is no model call was refused.")
            await line.refuse(Refusal(404, "not_found_error", "this does not pass the gateway"))
        elif seat.grant is None:
            self._note("A model request without a turn or a run was refused.")
            await line.refuse(Refusal(403, "permission_error", "no turn is granted"))
        elif path == COUNT:
            await self._relay.count(line, request)
        else:
            await self._relay.message(line, seat, seat.grant, request)

    def _find_seat(self, shown: str | None) -> Seat | None:
        return next((seat for seat in self._seats if same_key(shown or "", seat.key)), None)

    def _note(self, sentence: str) -> None:
        self._journal.note("gateway.refused", sentence, level="warning")


class Line:
    """One connection of a child's: h11 over a stream."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._http = h11.Connection(h11.SERVER)

    async def next_request(self) -> Request | None:
        """The next whole request; None when the child has hung up. Raises h11.ProtocolError."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        elif self._http.our_state is not h11.IDLE:
            return None
        head, body = None, bytearray()
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > BODY_CAP:
                    raise h11.RemoteProtocolError("a request over the cap", error_status_hint=413)
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
                return Request(head.method.decode(), head.target.decode("latin-1"), headers, bytes(body))
            else:
                return None

    async def refuse(self, refusal: Refusal) -> None:
        body, wait_s = render_error(refusal.kind, refusal.sentence), refusal.retry_after_s
        headers = [("x-should-retry", "false")] if wait_s is None else [("x-should-retry", "true"), ("retry-after", str(wait_s))]
        await self.begin(refusal.status, [*headers, ("content-type", "application/json"), ("content-length", str(len(body)))])
        await self.send(body)
        await self.end()

    async def begin(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        await self._write(h11.Response(status_code=status, headers=list(headers)))

    async def send(self, chunk: bytes) -> None:
        await self._write(h11.Data(data=chunk))

    async def end(self) -> None:
        await self._write(h11.EndOfMessage())

    async def break_off(self) -> None:
        self._http.send_failed()
        await trio.aclose_forcefully(self._stream)

    async def _next_event(self) -> object:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            if self._http.they_are_waiting_for_100_continue:
                await self._write(h11.InformationalResponse(status_code=100, headers=[]))
            self._http.receive_data(await self._stream.receive_some(_READ))

    async def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            await self._stream.send_all(data)
