"""Norms of rows, and rows of unit length."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.types import Floats, Ints

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
