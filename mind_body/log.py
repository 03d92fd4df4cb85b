"""Door: the journal. The one home of `structlog.configure`.

One line per consequence, readable as a sentence, with fields for machines behind it (design §11). Lines go to stderr, where
systemd's journal or `mind up` takes them. `kind` is a dotted past fact ("turn.replied") and names the event; the sentence is for
people; fields are UPPER CASE as in the journal. A message's text and a secret are never among them. A line that cannot be written
(stderr is a file on a full disk, a pipe that nobody reads any more) is lost, and nothing else with it.
"""

import contextlib
import json
import sys
from typing import Any, Literal, TextIO, cast

import structlog

from mind_body.clock import now_ms, render_utc

Level = Literal["debug", "info", "warning", "error"]
_PRIORITY = {"debug": 7, "info": 6, "warning": 4, "error": 3}
"""syslog's numbers, which journald reads from a `<N>` at the start of a line (sd-daemon(3))."""


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

    def note(self, kind: str, sentence: str, *, level: Level = "info", **fields: Any) -> None:
        """One fact: its kind, a sentence, and fields. A field that is None is left out."""
        known = {key: value for key, value in fields.items() if value is not None}
        getattr(self._logger, level)(sentence, kind=kind, **known)


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


def configure(level: Level, form: Literal["text", "json"], *, under_systemd: bool) -> None:
    """Once per process, by its wiring."""
    render = _render_json if form == "json" else _text_renderer(under_systemd=under_systemd)
    structlog.configure(  # noqa: TID251 - its home
        processors=[structlog.stdlib.add_log_level, render],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", _Lossy(sys.stderr))),
        cache_logger_on_first_use=False,
    )


def _render_json(_logger: object, _method: str, event: Any) -> str:
    return json.dumps({"at": render_utc(now_ms()), **event}, default=str, ensure_ascii=False)


def _text_renderer(*, under_systemd: bool) -> Any:
    def render(_logger: object, _method: str, event: Any) -> str:
        sentence, level = _one_line(event.pop("event")), event.pop("level")
        fields = " ".join(f"{key}={_field(value)}" for key, value in event.items())
        lead = f"<{_PRIORITY[level]}>" if under_systemd else f"{render_utc(now_ms())} {level:7} "
        return f"{lead}{sentence}  [{fields}]"

    return render


def _field(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or any(c.isspace() or c in '"[]' for c in text) else text


def _one_line(text: Any) -> str:
    return " ".join(str(text).split())
