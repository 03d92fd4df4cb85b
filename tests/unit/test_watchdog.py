"""The watchdog: a process whose loop hangs is ended, one that is slow or slept is not."""

import subprocess
import sys
import threading
import time

from mind_body.host.watchdog import EXIT_HUNG, Watchdog, open_watchdog


class Clock:
    """A monotonic clock that is set by hand."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def watch(watchdog: Watchdog) -> threading.Thread:
    thread = threading.Thread(target=watchdog.watch, daemon=True)
    thread.start()
    return thread


def test_who_tells_of_progress_goes_on_however_long_and_who_does_not_is_ended_once() -> None:
    clock, ends = Clock(), list[int]()
    watchdog = Watchdog(60.0, "A test", clock=clock, end=ends.append)
    for _ in range(10):
        clock.at += 59
        assert watchdog.left_s() > 0
        watchdog.progress()
    clock.at += 60
    watch(watchdog).join(10)
    assert ends == [EXIT_HUNG]


def test_a_watchdog_that_was_stopped_ends_nothing() -> None:
    clock, ends = Clock(), list[int]()
    watchdog = Watchdog(60.0, "A test", clock=clock, end=ends.append)
    thread = watch(watchdog)
    watchdog.stop()
    thread.join(10)
    clock.at += 1000
    assert not thread.is_alive()
    assert ends == []


def test_nothing_is_left_behind_after_its_block() -> None:
    before = threading.active_count()
    with open_watchdog(1000, "A test") as watchdog:
        watchdog.progress()
        assert threading.active_count() == before + 1
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    assert threading.active_count() == before


HANGS = """
import os, sys
from mind_body.host.watchdog import open_watchdog
reader, writer = os.pipe()
os.dup2(writer, 2)
os.set_blocking(2, False)
try:
    while True:
        os.write(2, b"x" * 4096)
except BlockingIOError:
    os.set_blocking(2, True)
with open_watchdog(0.2, "A test"):
    os.write(2, b"x" * 65536)
"""


def test_a_process_that_hangs_in_its_own_journal_is_ended_all_the_same() -> None:
    assert subprocess.run([sys.executable, "-c", HANGS], check=False, timeout=30).returncode == EXIT_HUNG
