"""Drop the weakest features of rows: they add little to the similarity of two rows, but most of its cost."""

from copy import copy

import numpy as np

from labelspace.kernels.normalize import normalized_values
from labelspace.kernels.threads import run_blocks
from labelspace.models.neighbors.kernels import strong_values
from labelspace.types import Bools, Csr

ROW_BLOCK = 1024  # rows per task


def strong_entries(X: Csr, share: float, at_least: int) -> Bools:
    """Return which values of X to keep: the values left out have at most ``share`` of the sum of squares of their row.

    The weakest are left out first, and values of the same size together. At least ``at_least`` are kept in every row.

    >>> import scipy.sparse as sp
    >>> X = sp.csr_matrix(np.array([[0.1, 1.0, -0.3], [1.0, 1.0, 1.0]]))
    >>> strong_entries(X, share=0.05, at_least=1).tolist()
    [False, True, True, True, True, True]
    """
    kept = np.ones(X.nnz, bool)
    if not share:
        return kept

    def mark(start: int, stop: int) -> None:
        strong_values(X.data, X.indptr, start, stop, share, at_least, kept)

    run_blocks(mark, X.shape[0], ROW_BLOCK)
    return kept


def keep_entries(X: Csr, kept: Bools) -> Csr:
    """Return X, whose rows have norm 1, with the ``kept`` values only, and rows of norm 1 again.

    >>> import scipy.sparse as sp
    >>> X = sp.csr_matrix(np.array([[0.6, 0.8], [0.8, 0.6]], np.float32))
    >>> keep_entries(X, np.array([False, True, True, True])).toarray().tolist()
    [[0.0, 1.0], [0.800000011920929, 0.6000000238418579]]
    """
    if kept.all():
        return X
    indptr = np.append(0, np.cumsum(kept))[X.indptr].astype(X.indptr.dtype)
    sizes, values = np.diff(indptr), X.data[kept]
    # A row that lost nothing stays as it is, bit for bit: it must not depend on the other rows.
    changed = np.repeat(sizes != np.diff(X.indptr), sizes)
    rows = copy(X)  # SciPy's constructor takes ten times as long
    rows.data = np.where(changed, normalized_values(values, indptr), values)
    rows.indices, rows.indptr = X.indices[kept], indptr
    return rows
