"""Door: the journal. The one home of `structlog.configure`.

One line per consequence, readable as a sentence, with fields for machines behind it (design §11). Where systemd's journal reads our
stderr, lines go to it as fields; elsewhere to stderr, as text or as JSON. `kind` is a dotted past fact ("turn.replied") that names
the event; `journal_kinds` has what is known of each. The sentence is for people; fields are UPPER CASE as in the journal. A
message's text and a secret are never among them. A line that cannot be written (stderr is a file on a full disk, a pipe that nobody
reads any more) is lost, and nothing else with it.
"""

import contextlib
import json
import sys
from collections.abc import Mapping
from typing import Any, Literal, Protocol, TextIO, cast

import structlog

from mind_body.clock import now_ms, render_utc
from mind_body.journal_kinds.kind import PRIORITY, Level
from mind_body.journal_kinds.table import KINDS

__all__ = ["IDENTIFIER", "OWN_FIELDS", "Journal", "Level", "Native", "configure"]

IDENTIFIER = "mind"
"""SYSLOG_IDENTIFIER of every line: `journalctl -t mind`."""
OWN_FIELDS = frozenset({"MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "MESSAGE_ID", "KIND"})
"""Made here; a note brings none of them."""
_METHOD: Mapping[str, str] = {"notice": "info"}
"""structlog has no `notice`: it passes the threshold as `info` does."""


class Native(Protocol):
    """What is needed of systemd's journal; `host.journal_native.NativeJournal` is it."""

    def write(self, fields: Mapping[str, object]) -> bool: ...

    def write_plain(self, text: str) -> None: ...


class Journal:
    """Writes one organ's lines about one Mind, or about the host when `mind` is None."""

    def __init__(self, organ: str, mind: str | None = None, **fields: Any) -> None:
        self._fields = {"ORGAN": organ, **({"MIND": mind} if mind else {}), **fields}
        self._logger = structlog.get_logger().bind(**self._fields)

    def bind(self, **fields: Any) -> "Journal":
        journal = Journal.__new__(Journal)
        journal._fields = {**self._fields, **fields}
        journal._logger = structlog.get_logger().bind(**journal._fields)  # noqa: SLF001 - of its own kind
        return journal

    def note(self, kind: str, sentence: str, *, level: Level | None = None, **fields: Any) -> None:
        """One fact: its kind, a sentence, and fields; None leaves one out. `level` where it is not the usual one of the kind."""
        usual = KINDS[kind].level if kind in KINDS else "info"
        known = {key: value for key, value in fields.items() if value is not None}
        method = _METHOD.get(level or usual, level or usual)
        getattr(self._logger, method)(sentence, kind=kind, level=level or usual, **known)


def configure(level: Level, form: Literal["text", "json"], native: Native | None = None) -> None:
    """Once per process, by its wiring. `form` is how lines look on stderr where `native` does not take them."""
    file = _Lossy(sys.stderr) if native is None else _Plain(native)
    render = _native_renderer(native) if native is not None else _render_json if form == "json" else _render_text
    structlog.configure(  # noqa: TID251 - its home
        processors=[render],
        wrapper_class=structlog.make_filtering_bound_logger(_METHOD.get(level, level)),
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", file)),
        cache_logger_on_first_use=False,
    )


class _Lossy:
    """What the logger needs of a file, without its errors."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()


class _Plain:
    """The same of the journal's own stderr."""

    def __init__(self, native: Native) -> None:
        self._native = native

    def write(self, text: str) -> None:
        self._native.write_plain(text)

    def flush(self) -> None:
        """Nothing is kept."""


def _native_renderer(native: Native) -> Any:
    def render(_logger: object, _method: str, event: Any) -> str:
        if native.write(_as_fields(event)):
            raise structlog.DropEvent
        return f"<{PRIORITY[event['level']]}>{_line(event)}"  # sd-daemon(3): journald reads the level off the line

    return render


def _as_fields(event: Mapping[str, Any]) -> dict[str, object]:
    rest = dict(event)
    kind = rest.pop("kind")
    own = {"MESSAGE": _plain(rest.pop("event")), "PRIORITY": PRIORITY[rest.pop("level")], "SYSLOG_IDENTIFIER": IDENTIFIER}
    known = {"MESSAGE_ID": KINDS[kind].message_id} if kind in KINDS else {}
    return {**own, **known, "KIND": kind, **{key: _word(value) for key, value in rest.items()}}


def _render_json(_logger: object, _method: str, event: Any) -> str:
    return json.dumps({"at": render_utc(now_ms()), **event}, default=str, ensure_ascii=False)


def _render_text(_logger: object, _method: str, event: Any) -> str:
    return f"{render_utc(now_ms())} {event['level']:7} {_line(event)}"


def _line(event: Mapping[str, Any]) -> str:
    fields = " ".join(f"{key}={_field(value)}" for key, value in event.items() if key not in {"event", "level"})
    return f"{_plain(event['event'])}  [{fields}]"


def _field(value: Any) -> str:
    text = str(_word(value))
    quoted = not text or not text.isprintable() or any(c.isspace() or c in '"[]' for c in text)
    return json.dumps(text, ensure_ascii=not text.isprintable()) if quoted else text


def _word(value: Any) -> Any:
    """`yes` and `no`, as systemd has it."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def _plain(text: Any) -> str:
    """One line, and nothing in it that a terminal would obey."""
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(str(text).split()))
