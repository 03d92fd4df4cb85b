"""Door: what the kernel lets this process have (setrlimit(2))."""

import resource


def raise_descriptor_limit() -> int:
    """Raise the soft limit on open descriptors to the hard one; how many that is. A Mind takes three for its file, unless it rests,
    and a socket.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
