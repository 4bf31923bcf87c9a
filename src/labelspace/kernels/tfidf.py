"""From the columns that occur in each document to the rows of a matrix: sorted, counted, weighted, normalized."""

import math

import numpy as np
from numba import njit

from labelspace.kernels.tokenize import Ids, Offsets
from labelspace.types import Floats

_INSERTION_SORT_MAX = 32  # items up to which insertion sort is faster


@njit(cache=True, nogil=True)
def _radix_sort(items: Offsets, buffer: Offsets, bits: int) -> Offsets:
    """Sort numbers by their upper halves, of ``bits`` bits; returns ``items`` or ``buffer`` and spoils the other."""
    n = items.size
    if n <= _INSERTION_SORT_MAX:
        for i in range(1, n):
            item, j = items[i], i
            while j > 0 and items[j - 1] > item:
                items[j] = items[j - 1]
                j -= 1
            items[j] = item
        return items
    max_digit_bits = 8 if n < 512 else 11
    passes = (bits + max_digit_bits - 1) // max_digit_bits
    digit_bits = (bits + passes - 1) // passes
    offsets = np.empty((1 << digit_bits) + 1, np.int64)
    mask = (1 << digit_bits) - 1
    for shift in range(32, 32 + bits, digit_bits):
        for i in range(offsets.size):
            offsets[i] = 0
        for i in range(n):
            offsets[((items[i] >> shift) & mask) + 1] += 1
        for i in range(1 << digit_bits):
            offsets[i + 1] += offsets[i]
        for i in range(n):
            key = (items[i] >> shift) & mask
            buffer[offsets[key]] = items[i]
            offsets[key] += 1
        items, buffer = buffer, items
    return items


@njit(cache=True, nogil=True)
def count_rows(columns: Ids, counts: Ids, ends: Offsets, n_columns: int) -> tuple[Ids, Ids, Offsets]:
    """Sort each document's columns and merge equal ones; negative columns are dropped.

    ``counts`` are the occurrences of each column, or empty for once each; ``ends`` the number of columns up to the end
    of each document. Returns columns, counts and ends in the same layout.
    """
    bits = 1
    while (1 << bits) < n_columns:
        bits += 1
    max_items, start = 0, 0
    for doc in range(ends.size):
        max_items, start = max(max_items, ends[doc] - start), ends[doc]
    items, buffer = np.empty(max_items, np.int64), np.empty(max_items, np.int64)
    out, out_counts = np.empty(columns.size, np.int32), np.empty(columns.size, np.int32)
    out_ends = np.empty(ends.size, np.int64)
    size, start = 0, 0
    for doc in range(ends.size):
        n_items = 0
        for i in range(start, ends[doc]):
            if columns[i] >= 0:
                items[n_items] = np.int64(columns[i]) << 32 | (counts[i] if counts.size else 1)
                n_items += 1
        sorted_items = _radix_sort(items[:n_items], buffer, bits)
        previous = -1
        for i in range(n_items):
            column, count = sorted_items[i] >> 32, sorted_items[i] & 0xFFFFFFFF
            if column == previous:
                out_counts[size - 1] += count
            else:
                out[size], out_counts[size], previous = column, count, column
                size += 1
        start = ends[doc]
        out_ends[doc] = size
    return out[:size], out_counts[:size], out_ends


@njit(cache=True, nogil=True)
def tfidf_values(columns: Ids, counts: Ids, ends: Offsets, idf: Floats, sublinear: bool) -> Floats:
    """The value of each column: its count, or 1 + ln(count), times its idf, each document scaled to unit length."""
    values = np.empty(columns.size, np.float32)
    logs = np.zeros(64)  # most counts are small, and a logarithm is slow
    for i in range(logs.size):
        logs[i] = math.log(i + 1)
    start = 0
    for doc in range(ends.size):
        squared_norm = 0.0
        for i in range(start, ends[doc]):
            value = float(counts[i])
            if sublinear:
                value = 1.0 + (logs[counts[i] - 1] if counts[i] <= logs.size else math.log(value))
            value *= idf[columns[i]]
            squared_norm += value * value
            values[i] = value
        scale = 1.0 / math.sqrt(squared_norm) if squared_norm > 0.0 else 0.0
        for i in range(start, ends[doc]):
            values[i] *= scale
        start = ends[doc]
    return values
