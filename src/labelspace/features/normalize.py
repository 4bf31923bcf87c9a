"""Rows of norm 1, whatever the features are."""

from copy import copy

import numpy as np
import scipy.sparse as sp

from labelspace.kernels import large_arrays
from labelspace.kernels.normalize import normalized_values
from labelspace.types import Csr, Floats

ROW_BLOCK = 2**14  # rows that are scaled at a time


def normalize_rows(X: Csr) -> Csr:
    """The rows of X divided by their Euclidean norm; an empty row stays empty, and a matrix of unit rows as it is.

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
    """Note on a matrix that its rows have norm 1, or are empty: what our own features make."""
    X.has_unit_rows = True
    return X


def has_unit_rows(X: Csr) -> bool:
    """Whether it was noted."""
    return getattr(X, "has_unit_rows", False)
