"""Door: the heap of this process (malloc_trim(3))."""

import ctypes


def return_memory() -> None:
    """Give the kernel what was freed: glibc by itself gives only the heap's end, and what is free lies between what is not.

    Takes about a millisecond per 50 MB. Another libc, which has no such call, does it as it does.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
