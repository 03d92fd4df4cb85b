"""What an attacker would try inside the sandbox. Runs there, by the system's own Python, and prints what it got as one JSON object.

argv[1] is JSON: `needle` (a regular expression that is not itself what it looks for), `paths` (of files and directories outside),
`sockets` and `abstract` (listening outside), `pids` (living outside).
"""

import contextlib
import ctypes
import grp
import json
import mmap
import os
import pwd
import re
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PTRACE_ATTACH, PTRACE_DETACH = 16, 17
LIBC = ctypes.CDLL(None, use_errno=True)
BIG = 64 * 1024 * 1024


def walk(told: dict[str, Any]) -> dict[str, Any]:
    needle = re.compile(told["needle"].encode())
    return {
        "environ": dict(os.environ),
        "descriptors": {name: read_link(f"/proc/self/fd/{name}") for name in names("/proc/self/fd")},
        "root": names("/"),
        "home": names("/home"),
        "etc": names("/etc"),
        "users": [one.pw_name for one in pwd.getpwall()],
        "me": [pwd.getpwuid(os.getuid()).pw_name, pwd.getpwuid(os.getuid()).pw_dir, grp.getgrgid(os.getgid()).gr_name],
        "read": [path for path in told["paths"] if can_read(path)],
        "written": sorted({*writable_places(), *(path for path in told["paths"] if can_write(path))}),
        "kernel": [path for path in KERNEL if can_open(path)],
        "devices": names("/dev"),
        "processes": {pid: command(pid) for pid in pids()},
        "traced": [pid for pid in (*pids(), *told["pids"]) if str(pid) != str(os.getpid()) and can_trace(int(pid))],
        "peeked": [pid for pid in told["pids"] if can_peek(pid)],
        "signalled": [pid for pid in told["pids"] if can_signal(pid)],
        "sockets": [path for path in told["sockets"] if can_connect(path)],
        "abstract": [name for name in told["abstract"] if can_connect("\0" + name)],
        "mounted": can_mount(),
        "found": sorted({*find_in_files(needle), *find_in_processes(needle)}),
    }


KERNEL = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sysrq-trigger",
    "/proc/sys/kernel/modprobe",
    "/proc/irq/default_smp_affinity",
    "/proc/mtrr",
    "/proc/kcore",
    "/proc/kmsg",
)


def names(path: str) -> list[str]:
    return sorted(one.name for one in Path(path).iterdir())


def pids() -> list[str]:
    return [name for name in names("/proc") if name.isdigit()]


def command(pid: str) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    return ""


def read_link(path: str) -> str:
    with contextlib.suppress(OSError):
        return str(Path(path).readlink())
    return ""


def can_read(path: str) -> bool:
    with contextlib.suppress(OSError):
        return bool(names(path)) if Path(path).is_dir() else Path(path).read_bytes() is not None
    return False


def can_write(path: str) -> bool:
    with contextlib.suppress(OSError):
        if Path(path).is_dir():
            return try_make(path)
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
        return True
    return False


def can_open(path: str) -> bool:
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_RDONLY if path in {"/proc/kcore", "/proc/kmsg"} else os.O_WRONLY))
        return True
    return False


def writable_places() -> Iterator[str]:
    """The uppermost directories in which a file can be made."""
    for top, directories, _ in os.walk("/"):
        if try_make(top):
            yield top
            directories.clear()
        elif top in {"/proc", "/sys"} or top.count("/") > 4:
            directories.clear()


def try_make(directory: str) -> bool:
    path = Path(directory) / f".walked-{os.getpid()}"
    with contextlib.suppress(OSError):
        path.write_text("x")
        path.unlink()
        return True
    return False


def can_trace(pid: int) -> bool:
    if LIBC.ptrace(PTRACE_ATTACH, pid, None, None):
        return False
    os.waitpid(pid, 0)
    LIBC.ptrace(PTRACE_DETACH, pid, None, None)
    return True


def can_peek(pid: int) -> bool:
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/mem").open("rb"):
        return True
    return False


def can_signal(pid: int) -> bool:
    with contextlib.suppress(OSError):
        os.kill(pid, 0)
        return True
    return False


def can_connect(address: str) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_UNIX, kind) as caller, contextlib.suppress(OSError):
            caller.connect(address)
            return True
    return False


def can_mount() -> bool:
    """A file system of its own over /etc, with the rights that this process has."""
    return int(LIBC.mount(b"tmpfs", b"/etc", b"tmpfs", 0, None)) == 0


def find_in_files(needle: re.Pattern[bytes]) -> Iterator[str]:
    """Every regular file that is not the system's own."""
    for top, directories, files in os.walk("/"):
        if top == "/":
            directories[:] = [one for one in directories if one not in {"proc", "sys", "usr", "bin", "sbin", "lib", "lib64", "opt"}]
        for name in files:
            path = Path(top) / name
            with contextlib.suppress(OSError):
                if stat.S_ISREG(path.lstat().st_mode) and path.stat().st_size < BIG and needle.search(path.read_bytes()):
                    yield str(path)


def find_in_processes(needle: re.Pattern[bytes]) -> Iterator[str]:
    """Environment, command line, open files and memory of everything that can be seen."""
    for pid in pids():
        for name in ("environ", "cmdline"):
            with contextlib.suppress(OSError):
                if needle.search(Path(f"/proc/{pid}/{name}").read_bytes()):
                    yield f"/proc/{pid}/{name}"
        with contextlib.suppress(OSError):
            for name in names(f"/proc/{pid}/fd"):
                path = Path(f"/proc/{pid}/fd/{name}")
                with contextlib.suppress(OSError):
                    if stat.S_ISREG(path.stat().st_mode) and path.stat().st_size < BIG and needle.search(path.read_bytes()):
                        yield str(path)
        if any(needle.search(part) for part in memory(pid)):
            yield f"/proc/{pid}/mem"


def memory(pid: str) -> Iterator[bytes]:
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", 0) as held:
        for line in maps:
            span, rights, *_ = line.split()
            low, high = (int(end, 16) for end in span.split("-"))
            if rights.startswith("r") and high - low < 4 * BIG and "[v" not in line:
                with contextlib.suppress(OSError, ValueError, OverflowError):
                    for part in range(low, high, 16 * mmap.PAGESIZE * 64):
                        held.seek(part)
                        yield held.read(min(16 * mmap.PAGESIZE * 64 + 256, high - part))


if __name__ == "__main__":
    print(json.dumps(walk(json.loads(sys.argv[1]))))
