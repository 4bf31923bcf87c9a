"""Norms of rows, rows of norm 1, and sparse rows of norm 1 side by side."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.csr_arrays import CsrArrays
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
def join_rows(left: CsrArrays, right: CsrArrays, offset: int, left_share: float) -> tuple[Ints, Floats, Longs]:
    """Return the columns, values and ends of the rows of two matrices side by side; all rows have norm 1.

    ``offset`` is added to the columns of ``right``. The left part gets ``left_share`` of the squared norm of a row, or
    all of it where the right part is empty.
    """
    n = len(left.indptr) - 1
    columns = np.empty(len(left.data) + len(right.data), np.int32)
    values = np.empty(len(columns), np.float32)
    ends, at = np.empty(n, np.int64), 0
    for row in range(n):
        n_left, n_right = left.indptr[row + 1] - left.indptr[row], right.indptr[row + 1] - right.indptr[row]
        left_norm = np.float32(np.sqrt(left_share) if n_right > 0 else 1.0)
        right_norm = np.float32(np.sqrt(1.0 - left_share) if n_left > 0 else 1.0)
        for j in range(left.indptr[row], left.indptr[row + 1]):
            columns[at], values[at] = left.indices[j], left_norm * left.data[j]
            at += 1
        for j in range(right.indptr[row], right.indptr[row + 1]):
            columns[at], values[at] = right.indices[j] + offset, right_norm * right.data[j]
            at += 1
        ends[row] = at
    return columns, values, ends
