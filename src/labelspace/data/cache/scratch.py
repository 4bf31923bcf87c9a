"""Large arrays in files without a name: the disk is free again when the array is gone, or the process dies.

Pages of mapped files are dropped when memory gets near a limit, so that the memory of this process stays below it.
"""

import errno
import math
import mmap
import os
import resource
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError

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


Array = npt.NDArray[Any]
SEGMENT = 2**26  # bytes of the first file that small arrays share
GROWTH = 16  # a new such file has this part of all that is in use: every file costs an open descriptor
ALIGNMENT = 64  # bytes
PIECE = 2**16  # bytes that are written at a time: Linux brings all that was written at once into memory at once


class Scratch:
    """Arrays in files of a folder, as ``kernels.large_arrays`` requests them.

    The maps are shared, never private: their pages can be dropped from memory at any time, and are read again.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     scratch = Scratch(Path(folder), memory=2**30)
    ...     zeros = scratch.empty((2, 3), np.float32)
    ...     zeros[:] = 0
    ...     os.listdir(folder)
    []
    """

    def __init__(self, folder: Path, memory: int) -> None:
        self.folder = folder
        self.memory = memory
        self.limit = MemoryLimit(memory)
        self.n_bytes = self.peak_bytes = 0  # of all files now, and at most
        self._maps: list[weakref.ref[mmap.mmap]] = []
        self._segment: mmap.mmap | None = None  # that small arrays are put into
        self._used = 0  # bytes of it
        self._lock, self._maps_lock = threading.Lock(), threading.Lock()

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike, in_order: bool = False) -> Array:
        """Return an array of any values; ``in_order`` says that it is read from start to end, not at random."""
        kind, n_items = np.dtype(dtype), math.prod(shape)
        size = n_items * kind.itemsize
        if not size:
            return np.empty(shape, kind)
        if size > SEGMENT // 4:
            return np.frombuffer(self._new_map(size, in_order), kind, n_items).reshape(shape)
        with self._lock:
            start = -(-self._used // ALIGNMENT) * ALIGNMENT
            if self._segment is None or start + size > len(self._segment):
                self._segment = self._new_map(max(SEGMENT, self.n_bytes // GROWTH), in_order=True)
                start = 0
            self._used = start + size
            return np.frombuffer(self._segment, kind, n_items, start).reshape(shape)

    def room(self) -> int:
        """Return the bytes that an array in memory may have now."""
        return self.limit.room()

    def growing(self, dtype: npt.DTypeLike) -> "GrowingFile":
        """Return an array to append to."""
        return GrowingFile(self, np.dtype(dtype))

    def open_file(self) -> IO[bytes]:
        """Open a new file without a name."""
        with self.refusing_full_disk():
            return tempfile.TemporaryFile(dir=self.folder, buffering=PIECE)

    def map_file(self, file: IO[bytes], size: int, in_order: bool) -> mmap.mmap:
        """Map the bytes of a file, shared with it; the map is among those whose pages can be dropped.

        A file that is read at random is mapped so that it comes into memory in small pieces: else Linux would add up to
        megabytes for each number that is read.
        """
        mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_WRITE)
        if not in_order and hasattr(mmap, "MADV_RANDOM"):
            mapped.madvise(mmap.MADV_RANDOM)
        with self._maps_lock:
            self._maps.append(weakref.ref(mapped))
        return mapped

    def relieve(self) -> None:
        """Drop the pages of all maps if the memory of this process is near the limit."""
        if self.limit.is_near():
            self.drop_pages()

    def drop_pages(self) -> None:
        """Give the memory of all maps back to the system: their pages are read again when they are used."""
        with self._maps_lock:
            maps = self._maps = [ref for ref in self._maps if ref() is not None]
        for ref in list(maps):
            mapped = ref()
            if mapped is not None:
                mapped.madvise(mmap.MADV_DONTNEED)

    def _new_map(self, size: int, in_order: bool) -> mmap.mmap:
        with self.refusing_full_disk(), self.open_file() as file:
            _reserve(file, size)
            return self.counted(self.map_file(file, size, in_order), size)

    def counted(self, mapped: mmap.mmap, size: int) -> mmap.mmap:
        """Return a map of a file without a name, which counts until it is gone."""
        self.n_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.n_bytes)
        weakref.finalize(mapped, self._free, size)
        return mapped

    def _free(self, size: int) -> None:
        self.n_bytes -= size

    @contextmanager
    def refusing_full_disk(self) -> Iterator[None]:
        """Raise DataError that names the folder if writing fails within."""
        try:
            yield
        except OSError as error:
            rule = "the cache must have room for the arrays of the training"
            problem = f"writing to {self.folder} failed ({error.strerror or error})"
            raise DataError(f"{rule}, but {problem}; free some space, or give another folder") from error


def _reserve(file: IO[bytes], size: int) -> None:
    """Give a file its size and the disk space of it: a map without space would end the process with a bus error."""
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except (AttributeError, OSError) as error:  # not on this system, or not in this file system
        if getattr(error, "errno", None) not in (None, errno.EOPNOTSUPP, errno.EINVAL):
            raise
        file.truncate(size)


def write_pieces(file: IO[bytes], array: Array) -> None:
    """Write the bytes of an array."""
    content = array.reshape(-1).view(np.uint8)
    for start in range(0, len(content), PIECE):
        file.write(content[start : start + PIECE].data)


class GrowingFile:
    """An array of one dimension that is appended to a file."""

    def __init__(self, scratch: Scratch, dtype: np.dtype[Any]) -> None:
        self._scratch = scratch
        self._dtype = dtype
        self._n = 0
        self._file = scratch.open_file()

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):  # closing writes once more to a disk that may be full
            self._file.close()  # after a failed read, ``finish`` is not called

    def append(self, values: Array) -> None:
        """Add values at the end."""
        content = np.ascontiguousarray(values, self._dtype)
        self._n += content.size
        with self._scratch.refusing_full_disk():
            write_pieces(self._file, content)

    def finish(self) -> Array:
        """Return the whole array, mapped; nothing can be added afterwards."""
        with self._scratch.refusing_full_disk(), self._file:
            self._file.flush()
            size = self._n * self._dtype.itemsize
            if not size:
                return np.empty(0, self._dtype)
            mapped = self._scratch.counted(self._scratch.map_file(self._file, size, in_order=False), size)
            return np.frombuffer(mapped, self._dtype)
