"""The bed itself: a whole manager within a second, and the host does not notice."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts_present import ROOT, require_part
from tests.real.parts.scene import is_gone, wait_until
from tests.real.parts.systemd_bed import Bed, open_bed

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("systemd")]
SYSCTLS = ("fs/nr_open", "fs/file-max", "kernel/core_pattern", "kernel/pid_max", "kernel/hostname", "net/core/somaxconn")
SLEEPER = "[Service]\nType=exec\nExecStart=sleep 3600\n[Install]\nWantedBy=multi-user.target\n"
HELD = """
import json, sys, time
from pathlib import Path
from tests.real.parts.systemd_bed import open_bed
with open_bed(Path(sys.argv[1])) as bed:
    bed.write("/etc/systemd/system/sleeper.service", sys.argv[2])
    bed.systemctl("start", "sleeper.service")
    print(json.dumps([bed.pid, bed.holder.pid, *(process.pid for process in bed.processes())]), flush=True)
    time.sleep(600)
"""


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    require_part("systemd")
    with open_bed(tmp_path / "host") as bed:
        yield bed


@contextlib.contextmanager
def canaries() -> Iterator[list[Path]]:
    """Files that a booting machine, or its daily cleaning, would take away."""
    found = [Path(place) / f"mind-canary-{os.getpid()}" for place in ("/tmp", "/run", "/var/tmp", "/dev/shm")]
    try:
        for path in found:
            path.write_text("here")
            os.utime(path, (0, 0))
        yield found
    finally:
        for path in found:
            path.unlink(missing_ok=True)


def host() -> dict[str, object]:
    """What must be the same before and after."""
    own_groups = {str(path) for path in cgroups() if "mind-bed-" not in str(path)}
    texts = ("/etc/passwd", "/etc/group", "/etc/machine-id", "/etc/fstab")
    return {
        "files": {path: Path(path).read_text() for path in texts if Path(path).exists()},
        "sysctls": {name: Path(f"/proc/sys/{name}").read_text() for name in SYSCTLS},
        "cgroups": own_groups,
        "devices": [Path("/dev", name).stat().st_mode for name in ("null", "tty", "shm", "pts")],
        "places": [Path(place).exists() for place in ("/etc/mind", "/var/lib/mind", "/run/mind", "/run/systemd/private", "/old")],
    }


def cgroups() -> list[Path]:
    return [Path(where) for where, _, _ in os.walk("/sys/fs/cgroup")]


def test_it_is_up_in_a_few_seconds_and_nothing_in_it_has_failed(tmp_path: Path) -> None:
    require_part("systemd")
    began = time.monotonic()
    with open_bed(tmp_path / "host") as bed:
        assert time.monotonic() - began < 5
        assert bed.systemctl("is-system-running") == "running", bed.told("-b", "-p", "warning")
        assert bed.run("id", "-un", user="nobody").stdout.strip() == "nobody"


def test_the_host_does_not_notice_it(tmp_path: Path) -> None:
    require_part("systemd")
    before = host()
    with canaries() as files:
        with open_bed(tmp_path / "host") as bed:
            bed.write("/etc/passwd", "nobody:x:65534:65534:::\n")
            bed.run("hostname", "another")
            bed.run("touch", "/tmp/in-the-bed", "/run/in-the-bed", "/var/tmp/in-the-bed")
            assert not bed.path("/tmp").joinpath(files[0].name).exists()
            bed.end()
            bed.boot()
            assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
        assert [path.read_text() for path in files] == ["here"] * 4
    assert not [place for place in ("/tmp", "/run", "/var/tmp") if Path(place, "in-the-bed").exists()]
    assert host() == before


def test_its_root_can_set_neither_clock_nor_network_of_the_host(bed: Bed) -> None:
    bed.write("/etc/systemd/system/bad.service", "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'cat /proc/self/status'\n")
    bed.systemctl("start", "bad.service")
    told = bed.told("-u", "bad.service")
    held = int(told.partition("CapEff:")[2].split()[0], 16)
    for name, number in (("CAP_SYS_TIME", 25), ("CAP_NET_ADMIN", 12), ("CAP_SYS_MODULE", 16), ("CAP_SYS_RAWIO", 17)):
        assert not held & (1 << number), name


def test_what_it_wrote_is_there_after_an_orderly_end_and_after_a_power_cut(bed: Bed) -> None:
    bed.write("/etc/systemd/system/sleeper.service", SLEEPER)
    bed.systemctl("enable", "--now", "sleeper.service")
    for leave in (bed.end, bed.kill):
        old = [bed.pid, *(process.pid for process in bed.processes())]
        leave()
        assert [pid for pid in old if not is_gone(pid)] == []
        assert bed.boot() < 5
        assert bed.state("sleeper.service") == "active"
        assert not bed.path("/run/in-the-bed").exists()
        bed.write("/run/in-the-bed", "gone with the next boot")
    assert len(bed.journal("UNIT=sleeper.service", "JOB_TYPE=start")) >= 3, "its journal is kept, too"


def test_who_listens_on_loopback_is_beside_it(bed: Bed) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port})).sendall(b'hello')"
        bed.run("python3", "-c", code, user="nobody")
        with server.accept()[0] as came:
            assert came.recv(16) == b"hello"


@pytest.mark.parametrize("whom", ["the tests", "its holder", "its manager"])
def test_killed_it_is_gone_whole(tmp_path: Path, whom: str) -> None:
    """Whoever dies first: the tests, the script that holds the bed, or the manager."""
    require_part("systemd")
    with subprocess.Popen(
        [sys.executable, "-c", HELD, str(tmp_path / "host"), SLEEPER], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as tests:
        assert tests.stdout is not None
        manager, holder, *others = json.loads(tests.stdout.readline())
        assert not is_gone(manager)
        assert len(others) >= 2
        os.kill({"the tests": tests.pid, "its holder": holder, "its manager": manager}[whom], signal.SIGKILL)
        wait_until("every process of the bed to be gone", lambda: all(map(is_gone, [manager, *others])), 5)
        if whom != "its manager":
            wait_until("its holder to be gone", lambda: is_gone(holder), 5)
        tests.kill()
    wait_until("its holder to be gone", lambda: is_gone(holder), 5)
    if whom == "its holder":
        with open_bed(tmp_path / "next"):
            pass  # takes away what the other could not
    assert not [path for path in cgroups() if f"mind-bed-{holder}" in str(path)]
