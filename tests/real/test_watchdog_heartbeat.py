"""The real heartbeat under a real hang: it is ended, and one that looks is not."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from mind_body.heartbeat.main import HUNG_MIN_S
from mind_body.host.watchdog import EXIT_HUNG
from tests.builders import make_home

ORGAN = [sys.executable, "-m", "mind_body", "--home"]


def start_heartbeat(root: Path, **env: str) -> subprocess.Popen[bytes]:
    home = make_home(root, "ada", host="look_s = 0.2\n")
    return subprocess.Popen([*ORGAN, str(home.root), "organ", "heartbeat"], env=os.environ | env, stderr=subprocess.PIPE)


async def test_a_heartbeat_that_hangs_is_ended_and_one_that_looks_is_not() -> None:
    with TemporaryDirectory(prefix="mind-") as one, TemporaryDirectory(prefix="mind-") as another:
        looks = start_heartbeat(Path(one))
        hangs = start_heartbeat(Path(another), MIND_CRASH_AT="heartbeat.look@3:hang")  # the first looks have gone well
        with trio.fail_after(HUNG_MIN_S + 30):
            _, lines = await trio.to_thread.run_sync(hangs.communicate, abandon_on_cancel=True)
        assert hangs.returncode == EXIT_HUNG
        assert b"looks after every Mind" in lines
        assert b"no progress" in lines
        assert looks.poll() is None, "it was started before the other one and has lived longer"
        looks.send_signal(signal.SIGTERM)
        await trio.to_thread.run_sync(looks.communicate)
        assert looks.returncode == 0
