"""Door: a scripted server that speaks OpenAI's chat completions, for tests and probes.

1. It listens on loopback in threads of the process that opens it, and ends with it. Every request is kept as the bytes that came.
2. What it answers is a `Step`: a function of the request. `script(...)` queues steps for the next requests; when the queue is
   empty, `default` answers. Steps that stand for the field's faults are made by the functions below.
3. It has a prefix cache like a real one: of each request it reports as cached what an earlier request began with, counted in
   tokens of four bytes over the canonical messages.
"""

import contextlib
import json
import socket
import socketserver
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

BYTES_PER_TOKEN = 4
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 404: "Not Found", 429: "Too Many Requests"}


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    number: int
    """From 0, in the order of arrival."""
    path: str
    headers: dict[str, str]
    """Names in small letters."""
    raw: bytes
    at: float
    """time.monotonic() when the last byte was there."""

    @property
    def body(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.raw)
        return parsed

    @property
    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.body["messages"]
        return found

    @property
    def last_user(self) -> str:
        """The text of the newest user message."""
        return str(next(m["content"] for m in reversed(self.messages) if m["role"] == "user"))


@dataclass(frozen=True)
class Answer:
    """What goes back. `raw` replaces the whole HTTP answer; `drop` closes the connection instead, after `raw` if there is one."""

    status: int = 200
    body: dict[str, Any] | bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    wait_s: float = 0.0
    drop: bool = False


Step: TypeAlias = Callable[[Request], Answer]


def say(text: str, *, finish: str = "stop", refusal: str | None = None, model: str = "scripted") -> Step:
    """A completion with exactly this content."""
    return lambda request: completion(request, text, finish=finish, refusal=refusal, model=model)


def reply(value: Any) -> Step:
    """A completion whose content is this value as JSON: a good structured answer."""
    return say(json.dumps(value, ensure_ascii=False))


def answer_with(function: Callable[[Request], Any]) -> Step:
    """A completion made from the request: a text as it is, anything else as JSON."""

    def step(request: Request) -> Answer:
        value = function(request)
        return completion(request, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

    return step


def prose() -> Step:
    return say("Hello! I would rather not answer in JSON today.")


def empty() -> Step:
    return say("")


def cut_off() -> Step:
    return say('{"say": "this sentence does not e', finish="length")


def two_objects() -> Step:
    return say('{"say": "one"}\n{"say": "two"}')


def refusal() -> Step:
    return say("", refusal="I cannot help with that.")


def filtered() -> Step:
    return say("", finish="content_filter")


def fault(status: int, message: str = "scripted", *, code: str | None = None, retry_after: str | None = None) -> Step:
    """An HTTP error as OpenAI words it."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return lambda _: Answer(status, {"error": {"message": message, "type": "error", "code": code}}, headers)


def overloaded(retry_after: str | None = None) -> Step:
    return fault(503, "The server is overloaded", retry_after=retry_after)


def limited(retry_after: str | None = "30") -> Step:
    return fault(429, "Rate limit reached", code="rate_limit_exceeded", retry_after=retry_after)


def slow(seconds: float, step: Step) -> Step:
    """The same answer, later. It is given up when the server closes."""

    def later(request: Request) -> Answer:
        made = step(request)
        return Answer(made.status, made.body, made.headers, wait_s=seconds, drop=made.drop)

    return later


def held(until: threading.Event, step: Step) -> Step:
    """The same answer, when `until` is set: a scene says how long she thinks."""

    def later(request: Request) -> Answer:
        assert until.wait(60), "a scene forgot her"
        return step(request)

    return later


def drop() -> Step:
    """The connection is closed without a byte, after the whole request was read."""
    return lambda _: Answer(drop=True)


def drop_midway() -> Step:
    """Half an answer, then the end of the connection."""
    half = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n{"choices": [{"mess'
    return lambda _: Answer(body=half, drop=True)


def garbage() -> Step:
    """200 with a body that is not JSON."""
    return lambda _: Answer(200, b"<html>it works</html>")


def completion(request: Request, text: str, *, finish: str = "stop", refusal: str | None = None, model: str = "scripted") -> Answer:
    """The body of a completion; usage is added by the server."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    return Answer(
        200,
        {
            "id": f"chatcmpl-{request.number}",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        },
    )


class ChatApi:
    """The open server."""

    def __init__(self, port: int, default: Step) -> None:
        self.port = port
        self.default = default
        self.requests: list[Request] = []
        """Every completion request, in order of arrival, whatever was answered."""
        self._steps: deque[Step] = deque()
        self._prefixes: list[bytes] = []
        self._changed = threading.Condition()
        self._closing = threading.Event()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, *steps: Step) -> None:
        """Answers for the next requests, one each."""
        self._steps.extend(steps)

    def wait_for(self, count: int, timeout_s: float = 60.0) -> list[Request]:
        """Until so many requests have come; all of them."""
        with self._changed:
            enough = self._changed.wait_for(lambda: len(self.requests) >= count, timeout_s)
        assert enough, f"only {len(self.requests)} of {count} requests came within {timeout_s} s"
        return list(self.requests)

    def _answer(self, path: str, headers: dict[str, str], raw: bytes) -> Answer:
        if not path.endswith("/chat/completions"):
            return Answer(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        with self._changed:
            request = Request(len(self.requests), path, headers, raw, time.monotonic())
            self.requests.append(request)
            step = self._steps.popleft() if self._steps else self.default
            self._changed.notify_all()
        answer = step(request)
        if isinstance(answer.body, dict) and answer.status == 200:
            answer.body.setdefault("usage", self._usage(request, answer.body))
        return answer

    def _usage(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        prompt = json.dumps(request.messages, ensure_ascii=False, sort_keys=True).encode()[:-1]
        with self._changed:
            cached = max((len(p) for p in self._prefixes if prompt.startswith(p)), default=0)
            self._prefixes = [*[p for p in self._prefixes if not prompt.startswith(p)][-63:], prompt]
        content = json.dumps(body["choices"][0]["message"]["content"]).encode()
        tokens, output = len(prompt) // BYTES_PER_TOKEN, len(content) // BYTES_PER_TOKEN
        return {
            "prompt_tokens": tokens,
            "completion_tokens": output,
            "total_tokens": tokens + output,
            "prompt_tokens_details": {"cached_tokens": cached // BYTES_PER_TOKEN},
        }

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection.makefile("rb") as file:
            while (head := _read_head(file)) is not None:
                path, headers = head
                raw = file.read(int(headers.get("content-length", "0")))
                answer = self._answer(path, headers, raw)
                if answer.wait_s and self._closing.wait(answer.wait_s):
                    return
                if answer.drop:
                    connection.sendall(answer.body if isinstance(answer.body, bytes) else b"")
                    return
                connection.sendall(_render(answer))


@contextlib.contextmanager
def open_chat_api(default: Step | None = None, port: int = 0) -> Iterator[ChatApi]:
    """The server, on a free port unless one is named. Without a default it answers `{"say": "ok <n>"}`."""
    api = ChatApi(0, default or answer_with(lambda request: {"say": f"ok {request.number}"}))

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(ConnectionError, TimeoutError):
                api._serve(self.request)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        block_on_close = False
        request_queue_size = 1024

    with Server(("127.0.0.1", port), Handler) as server:
        api.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield api
        finally:
            api._closing.set()
            server.shutdown()
            thread.join()


def _read_head(file: Any) -> tuple[str, dict[str, str]] | None:
    line = file.readline()
    if not line.strip():
        return None
    path = line.split()[1].decode()
    headers = {}
    while (line := file.readline().strip()) != b"":
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return path, headers


def _render(answer: Answer) -> bytes:
    body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body, ensure_ascii=False).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Error')}", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
