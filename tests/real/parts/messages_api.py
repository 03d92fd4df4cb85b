"""A scripted Messages API on loopback, for the real `claude` CLI and for the gateway.

It answers each POST /v1/messages with the next scripted answer (else the default one), streamed or plain as the request asks, and
keeps every request's raw bytes and headers. `usage` is a simulated prompt cache where an answer does not script it: what the
previous request of the same key began with is read, the rest is written; four bytes count as one token.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

from mind_body.model.prefix import canonical_blocks


@dataclass(frozen=True)
class Structured:
    """The answer as the StructuredOutput tool's input: what a good turn looks like."""

    value: Any
    usage: dict[str, Any] | None = None


@dataclass(frozen=True)
class Prose:
    """Plain text instead of the tool."""

    text: str
    stop_reason: str = "end_turn"
    usage: dict[str, Any] | None = None


@dataclass(frozen=True)
class Calls:
    """Tools are called: each with its input, all in one answer."""

    calls: tuple[tuple[str, dict[str, Any]], ...]
    text: str = ""
    usage: dict[str, Any] | None = None


def call(name: str, usage: dict[str, Any] | None = None, **values: Any) -> Calls:
    """One tool, called."""
    return Calls(((name, values),), usage=usage)


def prefix(tokens: int) -> dict[str, Any]:
    """A usage whose request had this prefix."""
    return {"input_tokens": 1, "cache_read_input_tokens": tokens - 1, "cache_creation_input_tokens": 0, "output_tokens": 20}


@dataclass(frozen=True)
class CutOff:
    """The output cap was reached in the middle of the tool's input."""

    partial: str = '{"say": [{"room": "r1", "te'


@dataclass(frozen=True)
class Fault:
    """An HTTP error."""

    status: int
    kind: str = "api_error"
    message: str = "scripted"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HalfStream:
    """The stream begins and the connection is closed in the middle."""

    value: Any


@dataclass(frozen=True)
class Held:
    """The answer waits until the test lets it go."""

    gate: threading.Event
    then: "Answer"


Message: TypeAlias = Structured | Prose | Calls | CutOff | HalfStream
Answer: TypeAlias = Message | Fault | Held

RATE_LIMITED = {"retry-after": "3600"}


def refusal() -> Prose:
    return Prose("", stop_reason="refusal")


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    raw: bytes
    at: float = field(default_factory=time.monotonic)
    """time.monotonic() when the last byte was there."""

    @property
    def body(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.raw)
        return parsed


class MessagesApi:
    def __init__(self, default: Answer | Callable[[Request], Answer] | None = None) -> None:
        self.default = default or Structured({"say": []})
        self.requests: list[Request] = []
        """Every POST /v1/messages."""
        self.others: list[Request] = []
        """Every request for anything else."""
        self.pause_stream: threading.Event | None = None
        """A streamed answer waits for this after its first event."""
        self._script: deque[Answer] = deque()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._lock = threading.Lock()
        self._seen: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script(self, *answers: Answer) -> None:
        with self._lock:
            self._script.extend(answers)

    def forget(self) -> None:
        """Begin a new scene: nothing scripted, nothing recorded."""
        with self._lock:
            self._script.clear()
            self.requests.clear()
            self.others.clear()
            self._seen = []
            self.default = Structured({"say": []})

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def next_answer(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            if self._script:
                return self._script.popleft()
        return self.default(request) if callable(self.default) else self.default

    def simulated_usage(self, request: Request) -> dict[str, Any]:
        blocks = canonical_blocks(request.body)
        with self._lock:
            read = _common(self._seen, blocks)
            self._seen = blocks
        hour = b'"ttl":"1h"' in request.raw.replace(b" ", b"")
        old, new = sum(map(len, blocks[:read])) // 4, sum(map(len, blocks[read:])) // 4
        return {
            "input_tokens": 1,
            "cache_read_input_tokens": old,
            "cache_creation_input_tokens": new,
            "cache_creation": {"ephemeral_5m_input_tokens": 0 if hour else new, "ephemeral_1h_input_tokens": new if hour else 0},
        }


@contextmanager
def scripted_messages_api(default: Answer | Callable[[Request], Answer] | None = None) -> Iterator[MessagesApi]:
    api = MessagesApi(default)
    api.start()
    try:
        yield api
    finally:
        api.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the script."""


def _common(before: list[str], after: list[str]) -> int:
    count = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        count += 1
    return count


def _handler(api: MessagesApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

        def do_GET(self) -> None:
            self._other()

        def do_HEAD(self) -> None:
            self._other()

        def _other(self) -> None:
            api.others.append(self._request(b""))
            self._plain(404, {"type": "error", "error": {"type": "not_found_error", "message": self.path}})

        def _request(self, raw: bytes) -> Request:
            return Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, raw)

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", "0")))
            request = self._request(raw)
            if request.path.partition("?")[0] != "/v1/messages":
                api.others.append(request)
                self._plain(404, {"type": "error", "error": {"type": "not_found_error", "message": self.path}})
                return
            try:
                self._answer(request, api.next_answer(request))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def _answer(self, request: Request, answer: Answer) -> None:
            if isinstance(answer, Held):
                answer.gate.wait(60)
                self._answer(request, answer.then)
            elif isinstance(answer, Fault):
                error = {"type": "error", "error": {"type": answer.kind, "message": answer.message}}
                self._plain(answer.status, error, answer.headers)
            elif request.body.get("stream"):
                self._stream(request, answer)
            else:
                message = _message(api, request, answer)
                self._plain(200, message)

        def _plain(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def _stream(self, request: Request, answer: Message) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            events = _events(_message(api, request, answer), answer)
            if isinstance(answer, HalfStream):
                events = events[: len(events) // 2]
            for event in events:
                data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
                if api.pause_stream is not None:
                    api.pause_stream.wait(60)
            if isinstance(answer, HalfStream):
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")

    return Handler


def _message(api: MessagesApi, request: Request, answer: Message) -> dict[str, Any]:
    number = len(api.requests)
    scripted = answer.usage if isinstance(answer, Structured | Prose | Calls) else None
    usage = {"output_tokens": 20, **(scripted or api.simulated_usage(request))}
    stop = "tool_use"
    content: list[dict[str, Any]]
    if isinstance(answer, Prose):
        content, stop = ([{"type": "text", "text": answer.text}] if answer.text else []), answer.stop_reason
    elif isinstance(answer, Calls):
        content = [{"type": "text", "text": answer.text}] if answer.text else []
        content += [
            {"type": "tool_use", "id": f"toolu_{number:04}_{place}", "name": name, "input": values}
            for place, (name, values) in enumerate(answer.calls)
        ]
    else:
        value = {} if isinstance(answer, CutOff) else answer.value
        content = [{"type": "tool_use", "id": f"toolu_{number:04}", "name": "StructuredOutput", "input": value}]
        stop = "max_tokens" if isinstance(answer, CutOff) else stop
    return {
        "id": f"msg_{number:04}",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model", "scripted"),
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }


def _events(message: dict[str, Any], answer: Answer) -> list[dict[str, Any]]:
    start = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    empty: dict[str, Any]
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            partial = answer.partial if isinstance(answer, CutOff) else json.dumps(block["input"])
            empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": partial}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    return [
        *events,
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": message["usage"]["output_tokens"]}},
        {"type": "message_stop"},
    ]
