"""Norms of rows, rows of norm 1, and sparse rows of norm 1 side by side."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.types import Floats, Ints, Longs

MIN_NORM = np.float32(1e-12)  # the norm of a zero vector, which can then be divided by it; far below any real norm


def row_norms(rows: Floats) -> Floats:
    """Return the Euclidean norms of the rows of a dense matrix, at least ``MIN_NORM``.

    >>> row_norms(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)).tolist() == [5.0, float(MIN_NORM)]
    True
    """
    return np.asarray(np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), MIN_NORM))


@kernel()
def normalized_values(data: Floats, indptr: Ints) -> Floats:
    """Return the values of a CSR matrix, each divided by the Euclidean norm of its row; a row of zeros stays zero."""
    out = np.empty(len(data), np.float32)
    for row in range(len(indptr) - 1):
        total = 0.0
        for j in range(indptr[row], indptr[row + 1]):
            total += np.float64(data[j]) * data[j]
        scale = np.float32(1.0 / np.sqrt(total)) if total > 0.0 else np.float32(0.0)
        for j in range(indptr[row], indptr[row + 1]):
            out[j] = data[j] * scale
    return out


@kernel()
def join_rows(
    a: Floats, a_columns: Ints, a_starts: Ints, b: Floats, b_columns: Ints, b_starts: Ints, offset: int, share: float
) -> tuple[Ints, Floats, Longs]:
    """Return the columns, values and ends of the rows of two CSR matrices side by side; all rows have norm 1.

    ``offset`` is added to the columns of the second matrix. The first part gets ``share`` of the squared norm of a row,
    or all of it where the second part is empty. The arrays are separate arguments: numba needs 20 times as long to find
    the type of named tuples, and this is called for every single document.
    """
    n = len(a_starts) - 1
    columns, values = np.empty(len(a) + len(b), np.int32), np.empty(len(a) + len(b), np.float32)
    ends, at = np.empty(n, np.int64), 0
    for row in range(n):
        n_a, n_b = a_starts[row + 1] - a_starts[row], b_starts[row + 1] - b_starts[row]
        a_norm = np.float32(np.sqrt(share) if n_b > 0 else 1.0)
        b_norm = np.float32(np.sqrt(1.0 - share) if n_a > 0 else 1.0)
        for j in range(a_starts[row], a_starts[row + 1]):
            columns[at], values[at] = a_columns[j], a_norm * a[j]
            at += 1
        for j in range(b_starts[row], b_starts[row + 1]):
            columns[at], values[at] = b_columns[j] + offset, b_norm * b[j]
            at += 1
        ends[row] = at
    return columns, values, ends
