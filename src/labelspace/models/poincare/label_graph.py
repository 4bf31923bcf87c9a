"""The documents whose labels are most similar to those of each document (AnnexML: Tagami, 2017)."""

import numpy as np

from labelspace.labels.label_neighbors import nearest_by_labels
from labelspace.types import Csr


def label_neighbors(Y: Csr, n_neighbors: int) -> Csr:
    """The nearest documents of each by the cosine of their label sets, as ones (n, n); equal ones by their row.

    A document is no neighbor of itself, and none that shares no label is one: some rows have fewer neighbors.

    >>> import scipy.sparse as sp
    >>> Y = sp.csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]], np.float32))
    >>> label_neighbors(Y, n_neighbors=1).toarray().astype(int).tolist()
    [[0, 0, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    """
    n = Y.shape[0]
    nearest = nearest_by_labels(Y, min(n_neighbors, n) + 1)  # one more: most find themselves
    nearest.labels[nearest.labels == np.arange(n)[:, None]] = -1
    has_spare = (nearest.labels >= 0).all(axis=1)  # it was not among the first
    nearest.labels[has_spare, -1] = -1
    return nearest.to_csr(n)
