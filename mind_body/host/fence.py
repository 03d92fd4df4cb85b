"""Door: what bubblewrap does not close: abstract unix sockets, which belong to the network that the child keeps (landlock(7)).

Run as a program before bwrap: `python -IS fence.py bwrap …`. It takes a Landlock domain of its own for what it becomes, in which
no abstract socket and no process outside can be reached, and gives way to its arguments. Mounts stay allowed: nothing of the file
system is handled. A kernel older than 6.12 does not know it: then it does nothing, and `mind doctor` says so.

It imports nothing of ours: it is a start that every child waits for.
"""

import ctypes
import os
import sys

CREATE_RULESET, RESTRICT_SELF = 444, 446
"""Syscall numbers, the same on every architecture that has them."""
VERSION_QUESTION = 1
NO_NEW_PRIVS = 38
ABSTRACT_SOCKETS, SIGNALS = 1, 2
SCOPES_SINCE = 6
"""The Landlock version that knows scopes (Linux 6.12)."""


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


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


if __name__ == "__main__":
    close_in()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - bwrap itself, found where its environment says
