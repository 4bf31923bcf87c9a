"""The documents with the most similar labels (Bhatia et al., 2015; Tagami, 2017), and votes of documents for labels."""

import numpy as np

from labelspace.features.normalize import normalize_rows
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.knn import LabelSets, nearest_rows, vote
from labelspace.kernels.threads import search_in_blocks, thread_zeros
from labelspace.types import Csr, Floats, Ints, TopK

ROW_BLOCK = 64  # documents per task


def nearest_by_labels(Y: Csr, n_neighbors: int) -> TopK:
    """Return the nearest documents of each document by the cosine of label sets, ties by row. Shape (n, n_neighbors).

    Most documents find themselves. A document that shares no label is no neighbor, so rows may be padded with
    -1 / -inf.

    >>> import scipy.sparse as sp
    >>> Y = sp.csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]], np.float32))
    >>> nearest_by_labels(Y, n_neighbors=2).labels.tolist()
    [[0, 1], [1, 0], [2, -1]]
    """
    n, unit = Y.shape[0], normalize_rows(Y)
    index = csr_arrays(unit.tocsc())

    def search(rows: slice, labels: Ints, scores: Floats) -> None:
        sums = thread_zeros("nearest_by_labels", n, np.float32)
        nearest_rows(csr_arrays(unit), rows.start, rows.stop, index, labels, scores, sums)

    return search_in_blocks(search, n, n_neighbors, ROW_BLOCK)


def label_neighbors(Y: Csr, n_neighbors: int) -> Csr:
    """Return the nearest documents of each document by the cosine of label sets, as ones (n, n); ties by row.

    A document is no neighbor of itself, nor of a document that it shares no label with: some rows have fewer neighbors.

    >>> import scipy.sparse as sp
    >>> Y = sp.csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]], np.float32))
    >>> label_neighbors(Y, n_neighbors=1).toarray().astype(int).tolist()
    [[0, 0, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    """
    n = Y.shape[0]
    nearest = nearest_by_labels(Y, min(n_neighbors, n) + 1)  # one more, since most find themselves
    nearest.labels[nearest.labels == np.arange(n)[:, None]] = -1
    has_spare = (nearest.labels >= 0).all(axis=1)  # documents that did not find themselves
    nearest.labels[has_spare, -1] = -1
    return nearest.to_csr(n)


def total_dcg(top: TopK, Y: Csr) -> float:
    """Return the discounted cumulative gain of rankings, summed over the documents."""
    hits = np.asarray(Y[np.arange(len(top.labels))[:, None], np.maximum(top.labels, 0)].todense())
    return float((hits * (top.labels >= 0) @ (1 / np.log2(np.arange(2, top.k + 2)))).sum())


def count_votes(neighbors: Ints, weights: Floats, Y: Csr, k: int, extra: TopK | None = None) -> TopK:
    """Return the k labels with most votes of the ``neighbors`` (n, m), rows of Y, each weighted by 0 or more.

    Labels in ``extra`` get its scores as additional votes. A neighbor of -1 does not vote.

    >>> import scipy.sparse as sp
    >>> Y = sp.csr_matrix(np.array([[1, 1, 0], [0, 1, 1]], np.float32))
    >>> count_votes(np.array([[0, 1]], np.int32), np.array([[0.75, 0.25]], np.float32), Y, k=3).labels.tolist()
    [[1, 0, 2]]
    """
    more, given = TopK.empty(len(neighbors), 0) if extra is None else extra, LabelSets(Y.indices, Y.indptr)

    def count(rows: slice, labels: Ints, scores: Floats) -> None:
        vote(neighbors[rows], weights[rows], given, more.labels[rows], more.scores[rows], Y.shape[1], labels, scores)

    return search_in_blocks(count, len(neighbors), k, ROW_BLOCK)
