"""journald's native protocol: what is written is what is read, and nobody ever waits for the journal."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.host.journal_native import PATIENCE_MS, NativeJournal, find_journal, render_entry
from tests.journald import Journald, open_journald, parse_entry

names = st.from_regex(r"[A-Z][A-Z0-9_]{0,63}", fullmatch=True)
# What the kernel lets a socket send at once, unprivileged or not, lies between.
LARGEST_DATAGRAM = 8 << 20
outside = st.text() | st.sampled_from(["", "\n", "a\nb", "PRIORITY=0\nMESSAGE=forged", "\x00=\n", "\N{EM DASH} é\r\n"])


@pytest.fixture
def journald() -> Iterator[Journald]:
    with open_journald() as found:
        yield found


@pytest.fixture
def stderr() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Its reading end and its writing end."""
    reading, writing = socket.socketpair()
    with reading, writing:
        reading.setblocking(False)
        yield reading, writing


@pytest.fixture
def journal(journald: Journald, stderr: tuple[socket.socket, socket.socket]) -> Iterator[NativeJournal]:
    made = NativeJournal(journald.path, stderr[1].fileno())
    yield made
    made.close()


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@given(fields=st.dictionaries(names, outside))
def test_every_value_is_read_as_it_was_written_whatever_is_in_it(fields: dict[str, str]) -> None:
    assert parse_entry(render_entry(fields)) == list(fields.items())


@given(fields=st.dictionaries(st.text(), st.just("x")))
def test_a_name_that_journald_would_not_take_costs_its_field_alone(fields: dict[str, str]) -> None:
    found = parse_entry(render_entry({**fields, "MESSAGE": "it is whole"}))
    assert ("MESSAGE", "it is whole") in found
    for name, _ in found:
        assert name.isascii()
        assert name[0].isalpha()
        assert name == name.upper()
        assert len(name) <= 64


def test_a_surrogate_from_a_file_name_breaks_no_line() -> None:
    assert parse_entry(render_entry({"MESSAGE": "caf\udce9.txt"})) == [("MESSAGE", "caf\\udce9.txt")]


def test_a_line_arrives_with_its_fields_in_order(journal: NativeJournal, journald: Journald) -> None:
    assert journal.write({"MESSAGE": "She answered.", "PRIORITY": 6, "COST_MICRO_USD": 42, "lower": "no", "_PID": "1"})
    assert journald.take() == [("MESSAGE", "She answered."), ("PRIORITY", "6"), ("COST_MICRO_USD", "42")]


@pytest.mark.parametrize("size", [1 << 16, 10 << 20])
def test_a_line_of_any_size_arrives_whole(journal: NativeJournal, journald: Journald, size: int) -> None:
    before = open_descriptors()
    assert journal.write({"MESSAGE": "x" * size, "REASON": "large"})
    assert journald.take() == [("MESSAGE", "x" * size), ("REASON", "large")]
    assert journald.files == (size > LARGEST_DATAGRAM)
    assert open_descriptors() == before + 1  # the connection, which is kept


def fill(journal: NativeJournal) -> tuple[int, float]:
    """How many of many lines a journal that nobody reads takes, and how many seconds that took."""
    begun = time.monotonic()
    taken = [journal.write({"MESSAGE": str(number)}) for number in range(2000)]
    assert taken == sorted(taken, reverse=True), "after the first that is not taken none is"
    return sum(taken), time.monotonic() - begun


def test_a_full_journal_is_waited_for_once_and_again_when_it_has_caught_up(journal: NativeJournal, journald: Journald) -> None:
    for _ in range(2):
        taken, waited_s = fill(journal)
        assert 0 < taken < 2000
        assert PATIENCE_MS / 1000 <= waited_s < 10 * PATIENCE_MS / 1000
        assert len(journald.take_all()) == taken
    assert journal.write({"MESSAGE": "again"})
    assert journald.take() == [("MESSAGE", "again")]


def test_without_a_journal_a_line_is_not_taken_and_nothing_is_raised(
    journald: Journald, stderr: tuple[socket.socket, socket.socket]
) -> None:
    journal = NativeJournal(journald.path.with_name("nobody"), stderr[1].fileno())
    assert not journal.write({"MESSAGE": "x"})
    assert not journal.write({"MESSAGE": "x" * (1 << 20)})
    journal.close()


def test_a_journal_that_was_started_anew_has_the_very_next_line(journal: NativeJournal, journald: Journald) -> None:
    assert journal.write({"MESSAGE": "before"})
    journald.close()
    assert not journal.write({"MESSAGE": "meanwhile"})
    again = Journald(journald.path)
    assert journal.write({"MESSAGE": "after"})
    assert again.take() == [("MESSAGE", "after")]
    again.close()


def test_a_journal_whose_socket_was_replaced_loses_no_line(journal: NativeJournal, journald: Journald) -> None:
    assert journal.write({"MESSAGE": "before"})
    journald.close()
    again = Journald(journald.path)
    assert journal.write({"MESSAGE": "after"})
    assert again.take() == [("MESSAGE", "after")]
    again.close()


def test_what_the_journal_does_not_take_goes_to_stderr_without_waiting(
    journal: NativeJournal, stderr: tuple[socket.socket, socket.socket]
) -> None:
    journal.write_plain("<4>She is silent.\n")
    assert stderr[0].recv(100) == b"<4>She is silent.\n"
    for _ in range(1000):
        journal.write_plain("x" * 10_000)  # nobody reads: full after a while
    stderr[0].close()
    journal.write_plain("nobody is there\n")


def test_the_journal_is_found_where_it_reads_stderr_and_nowhere_else(stderr: tuple[socket.socket, socket.socket]) -> None:
    writing = stderr[1].fileno()
    found = os.fstat(writing)
    journal = find_journal({"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}, writing)
    assert journal is not None
    journal.close()
    with TemporaryFile() as file:  # `2> file` in a unit: the variable is still there
        assert find_journal({"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}, file.fileno()) is None


@pytest.mark.parametrize("value", ["", "8", "8:", ":1", "8:1:1", "a:b", "-8:1", "8:1", "²:³"])
def test_what_names_no_stream_of_ours_is_no_journal(value: str, stderr: tuple[socket.socket, socket.socket]) -> None:
    assert find_journal({"JOURNAL_STREAM": value}, stderr[1].fileno()) is None
    assert find_journal({}, stderr[1].fileno()) is None
    assert find_journal({"JOURNAL_STREAM": "8:1"}, 999_999) is None
