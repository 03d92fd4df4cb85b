"""Door: what bubblewrap leaves open. Run as a program before it: `python -IS fence.py HOME bwrap …`.

1. Abstract unix sockets belong to the network that the child keeps. It takes a Landlock domain (landlock(7)) for what it becomes,
   in which no abstract socket and no process outside can be reached. Mounts stay allowed: nothing of the file system is handled.
   A kernel older than 6.12 does not know it: then it does nothing, and `mind doctor` says so.
2. Where we run as root, what the kernel lets its own root write below /proc can be written inside, too: the user namespace only
   calls him 1000, and bwrap looks only at the directories' modes. So it is bound read-only. An ordinary user may write none of
   it, and where /proc is masked he may not bind it either.
3. Whoever is inside has a name there, because tools ask for it (git, ssh, `id`): an /etc/passwd and /etc/group of its own, with one
   user whose home is HOME, handed over in memory.

It imports nothing of ours: it is a start that every child waits for.
"""

import ctypes
import os
import sys
from collections.abc import Sequence

CREATE_RULESET, RESTRICT_SELF = 444, 446
"""Syscall numbers, the same on every architecture that has them."""
VERSION_QUESTION = 1
NO_NEW_PRIVS = 38
ABSTRACT_SOCKETS, SIGNALS = 1, 2
SCOPES_SINCE = 6
"""The Landlock version that knows scopes (Linux 6.12)."""
KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/mtrr", "/proc/acpi", "/proc/scsi")


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


def can_fence() -> bool:
    """Whether this kernel can close abstract sockets."""
    return int(_libc().syscall(CREATE_RULESET, None, 0, VERSION_QUESTION)) >= SCOPES_SINCE


def close_in() -> None:
    """From here on, for this process and what it starts."""
    if not can_fence():
        return
    libc = _libc()
    rules = _Ruleset(0, 0, ABSTRACT_SOCKETS | SIGNALS)
    descriptor = libc.syscall(CREATE_RULESET, ctypes.byref(rules), ctypes.sizeof(rules), 0)
    if descriptor < 0 or libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(RESTRICT_SELF, descriptor, 0):
        raise OSError(ctypes.get_errno(), "this kernel has Landlock and does not let it be used")
    os.close(descriptor)


def cover(argv: Sequence[str]) -> list[str]:
    """The command line of bwrap with /proc covered where it is mounted."""
    at = argv.index("--proc") + 2
    return [*argv[:at], *(word for path in KERNEL for word in ("--ro-bind-try", path, path)), *argv[at:]]


def give_name(argv: Sequence[str], home: str) -> list[str]:
    """The command line of bwrap with the files that name its one user; it takes their descriptors."""
    user = argv[argv.index("--uid") + 1]
    files = {
        "/etc/passwd": f"mind:x:{user}:{user}::{home}:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n",
        "/etc/group": f"mind:x:{user}:\nnogroup:x:65534:\n",
    }
    at = argv.index("--proc") + 2
    return [*argv[:at], *(word for path, text in files.items() for word in ("--ro-bind-data", _hold(text), path)), *argv[at:]]


def _hold(text: str) -> str:
    """A descriptor, kept open for what we become."""
    descriptor = os.memfd_create("name", 0)
    os.write(descriptor, text.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return str(descriptor)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


if __name__ == "__main__":
    close_in()
    command = give_name(sys.argv[2:], sys.argv[1])
    command = cover(command) if os.geteuid() == 0 else command
    os.execvp(command[0], command)  # noqa: S606 - bwrap itself, found where its environment says
