"""Share data between tasks: each machine stores it once, and tasks read it there without a copy.

Ray returns read-only arrays. Kernels are compiled for writable arrays, and would be compiled a second time for
read-only ones; so tasks see the same bytes as writable arrays. A task must not write to shared data.
"""

from __future__ import annotations

import ctypes
import pickle  # nosec B403 - between processes of one run, never from a file
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


class Packed(NamedTuple):
    """A value in pieces: its structure, and the bytes of its arrays."""

    structure: bytes
    arrays: list[Bytes]


def pack(value: Any) -> Packed:  # noqa: ANN401 - any value that can be pickled
    """Take a value apart into its structure and its arrays, which are not copied.

    >>> import scipy.sparse as sp
    >>> unpack(pack(sp.csr_matrix([[0.0, 2.0]]))).toarray().tolist()
    [[0.0, 2.0]]
    """
    buffers: list[pickle.PickleBuffer] = []
    structure = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return Packed(structure, [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers])


def unpack(packed: Packed, copy: bool = False) -> Any:  # noqa: ANN401 - what was packed
    """Return the value; without ``copy`` its arrays are those of ``packed``, which must live as long as the value."""
    buffers = [array.copy() for array in packed.arrays] if copy else map(_writable, packed.arrays)
    return pickle.loads(packed.structure, buffers=buffers)  # nosec B301


def _writable(array: Bytes) -> Bytes:
    """Return a writable array of the same bytes."""
    if array.flags.writeable or array.size == 0:
        return array
    writable: Bytes = np.ctypeslib.as_array((ctypes.c_uint8 * array.size).from_address(array.ctypes.data))
    return writable


class SharedValues:
    """The shared value that a process has unpacked last, kept because many tasks use the same."""

    def __init__(self) -> None:
        self._last: tuple[str, Packed, Any] | None = None

    def get(self, key: str, packed: Packed) -> Any:  # noqa: ANN401 - what was packed
        """Return the value of a key."""
        if self._last is None or self._last[0] != key:
            self._last = None  # freed before the next value is unpacked: both may not fit
            self._last = key, packed, unpack(packed)
        return self._last[2]
