"""Where her Matrix password and her token are in a whole scene: in her credentials, in the mouth, in a login, in a header."""

import re
from pathlib import Path

import pytest

from mind_body.host.process import list_descendants
from mind_body.host.secrets import read_secret
from tests.real.parts.house import House
from tests.real.parts.relay import open_relay
from tests.real.parts.scene import wait_until

pytestmark = pytest.mark.real

PASSWORD = b"her long password"
LOGIN = re.compile(rb"POST /_matrix/client/v3/login HTTP/1\.1\r\n(?:[^\r\n]+\r\n)*\r\n\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
HEADER = re.compile(rb"(?mi)^authorization: bearer [^\r\n]+\r$")


def test_her_password_and_her_token_are_in_no_log_file_process_or_request_that_needs_none(house: House) -> None:
    with open_relay(house.scene.homeserver.base_url) as relay:
        house.tables["matrix"] = {"homeserver": relay.base_url}
        house.tables["persona"] = {"linger_s": 60.0}
        assert house.her
        with (house.scene.directory / "config.toml").open("a") as file:
            file.write('\nlog_level = "debug"\n')
        house.scene.up()
        room = house.direct()
        house.bob.send(room, "hello")
        assert len(house.answers(room)) == 1
        house.rest()
        token = read_secret(house.scene.home.credentials / "ada.matrix-session").encode()
        needles = (PASSWORD, token)
        wait_until("the persona to linger", lambda: house.scene.organ_pid("persona"))
        organs = [pid for organ in house.scene.organs() for pid in (organ, *list_descendants(organ))]
        assert len(organs) >= 3
        assert house.scene.process is not None
        shown = b"".join(
            Path(f"/proc/{pid}/{name}").read_bytes()
            for pid in {house.scene.process.pid, *organs}
            for name in ("environ", "cmdline")
        )
        house.scene.down()
        sent = b"\n".join(relay.sent)
    logins = LOGIN.findall(sent)
    assert len(logins) == 1
    assert PASSWORD in logins[0]
    assert token in b"".join(HEADER.findall(sent))
    others = HEADER.sub(b"", LOGIN.sub(b"", sent))
    files = {path: path.read_bytes() for path in house.scene.directory.rglob("*") if path.is_file()}
    assert {path.name for path, text in files.items() if any(needle in text for needle in needles)} == {
        "ada.matrix-password",
        "ada.matrix-session",
    }
    for needle in needles:
        assert needle not in shown
        assert needle not in others
        assert needle.decode() not in house.scene.journal()
        assert not any(needle in request.raw for request in house.api.requests)
