"""Tables in whole numbers of few bits, one scale a row: a quarter of the memory, and products that know no rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.types import Floats

Bytes = npt.NDArray[np.int8]
Words = npt.NDArray[np.int16]

LARGEST_BYTE = 127  # of an int8 in size
LARGEST_WORD = 2**15 - 1
ROW_BLOCK = 4096  # rows at a time: no copy of the whole table in float32


def quantize_int8(table: Floats) -> tuple[Bytes, Floats]:
    """The rows of a table as int8 and a scale each: at most half a scale from where they were.

    >>> quantize_int8(np.array([[0.5, -1.0]], np.float32))[0].tolist()
    [[64, -127]]
    """
    return _rounded(table, LARGEST_BYTE, np.int8)


def quantize_int16(table: Floats) -> tuple[Words, Floats]:
    """The same in int16, and so small that a row's product with a row of bytes fits into 32 bits."""
    largest = min(LARGEST_WORD, (2**31 - 1) // (LARGEST_BYTE * max(table.shape[1], 1)))
    return _rounded(table, largest, np.int16)


def _rounded(table: Floats, largest: int, dtype: type[np.signedinteger[Any]]) -> tuple[npt.NDArray[Any], Floats]:
    out, scales = np.empty(table.shape, dtype), np.empty(len(table), np.float32)
    for start in range(0, len(table), ROW_BLOCK):
        rows = table[start : start + ROW_BLOCK]
        size = np.maximum(rows.max(axis=1, initial=0), -rows.min(axis=1, initial=0))
        scale = np.maximum(size, np.float32(1e-30)) / np.float32(largest)
        steps = rows / scale[:, None]
        out[start : start + ROW_BLOCK] = np.rint(steps, out=steps)
        scales[start : start + ROW_BLOCK] = scale
    return out, scales
