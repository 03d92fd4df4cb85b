"""What `systemctl status` says of each organ: what it is doing, in words and figures, and nothing of what people wrote."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_body.host.gauge import Gauge, render_gauge
from mind_body.host.notify import Notify
from mind_body.mouth.standing import Standing, render_status


def test_a_full_line() -> None:
    gauge = Gauge("Answering 2 messages", 14, 48_100, 300_000, 185_000, 420_000)
    assert render_gauge(gauge) == "Answering 2 messages · turn 14 · prefix 48k of 300k · warm 3 m · $0.42 today"


def test_what_is_not_known_is_left_out() -> None:
    assert render_gauge(Gauge("Starting")) == "Starting"
    assert render_gauge(Gauge("Working", turn=1, prefix_tokens=900)) == "Working · turn 1 · prefix 900"
    assert render_gauge(Gauge("Waiting", today_micro_usd=0)) == "Waiting · $0.00 today"


def test_a_cache_that_is_cold_is_not_warm_and_one_that_is_about_to_be_is_said_so() -> None:
    assert "warm" not in render_gauge(Gauge("Waiting", warm_ms=-1))
    assert render_gauge(Gauge("Waiting", warm_ms=59_999)).endswith("warm under a minute")
    assert render_gauge(Gauge("Waiting", warm_ms=3_600_000)).endswith("warm 1 h 0 m")


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(-(10**9), 10**9), st.integers(0, 10**12))
def test_a_line_is_one_line_and_short_enough_to_be_read(prefix: int, ceiling: int, warm: int, today: int) -> None:
    line = render_gauge(Gauge("Waiting for the next message", 1, prefix, ceiling, warm, today))
    assert "\n" not in line
    assert len(line) < 120


def test_the_mouth_says_how_its_minds_stand() -> None:
    minds = {f"m{n:02}": Standing.SYNCING for n in range(11)} | {"ada": Standing.OUT}
    assert render_status(minds) == "12 Minds, 11 syncing, 1 not signed in: ada"
    assert render_status({"ada": Standing.SIGNING_IN}) == "1 Mind, 0 syncing, 1 signing in"
    assert render_status({"ada": Standing.UNANSWERED}) == "1 Mind, 0 syncing, 1 waiting for the homeserver"
    assert render_status({}) == "0 Minds, 0 syncing"


def test_of_many_that_are_out_some_are_named_and_the_others_counted() -> None:
    line = render_status({f"m{n}": Standing.OUT for n in range(9)})
    assert line.endswith("9 not signed in: m0, m1, m2, m3, m4 and 4 more")


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Who reads what a unit tells."""
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(os.fspath(path))
        heard.settimeout(1)
        monkeypatch.setenv("NOTIFY_SOCKET", os.fspath(path))
        yield heard


@contextmanager
def telling() -> Iterator[Notify]:
    notify = Notify(os.environ)
    yield notify
    assert notify._notifier is not None
    notify._notifier.socket.close()


def test_a_status_that_says_nothing_new_is_not_sent(manager: socket.socket) -> None:
    with telling() as notify:
        notify.ready("a")
        for words in ("a", "b", "b", "c"):
            notify.status(words)
        notify.stopping()
    assert [manager.recv(99).decode() for _ in range(4)] == ["READY=1\nSTATUS=a", "STATUS=b", "STATUS=c", "STOPPING=1"]


def test_a_status_arrives_as_it_was_said(manager: socket.socket) -> None:
    with telling() as notify:
        notify.status("Working · turn 1")
    assert manager.recv(99).decode() == "STATUS=Working · turn 1"


def test_more_time_is_asked_for_in_microseconds(manager: socket.socket) -> None:
    with telling() as notify:
        notify.extend(1.5)
    assert manager.recv(99) == b"EXTEND_TIMEOUT_USEC=1500000"


def test_where_nobody_listens_nothing_is_sent() -> None:
    notify = Notify({})
    assert not notify.listened
    notify.ready("a")
    notify.extend(1)
