"""`mind demo`, whole: Synapse, the organs and the local model, on this machine."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.parts_present import require_part

pytestmark = [pytest.mark.real, pytest.mark.early, pytest.mark.xdist_group("local-model")]
DEADLINE_S = 300


@pytest.fixture(autouse=True)
def _parts() -> None:
    require_part("synapse")
    require_part("local-model")


def _demo(*words: str) -> list[str]:
    return [sys.executable, "-m", "mind_body", "demo", *words]


def _environment(tmp: Path) -> dict[str, str]:
    """Temporary files of this demo alone, so that what it leaves can be seen. Short, for the sockets' sake."""
    return {"PATH": os.environ["PATH"], "HOME": str(tmp), "TMPDIR": str(tmp), "LANG": "C.UTF-8"}


@pytest.fixture
def tmp() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="md-", dir="/tmp") as directory:
        yield Path(directory)


def _processes(tmp: Path) -> list[str]:
    """Every process that was started below this directory or for it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                whole = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if str(tmp).encode() in whole:
                found.append((entry / "cmdline").read_text().replace("\0", " "))
    return found


def _wait_for_no_process(tmp: Path) -> None:
    end = time.monotonic() + 20
    while left := _processes(tmp):
        assert time.monotonic() < end, left
        time.sleep(0.05)


def test_two_lines_are_answered_in_one_session_and_the_second_reads_the_first_ones_prefix_from_the_cache(tmp: Path) -> None:
    done = subprocess.run(
        _demo("--json", "--say", "What is your name?", "--say", "Do you like tea?"),
        env=_environment(tmp), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)["replies"]
    assert set(first) == {"room", "text", "event_id", "model_ms", "total_ms", "tokens_cached", "tokens_uncached", "session"}
    assert first["text"]
    assert second["text"]
    assert first["session"] == second["session"]
    assert first["event_id"] != second["event_id"]
    assert second["tokens_cached"] >= first["tokens_cached"] + first["tokens_uncached"]
    assert first["tokens_cached"] + first["tokens_uncached"] <= 500, "the first answer comes within seconds"
    assert 0 < first["model_ms"] <= first["total_ms"]
    _wait_for_no_process(tmp)
    assert list(tmp.iterdir()) == [], "nothing is left behind"


@contextmanager
def _running(tmp: Path) -> Iterator[subprocess.Popen[str]]:
    """A demo that has its homeserver and waits for its first answer."""
    argv = _demo("--say", "Tell me a long story.")
    with subprocess.Popen(argv, env=_environment(tmp), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "her organs" in line:
                break
        assert any("synapse" in line for line in _processes(tmp))
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing_running_and_nothing_behind(tmp: Path, how: signal.Signals) -> None:
    with _running(tmp) as process:
        process.send_signal(how)
        assert process.wait(30) == 1
        assert process.stderr is not None
        assert "interrupted" in process.stderr.read()
    _wait_for_no_process(tmp)
    assert list(tmp.iterdir()) == []


def test_a_killed_demo_leaves_nothing_running(tmp: Path) -> None:
    with _running(tmp) as process:
        process.kill()
        process.wait(30)
    _wait_for_no_process(tmp)


def test_a_demo_without_a_terminal_and_without_words_is_one_sentence(tmp: Path) -> None:
    done = subprocess.run(_demo(), env=_environment(tmp), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no terminal to chat in" in done.stderr
    assert list(tmp.iterdir()) == []
