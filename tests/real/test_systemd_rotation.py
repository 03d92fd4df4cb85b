"""A new password, a new key, and both encrypted on the disk: what docs/systemd.md tells an operator to do, with people talking."""

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.real.parts.chat_api import Answer, Request, Step, fault, held
from tests.real.parts.person import Person
from tests.real.parts.scene import wait_until
from tests.real.parts.systemd_bed import Bed
from tests.real.parts.systemd_scene import DAEMONS, PASSWORD, Household
from tests.real.test_systemd_docs import EDITOR, PAGE, Command, read_commands
from tests.real.test_systemd_docs import run as run_documented

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("systemd")]
MOUTH, _, LEASE = DAEMONS
NEW_PASSWORD = "canary-password-5d0e"
OLD_KEY, NEW_KEY = "sk-canary-old-19ab", "sk-canary-new-77c2"
SECRETS = (PASSWORD, NEW_PASSWORD, OLD_KEY, NEW_KEY)
HUNG = "/run/mind/hung"


def documented(words: str) -> Command:
    """The one command of the page that has these words, or has them below it."""
    (found,) = [command for command in read_commands(PAGE) if words in "\n".join([command.text, *command.below])]
    return found


def follow(household: Household, *words: str, kind: str = "matrix") -> None:
    """Do as the page says; what it shows for passwords it says of keys in words."""
    for found in map(documented, words):
        text = found.text if kind == "matrix" else found.text.replace("matrix", "model").replace("mind-mouth", "mind-lease")
        below = [line if kind == "matrix" else line.replace("matrix", "model") for line in found.below]
        run_documented(household.bed, Command(text, below), household.homeserver)


def change_password(household: Household, her: str, *, log_out: bool) -> None:
    """As she is changed in a client of hers, at another device than the mouth's."""
    auth = {"type": "m.login.password", "identifier": {"type": "m.id.user", "user": her}, "password": PASSWORD}
    elsewhere = household.homeserver.person_of(household.homeserver.login(her, PASSWORD))
    body = {"new_password": NEW_PASSWORD, "logout_devices": log_out, "auth": auth}
    elsewhere.call("POST", "/account/password", json=body)
    household.bed.write("/root/new-password", NEW_PASSWORD, 0o600)


def log_out(household: Household, her: str) -> None:
    household.homeserver.person_of(household.homeserver.login(her, NEW_PASSWORD)).call("POST", "/logout/all", json={})


def answered(bob: Person, room: str, her: str, *words: str) -> Counter[str]:
    """How often each word of bob's was answered, once all of these were."""
    return Counter(
        wait_until(
            f"answers to {', '.join(words)}",
            lambda: told if set(words) <= set(told := " ".join(bob.texts(room, her)).replace("re: ", "").split()) else None,
            60,
        )
    )


def everything_told(bed: Bed) -> str:
    return bed.run("journalctl", "-q", "--no-pager", "-o", "export").stdout + "".join(
        bed.run("mind", *words, check=False).stdout for words in (["doctor", "--json"], ["status", "--json"], ["log", "ada"])
    )


@pytest.fixture
def bed(household: Household) -> Iterator[Bed]:
    """Nothing of a scene is left in its units."""
    bed = household.bed
    bed.write("/root/editor", EDITOR, 0o755)
    try:
        yield bed
    finally:
        for unit in (MOUTH, LEASE):
            for name in ("scene", "override"):
                bed.path(f"/etc/systemd/system/{unit}.d/{name}.conf").unlink(missing_ok=True)
        bed.path(HUNG).unlink(missing_ok=True)
        household.close()  # before units are begun that could not read what is encrypted
        bed.systemctl("daemon-reload")
        bed.systemctl("restart", MOUTH, LEASE)


@pytest.mark.parametrize("logs_out", [True, False], ids=["her-devices-are-logged-out", "they-stay"])
def test_her_password_is_changed_and_every_message_is_answered_once(household: Household, bed: Bed, logs_out: bool) -> None:
    her = household.new("ada")
    household.enable("ada")
    bob, gate = household.person(), threading.Event()
    room = household.talk("ada", bob, her)
    bob.send(room, "before")
    assert answered(bob, room, her, "before") == {"before": 1}
    household.api.script(held(gate, household.api.default))
    bob.send(room, "thought-about")
    household.api.wait_for(2)
    change_password(household, her, log_out=logs_out)
    gate.set()
    bob.send(room, "meanwhile")
    if logs_out:
        (line,) = wait_until("her to say so", lambda: bed.journal("MIND=ada", "KIND=matrix.credential"), 30)
        assert "/etc/mind/credentials/matrix/ada.matrix-password" in line["MESSAGE"]
        assert "systemctl restart mind-mouth" in line["MESSAGE"]
        assert answered(bob, room, her, "before") == {"before": 1}
    follow(household, "/root/new-password")
    bob.send(room, "after")
    if not logs_out:  # the login of before serves on, and what comes when it ends is the new password
        assert answered(bob, room, her, "after")["after"] == 1
        log_out(household, her)
        bob.send(room, "at-last")
    last = [] if logs_out else ["at-last"]
    words = ["before", "thought-about", "meanwhile", "after", *last]
    answered(bob, room, her, *words)
    household.wait_gone("ada")
    assert answered(bob, room, her, *words) == dict.fromkeys(words, 1)
    assert not [secret for secret in SECRETS if secret in everything_told(bed)]


def test_what_was_said_as_her_devices_were_logged_out_is_not_said_again(household: Household, bed: Bed) -> None:
    """With the device the homeserver forgets what it took from it, so the same again would be a second message."""
    her = household.new("ada")
    household.enable("ada")
    bob = household.person()
    room = household.talk("ada", bob, her)
    bed.drop_in(MOUTH, f"Environment=MIND_CRASH_AT=voice.sent:hang MIND_CRASH_MARK={HUNG}")
    bed.systemctl("restart", MOUTH)
    bob.send(room, "hello")
    wait_until("it to hang with her answer sent", lambda: bed.path(HUNG).exists(), 30)
    change_password(household, her, log_out=True)
    household.homeserver.restart()
    bed.systemctl("kill", "--signal=KILL", MOUTH)
    follow(household, "/root/new-password")
    bob.send(room, "still-there?")
    assert answered(bob, room, her, "hello", "still-there?") == {"hello": 1, "still-there?": 1}


def takes(key: str, step: Step) -> Step:
    """Who shows another key is refused."""
    refused = fault(401, "Incorrect API key provided", code="invalid_api_key")

    def judge(request: Request) -> Answer:
        return (step if request.headers.get("authorization") == f"Bearer {key}" else refused)(request)

    return judge


def test_her_models_key_is_changed_and_every_message_is_answered_once(household: Household, bed: Bed) -> None:
    api, echo = household.api, household.api.default
    api.default = takes(OLD_KEY, echo)
    her = household.new("ada", model={"credential": "api-key"})
    bed.write("/etc/mind/credentials/model/ada.model-key", OLD_KEY, 0o600)
    household.enable("ada")
    bob, gate = household.person(), threading.Event()
    room = household.talk("ada", bob, her)
    bob.send(room, "before")
    assert answered(bob, room, her, "before") == {"before": 1}
    api.script(held(gate, api.default))
    bob.send(room, "thought-about")
    api.wait_for(2)
    api.default = takes(NEW_KEY, echo)
    gate.set()
    bob.send(room, "meanwhile")
    wait_until("her to be paused", lambda: household.product.rows("ada", "SELECT 1 FROM pause WHERE cause = 'authentication'"), 30)
    asked = len(api.requests)
    bed.write("/root/new-key", NEW_KEY, 0o600)
    follow(household, "/root/new-key")
    bob.send(room, "after")
    words = ["before", "thought-about", "meanwhile", "after"]
    answered(bob, room, her, *words)
    household.wait_gone("ada")
    assert answered(bob, room, her, *words) == dict.fromkeys(words, 1)
    assert {request.headers["authorization"] for request in api.requests[asked:]} == {f"Bearer {NEW_KEY}"}
    assert not [secret for secret in SECRETS if secret in everything_told(bed)]
    bed.path("/root/new-key").unlink()


def test_what_lies_encrypted_on_the_disk_serves_as_well(household: Household, bed: Bed) -> None:
    household.api.default = takes(OLD_KEY, household.api.default)
    her = household.new("ada", model={"credential": "api-key"})
    bed.write("/etc/mind/credentials/model/ada.model-key", OLD_KEY, 0o600)
    for kind in ("matrix", "model"):
        follow(household, "systemd-creds encrypt", "LoadCredentialEncrypted=", kind=kind)
    found = bed.run("grep", "-rlE", f"{PASSWORD}|{OLD_KEY}", "/etc/mind", "/var/lib/mind", check=False).stdout
    assert found == "", "on the disk there is no secret that a thief could read"
    household.enable("ada")
    bob = household.person()
    room = household.talk("ada", bob, her)
    bob.send(room, "hello")
    assert bob.wait_text(room, her) == ["re: hello"]
    checks = bed.run("mind", "doctor", check=False).stdout
    assert [line for line in checks.splitlines() if "ada: handed over" in line and "ada.model-key to mind-lease" in line], checks
    assert not [secret for secret in SECRETS if secret in everything_told(bed)]
