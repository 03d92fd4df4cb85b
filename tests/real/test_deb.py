"""The Debian package: built, put on a host, upgraded, removed, purged. Building needs the network, so it is for the long run."""

import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts_present import ROOT, require_part
from tests.real.parts.systemd_bed import Bed, open_bed
from tests.real.test_install import DAEMONS, SOCKETS, list_files, make_mind, started

pytestmark = [pytest.mark.real, pytest.mark.long, pytest.mark.xdist_group("systemd")]
PACKAGES = "/mnt/packages"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two of them: the one that `make deb` builds, and one with another program in it, as the next release."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("no dpkg-deb: Debian packages are built on Debian")
    require_part("systemd")
    built = subprocess.run(["make", "-C", str(ROOT), "deb"], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-2000:]
    directory = tmp_path_factory.mktemp("packages")
    found = next((ROOT / "dist").glob("mind-body_*.deb"))
    shutil.copy(found, directory / "first.deb")
    unpacked = directory / "unpacked"
    subprocess.run(["dpkg-deb", "-R", str(found), str(unpacked)], check=True)
    control = unpacked / "DEBIAN" / "control"
    control.write_text(control.read_text().replace("Version: ", "Version: 1:"))
    unit = unpacked / "usr/lib/systemd/system/mind-mouth.service"
    data = next(unpacked.glob("opt/mind-body/lib/*/site-packages/mind_body/_data/units/mind-mouth.service"))
    for path in (unit, data):
        path.write_text(path.read_text().replace("Description=Mouth", "Description=Another mouth"))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", str(unpacked), str(directory / "next.deb")], check=True)
    shutil.rmtree(unpacked)
    return directory


@pytest.fixture
def bed(tmp_path: Path, packages: Path) -> Iterator[Bed]:
    with open_bed(tmp_path / "host", {str(packages): PACKAGES}) as bed:
        bed.path("/usr/sbin/policy-rc.d").unlink(missing_ok=True)  # an image's way to start nothing
        yield bed


def test_the_wheel_carries_units_and_configuration(packages: Path) -> None:
    names = zipfile.ZipFile(next((ROOT / ".deb").glob("*.whl"))).namelist()
    for folder in ("units", "config"):
        inside = {path.relative_to(ROOT / folder).as_posix() for path in (ROOT / folder).rglob("*") if path.is_file()}
        assert {f"mind_body/_data/{folder}/{name}" for name in inside} <= set(names)


def test_it_is_installed_upgraded_removed_and_purged(bed: Bed) -> None:
    before = list_files(bed)
    bed.run("dpkg", "-i", f"{PACKAGES}/first.deb", timeout_s=120)
    assert [bed.state(unit) for unit in (*DAEMONS, *SOCKETS)] == ["active"] * 7
    assert "Everything is as" in bed.run("mind", "install").stdout
    make_mind(bed, "ada")
    instants = [started(bed, unit) for unit in (*DAEMONS, *SOCKETS)]
    bed.run("dpkg", "-i", f"{PACKAGES}/next.deb", timeout_s=120)
    assert bed.systemctl("show", "-p", "Description", "--value", "mind-mouth.service").startswith("Another mouth")
    after = [started(bed, unit) for unit in (*DAEMONS, *SOCKETS)]
    assert after[3:] == instants[3:]
    assert max(map(int, instants[:3])) < int(after[0]) < int(after[1]) < int(after[2])
    bed.run("dpkg", "-r", "mind-body", timeout_s=120)
    assert bed.path("/var/lib/mind/ada/mind.db").exists()
    assert not bed.path("/usr/lib/systemd/system/mind.target").exists()
    assert not bed.systemctl("list-units", "--all", "--plain", "--no-legend", "mind*")
    bed.run("dpkg", "-i", f"{PACKAGES}/first.deb", timeout_s=120)
    assert bed.state("mind-persona@ada.socket") == "active", "she is there again"
    bed.run("dpkg", "-P", "mind-body", timeout_s=120)
    assert [line for line in list_files(bed) if "/var/lib/dpkg/" not in line] == [
        line for line in before if "/var/lib/dpkg/" not in line
    ]
    assert bed.run("id", "mind-self", check=False).returncode != 0
