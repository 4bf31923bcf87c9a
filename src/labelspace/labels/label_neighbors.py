"""The documents whose labels are most similar to those of each document (Bhatia et al., 2015; Tagami, 2017)."""

import numpy as np

from labelspace.features.normalize import normalize_rows
from labelspace.kernels.knn import nearest_rows
from labelspace.kernels.scratch import zeros
from labelspace.kernels.threads import run_blocks
from labelspace.types import Csr, TopK

ROW_BLOCK = 64  # documents per task


def nearest_by_labels(Y: Csr, n_neighbors: int) -> TopK:
    """The nearest documents of each by the cosine of their label sets; equal ones by their row. Shape (n, n_neighbors).

    Most find themselves. None that shares no label is a neighbor: some rows are padded with -1 / -inf.

    >>> import scipy.sparse as sp
    >>> Y = sp.csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]], np.float32))
    >>> nearest_by_labels(Y, n_neighbors=2).labels.tolist()
    [[0, 1], [1, 0], [2, -1]]
    """
    n = Y.shape[0]
    unit = normalize_rows(Y)
    inverted = unit.tocsc()
    nearest = TopK.empty(n, n_neighbors)

    def search(start: int, stop: int) -> None:
        nearest_rows(
            unit.data, unit.indices, unit.indptr, start, stop, inverted.data, inverted.indices, inverted.indptr,
            nearest.labels[start:stop], nearest.scores[start:stop], zeros("nearest_by_labels", n, np.float32),
        )  # fmt: skip

    run_blocks(search, n, ROW_BLOCK)
    return nearest


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
