"""Scale rows to norm 1, for features of any kind."""

from copy import copy

import numpy as np
import scipy.sparse as sp

from labelspace.kernels import large_arrays
from labelspace.kernels.normalize import normalized_values
from labelspace.types import Csr, Floats

ROW_BLOCK = 2**14  # rows that are scaled at a time: bounds the memory of temporary arrays


def normalize_rows(X: Csr) -> Csr:
    """Divide the rows of X by their Euclidean norm; an empty row stays empty, and unit rows are returned as they are.

    >>> normalize_rows(sp.csr_matrix(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))).toarray().tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    if has_unit_rows(X):
        return X
    values = normalized_values(X.data, X.indptr) if X.shape[0] <= ROW_BLOCK else _normalized_in_blocks(X)
    if X.indices.dtype != np.int32:
        return sp.csr_matrix((values, X.indices, X.indptr), shape=X.shape)
    scaled = copy(X)  # SciPy's constructor takes ten times as long
    scaled.data = values
    return scaled


def _normalized_in_blocks(X: Csr) -> Floats:
    values = large_arrays.empty(len(X.data), np.float32)
    for rows in large_arrays.blocks(X.shape[0], ROW_BLOCK):
        ends = X.indptr[rows.start : rows.stop + 1]
        own = slice(ends[0], ends[-1])
        values[own] = normalized_values(X.data[own], ends - ends[0])
    return values


def mark_unit_rows(X: Csr) -> Csr:
    """Mark a matrix whose rows have norm 1 or are empty, as this package's features make them."""
    X.has_unit_rows = True
    return X


def has_unit_rows(X: Csr) -> bool:
    """Return whether ``mark_unit_rows`` marked the matrix."""
    return getattr(X, "has_unit_rows", False)
