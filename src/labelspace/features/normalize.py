"""Rows of norm 1, whatever the features are."""

import scipy.sparse as sp

from labelspace.kernels.normalize import normalized_values
from labelspace.types import Csr


def normalize_rows(X: Csr) -> Csr:
    """The rows of X divided by their Euclidean norm; an empty row stays empty.

    >>> import numpy as np
    >>> normalize_rows(sp.csr_matrix(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))).toarray().tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    return sp.csr_matrix((normalized_values(X.data, X.indptr), X.indices, X.indptr), shape=X.shape)
