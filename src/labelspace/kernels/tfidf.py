"""From the columns that occur in each document to the rows of a matrix: sorted, counted, weighted, normalized."""

import math

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.tokenize import Ids, Offsets
from labelspace.kernels.topk import radix_sort
from labelspace.types import Floats


@kernel()
def count_rows(columns: Ids, counts: Ids, ends: Offsets, n_columns: int) -> tuple[Ids, Ids, Offsets]:
    """Sort each document's columns and merge equal ones; negative columns are dropped.

    ``counts`` are the occurrences of each column, or empty for once each; ``ends`` the number of columns up to the end
    of each document. Returns columns, counts and ends in the same layout.
    """
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
        sorted_items = radix_sort(items[:n_items], buffer, n_columns)
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


@kernel()
def tfidf_values(columns: Ids, counts: Ids, ends: Offsets, idf: Floats, sublinear: bool) -> Floats:
    """The value of each column: its count, or 1 + ln(count), times its idf, each document scaled to unit length."""
    values = np.empty(columns.size, np.float32)
    logs = np.empty(64, np.float64)  # most counts are small, and a logarithm is slow
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
