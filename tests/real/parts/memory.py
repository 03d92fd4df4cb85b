"""Door: what a living process has in its memory, page by page, for who looks for a secret there."""

import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

PAGE = 4096
ENTRY = 8
"""Bytes of a page's entry in /proc/PID/pagemap; its two highest bits say that the page is there or swapped out."""
AT_ONCE = 1 << 17
"""Entries read at once."""
OVERLAP = 256
"""A needle may lie across two pieces."""


def read_memory(pid: int) -> Iterator[bytes]:
    """Everything that is resident and readable; nothing of a process that has ended."""
    proc = Path(f"/proc/{pid}")
    try:
        with (proc / "mem").open("rb", buffering=0) as memory, (proc / "pagemap").open("rb", buffering=0) as pagemap:
            for at, end in _find_regions((proc / "maps").read_text()):
                for first, last in _find_resident(pagemap, at, end):
                    yield _read(memory, first, min(last + OVERLAP, end))
    except (FileNotFoundError, ProcessLookupError):
        return


def _find_regions(maps: str) -> Iterator[tuple[int, int]]:
    for line in maps.splitlines():
        found = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
        if found and "[v" not in line:  # the kernel's own pages
            yield int(found[1], 16), int(found[2], 16)


def _find_resident(pagemap: BinaryIO, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Runs of pages that are there."""
    while at < end:
        pagemap.seek(at // PAGE * ENTRY)
        raw = pagemap.read(min(AT_ONCE, (end - at) // PAGE) * ENTRY)
        if not raw:
            return
        start = None
        entries = array("Q", raw) if raw.strip(b"\0") else array("Q")
        for number, entry in enumerate(entries):
            there = entry >> 62
            if there and start is None:
                start = at + number * PAGE
            elif not there and start is not None:
                yield start, at + number * PAGE
                start = None
        at += len(raw) // ENTRY * PAGE
        if start is not None:
            yield start, at


def _read(memory: BinaryIO, at: int, end: int) -> bytes:
    try:
        memory.seek(at)
        return memory.read(end - at)
    except (OSError, OverflowError):  # a page that cannot be read after all
        return b""
