"""Rule: a bubblewrap command line that holds a child in (bwrap(1)).

1. Built from nothing: what is not named here is not there. The system read-only, a private home and /tmp, own pid, ipc, uts and
   user namespaces, an ordinary user inside whoever we are outside. The network is kept: the gateway is on loopback. Nothing is
   writable but home, /tmp, /dev/shm and what is bound so.
2. No home directory, no /etc/mind, /var/lib/mind or /run/mind, no sockets of the host (`fence.py` closes the abstract ones); of
   /etc only what names hosts, and one user (`fence.py` names it).
3. It dies with the thread that started it, and its pid namespace with it: nothing that it forked survives.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FENCE = (sys.executable, "-IS", str(Path(__file__).with_name("fence.py")))
"""Goes before bwrap, and closes what that leaves open. Its first word is the home inside."""
USER_ID = 1000
SYSTEM = ("/usr",)
MERGED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Links into /usr on a merged system, directories elsewhere; bound either way, where they are there."""
ETC = (
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ca-certificates",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/localtime",
)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What one child is to find, beside the system. Paths outside to paths inside."""

    home: str
    """Its home inside: private and empty but for what is bound below it."""
    cwd: str
    readable: Mapping[str, str] = field(default_factory=dict)
    writable: Mapping[str, str] = field(default_factory=dict)
    hostname: str = "localhost"


def render_bwrap(sandbox: Sandbox, argv: Sequence[str], bwrap: str = "bwrap") -> list[str]:
    """The command line that runs `argv` inside."""
    namespaces = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    identity = ["--uid", str(USER_ID), "--gid", str(USER_ID), "--hostname", sandbox.hostname]
    fate = ["--die-with-parent", "--new-session"]
    mounts = [
        *_each("--ro-bind", SYSTEM),
        *_each("--ro-bind-try", MERGED),
        *_each("--ro-bind-try", ETC),
        *("--proc", "/proc"),
        *("--dev", "/dev"),
        *("--tmpfs", "/dev/shm"),  # noqa: S108 - inside
        *("--tmpfs", "/tmp"),  # noqa: S108 - inside
        *("--tmpfs", "/run"),
        *("--tmpfs", sandbox.home),
        *_pairs("--ro-bind", sandbox.readable),
        *_pairs("--bind", sandbox.writable),
        *("--remount-ro", "/"),
        *("--remount-ro", "/run"),
        *("--remount-ro", "/dev"),
    ]
    return [*FENCE, sandbox.home, bwrap, *namespaces, *identity, *fate, *mounts, "--chdir", sandbox.cwd, "--", *argv]


def _each(flag: str, paths: Sequence[str]) -> list[str]:
    return [word for path in paths for word in (flag, path, path)]


def _pairs(flag: str, paths: Mapping[str, str]) -> list[str]:
    return [word for outside, inside in paths.items() for word in (flag, outside, inside)]
