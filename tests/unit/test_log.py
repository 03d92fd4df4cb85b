"""The journal's lines: fields where systemd reads them, a readable line elsewhere."""

import json
import re
import socket
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from mind_body.host.journal_native import NAME, NativeJournal
from mind_body.journal_kinds.table import KINDS
from mind_body.log import OWN_FIELDS, Journal, configure
from tests.journald import Journald, open_journald


class Taken:
    """A journal that takes every line, or none."""

    def __init__(self, *, takes: bool = True) -> None:
        self.takes = takes
        self.lines: list[dict[str, object]] = []
        self.plain: list[str] = []

    def write(self, fields: Mapping[str, object]) -> bool:
        self.lines += [dict(fields)] * self.takes
        return self.takes

    def write_plain(self, text: str) -> None:
        self.plain.append(text)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def note_a_turn() -> None:
    Journal("persona", "ada").bind(RUN="r1").note(
        "turn.replied", "She answered 1 message.", TURN="t1", COST_MICRO_USD=42, REASON=None, CUT=True
    )


def test_where_systemd_reads_it_a_line_is_fields() -> None:
    configure("info", "json", taken := Taken())
    note_a_turn()
    assert taken.lines == [
        {
            "MESSAGE": "She answered 1 message.",
            "PRIORITY": 6,
            "SYSLOG_IDENTIFIER": "mind",
            "MESSAGE_ID": KINDS["turn.replied"].message_id,
            "KIND": "turn.replied",
            "ORGAN": "persona",
            "MIND": "ada",
            "RUN": "r1",
            "TURN": "t1",
            "COST_MICRO_USD": 42,
            "CUT": "yes",
        }
    ]
    assert taken.plain == []


def test_a_line_that_the_journal_does_not_take_is_a_readable_one_with_its_priority() -> None:
    configure("info", "text", taken := Taken(takes=False))
    note_a_turn()
    assert taken.plain == [
        "<6>She answered 1 message.  [ORGAN=persona MIND=ada RUN=r1 kind=turn.replied TURN=t1 COST_MICRO_USD=42 CUT=yes]\n"
    ]


def test_from_an_organ_to_journald_and_back_off_it_when_it_is_gone() -> None:
    reading, writing = socket.socketpair()
    with open_journald() as journald, reading, writing:
        configure("info", "text", journal := NativeJournal(journald.path, writing.fileno()))
        note_a_turn()
        assert dict(journald.take() or [])["KIND"] == "turn.replied"
        journald.close()
        note_a_turn()
        again = Journald(journald.path)
        note_a_turn()
        assert dict(again.take() or [])["KIND"] == "turn.replied"
        assert reading.recv(4096).decode().count("She answered") == 1
        again.close()
        journal.close()


def test_as_text_a_line_has_its_instant_its_level_and_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", "text")
    note_a_turn()
    line = capsys.readouterr().err
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ info    She answered 1 message\.  \[ORGAN=persona MIND=ada ", line)


def test_as_json_a_line_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", "json")
    note_a_turn()
    found = json.loads(capsys.readouterr().err)
    assert found["kind"] == "turn.replied"
    assert found["level"] == "info"
    assert found["event"] == "She answered 1 message."
    assert found["COST_MICRO_USD"] == 42


@pytest.mark.parametrize(
    ("threshold", "told"),
    [("debug", 5), ("info", 4), ("notice", 4), ("warning", 2), ("error", 1)],
)
def test_a_kind_has_its_usual_level_and_the_threshold_goes_by_it(threshold: Any, told: int) -> None:
    configure(threshold, "text", taken := Taken())
    for kind in ("heard.known", "heard.mail", "mouth.started", "ear.waits", "ear.storage"):
        Journal("mouth").note(kind, "It is so.")
    assert len(taken.lines) == told


def test_a_line_may_be_graver_than_its_kind() -> None:
    configure("info", "text", taken := Taken())
    Journal("lease").note("call.settled", "A call cost more than it was reserved at.", level="warning")
    assert [line["PRIORITY"] for line in taken.lines] == [4]


def test_a_kind_that_the_table_does_not_know_is_written_all_the_same() -> None:
    configure("info", "text", taken := Taken())
    Journal("mouth").note("new.thing", "It is so.")
    assert taken.lines[0]["KIND"] == "new.thing"
    assert "MESSAGE_ID" not in taken.lines[0]


@given(words=st.text(), reason=st.text())
def test_no_word_from_outside_makes_a_second_line_or_speaks_to_the_terminal(words: str, reason: str) -> None:
    taken = Taken(takes=False)
    configure("info", "text", taken)
    Journal("mouth", "ada").note("heard.mail", f"Queued: {words}", REASON=reason)
    (line,) = taken.plain
    assert line.endswith("\n")
    assert line[:-1].isprintable()


@given(words=st.text(), reason=st.text())
def test_the_journal_has_the_sentence_on_one_line_and_the_reason_as_it_is(words: str, reason: str) -> None:
    taken = Taken()
    configure("info", "text", taken)
    Journal("mouth", "ada").note("heard.mail", words, REASON=reason)
    assert str(taken.lines[0]["MESSAGE"]).isprintable()
    assert taken.lines[0]["REASON"] == reason


def test_what_the_journal_adds_itself_are_names_that_it_takes() -> None:
    assert all(NAME.fullmatch(name) for name in OWN_FIELDS)


def test_a_stderr_that_nobody_reads_takes_nothing_else_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def write(self, _text: str) -> None:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stderr", Broken())
    configure("info", "text")
    note_a_turn()
