"""`mind install` and `mind uninstall` on a host with a real systemd: what is there afterwards, and what is not."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mind_body.cli.install_shapes import ACCOUNTS
from tests.parts_present import require_part
from tests.real.parts.scene import wait_until
from tests.real.parts.systemd_bed import Bed, open_bed
from tests.real.parts.systemd_product import MIND, PREFIX, PYTHON, VERSION, Product, put_product, shown

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("systemd")]
DAEMONS = ("mind-lease.service", "mind-mouth.service", "mind-heartbeat.service")
SOCKETS = ("mind-lease.socket", "mind-lease-stream.socket", "mind-mouth.socket", "mind-heartbeat.socket")
PACKAGE = f"{PREFIX}/lib/{VERSION}/site-packages/mind_body"
LIST = "find /etc /opt /usr /var -xdev ( -name __pycache__ -o -path /var/log -o -path /var/cache ) -prune -o -printf %M:%u:%g:%p\\n"
OLD_MIND = """
import sys
from mind_body.mind import store
from pathlib import Path
store.MIGRATIONS, store.NEWEST = store.MIGRATIONS[:2], 2
store.open_mind(Path(sys.argv[1]), create=True).close()
"""
VERSION_OF = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('PRAGMA user_version').fetchone()[0])"
WRITE = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('BEGIN IMMEDIATE'); db.rollback()"
PASSWORD = "long and hers"


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    """A host with the program under /opt, and nothing installed."""
    require_part("systemd")
    with open_bed(tmp_path / "host", shown()) as bed:
        put_product(bed)
        yield bed


def list_files(bed: Bed) -> list[str]:
    return sorted(bed.run(*LIST.split()).stdout.splitlines())


def install(bed: Bed, *words: str) -> dict[str, object]:
    return dict(json.loads(bed.run(MIND, "install", "--json", *words).stdout))


def make_mind(bed: Bed, name: str, *words: str, program: str = MIND) -> str:
    return bed.run(
        program, "new", name, "--no-input", "--homeserver", "http://127.0.0.1:9", "--user", f"@{name}:mind.localhost",
        "--password-file", "-", *words, text=PASSWORD,
    ).stdout  # fmt: skip


def started(bed: Bed, unit: str) -> str:
    return bed.systemctl("show", "-p", "ActiveEnterTimestampMonotonic", "--value", unit)


def test_it_is_there_the_second_time_nothing_changes_and_afterwards_nothing_is_left(bed: Bed) -> None:
    before = list_files(bed)
    install(bed)
    assert [bed.state(unit) for unit in (*DAEMONS, *SOCKETS, "mind.target")] == ["active"] * 8
    assert bed.systemctl("is-enabled", "mind.target") == "enabled"
    instants = [started(bed, unit) for unit in DAEMONS]
    assert install(bed)["actions"] == []
    assert "Everything is as" in bed.run("mind", "install").stdout
    assert [started(bed, unit) for unit in DAEMONS] == instants
    assert bed.run("journalctl", "--list-catalog").stdout.count("mind-body") > 50
    bed.run(MIND, "uninstall")
    assert list_files(bed) == before
    assert not bed.path("/run/mind").exists()
    assert not [name for name in ACCOUNTS if bed.run("id", name, check=False).returncode == 0]
    assert "mind" not in bed.systemctl("list-units", "--all", "--plain", "--no-legend", "mind*")
    assert "mind-body" not in bed.run("journalctl", "--list-catalog").stdout
    assert "Nothing of mind-body" in bed.run(MIND, "uninstall").stdout


def test_systemd_finds_no_fault_in_the_units_and_none_of_them_runs_as_root(bed: Bed) -> None:
    install(bed)
    units = [f"/usr/local/lib/systemd/system/{path.name}" for path in bed.path("/usr/local/lib/systemd/system").iterdir()]
    told = bed.run("systemd-analyze", "verify", "--man=no", *sorted(units))
    assert (told.stdout, told.stderr) == ("", "")
    users = {
        bed.systemctl("show", "-p", "User", "--value", unit) for unit in (*DAEMONS, "mind-persona@a.service", "mind-self@a.service")
    }
    assert users == set(ACCOUNTS) - {"mind"}
    assert {process.user for process in bed.processes() if process.unit in DAEMONS}.isdisjoint({0})


def test_an_upgrade_keeps_what_was_edited_migrates_minds_and_restarts_the_daemons_in_order(bed: Bed) -> None:
    install(bed)
    make_mind(bed, "ada")
    old = "/var/lib/mind/ada/mind.db"
    bed.systemctl("stop", *DAEMONS)
    bed.path("/var/lib/mind/ada/mind.db").unlink()
    bed.run(PYTHON, "-c", OLD_MIND, old)
    bed.systemctl("start", "mind-lease.service")  # who looks at minds would have migrated them
    mine = bed.path("/usr/local/lib/systemd/system/mind-self@.service")
    mine.write_text("# mine\n" + mine.read_text())
    unit = bed.path(f"{PACKAGE}/_data/units/mind-mouth.service")
    unit.write_text(unit.read_text().replace("WatchdogSec=", "WatchdogSec=1"))
    bed.path(f"{PACKAGE}/__init__.py").write_text('"""Another release."""\n')
    told = install(bed)
    assert [action["about"] for action in told["actions"] if action["do"] == "migrate"] == ["ada"]  # type: ignore[attr-defined]
    assert [one["path"] for one in told["kept"]] == [f"/usr/local/lib/systemd/system/{mine.name}"]  # type: ignore[attr-defined]
    assert mine.read_text().startswith("# mine")
    assert "[Service]" in mine.with_name(f"{mine.name}.new").read_text()
    assert int(bed.run(PYTHON, "-c", VERSION_OF, old).stdout) > 2
    assert bed.path(old).stat().st_mode & 0o777 == 0o660
    assert [bed.state(unit) for unit in DAEMONS] == ["active", "inactive", "inactive"], "what was stopped stays stopped"
    bed.systemctl("start", "mind.target")
    bed.path(f"{PACKAGE}/__init__.py").write_text('"""Yet another release."""\n')
    before = [started(bed, unit) for unit in (*DAEMONS, *SOCKETS)]
    install(bed)
    after = [started(bed, unit) for unit in (*DAEMONS, *SOCKETS)]
    assert before[3:] == after[3:], "sockets stay, so that nothing is lost"
    assert max(map(int, before[:3])) < int(after[0]) < int(after[1]) < int(after[2])
    assert install(bed)["actions"] == []


def test_minds_stay_until_they_are_purged(bed: Bed) -> None:
    before = list_files(bed)
    install(bed)
    make_mind(bed, "ada")
    told = bed.run(MIND, "uninstall")
    assert "--purge" in told.stderr
    assert bed.path("/var/lib/mind/ada/mind.db").exists()
    assert bed.path("/etc/mind/credentials/matrix/ada.matrix-password").exists()
    assert "mind-self" in bed.run("id", "mind-self").stdout
    assert not bed.path("/usr/local/lib/systemd/system").exists()
    install(bed)
    assert bed.state("mind-persona@ada.socket") == "active", "she is there again"
    bed.run(MIND, "uninstall", "--purge")
    assert list_files(bed) == before
    assert bed.run("id", "mind-self", check=False).returncode != 0


def test_a_new_mind_is_started_and_her_secrets_are_handed_to_who_needs_them(bed: Bed) -> None:
    install(bed)
    make_mind(bed, "ada")
    assert bed.systemctl("is-enabled", "mind@ada.target") == "enabled"
    assert [bed.state(f"mind-{half}@ada.socket") for half in ("persona", "self")] == ["active", "active"]
    handed = bed.path("/run/credentials/mind-mouth.service/matrix_ada.matrix-password")
    assert handed.read_text().strip() == PASSWORD
    make_mind(bed, "bea", "--no-start")
    assert not handed.with_name("matrix_bea.matrix-password").exists()
    assert bed.state("mind-persona@bea.socket") == "inactive"
    turned = bed.run("mind", "dial", "bea", "--heat", "1.5", "--wait", "8")
    assert ("heat 1.5" in turned.stdout, turned.stderr) == (True, ""), "whoever is there has seen it at once"
    told = bed.run("mind", "brake", "release", "bea", "--wait", "8").stderr
    assert (
        told
        == bed.run("mind", "dial", "bea", "--heat", "1.2").stderr
        == ("mind: nothing starts bea: `systemctl enable --now mind@bea.target`\n")
    )


def test_who_is_no_organ_reads_nothing_pokes_nobody_and_borrows_nothing(bed: Bed) -> None:
    install(bed)
    make_mind(bed, "ada")
    assert {path.stat().st_mode & 0o777 for path in bed.path("/var/lib/mind/ada").glob("mind.db*")} == {0o660}
    for path in ("/var/lib/mind/ada/mind.db", "/etc/mind/minds/ada.toml", "/etc/mind/credentials/matrix/ada.matrix-password"):
        assert bed.run("cat", path, user="nobody", check=False).returncode != 0
    for organ in ("mind-mouth", "mind-persona", "mind-self", "mind-heartbeat", "mind-lease"):
        assert bed.run("cat", "/etc/mind/credentials/matrix/ada.matrix-password", user=organ, check=False).returncode != 0
        assert bed.run("cat", "/etc/mind/minds/ada.toml", user=organ).stdout
        assert bed.run("sh", "-c", "echo >/etc/mind/control/ada/brake.toml", user=organ, check=False).returncode != 0
    for kind, name in (("DGRAM", "heartbeat.sock"), ("DGRAM", "persona@ada.sock"), ("STREAM", "lease.stream")):
        connect = f"import socket; socket.socket(socket.AF_UNIX, socket.SOCK_{kind}).connect('/run/mind/{name}')"
        assert "PermissionError" in bed.run("/usr/bin/python3", "-c", connect, user="nobody", check=False).stderr
        bed.run("/usr/bin/python3", "-c", connect, user="mind-persona")


def test_a_held_mind_has_no_sockets_and_a_released_one_has(bed: Bed) -> None:
    install(bed)
    make_mind(bed, "ada")
    bed.run("mind", "brake", "hold", "ada")
    wait_until("her sockets to be gone", lambda: not bed.path("/run/mind/persona@ada.sock").exists())
    assert bed.systemctl("is-enabled", "mind@ada.target") == "enabled"
    bed.run("mind", "brake", "release", "ada")
    assert [bed.state(f"mind-{half}@ada.socket") for half in ("persona", "self")] == ["active", "active"]


def test_a_restored_mind_is_the_organs_again(bed: Bed) -> None:
    install(bed)
    make_mind(bed, "ada")
    bed.run("mind", "backup", "ada", "--to", "/root/ada.db")
    assert "stop" in bed.run("mind", "restore", "ada", "/root/ada.db", check=False).stderr
    bed.systemctl("stop", *DAEMONS, *SOCKETS)
    bed.run("mind", "restore", "ada", "/root/ada.db")
    assert bed.run("stat", "-c", "%a %U:%G", "/var/lib/mind/ada/mind.db").stdout == "660 root:mind\n"
    bed.systemctl("start", "mind.target")
    assert bed.run(PYTHON, "-c", WRITE, "/var/lib/mind/ada/mind.db", user="mind-persona").returncode == 0


def test_what_units_could_not_run_is_refused_before_anything_is_done(bed: Bed) -> None:
    bed.run("cp", "-a", PREFIX, "/root/mind-body")
    before = list_files(bed)
    told = bed.run("/root/mind-body/bin/python", "-m", "mind_body", "install", check=False)
    assert told.returncode == 78
    assert "/root" in told.stderr
    assert "/opt" in told.stderr
    assert list_files(bed) == before
    refused = bed.run(MIND, "install", user="nobody", check=False)
    assert (refused.returncode, "as root" in refused.stderr) == (78, True)


def test_credentials_may_lie_encrypted(bed: Bed) -> None:
    install(bed)
    make_mind(bed, "ada", "--no-start")
    product = Product(bed)
    plain = "/etc/mind/credentials/matrix/ada.matrix-password"
    bed.run("systemd-creds", "encrypt", "--name=matrix_ada.matrix-password", plain, f"{plain}.encrypted")
    bed.run("mv", f"{plain}.encrypted", plain)
    dropin = "[Service]\nLoadCredential=\nLoadCredentialEncrypted=matrix:/etc/mind/credentials/matrix\n"
    bed.write("/etc/systemd/system/mind-mouth.service.d/encrypted.conf", dropin)
    bed.systemctl("daemon-reload")
    bed.systemctl("restart", "mind-mouth.service")
    handed = bed.path("/run/credentials/mind-mouth.service/matrix_ada.matrix-password")
    assert handed.read_text().strip() == PASSWORD
    assert PASSWORD not in bed.path(plain).read_text()
    assert product.mind("install").startswith("Everything")
