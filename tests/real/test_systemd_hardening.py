"""What each unit may reach, and who may reach it: asked of the real units, from inside and from outside."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.real.parts.chat_api import held
from tests.real.parts.exposure import BOUNDS, parse_exposure
from tests.real.parts.person import Person
from tests.real.parts.scene import wait_until
from tests.real.parts.systemd_product import Product
from tests.real.parts.systemd_scene import DAEMONS, Household

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("systemd")]
MOUTH, HEARTBEAT, LEASE = DAEMONS
PERSONA = "mind-persona@ada.service"
KEY = "sk-ant-canary-71c9"
ASK = """
import contextlib, socket, sys
stream = socket.socket(socket.AF_UNIX)
stream.connect("/run/mind/lease.stream")
with contextlib.suppress(BrokenPipeError):
    stream.sendall(sys.argv[1].encode() + b"\\n")  # who is nobody is told so before anything is asked
answer, descriptors, _, _ = socket.recv_fds(stream, 4096, 1)
print(answer.decode().strip(), len(descriptors))
"""
BORROW = '{"ask": "borrow"}'
RESERVE = '{"ask": "reserve", "call": "c", "run": "r", "conversation": "c", "model": "m", "ceiling_micro_usd": 1}'
REACH = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 3)"


@dataclass(frozen=True)
class Talk:
    """Bob has asked, and she thinks until `gate` is set: her process is there."""

    household: Household
    bob: Person
    her: str
    room: str
    gate: threading.Event

    def inside(self, unit: str, *argv: str) -> str:
        """A command as the unit's user, in what its main process sees: what it printed, errors included."""
        pid = self.household.bed.main_pid(unit)
        user = self.household.bed.show(unit, "User")["User"]
        become = ("setpriv", f"--reuid={user}", "--regid=mind", "--clear-groups")
        done = self.household.bed.run("nsenter", "-t", str(pid), "-m", "-n", "--", *become, *argv, check=False)
        return done.stdout + done.stderr


@pytest.fixture
def talk(household: Household) -> Iterator[Talk]:
    her = household.new("ada", model={"credential": "api-key"}, persona={"linger_s": 1.0})
    household.new("bea")
    household.bed.write("/etc/mind/credentials/model/ada.model-key", KEY, 0o600)
    household.enable("ada")
    bob, gate = household.person(), threading.Event()
    room = household.talk("ada", bob, her)
    household.api.script(held(gate, household.api.default))
    bob.send(room, "hello")
    household.api.wait_for(1)
    try:
        yield Talk(household, bob, her, room, gate)
    finally:
        gate.set()


@pytest.mark.parametrize(("unit", "most"), BOUNDS.items())
def test_the_exposure_of_each_unit_is_small(installed: Product, unit: str, most: float) -> None:
    told = installed.bed.run("systemd-analyze", "security", "--no-pager", unit).stdout
    assert parse_exposure(told) <= most, told


def test_no_process_of_a_unit_is_roots_and_none_has_a_capability(talk: Talk) -> None:
    bed = talk.household.bed
    ours = [process for process in bed.processes() if process.unit.startswith("mind-")]
    users = {process.unit: bed.run("id", "-un", str(process.user)).stdout.strip() for process in ours}
    assert users == {MOUTH: "mind-mouth", HEARTBEAT: "mind-heartbeat", LEASE: "mind-lease", PERSONA: "mind-persona"}
    for unit in users:
        status = bed.path(f"/proc/{bed.main_pid(unit)}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert {int(fields[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}, unit
        assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


def test_the_sockets_are_the_groups_and_nobody_elses(talk: Talk) -> None:
    bed = talk.household.bed
    assert bed.run("stat", "-c", "%U %G %a", "/run/mind").stdout.strip() == "root mind 2770"
    found = bed.run("sh", "-c", "stat -c '%n %U %G %a' /run/mind/*.sock /run/mind/lease.stream").stdout.splitlines()
    own = {"heartbeat.sock", "lease.sock", "lease.stream", "mouth.sock", "persona@ada.sock", "self@ada.sock"}
    assert {line.split(" ", 1)[0].rpartition("/")[2] for line in found} == own
    assert {line.split(" ", 1)[1] for line in found} == {"root mind 660"}


def test_an_organ_reaches_what_it_needs_and_nothing_else(talk: Talk) -> None:
    port = str(talk.household.api.port)
    for unit in (HEARTBEAT, LEASE):
        assert "refused" in talk.inside(unit, "python3", "-c", REACH, port) or "unreachable" in talk.inside(
            unit, "python3", "-c", REACH, port
        ), f"{unit} has no network"
    for unit in (MOUTH, PERSONA):
        assert talk.inside(unit, "python3", "-c", REACH, port) == ""
    matrix, model = "/run/credentials/mind-mouth.service/matrix_ada.matrix-password", "/run/credentials/mind-lease.service"
    assert talk.inside(MOUTH, "cat", matrix).strip() == "her long password"
    assert talk.inside(LEASE, "cat", f"{model}/model_ada.model-key").strip() == KEY
    for unit in (MOUTH, HEARTBEAT, PERSONA):
        assert KEY not in talk.inside(unit, "sh", "-c", f"cat {model}/* /etc/mind/credentials/*/* /proc/*/environ 2>&1")
    for unit in (LEASE, HEARTBEAT, PERSONA):
        assert "her long" not in talk.inside(unit, "sh", "-c", f"cat {matrix} /etc/mind/credentials/*/* 2>&1")
    for unit in (*DAEMONS, PERSONA):
        told = talk.inside(unit, "sh", "-c", "touch /etc/mind/control/ada/brake.toml /etc/mind/minds/ada.toml /usr/x /root/x 2>&1")
        assert told.count("touch: cannot touch") + told.count("touch: setting times") == 4, told
    assert "bea" in talk.inside(HEARTBEAT, "ls", "/var/lib/mind")
    assert talk.inside(PERSONA, "ls", "/var/lib/mind").split() == ["ada"]
    assert "Permission denied" in talk.inside(PERSONA, "sh", "-c", "cat /var/lib/mind/lease.d/* /var/lib/mind/mouth.d/* 2>&1") or (
        "No such file" in talk.inside(PERSONA, "sh", "-c", "cat /var/lib/mind/lease.d/* /var/lib/mind/mouth.d/* 2>&1")
    )


def test_who_is_in_no_unit_of_a_mind_borrows_and_reserves_nothing(talk: Talk) -> None:
    """Not even the organs' own users, nor root: the lease goes by the unit."""
    for question in (BORROW, RESERVE):
        done = talk.household.bed.run("python3", "-c", ASK, question, user="nobody", check=False)
        assert "Permission denied" in done.stderr
        for user in ("mind-persona", "mind-self", "mind-mouth", "mind-heartbeat", "root"):
            told = talk.household.bed.run("python3", "-c", ASK, question, user="" if user == "root" else user).stdout
            assert '"peer"' in told, (user, told)
            assert told.strip().endswith(" 0"), "no descriptor came"


def test_a_daemon_that_holds_a_socket_of_its_own_is_no_half_of_a_mind_either(talk: Talk) -> None:
    for unit in (MOUTH, HEARTBEAT):
        group = f"/sys/fs/cgroup/mind.slice/{unit}/cgroup.procs"
        script = f'echo $$ > {group}; exec setpriv --reuid=mind-persona --regid=mind --clear-groups python3 -c "$0" "$1"'
        told = talk.household.bed.run("sh", "-c", script, ASK, BORROW).stdout
        assert '"peer"' in told, told


def test_a_holder_of_another_user_is_judged_rightly(household: Household) -> None:
    """Her lock is another user's, whose processes are invisible: she is left alone while she lives, and closed when she is not."""
    household.host(look_s=0.5, start_grace_s=3.0)
    her = household.new("ada")
    gate = threading.Event()
    try:
        household.enable("ada")
        household.bed.systemctl("restart", HEARTBEAT)
        bob = household.person()
        room = household.talk("ada", bob, her)
        household.api.script(held(gate, household.api.default), held(gate, household.api.default))
        bob.send(room, "hello")
        household.api.wait_for(1)
        wait_until("five looks after the grace", lambda: _elapsed(household) > 6_000, 20)
        (run,) = household.product.rows("ada", "SELECT * FROM run")
        assert run["ended_at"] is None
        household.bed.systemctl("kill", "--signal=KILL", PERSONA)
        household.api.wait_for(2, 30)
        dead, *_ = household.product.rows("ada", "SELECT * FROM run ORDER BY opened_at")
        assert dead["outcome"] == "dead"
        gate.set()
        assert bob.wait_text(room, her) == ["re: hello"]
    finally:
        gate.set()
        household.host()
        household.bed.systemctl("restart", HEARTBEAT)


def _elapsed(household: Household) -> int:
    """Milliseconds since the run was opened."""
    sql = "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - opened_at AS ms FROM run"
    return int(household.product.rows("ada", sql)[0]["ms"])
