"""From the columns that occur in each document to the rows of a matrix: sorted, counted, weighted, of length one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from labelspace.kernels.words import Ids, Offsets

_DIGIT, _FEW = 8, 32


@njit(cache=True, nogil=True)
def _sort(items: Offsets, other: Offsets, n: int, bits: int) -> None:
    """Sort the first n numbers by their bits 32 .. 32 + ``bits``; ``other`` is room for as many."""
    if n <= _FEW:
        for i in range(1, n):
            item, j = items[i], i
            while j > 0 and items[j - 1] > item:
                items[j] = items[j - 1]
                j -= 1
            items[j] = item
        return
    begins = np.empty((1 << _DIGIT) + 1, np.int64)
    for shift in range(32, 32 + bits, _DIGIT):
        begins[:] = 0
        for i in range(n):
            begins[((items[i] >> shift) & 0xFF) + 1] += 1
        for digit in range(1 << _DIGIT):
            begins[digit + 1] += begins[digit]
        for i in range(n):
            digit = (items[i] >> shift) & 0xFF
            other[begins[digit]] = items[i]
            begins[digit] += 1
        items[:n] = other[:n]


@njit(cache=True, nogil=True)
def count_rows(columns: Ids, counts: Ids, ends: Offsets, n_columns: int) -> tuple[Ids, Ids, Offsets]:
    """Sort each document's columns and merge equal ones; negative columns are dropped.

    Args:
        columns: columns of all documents, one after the other.
        counts: how often each occurs there; may be empty, for once each.
        ends: number of columns up to the end of each document.
        n_columns: one more than the largest column.

    Returns:
        Columns, counts and ends, in the same layout.
    """
    bits = 1
    while (1 << bits) < n_columns:
        bits += 1
    longest, begin = 0, 0
    for doc in range(ends.size):
        longest, begin = max(longest, ends[doc] - begin), ends[doc]
    items, other = np.empty(longest, np.int64), np.empty(longest, np.int64)
    out, out_counts = np.empty(columns.size, np.int32), np.empty(columns.size, np.int32)
    out_ends = np.empty(ends.size, np.int64)
    n, begin = 0, 0
    for doc in range(ends.size):
        n_items = 0
        for i in range(begin, ends[doc]):
            if columns[i] >= 0:
                items[n_items] = np.int64(columns[i]) << 32 | (counts[i] if counts.size else 1)
                n_items += 1
        _sort(items, other, n_items, bits)
        previous = -1
        for i in range(n_items):
            column, times = items[i] >> 32, items[i] & 0xFFFFFFFF
            if column == previous:
                out_counts[n - 1] += times
            else:
                out[n], out_counts[n], previous = column, times, column
                n += 1
        begin = ends[doc]
        out_ends[doc] = n
    return out[:n], out_counts[:n], out_ends


@njit(cache=True, nogil=True)
def weigh_rows(
    columns: Ids, counts: Ids, ends: Offsets, idf: npt.NDArray[np.float32], sublinear: bool
) -> npt.NDArray[np.float32]:
    """The value of each column: its count, or 1 + ln of it, times its idf, each document scaled to length one."""
    values = np.empty(columns.size, np.float32)
    begin = 0
    for doc in range(ends.size):
        square = 0.0
        for i in range(begin, ends[doc]):
            value = (1.0 + np.log(counts[i]) if sublinear else np.float64(counts[i])) * idf[columns[i]]
            square += value * value
            values[i] = value
        scale = 1.0 / np.sqrt(square) if square > 0.0 else 0.0
        for i in range(begin, ends[doc]):
            values[i] *= scale
        begin = ends[doc]
    return values
