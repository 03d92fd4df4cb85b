"""`pipx install`, as the page has it, and as pipx has it by itself. Packages come from an index, so it is for the long run."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.parts_present import ROOT, require_part
from tests.real.parts.systemd_bed import Bed, open_bed
from tests.real.test_install import DAEMONS, SOCKETS, list_files, make_mind

pytestmark = [pytest.mark.real, pytest.mark.long, pytest.mark.xdist_group("systemd")]
PACKAGES = "/mnt/packages"
TOOL = "/opt/tool"
PIPX = f"{TOOL}/bin/pipx"
WORDS = "PIPX_HOME=/opt/pipx PIPX_BIN_DIR=/usr/local/bin"
"""What docs/systemd.md and the refusal say before `pipx install`."""


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A host with pipx, and the wheel of this tree beside it."""
    require_part("systemd")
    if subprocess.run(
        ["/usr/bin/python3", "-c", "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"], check=False
    ).returncode:
        pytest.skip("pipx needs the host's own Python 3.11 or newer, with its venv module")
    directory = tmp_path_factory.mktemp("pipx")
    wheels = directory / "wheels"
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), str(ROOT)], check=True)
    with open_bed(directory / "host", {str(wheels): PACKAGES}) as bed:
        bed.run("/usr/bin/python3", "-m", "venv", TOOL)
        bed.run(f"{TOOL}/bin/pip", "install", "-q", "pipx", timeout_s=120)
        yield bed


def pipx(bed: Bed, words: str = "") -> None:
    home = {"HOME": "/root", "PIPX_DEFAULT_PYTHON": "/usr/bin/python3"}
    bed.run("sh", "-c", f"{words} {PIPX} install {PACKAGES}/*.whl", env=home, timeout_s=180)


def test_from_where_the_page_says_it_is_installed_and_goes_again(bed: Bed) -> None:
    assert WORDS in (ROOT / "docs" / "systemd.md").read_text()
    pipx(bed, WORDS)
    before = list_files(bed)
    bed.run("mind", "install")
    assert [bed.state(unit) for unit in (*DAEMONS, *SOCKETS)] == ["active"] * 7
    for unit in DAEMONS:
        assert "path=/opt/pipx/venvs/mind-body/bin/mind " in bed.show(unit, "ExecStart")["ExecStart"]
    make_mind(bed, "ada", program="mind")
    assert "Everything is as" in bed.run("mind", "install").stdout
    bed.run("mind", "uninstall", "--purge")
    assert list_files(bed) == before, "what pipx put there is pipx's"
    assert "Usage" in bed.run("mind", "--help").stdout


def test_from_where_pipx_puts_it_by_itself_it_is_refused_with_the_way_out(bed: Bed) -> None:
    pipx(bed)
    before = list_files(bed)
    refused = bed.run("/root/.local/bin/mind", "install", check=False)
    assert refused.returncode == os.EX_CONFIG
    assert "they see nothing of /root" in refused.stderr
    assert f"`{WORDS} pipx install " in refused.stderr
    assert list_files(bed) == before
