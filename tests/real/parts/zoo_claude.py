"""A `claude` of our own that goes wrong as told: the same stream-json both ways, no model, no request (wire.md §2 to §4).

`install_zoo(directory, **options)` writes it as one executable file that runs inside the sandbox, by the system's own Python.
What it is told, each by itself or with others:

    prefixes        the prefix of each request of a turn; the last request answers
    grow            after those the turn goes on, every request this much larger, until it is interrupted
    pace            seconds that a request takes, and a tool
    heeds_flush     a flush is answered with a hand-off at the next boundary (True), or worked past (False)
    flush_mark      what a message has to contain to be a flush
    handoff_kb      the hand-off is so long; `shortens` is whether it is short when asked for a shorter one
    hang            `start`: answers nothing; `request`: falls silent in a turn; `tool`: in a tool; `result`: after the result
    deaf            no interrupt, no end_session and no closed stdin reaches it
    iron            SIGINT and SIGTERM do nothing
    half            half of a line, then exit 1
    exit            exits with this code in the turn, without a result
    deaths          the number of starts for which `half` and `exit` hold; they are counted in its workspace
    line_mb         a tool result of so many megabytes, in one line
    garbage         what is no JSON between the lines
    mute            closes stdout in the turn and lives on
    stderr_mb       so many megabytes on stderr
    grandchildren   leaves processes in sessions and groups of their own, one of them with our stdout
    refuse          `resume`: knows no session; `session-id`: every id is in use
    usage           `twice`: every line repeated; `zero`; `null`; `subagent`: a subagent with a large prefix speaks last
    window          what it says its window is
    result          fields over those of its result; `error` puts a synthetic assistant line before it
    limit           a rate_limit_event with this `resetsAt`
    future          unknown types, subtypes, blocks and fields everywhere
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

OPTIONS = "{}"
VERSION = "2.1.332"
MODEL = "claude-zoo"


def install_zoo(directory: Path, **options: Any) -> Path:
    """The executable, told what to do."""
    source = Path(__file__).read_text()
    path = directory / "claude"
    path.write_text("#!/usr/bin/env python3\n" + source.replace('OPTIONS = "{}"', f"OPTIONS = {json.dumps(options)!r}", 1))
    path.chmod(0o755)
    return path


class Interrupted(Exception):
    """The turn is to end."""


class Fake:
    """One process."""

    def __init__(self, argv: list[str], options: dict[str, Any]) -> None:
        flags = dict(one.partition("=")[::2] for one in argv)
        self.options = options
        self.config = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
        self.resumed = "--resume" in flags
        self.session = flags.get("--resume") or flags.get("--session-id") or str(uuid.uuid4())
        self.inbox: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.folded: list[dict[str, Any]] = []
        self.stop = threading.Event()
        self.in_turn = False
        self.requests = 0
        self.newest = 0
        self.lock = threading.Lock()
        self.starts = 0

    # -- lines -------------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        with self.lock, contextlib.suppress(OSError):
            left = memoryview(data)
            while left:
                left = left[os.write(1, left) :]

    def out(self, kind: str, **fields: Any) -> None:
        line = {"type": kind, **fields, "session_id": self.session, "uuid": fields.get("uuid", str(uuid.uuid4()))}
        if self.options.get("future"):
            line["a_new_field"] = {"deep": [1, None, {"x": "\u2028"}]}
        self.write(json.dumps(line).encode() + b"\n")
        if self.options.get("garbage"):
            self.write(b'\nnpm warn deprecated\n[1, 2]\n{"type": \n\xff\xfe\x00\n"text"\n{}\n')
        if self.options.get("future"):
            self.write(json.dumps({"type": f"novelty_{kind}", "subtype": "brave", "payload": [self.session]}).encode() + b"\n")

    def lifecycle(self, message: dict[str, Any], state: str) -> None:
        self.out("command_lifecycle", command_uuid=message.get("uuid"), state=state)

    def respond(self, request_id: Any, response: dict[str, Any] | None = None, error: str | None = None) -> None:
        inner: dict[str, Any] = {"subtype": "error" if error else "success", "request_id": request_id}
        inner |= {"error": error} if error else {"response": response} if response is not None else {}
        self.write(json.dumps({"type": "control_response", "response": inner}).encode() + b"\n")

    # -- what comes in -----------------------------------------------------------------------------------------------

    def read(self) -> None:
        """A thread: control requests are answered at any time."""
        for line in sys.stdin.buffer:
            try:
                told = json.loads(line)
            except ValueError:
                os._exit(1)
            if told.get("type") == "control_request":
                self.control(told.get("request_id"), told.get("request") or {})
            elif told.get("type") == "user":
                self.lifecycle(told, "queued")
                self.inbox.put(told)
        if not self.options.get("deaf"):
            self.inbox.put(None)

    def control(self, request_id: Any, request: dict[str, Any]) -> None:
        kind, deaf = request.get("subtype"), self.options.get("deaf")
        if self.options.get("hang") == "start":
            return
        if kind == "initialize":
            self.respond(request_id, {"commands": [], "models": []})
        elif kind == "get_context_usage":
            window = self.options.get("window", 1_000_000)
            figures = {"totalTokens": self.newest, "maxTokens": window, "rawMaxTokens": window, "autocompactSource": "auto"}
            self.respond(request_id, {"categories": [], **figures})
        elif kind in {"interrupt", "end_session"} and deaf:
            return
        elif kind == "interrupt":
            if request.get("cancel_queued"):
                self.cancel_queued()
            self.respond(request_id, {"still_queued": [one.get("uuid") for one in self.inbox.queue if one]})
            if self.in_turn:
                self.stop.set()
        elif kind == "end_session":
            self.respond(request_id)
            self.leave(0)
        elif kind == "set_model":
            self.respond(request_id, {})
        else:
            self.respond(request_id, error=f"Unsupported control request subtype: {kind}")

    def cancel_queued(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                message = self.inbox.get_nowait()
                if message is None:
                    self.inbox.put(None)
                    return
                self.lifecycle(message, "cancelled")

    # -- a turn ------------------------------------------------------------------------------------------------------

    def run(self) -> int:
        if self.options.get("refuse") == "session-id" or (not self.resumed and self.transcript().exists()):
            print(f"Error: Session ID {self.session} is already in use.", file=sys.stderr)
            return 1
        if self.resumed and (self.options.get("refuse") == "resume" or not self.transcript().exists()):
            words = f"No conversation found with session ID: {self.session}"
            print(words, file=sys.stderr)
            fields = {"subtype": "error_during_execution", "is_error": True, "num_turns": 0, "modelUsage": {}, "usage": zero()}
            self.out("result", **fields, errors=[words])
            return 1
        self.starts = self.count_start()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.on_signal)
        threading.Thread(target=self.read, daemon=True).start()
        while (message := self.inbox.get()) is not None:
            self.turn(message)
        return 0

    def on_signal(self, number: int, _frame: Any) -> None:
        if self.options.get("iron"):
            return
        if number == signal.SIGINT:
            self.stop.set()
        self.leave(143 if number == signal.SIGTERM else 0)

    def turn(self, message: dict[str, Any]) -> None:
        self.in_turn, self.folded = True, [message]
        self.stop.clear()
        self.lifecycle(message, "started")
        self.out("system", subtype="init", model=MODEL, claude_code_version=VERSION, tools=["Bash"], cwd=str(Path.cwd()))
        try:
            text = self.work()
        except Interrupted:
            self.in_turn = False
            self.out("user", message={"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]},
                     parent_tool_use_id=None)  # fmt: skip
            self.result(
                "", subtype="error_during_execution", is_error=True, terminal_reason="aborted_streaming", errors=["interrupted"]
            )
            state = "cancelled"
        else:
            self.in_turn = False
            given = dict(self.options.get("result") or {})
            if error := given.pop("error", None):
                self.synthetic(error)
            if limit := self.options.get("limit"):
                info = {"status": "rejected", "resetsAt": limit, "rateLimitType": "five_hour"}
                self.out("rate_limit_event", rate_limit_info=info)
            self.result(text, **given)
            state = "completed"
        for one in self.folded:
            self.lifecycle(one, state)
        if self.options.get("hang") == "result":
            self.hang()

    def work(self) -> str:
        """The requests of one turn; the answer of the last one."""
        self.mischief()
        prefixes = list(self.options.get("prefixes") or [20_000, 30_000])
        flush = self.flushes(self.folded)
        if flush:
            prefixes = [self.newest + 5_000] if not self.options.get("grow") else prefixes
        if flush and self.heeds():
            return self.hand_off(prefixes[-1])
        grow = int(self.options.get("grow") or 0)
        for number in range(1_000_000):
            size = prefixes[number] if number < len(prefixes) else prefixes[-1] + grow * (number - len(prefixes) + 1)
            asked = self.flushes(self.folded[1:])
            if asked and self.heeds():
                return self.hand_off(size)
            if number >= len(prefixes) - 1 and not grow:
                self.request(size, [text(ANSWER)])
                return ANSWER
            tool = f"toolu_{self.requests:04}"
            self.request(size, [text("Looking."), {"type": "tool_use", "id": tool, "name": "Bash", "input": BASH}])
            if self.options.get("hang") == "tool":
                self.wait_for_ever()
            self.wait(self.pace())
            self.tool_result(tool, "a file")
            self.fold()
        raise AssertionError

    def hand_off(self, size: int) -> str:
        short = self.options.get("shortens") and any("Write it again, shorter" in json.dumps(one) for one in self.folded)
        words = HANDOFF if short else HANDOFF + "é" * (512 * int(self.options.get("handoff_kb", 0)))
        self.request(size, [text(words)])
        return words

    def heeds(self) -> bool:
        return bool(self.options.get("heeds_flush", True))

    def flushes(self, messages: list[dict[str, Any]]) -> bool:
        mark = self.options.get("flush_mark", "and nothing else")
        return any(mark in json.dumps(one.get("message"), ensure_ascii=False) for one in messages)

    def fold(self) -> None:
        """Messages that came meanwhile are read at this boundary, without a result of their own."""
        with contextlib.suppress(queue.Empty):
            while True:
                message = self.inbox.get_nowait()
                if message is None:
                    self.inbox.put(None)
                    return
                self.folded.append(message)
                self.lifecycle(message, "started")

    def request(self, size: int, blocks: list[dict[str, Any]]) -> None:
        """One API response: a line per block, all with one id and one usage."""
        self.out("system", subtype="status", status="requesting")
        if self.options.get("hang") == "request":
            self.wait_for_ever()
        self.wait(self.pace())
        self.requests, self.newest = self.requests + 1, size
        usage: Any = {
            "input_tokens": 10,
            "cache_read_input_tokens": size - 1_010,
            "cache_creation_input_tokens": 1_000,
            "output_tokens": 1,
        }
        how = self.options.get("usage")
        usage = {"zero": zero(), "null": None}.get(str(how), usage)
        parent = None
        for block in blocks:
            message = {"id": f"msg_{self.requests:04}", "type": "message", "role": "assistant", "model": MODEL, "content": [block]}
            for _ in range(2 if how == "twice" else 1):
                self.say(message | {"usage": usage}, parent)
        if how == "subagent":
            huge = {"input_tokens": 5, "cache_read_input_tokens": 900_000, "cache_creation_input_tokens": 0, "output_tokens": 1}
            inner = {
                "id": f"msg_sub_{self.requests}",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": [text("sub")],
            }
            self.say(inner | {"usage": huge}, "toolu_task")

    def say(self, message: dict[str, Any], parent: str | None) -> None:
        ident = str(uuid.uuid4())
        if self.options.get("future"):
            message = message | {"content": [*message["content"], {"type": "hologram", "depth": 3}]}
        self.out("assistant", message=message, parent_tool_use_id=parent, uuid=ident)
        if parent is None:
            self.record("assistant", ident, message)

    def synthetic(self, error: str) -> None:
        message = {"id": str(uuid.uuid4()), "model": "<synthetic>", "role": "assistant", "content": [text(error)], "usage": zero()}
        self.out("assistant", message=message, parent_tool_use_id=None, error=error)

    def tool_result(self, tool: str, words: str) -> None:
        content: Any = [{"type": "tool_result", "tool_use_id": tool, "content": words}]
        if megabytes := self.options.get("line_mb"):
            content[0]["content"] = "x" * (int(megabytes) * 1_000_000)
        ident = str(uuid.uuid4())
        self.out("user", message={"role": "user", "content": content}, parent_tool_use_id=None, uuid=ident)
        self.record("user", ident, {"role": "user", "content": []})

    def result(self, words: str, **fields: Any) -> None:
        window = self.options.get("window", 1_000_000)
        used = {"inputTokens": 10, "outputTokens": 20, "cacheReadInputTokens": self.newest, "cacheCreationInputTokens": 0}
        body = {
            "subtype": "success",
            "is_error": False,
            "terminal_reason": "completed",
            "result": words,
            "num_turns": self.requests,
            "total_cost_usd": 0.01 * self.requests,
            "usage": {**zero(), "input_tokens": 10, "cache_read_input_tokens": self.newest},
            "modelUsage": {MODEL: {**used, "costUSD": 0.01, "contextWindow": window}},
            "api_error_status": None,
            "stop_reason": "end_turn",
            "user_message_uuids": [one.get("uuid") for one in self.folded],
        }
        self.out("result", **(body | fields))
        if self.options.get("usage") == "twice":
            self.out("result", **(body | fields))

    # -- what goes wrong -----------------------------------------------------------------------------------------------

    def mischief(self) -> None:
        options, few = self.options, self.starts <= int(self.options.get("deaths", 1_000_000))
        if options.get("half") and few:
            self.write(b'{"type":"assistant","message":{"id":"msg_half","content":[{"type":"te')
            self.leave(1)
        if options.get("exit") is not None and few:
            self.leave(int(options["exit"]))
        for _ in range(int(options.get("stderr_mb", 0))):
            sys.stderr.write("noise " * 160_000 + "\n")
        if options.get("grandchildren"):
            leave_grandchildren()
        if options.get("mute"):
            os.close(1)
            self.wait_for_ever()

    def wait(self, seconds: float) -> None:
        if self.stop.wait(seconds):
            raise Interrupted

    def wait_for_ever(self) -> None:
        while True:
            self.wait(3600)

    def hang(self) -> None:
        while not self.stop.wait(3600) or self.options.get("deaf"):
            self.stop.clear()

    def pace(self) -> float:
        return float(self.options.get("pace", 0.005))

    def leave(self, code: int) -> None:
        sys.stderr.flush()
        os._exit(code)

    # -- its files -----------------------------------------------------------------------------------------------------

    def transcript(self) -> Path:
        return self.config / "projects" / "-zoo" / f"{self.session}.jsonl"

    def record(self, kind: str, ident: str, message: dict[str, Any]) -> None:
        self.transcript().parent.mkdir(parents=True, exist_ok=True)
        with self.transcript().open("a") as file:
            file.write(json.dumps({"type": kind, "uuid": ident, "sessionId": self.session, "message": message}) + "\n")

    def count_start(self) -> int:
        marks = Path(".zoo-starts")
        with contextlib.suppress(OSError), marks.open("a") as file:
            file.write("x")
        return len(marks.read_text()) if marks.exists() else 1


BASH = {"command": "ls", "timeout": 600_000}
ANSWER = "The work is done: three files were changed."
HANDOFF = "Goal: the work. Decided: nothing yet. Files: as they were. Failed: nothing. Next: go on."


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def zero() -> dict[str, Any]:
    return {"input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 0}


def leave_grandchildren() -> None:
    """Sessions and groups of their own, deaf to what a terminal sends; the last one keeps our stdout open."""
    sleeper = ["/bin/sh", "-c", "trap '' INT TERM HUP; while :; do sleep 1000; done"]
    null = subprocess.DEVNULL
    subprocess.Popen(sleeper, stdin=null, stdout=null, stderr=null, start_new_session=True)
    subprocess.Popen(sleeper, stdin=null, stdout=null, stderr=null, process_group=0)
    subprocess.Popen(["/bin/sh", "-c", "(setsid sleep 1000 &) ; exit 0"], stdin=null, start_new_session=True)


def main() -> int:
    if "--version" in sys.argv:
        print(f"{VERSION} (Claude Code)")
        return 0
    fake = Fake(sys.argv[1:], json.loads(OPTIONS))
    code = fake.run()
    sys.stdout.flush()
    os._exit(code)  # past threads that still read


if __name__ == "__main__":
    sys.exit(main())
