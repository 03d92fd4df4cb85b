"""Door: dying with one's parent (prctl(2), PR_SET_PDEATHSIG). Apart from `process`: an organ without children loads little."""

import ctypes
import os
import signal

from mind_body.errors import ChildError

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int | None = None) -> None:
    """Called by a child of ours at its start: from now on the kernel kills it (SIGKILL) when its parent ends, however that ends.

    `parent` is who started it, where the child was told: a parent that had ended before this call is found out.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise ChildError(f"prctl(PR_SET_PDEATHSIG): {os.strerror(ctypes.get_errno())}")
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
