import shutil
import subprocess
import sys
import time
from collections.abc import Callable

import httpx
import pytest

from tests.real.parts.synapse import Homeserver

pytestmark = pytest.mark.real


def test_a_stopped_homeserver_comes_back_as_the_same_one_on_the_same_port(start_homeserver: Callable[..., Homeserver]) -> None:
    server = start_homeserver()
    ada = server.person("ada")
    room = ada.create_room()
    server.stop()
    with pytest.raises(httpx.TransportError):
        ada.send(room, "nobody hears this")
    server.start()
    event = ada.send(room, "and this one is heard")
    assert ada.history(room)[-1]["event_id"] == event


def test_a_homeserver_ends_with_its_test_even_when_that_is_killed() -> None:
    code = (
        "from tests.real.parts.synapse import open_homeserver\n"
        "import os, signal\n"
        "with open_homeserver() as s:\n"
        "    print(s.base_url, s.directory, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    url, directory = ended.stdout.split()
    try:
        assert _is_gone(url, 10), "it lives on"
    finally:
        shutil.rmtree(directory)


def _is_gone(url: str, deadline_s: float) -> bool:
    deadline = time.monotonic() + deadline_s
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{url}/_matrix/client/versions", trust_env=False, timeout=1)
        except httpx.ConnectError:
            return True
        except httpx.TransportError:
            pass
    return False


def test_the_real_limits_and_tokens_that_end_can_be_had(start_homeserver: Callable[..., Homeserver]) -> None:
    server = start_homeserver(limits={"rc_message": {"per_second": 0.2, "burst_count": 3}})
    ada = server.person("ada")
    room = ada.create_room()
    answers = [
        ada.http.put(f"/_matrix/client/v3/rooms/{room}/send/m.room.message/{n}", json={"msgtype": "m.text", "body": "x"})
        for n in range(8)
    ]
    limited = [answer for answer in answers if answer.status_code == 429]
    assert limited
    assert limited[0].json()["retry_after_ms"] > 0
