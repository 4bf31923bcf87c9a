"""Where the large arrays of a training live: in memory, or, within ``stored_in``, in files that are memory-mapped.

What makes an array as large as the documents asks here for it. The values never depend on where it lives. The tasks of
``threads.run_blocks`` see the storage of their caller.
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
SMALL_SHARE = 64  # an array below this part of the memory stays in it
TAKEN = 2**20  # rows that are taken at a time
SMALL_PART = 2**12  # bytes of a part that is not worth a file
MIN_MOVED = 2**16  # numbers that are moved to the end of a growing array at a time


class GrowingArray(Protocol):
    """An array of one dimension whose length is known at the end."""

    def append(self, values: Array) -> None:
        """Add values at the end."""

    def finish(self) -> Array:
        """The whole; nothing can be added then."""


class Storage(Protocol):
    """Files for large arrays."""

    memory: int  # bytes that this process may use

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike, in_order: bool = False) -> Array:
        """An array of any values, which can be written to; whether it is read in order, or here and there."""

    def room(self) -> int:
        """Bytes that an array in memory may have now."""

    def growing(self, dtype: npt.DTypeLike) -> GrowingArray:
        """An array to append to."""

    def open_file(self) -> IO[bytes]:
        """A new file that is gone when it is closed."""

    def refusing_full_disk(self) -> AbstractContextManager[None]:
        """Where writing to a file fails, an error that names the folder."""

    def relieve(self) -> None:
        """Drop the pages of files from memory where much of it is used."""


_storage: ContextVar[Storage | None] = ContextVar("storage of large arrays", default=None)


@contextmanager
def stored_in(storage: Storage) -> Iterator[None]:
    """Large arrays that are made within live in these files."""
    token = _storage.set(storage)
    try:
        yield
    finally:
        _storage.reset(token)


def memory() -> int | None:
    """The bytes that this process may use; None where nobody said, and all arrays are in memory."""
    storage = _storage.get()
    return None if storage is None else storage.memory


def empty(shape: int | tuple[int, ...], dtype: npt.DTypeLike, in_order: bool = False) -> Array:
    """An array of any values, in a file where it is large; ``in_order`` where it will be read from front to back.

    >>> empty((2, 3), np.float32).shape
    (2, 3)
    """
    storage, shape = _storage.get(), (shape,) if isinstance(shape, int) else shape
    if storage is None or math.prod(shape) * np.dtype(dtype).itemsize < storage.memory // SMALL_SHARE:
        return np.empty(shape, dtype)
    return storage.empty(shape, dtype, in_order)


def working(n: int, *dtypes: npt.DTypeLike) -> list[Array]:
    """Arrays of n values that are soon gone, and read again and again until then: in memory where that has room.

    The page of a file that is read here and there, and dropped each time, takes longer to get than its values to use.

    >>> [values.dtype.name for values in working(3, np.float32, np.int32)]
    ['float32', 'int32']
    """
    storage, size = _storage.get(), n * sum(np.dtype(dtype).itemsize for dtype in dtypes)
    in_memory = storage is None or size <= storage.room() // n_threads()  # which all may ask at the same time
    return [np.empty(n, dtype) if in_memory else empty(n, dtype) for dtype in dtypes]


def keep(array: Array) -> Array:
    """The array, or a copy in a file: for one of the many parts of something large that is put together later."""
    storage = _storage.get()
    if storage is None:
        return array
    if array.nbytes < SMALL_PART:
        return array.copy()  # it may be a view of something larger
    copy = storage.empty(array.shape, array.dtype)
    copy[...] = array
    storage.relieve()
    return copy


def keep_each(arrays: Arrays) -> Arrays:
    """``keep`` for each array of a named tuple."""
    kept: Arrays = type(arrays)._make(map(keep, arrays))  # type: ignore[attr-defined]
    return kept


def growing(dtype: npt.DTypeLike) -> GrowingArray:
    """An array to append to.

    >>> numbers = growing(np.int32)
    >>> numbers.append(np.array([1, 2])), numbers.append(np.array([3]))
    (None, None)
    >>> numbers.finish().tolist()
    [1, 2, 3]
    """
    storage = _storage.get()
    return _Parts(dtype) if storage is None else storage.growing(dtype)


def temporary_file() -> IO[bytes]:
    """A new file that is gone when it is closed."""
    storage = _storage.get()
    return tempfile.TemporaryFile(prefix="labelspace-") if storage is None else storage.open_file()


@contextmanager
def refusing_full_disk() -> Iterator[None]:
    """Where writing to a temporary file fails, an error that names its folder."""
    storage = _storage.get()
    if storage is not None:
        with storage.refusing_full_disk():
            yield
        return
    try:
        yield
    except OSError as error:
        raise DataError(
            f"the folder for temporary files must have room for the weights of the training, but writing to "
            f"{tempfile.gettempdir()} failed ({error.strerror or error}); free some space, or name another in TMPDIR"
        ) from error


def concatenate(arrays: Iterable[Array]) -> Array:
    """``np.concatenate``, into a file where the result is large.

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
    """``array[rows]``, into a file where the result is large; there must be such rows, which is not checked.

    >>> take(np.array([5, 6, 7]), np.array([-1, 0])).tolist()
    [7, 5]
    """
    out = empty((*rows.shape, *array.shape[1:]), array.dtype, in_order=True)
    for part in blocks(len(rows), TAKEN):
        np.take(array, rows[part], axis=0, out=out[part], mode="wrap")  # the mode that checks would make a copy first
    return out


def cast(array: Array, dtype: npt.DTypeLike) -> Array:
    """``array.astype(dtype)``, into a file where the result is large; the array itself where it has that type.

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
    """A growing array in memory: what is added is moved to its end now and then, so that little is there twice."""

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
        self._whole.resize(at + self._n_added, refcheck=False)  # in place, where the system can: nobody else has it
        for part in self._parts:
            self._whole[at : at + len(part)] = part
            at += len(part)
        self._parts, self._n_added = [], 0


def relieve() -> None:
    """Call this while much is read from, or written to, large arrays: their pages leave memory where it gets full."""
    storage = _storage.get()
    if storage is not None:
        storage.relieve()


def blocks(n: int, size: int) -> Iterator[slice]:
    """0..n in slices of so many, for work whose temporary arrays must stay small; memory is relieved between them.

    >>> list(blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
        relieve()
