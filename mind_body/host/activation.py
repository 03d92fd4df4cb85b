"""Door: sockets handed over by systemd, or by `mind up` in the same way (sd_listen_fds(3))."""

import os
from collections.abc import Mapping

FIRST_FD = 3


def listen_fds(environment: Mapping[str, str]) -> dict[str, int]:
    """Name → descriptor of every socket that was passed to exactly this process; empty when started by hand."""
    if environment.get("LISTEN_PID") != str(os.getpid()):
        return {}
    count = int(environment.get("LISTEN_FDS", "0"))
    names = environment.get("LISTEN_FDNAMES", "").split(":") if environment.get("LISTEN_FDNAMES") else []
    for descriptor in range(FIRST_FD, FIRST_FD + count):
        os.set_inheritable(descriptor, False)
    return {(names[i] if i < len(names) else f"unknown-{i}"): FIRST_FD + i for i in range(count)}
