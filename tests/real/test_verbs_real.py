"""`mind new`, `mind doctor` and `mind chat` against a real homeserver."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mind_body.config import find_home
from tests.homes import call, make_home
from tests.real.parts.person import Person
from tests.real.parts.synapse import Homeserver

pytestmark = pytest.mark.real
DEADLINE_S = 60


def _new(homeserver: Homeserver, directory: Path, user: str, *words: str) -> subprocess.CompletedProcess[str]:
    argv = ["--home", str(directory), "new", "ada", "--no-input", "--homeserver", homeserver.base_url, "--user", user, *words]
    return _mind(*argv)


def _mind(*argv: str, said: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mind_body", *argv]
    options = {"stdin": subprocess.DEVNULL} if said is None else {"input": said}
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False, **options)


def test_new_registers_her_by_the_shared_secret_and_her_password_fits(homeserver: Homeserver, tmp_path: Path) -> None:
    secret = tmp_path / "registration"
    secret.write_text(homeserver.registration_secret)
    user = homeserver.user_id(homeserver.unique("ada"))
    told = _new(homeserver, tmp_path / "home", user, "--register-secret-file", str(secret))
    assert told.returncode == 0, told.stderr
    assert f"{user} is registered." in told.stdout
    checks = {c["name"]: c for c in json.loads(_mind("--home", str(tmp_path / "home"), "doctor", "--json").stdout)["checks"]}
    assert checks["ada: homeserver"]["ok"], checks["ada: homeserver"]


def test_new_with_a_registration_that_is_refused_leaves_nothing_of_her(homeserver: Homeserver, tmp_path: Path) -> None:
    secret = tmp_path / "registration"
    secret.write_text("not the secret")
    told = _new(homeserver, tmp_path / "home", homeserver.user_id(homeserver.unique("ada")), "--register-secret-file", str(secret))
    assert told.returncode == 78
    assert "could not be registered" in told.stderr
    assert len(told.stderr.splitlines()) == 1
    assert [path for path in (tmp_path / "home").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(("password", "code"), [("a long enough password", 0), ("a wrong one", 78)])
def test_new_tries_her_password_before_a_file_is_written(homeserver: Homeserver, tmp_path: Path, password: str, code: int) -> None:
    account = homeserver.register(homeserver.unique("ada"))
    (tmp_path / "password").write_text(password)
    told = _new(homeserver, tmp_path / "home", account.user_id, "--password-file", str(tmp_path / "password"))
    assert told.returncode == code, told.stderr
    assert find_home(str(tmp_path / "home")).mind_file("ada").exists() == (code == 0)
    if code:
        assert f"the password of {account.user_id} does not fit" in told.stderr
        assert password not in told.stderr


def test_an_address_without_a_homeserver_is_a_mistake_and_no_outage(homeserver: Homeserver, tmp_path: Path) -> None:
    account = homeserver.register(homeserver.unique("ada"))
    (tmp_path / "password").write_text(account.password)
    told = _new(
        homeserver, tmp_path / "home", account.user_id, "--password-file", str(tmp_path / "password"),
        "--homeserver", f"{homeserver.base_url}/elsewhere",
    )  # fmt: skip
    assert told.returncode == 78
    assert "no Matrix homeserver is at" in told.stderr
    assert ".well-known/matrix/client" in told.stderr
    assert not find_home(str(tmp_path / "home")).mind_file("ada").exists()


def test_a_token_of_somebody_else_is_refused(homeserver: Homeserver, tmp_path: Path) -> None:
    other = homeserver.register(homeserver.unique("eve"))
    (tmp_path / "token").write_text(other.token)
    told = _new(homeserver, tmp_path / "home", homeserver.user_id("ada"), "--token-file", str(tmp_path / "token"))
    assert told.returncode == 78
    assert f"the token belongs to {other.user_id}" in told.stderr


def test_the_doctor_names_a_wrong_password_and_the_way_out(homeserver: Homeserver, tmp_path: Path) -> None:
    account = homeserver.register(homeserver.unique("ada"))
    home = make_home(tmp_path, "ada", matrix={"homeserver": homeserver.base_url, "user": account.user_id})
    told = call(home, "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(told.stdout)["checks"]}
    assert told.exit_code == 78
    assert not checks["ada: homeserver"]["ok"]
    assert "does not fit" in checks["ada: homeserver"]["detail"]
    assert checks["ada: homeserver"]["fix"]


def test_chat_carries_piped_lines_out_and_the_answer_back_and_keeps_to_one_room(homeserver: Homeserver, tmp_path: Path) -> None:
    me = homeserver.register(homeserver.unique("me"))
    bob = homeserver.person("bob")
    (tmp_path / "password").write_text(me.password)
    argv = [sys.executable, "-m", "mind_body", "chat", bob.user_id, "--homeserver", homeserver.base_url, "--user", me.user_id,
            "--password-file", str(tmp_path / "password"), "--wait", str(DEADLINE_S)]  # fmt: skip
    rooms = {_answer_one(argv, bob, "first"), _answer_one(argv, bob, "second")}
    assert len(rooms) == 1


def _answer_one(argv: list[str], bob: Person, line: str) -> str:
    """Pipe one line into the chat, answer it as bob with an escape sequence, see it come out without; the room it was in."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        process.stdin.write(f"{line}\n")
        process.stdin.close()
        room = _room_that_said(bob, line)
        bob.send(room, f"you said {line} \x1b[31m")
        assert process.stdout is not None
        heard = process.stdout.read()
        assert process.wait(DEADLINE_S) == 0
    assert f"you said {line}" in heard
    assert "\x1b[31m" not in heard
    return room


def _room_that_said(bob: Person, text: str) -> str:
    """Joins whatever bob is invited to until somebody has said `text` there."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        for room in bob.sync(0.5).get("rooms", {}).get("invite", {}):
            bob.join(room)
        for room in bob.call("GET", "/joined_rooms")["joined_rooms"]:
            if any(event["content"]["body"] == text for event in bob.messages(room)):
                return str(room)
    raise AssertionError(f"nobody said {text!r} within {DEADLINE_S} s")
