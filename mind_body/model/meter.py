"""Rule: read a Messages API answer as it passes by, streamed or whole, and keep only what is counted.

1. Bytes may be split anywhere. Nothing is held back, changed or waited for: the gateway sends them on whatever is read here.
2. Kept are usage, model, stop reason and the kind of an error. Text is not.
3. What cannot be read is passed over; a stream that ended before `message_stop` is not complete, and says so.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from mind_body.model.session import Usage
from mind_body.model.usage import merge_usage, parse_usage

LINE_CAP = 16 * 1024 * 1024
"""Bytes of one event or plain answer that are looked at."""


@dataclass(frozen=True, slots=True)
class Metered:
    """What an answer came to."""

    usage: Usage = field(default_factory=Usage)
    model: str = ""
    stop_reason: str | None = None
    error: str | None = None
    """The API's error type (`overloaded_error`), wherever in the answer it stood."""
    complete: bool = False


class Meter:
    """Feed it every chunk of one answer's body, then ask what it came to."""

    def __init__(self, content_type: str) -> None:
        self._stream = "text/event-stream" in content_type
        self._held = bytearray()
        self._over = False
        self._usage: dict[str, Any] = {}
        self._model = ""
        self._stop: str | None = None
        self._error: str | None = None
        self._complete = False

    def feed(self, data: bytes) -> None:
        if not self._stream:
            self._hold(data)
            return
        *whole, rest = data.split(b"\n")
        for part in whole:
            self._hold(part)
            self._line()
        self._hold(rest)

    def read(self) -> Metered:
        """What it came to, at the end of the body."""
        if not self._stream and not self._complete:
            self._plain(_parse(self._held))
        return Metered(parse_usage(self._usage), self._model, self._stop, self._error, self._complete)

    def _hold(self, data: bytes) -> None:
        if len(self._held) + len(data) > LINE_CAP:
            self._over = True
            self._held.clear()
        if not self._over:
            self._held += data

    def _line(self) -> None:
        line, over = bytes(self._held), self._over
        self._held.clear()
        self._over = False
        if not over and line.startswith(b"data:"):
            self._event(_parse(line[5:]))

    def _event(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "message_start":
                self._message(_mapping(event.get("message")))
            case "message_delta":
                self._usage = merge_usage(self._usage, event.get("usage"))
                self._stop = _mapping(event.get("delta")).get("stop_reason") or self._stop
            case "message_stop":
                self._complete = True
            case "error":
                self._error = str(_mapping(event.get("error")).get("type"))

    def _plain(self, answer: dict[str, Any]) -> None:
        if answer.get("type") == "error":
            self._error = str(_mapping(answer.get("error")).get("type"))
        elif answer.get("type") == "message":
            self._message(answer)
            self._complete = True

    def _message(self, message: dict[str, Any]) -> None:
        self._usage = merge_usage(self._usage, message.get("usage"))
        self._model = str(message.get("model") or self._model)
        self._stop = message.get("stop_reason") or self._stop


def _parse(raw: bytes | bytearray) -> dict[str, Any]:
    try:
        return _mapping(json.loads(raw))
    except ValueError:
        return {}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
