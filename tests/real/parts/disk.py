"""Door: a disk that can lose power (an ext4 file system in a file, mounted through a loop device), and one that can be
full (a small tmpfs). Both are root's alone.

What a process wrote and did not sync is in the page cache above the loop device; the file below has only what the file system
submitted. So a copy of the file, taken while everything runs, is what a power cut leaves; mounting the copy replays the
file system's own journal, as a booting machine would.
"""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path


class Disk:
    """Mounted at `directory/disk` for its life."""

    def __init__(self, directory: Path, size_mib: int = 48) -> None:
        self._directory = directory
        self._cuts = 0
        self._image = directory / "disk-0.img"
        self.path = directory / "disk"
        self.path.mkdir()
        with self._image.open("wb") as image:
            image.truncate(size_mib * 1024 * 1024)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self._image)], check=True)
        self._mount()

    def keep(self) -> None:
        """What the disk has now is what is left. Nobody may be writing: a copy takes a moment."""
        self._cuts += 1
        shutil.copyfile(self._image, self._directory / f"disk-{self._cuts}.img")

    def return_to_kept(self) -> None:
        """As a machine starts again. Every process that had files open here must be gone."""
        self.close()
        self._image.unlink()
        self._image = self._directory / f"disk-{self._cuts}.img"
        self._mount()

    def close(self) -> None:
        # Lazy: a process that is still ending may hold a file for another moment.
        subprocess.run(["umount", "--lazy", str(self.path)], check=True)

    def _mount(self) -> None:
        # commit=300: the file system must not sync by itself what nobody asked it to (its default is every 5 s).
        subprocess.run(["mount", "-o", "loop,commit=300,noatime", str(self._image), str(self.path)], check=True)


class SmallDisk:
    """A tmpfs with so much room, and a way to take all of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, *files: Path) -> None:
        """No block is left, nor room in the last one of these files."""
        for file in (self._ballast, *files):
            with file.open("ab", buffering=0) as ballast, contextlib.suppress(OSError):
                while True:
                    ballast.write(b"\0" * 4096)

    def free(self) -> None:
        self._ballast.unlink()


@contextlib.contextmanager
def open_small_disk(path: Path, size_kib: int) -> Iterator[SmallDisk]:
    """Mounted at `path` inside the block."""
    path.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", str(path)], check=True)
    try:
        yield SmallDisk(path)
    finally:
        # Lazy: a process that is still ending may hold a file for another moment.
        subprocess.run(["umount", "--lazy", str(path)], check=True)
