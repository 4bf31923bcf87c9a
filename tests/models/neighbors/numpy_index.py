"""The inverted index in NumPy: the reference of the kernels that build it and append to it."""

import numpy as np

from labelspace.kernels.quantize import quantize_columns
from labelspace.models.neighbors.index import COMMON_SHARE, FREQUENT_SHARE, MIN_FREQUENT
from labelspace.models.neighbors.kernels import MAX_GAP, Postings


def to_gaps(rows, values, sizes):
    """Return the gaps and values of postings, and where each feature begins.

    Postings are sorted within each feature, which has ``sizes`` of them.

    >>> gaps, values, starts = to_gaps(np.array([3, 300, 2]), np.array([7, 8, 9], np.int8), np.array([2, 0, 1]))
    >>> gaps.tolist(), values.tolist(), starts.tolist()
    ([3, 255, 42, 2], [7, 0, 8, 9], [0, 3, 3, 4])
    """
    ends = np.append(0, np.cumsum(sizes))
    steps = rows.astype(np.int64)
    steps[1:] -= rows[:-1]
    first = ends[:-1][np.diff(ends) > 0]
    steps[first] = rows[first]
    parts = steps // MAX_GAP + 1  # all but the last are MAX_GAP long, and have the number 0
    gaps, numbers = np.full(parts.sum(), MAX_GAP, np.uint8), np.zeros(parts.sum(), np.int8)
    last = np.cumsum(parts) - 1
    gaps[last], numbers[last] = steps % MAX_GAP, values
    return gaps, numbers, np.append(0, np.cumsum(parts))[ends].astype(np.int32)


def index_of(X):
    """The index of the rows of X."""
    by_feature = X.tocsc()
    numbers, scales = quantize_columns(by_feature.data, by_feature.indptr)
    return index_of_numbers(numbers, by_feature.indices, by_feature.indptr, scales, X.shape[0])


def index_of_numbers(numbers, rows, starts, scales, n):
    """The index of n rows, from their numbers in 8 bits, feature after feature."""
    kept = numbers != 0
    df = np.diff(np.append(0, np.cumsum(kept))[starts])
    feature = np.repeat(np.arange(len(df)), df)
    row, number = rows[kept], numbers[kept]
    is_common = df > COMMON_SHARE * n
    is_frequent = df > max(FREQUENT_SHARE[n > 2**16] * n, MIN_FREQUENT)
    common_column = np.where(is_common, np.cumsum(is_common) - 1, -1).astype(np.int32)
    dense = is_common[feature]
    common = np.zeros((n, int(is_common.sum())), np.int8)
    common[row[dense], common_column[feature[dense]]] = number[dense]
    squares = np.square(scales[feature[dense]] * number[dense])
    norms = np.sqrt(np.bincount(row[dense], squares, n)).astype(np.float32)
    is_rare, is_close = ~is_common & ~is_frequent, ~is_common & is_frequent
    rare, close = is_rare[feature], is_close[feature]
    rare_starts = np.append(0, np.cumsum(df * is_rare)).astype(np.int32)
    gaps, gap_values, gap_starts = to_gaps(row[close], number[close], df * is_close)
    rare_rows = row[rare].astype(np.uint16 if n <= 2**16 else np.int32)
    return Postings(
        scales, number[rare], rare_rows, rare_starts, gap_values, gaps, gap_starts, common_column, common, norms
    )
