"""Rows of one length, whatever the features are."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelspace.types import Csr, Floats


def unit_rows(X: Csr) -> Csr:
    """The rows of X divided by their Euclidean length; an empty row stays empty.

    >>> unit_rows(sp.csr_matrix(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))).toarray().tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    lengths = np.sqrt(np.bincount(rows, weights=np.square(X.data, dtype=np.float64), minlength=X.shape[0]))
    scale: Floats = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0).astype(np.float32)
    return sp.csr_matrix((X.data * scale[rows], X.indices, X.indptr), shape=X.shape)
