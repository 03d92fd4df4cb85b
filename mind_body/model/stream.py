"""Rule: the codec of the `claude` CLI's stream-json lines (wire.md §2). Three verbs and a sentinel, as in h11.

    codec.feed(bytes)          any split of the stream
    codec.next_event()         an event, or NEED_DATA
    render_line(...)           an object as one line for its stdin

1. Raw bytes are framed on 0x0A alone: older CLIs print U+2028 inside a line. Each line is decoded with replacement.
2. A line longer than the cap (at least 64 MiB) is skipped to its newline; what follows is read as if nothing had happened.
3. A line that is not a JSON object is counted and skipped. A type, a subtype or a field that is not known here is kept as `Unknown`
   or left alone: the CLI is released about daily. Nothing that it prints raises.
4. What was fed and not yet asked for is held; who reads a stream asks until NEED_DATA before it feeds again.
"""

import json
from collections import deque
from enum import Enum
from typing import Any, Final, Literal

from mind_body.model.line_parse import parse_event
from mind_body.model.lines import (
    Event,
)

CAP: Final = 64 * 1024 * 1024
_JSON_SPACE: Final = " \t\r\n"
_decode = json.JSONDecoder().raw_decode


class _Sentinel(Enum):
    NEED_DATA = "NEED_DATA"


NEED_DATA: Final = _Sentinel.NEED_DATA


class StreamCodec:
    """One stream's state."""

    def __init__(self, cap: int = CAP) -> None:
        self._lines: deque[bytes] = deque()
        self._begun: list[bytes] = []
        """The pieces of the line that is not whole yet: joined once, so that a long line is not copied at every piece."""
        self._begun_bytes = 0
        self._cap = cap
        self.skipped = 0
        """Lines that were no JSON object, or over the cap."""

    @property
    def remainder(self) -> bytes:
        """What was fed and is not yet a line."""
        return b"".join(self._begun)

    def feed(self, data: bytes) -> None:
        first, *rest = data.split(b"\n")
        self._begin(first)
        if rest:
            self._finish()
            self._lines.extend(rest[:-1])
            self._begin(rest[-1])

    def next_event(self) -> Event | Literal[_Sentinel.NEED_DATA]:
        lines = self._lines
        while lines:
            line = lines.popleft()
            event = parse_line(line) if len(line) <= self._cap else None
            if event is not None:
                return event
            self.skipped += bool(line.strip())
        return NEED_DATA

    def _begin(self, piece: bytes) -> None:
        self._begun_bytes += len(piece)
        if self._begun_bytes <= self._cap:
            self._begun.append(piece)
        else:
            self._begun.clear()

    def _finish(self) -> None:
        if self._begun_bytes <= self._cap:
            self._lines.append(b"".join(self._begun))
        else:
            self.skipped += 1
        self._begun.clear()
        self._begun_bytes = 0


def render_line(value: dict[str, Any]) -> bytes:
    """One line for the CLI's stdin. A lone surrogate is fatal to it, so each is replaced; a newline inside is escaped by JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def parse_line(line: bytes) -> Event | None:
    """The event in one line; None for what is no JSON object."""
    text = line.decode("utf-8", "replace").strip(_JSON_SPACE)
    if text[:1] != "{":
        return None
    try:
        found, end = _decode(text)
    except (ValueError, RecursionError):
        return None
    return parse_event(found) if end == len(text) else None
