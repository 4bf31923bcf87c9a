"""Euclidean norms of the rows of a dense matrix."""

import numpy as np

from labelspace.types import Floats

MIN_NORM = np.float32(1e-12)  # counts as the norm of a zero vector, so that one can divide by it


def row_norms(rows: Floats) -> Floats:
    """Euclidean norms of rows, at least ``MIN_NORM``.

    >>> row_norms(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)).tolist() == [5.0, float(MIN_NORM)]
    True
    """
    return np.asarray(np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), MIN_NORM))
