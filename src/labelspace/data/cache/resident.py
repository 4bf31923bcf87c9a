"""Keep the memory of this process below a limit: pages of mapped files are dropped when memory gets near it."""

import mmap
import os
import resource
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Self

STATM = Path("/proc/self/statm")  # pages: size, resident, resident of files
STATUS, MOUNTS = Path("/proc/self/status"), Path("/proc/mounts")
CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
INTERVAL = 0.01  # seconds between two checks: with longer ones memory exceeds the limit, shorter ones take time
NEAR = 0.7  # share of the limit from which pages are dropped: the rest is for what is allocated between two checks
WORTHWHILE = 0.05  # share of the limit: dropping fewer pages of files frees less than reading them again costs


def machine_memory() -> int:
    """Return the bytes of memory of this machine, or of the container that this process is in."""
    limits = [file.read_text().strip() for file in CONTAINER_LIMITS if file.exists()]
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *(int(n) for n in limits if n.isdecimal())])


def peak_memory() -> int:
    """Return the most bytes of memory that this process had so far."""
    if STATUS.exists():  # not what getrusage says: that may be of the program that started this one
        peak = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def is_in_memory(folder: Path) -> bool:
    """Return whether the files of a folder are in memory themselves, as on tmpfs."""
    if not MOUNTS.exists():
        return False
    mounts = (line.split()[1:3] for line in MOUNTS.read_text().splitlines())
    kinds = {Path(place): kind for place, kind in mounts}  # of two mounts at a place, the last counts
    path = folder.resolve()
    return next((kinds[place] for place in (path, *path.parents) if place in kinds), "") in ("tmpfs", "ramfs")


def can_drop_pages() -> bool:
    """Return whether this system tells how much memory is used, and takes back mapped pages: Linux does."""
    return hasattr(mmap, "MADV_DONTNEED") and STATM.exists()


class MemoryLimit:
    """A limit of the memory of this process, near which pages of mapped files should be dropped.

    Memory outside of mapped files, such as Python's objects, cannot be dropped: with more of it the limit is exceeded.
    ``peak`` is the most bytes of it so far.
    """

    def __init__(self, memory: int) -> None:
        self._near = NEAR * memory
        self._worthwhile = WORTHWHILE * memory
        self._statm = -1
        self.peak = 0
        self._of_libraries = 0  # bytes of pages that stay, and that processes share
        if can_drop_pages():
            self._statm = os.open(STATM, os.O_RDONLY)
            weakref.finalize(self, os.close, self._statm)
            self._of_libraries = self._resident()[1]

    def is_near(self) -> bool:
        """Return whether pages of mapped files should be dropped now."""
        if self._statm < 0:
            return False
        resident, of_files = self._resident()
        self.peak = max(self.peak, resident - of_files)
        return resident - self._of_libraries > self._near and of_files - self._of_libraries > self._worthwhile

    def room(self) -> int:
        """Return the bytes that an array in memory may have now, so that no page is dropped for it; 0 if unknown."""
        if self._statm < 0:
            return 0
        resident, of_files = self._resident()
        return max(0, int(self._near) - (resident - of_files))

    def _resident(self) -> tuple[int, int]:
        """Return the bytes of this process in memory: all, and those of mapped files."""
        _, resident, of_files = os.pread(self._statm, 200, 0).split()[:3]
        return int(resident) * mmap.PAGESIZE, int(of_files) * mmap.PAGESIZE


class ResidencyLimiter:
    """A thread that calls ``relieve`` every few milliseconds, for work that does not call it itself."""

    def __init__(self, relieve: Callable[[], None]) -> None:
        self._relieve = relieve
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="labelspace memory limit", daemon=True)

    def __enter__(self) -> Self:
        if can_drop_pages():
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(INTERVAL):
            self._relieve()
