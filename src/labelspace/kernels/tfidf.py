"""From the columns that occur in each document to the rows of a matrix: sorted, counted, weighted, of length one."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from labelspace.kernels.tokenize import Ids, Offsets

_FEW = 32  # items up to which the simple sort is the faster one


@njit(cache=True, nogil=True)
def _sort(items: Offsets, room: Offsets, bits: int) -> Offsets:
    """Sort numbers by their upper halves, of so many bits; ``items`` or ``room`` comes back, the other is spoilt."""
    n = items.size
    if n <= _FEW:
        for i in range(1, n):
            item, j = items[i], i
            while j > 0 and items[j - 1] > item:
                items[j] = items[j - 1]
                j -= 1
            items[j] = item
        return items
    most = 8 if n < 512 else 11
    passes = (bits + most - 1) // most
    digit = (bits + passes - 1) // passes
    begins = np.empty((1 << digit) + 1, np.int64)
    low = (1 << digit) - 1
    for shift in range(32, 32 + bits, digit):
        for i in range(begins.size):
            begins[i] = 0
        for i in range(n):
            begins[((items[i] >> shift) & low) + 1] += 1
        for i in range(1 << digit):
            begins[i + 1] += begins[i]
        for i in range(n):
            key = (items[i] >> shift) & low
            room[begins[key]] = items[i]
            begins[key] += 1
        items, room = room, items
    return items


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
    items, room = np.empty(longest, np.int64), np.empty(longest, np.int64)
    out, out_counts = np.empty(columns.size, np.int32), np.empty(columns.size, np.int32)
    out_ends = np.empty(ends.size, np.int64)
    n, begin = 0, 0
    for doc in range(ends.size):
        n_items = 0
        for i in range(begin, ends[doc]):
            if columns[i] >= 0:
                items[n_items] = np.int64(columns[i]) << 32 | (counts[i] if counts.size else 1)
                n_items += 1
        in_order = _sort(items[:n_items], room, bits)
        previous = -1
        for i in range(n_items):
            column, times = in_order[i] >> 32, in_order[i] & 0xFFFFFFFF
            if column == previous:
                out_counts[n - 1] += times
            else:
                out[n], out_counts[n], previous = column, times, column
                n += 1
        begin = ends[doc]
        out_ends[doc] = n
    return out[:n], out_counts[:n], out_ends


@njit(cache=True, nogil=True)
def tfidf_values(
    columns: Ids, counts: Ids, ends: Offsets, idf: npt.NDArray[np.float32], sublinear: bool
) -> npt.NDArray[np.float32]:
    """The value of each column: its count, or 1 + ln of it, times its idf, each document scaled to length one."""
    values = np.empty(columns.size, np.float32)
    logs = np.zeros(64)  # most counts are small, and a logarithm is slow
    for i in range(logs.size):
        logs[i] = math.log(i + 1)
    begin = 0
    for doc in range(ends.size):
        square = 0.0
        for i in range(begin, ends[doc]):
            value = float(counts[i])
            if sublinear:
                value = 1.0 + (logs[counts[i] - 1] if counts[i] <= logs.size else math.log(value))
            value *= idf[columns[i]]
            square += value * value
            values[i] = value
        scale = 1.0 / math.sqrt(square) if square > 0.0 else 0.0
        for i in range(begin, ends[doc]):
            values[i] *= scale
        begin = ends[doc]
    return values
