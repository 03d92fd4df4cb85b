"""Door: a TCP port of this host that nobody uses."""

import socket  # noqa: TID251 - its home


def free_port() -> int:
    """Free on loopback now. Whoever asked binds it next; between the two another process could, which a second try mends."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
