"""Make the large arrays of a training: in memory, or, within ``stored_in``, in files that are memory-mapped.

Code that makes an array as large as the documents calls these functions. The values never depend on where the array is
stored. The tasks of ``threads.run_blocks`` have the storage of their caller.
"""

import math
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import IO, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError
from labelspace.kernels.threads import n_threads

Array = npt.NDArray[Any]
Arrays = TypeVar("Arrays", bound=tuple[Array, ...])
SMALL_SHARE = 64  # an array below this share of the memory stays in memory: some dozens of them must fit
TAKEN = 2**20  # rows that are taken at a time: bounds the memory of temporary arrays
SMALL_PART = 2**12  # bytes of a part that is not worth a file: a page
MIN_MOVED = 2**16  # numbers that are moved to the end of a growing array at a time; fewer would move too often


class GrowingArray(Protocol):
    """An array of one dimension whose length is known at the end."""

    def append(self, values: Array) -> None:
        """Add values at the end."""

    def finish(self) -> Array:
        """Return the whole array; nothing can be added afterwards."""


class Storage(Protocol):
    """Files for large arrays."""

    memory: int  # bytes that this process may use

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike, in_order: bool = False) -> Array:
        """Return a writable array of any values; ``in_order`` if it will be read from front to back."""

    def room(self) -> int:
        """Return the bytes that an array in memory may have now."""

    def growing(self, dtype: npt.DTypeLike) -> GrowingArray:
        """Return an array to append to."""

    def open_file(self) -> IO[bytes]:
        """Return a new file that is deleted when it is closed."""

    def refusing_full_disk(self) -> AbstractContextManager[None]:
        """Turn a failed write to a file into an error that names the folder."""

    def relieve(self) -> None:
        """Drop the pages of files from memory if much of it is used."""


_storage: ContextVar[Storage | None] = ContextVar("storage of large arrays", default=None)


@contextmanager
def stored_in(storage: Storage) -> Iterator[None]:
    """Store the large arrays that are made within this context in the files of ``storage``."""
    token = _storage.set(storage)
    try:
        yield
    finally:
        _storage.reset(token)


def memory() -> int | None:
    """Return the bytes that this process may use; None if there is no limit, and all arrays are in memory."""
    storage = _storage.get()
    return None if storage is None else storage.memory


def empty(shape: int | tuple[int, ...], dtype: npt.DTypeLike, in_order: bool = False) -> Array:
    """Return an array of any values, in a file if it is large; ``in_order`` if it will be read from front to back.

    >>> empty((2, 3), np.float32).shape
    (2, 3)
    """
    storage, shape = _storage.get(), (shape,) if isinstance(shape, int) else shape
    if storage is None or math.prod(shape) * np.dtype(dtype).itemsize < storage.memory // SMALL_SHARE:
        return np.empty(shape, dtype)
    return storage.empty(shape, dtype, in_order)


def working(n: int, *dtypes: npt.DTypeLike) -> list[Array]:
    """Return short-lived arrays of n values that are read again and again: in memory if there is room.

    Pages of a file that are read in any order, and dropped each time, take longer to get than their values to use.

    >>> [values.dtype.name for values in working(3, np.float32, np.int32)]
    ['float32', 'int32']
    """
    storage, size = _storage.get(), n * sum(np.dtype(dtype).itemsize for dtype in dtypes)
    in_memory = storage is None or size <= storage.room() // n_threads()  # all threads may need it at once
    return [np.empty(n, dtype) if in_memory else empty(n, dtype) for dtype in dtypes]


def keep(array: Array) -> Array:
    """Return the array, or a copy in a file: for one of many parts that become one large array later."""
    storage = _storage.get()
    if storage is None:
        return array
    if array.nbytes < SMALL_PART:
        return array.copy()  # it may be a view of a larger array
    copy = storage.empty(array.shape, array.dtype)
    copy[...] = array
    storage.relieve()
    return copy


def keep_each(arrays: Arrays) -> Arrays:
    """Call ``keep`` for each array of a named tuple."""
    kept: Arrays = type(arrays)._make(map(keep, arrays))  # type: ignore[attr-defined]
    return kept


def growing(dtype: npt.DTypeLike) -> GrowingArray:
    """Return an array to append to.

    >>> numbers = growing(np.int32)
    >>> numbers.append(np.array([1, 2])), numbers.append(np.array([3]))
    (None, None)
    >>> numbers.finish().tolist()
    [1, 2, 3]
    """
    storage = _storage.get()
    return _Parts(dtype) if storage is None else storage.growing(dtype)


def temporary_file() -> IO[bytes]:
    """Return a new file that is deleted when it is closed."""
    storage = _storage.get()
    return tempfile.TemporaryFile(prefix="labelspace-") if storage is None else storage.open_file()


@contextmanager
def refusing_full_disk() -> Iterator[None]:
    """Turn a failed write to a temporary file into a DataError that names its folder."""
    storage = _storage.get()
    if storage is not None:
        with storage.refusing_full_disk():
            yield
        return
    try:
        yield
    except OSError as error:
        problem = f"writing to {tempfile.gettempdir()} failed ({error.strerror or error})"
        rule = f"the folder for temporary files must have room for the weights of the training, but {problem}"
        raise DataError(f"{rule}; free some space, or name another in TMPDIR") from error


def concatenate(arrays: Iterable[Array]) -> Array:
    """Concatenate arrays, into a file if the result is large.

    >>> concatenate([np.arange(2), np.arange(3)]).tolist()
    [0, 1, 0, 1, 2]
    """
    parts = list(arrays)
    if memory() is None:
        return np.concatenate(parts)
    shape = (sum(len(part) for part in parts), *parts[0].shape[1:])
    out, start = empty(shape, np.result_type(*parts), in_order=True), 0
    for part in parts:
        out[start : start + len(part)] = part
        start += len(part)
        relieve()
    return out


def take(array: Array, rows: Array) -> Array:
    """Return ``array[rows]``, in a file if it is large; that there are such rows is not checked.

    >>> take(np.array([5, 6, 7]), np.array([-1, 0])).tolist()
    [7, 5]
    """
    out = empty((*rows.shape, *array.shape[1:]), array.dtype, in_order=True)
    for part in blocks(len(rows), TAKEN):
        np.take(array, rows[part], axis=0, out=out[part], mode="wrap")  # the mode that checks would make a copy first
    return out


def cast(array: Array, dtype: npt.DTypeLike) -> Array:
    """Return ``array.astype(dtype)``, in a file if it is large; the array itself if it has that type.

    >>> cast(np.array([5, 6], np.int32), np.int64).dtype.name
    'int64'
    """
    if array.dtype == dtype:
        return array
    out = empty(array.shape, dtype, in_order=True)
    for part in blocks(len(array), TAKEN):
        out[part] = array[part]
    return out


class _Parts:
    """A growing array in memory: added parts are moved to its end now and then, so that little is stored twice."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._whole, self._parts, self._n_added = np.empty(0, dtype), list[Array](), 0

    def append(self, values: Array) -> None:
        self._parts.append(values.astype(self._whole.dtype, copy=False))
        self._n_added += len(values)
        if self._n_added > max(MIN_MOVED, len(self._whole) // 8):
            self._move()

    def finish(self) -> Array:
        if len(self._parts) == 1 and not len(self._whole):
            return self._parts.pop()
        self._move()
        return self._whole

    def _move(self) -> None:
        at = len(self._whole)
        self._whole.resize(at + self._n_added, refcheck=False)  # in place, if the system can
        for part in self._parts:
            self._whole[at : at + len(part)] = part
            at += len(part)
        self._parts, self._n_added = [], 0


def relieve() -> None:
    """Drop pages of large arrays if memory gets full: call this while much is read from them or written to them."""
    storage = _storage.get()
    if storage is not None:
        storage.relieve()


def blocks(n: int, size: int) -> Iterator[slice]:
    """Yield 0..n in slices of ``size``, for work whose temporary arrays must stay small; call ``relieve`` after each.

    >>> list(blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
        relieve()
