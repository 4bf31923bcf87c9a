"""Mark the predicted labels that are relevant; every ranking metric is computed from these marks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelspace.errors import DataError
from labelspace.metrics.checks import checked_k, checked_matrix, labeled_rows
from labelspace.types import Csr, Doubles, Ints, Longs, TopK


@dataclass(frozen=True)
class RankedHits:
    """The top k labels of the documents that have labels; documents without labels are counted and left out.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> RankedHits.from_topk(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, k=2).relevant.tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """

    true: Csr  # (n, n_labels), 0/1
    labels: Ints  # (n, k)
    relevant: Doubles  # (n, k), 1 where the label at that rank is a true one
    n_without_labels: int

    @staticmethod
    def from_topk(Y: Csr, topk: TopK, k: int) -> RankedHits:
        """Check that Y and ``topk`` match, drop documents without labels, and mark the hits."""
        true, labels = checked_matrix(Y), checked_labels(topk, checked_k(k), Y.shape)
        labeled = labeled_rows(true)
        n_without_labels = int(labeled.size - labeled.sum())
        if n_without_labels:
            true, labels = true[labeled], labels[labeled]
        return RankedHits(true, labels, _mark_hits(true, labels), n_without_labels)

    def __len__(self) -> int:
        return int(self.true.shape[0])

    @property
    def n_true(self) -> Longs:
        """Return the number of true labels of each document. Shape (n,)."""
        return np.asarray(np.diff(self.true.indptr), np.int64)

    def at_k(self, k: int) -> Doubles:
        """Return ``relevant`` up to rank k. Shape (n, k)."""
        return self.relevant[:, :k]


def relevance(Y: Csr, topk: TopK, k: int) -> Doubles:
    """Return 1 for each predicted label that is true, else 0, for documents with and without labels. Shape (n, k).

    >>> import scipy.sparse as sp
    >>> relevance(sp.csr_matrix([[0, 0], [0, 1]]), TopK.from_scores([[0.9, 0.1], [0.2, 0.1]], k=2), k=2).tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """
    true, labels = checked_matrix(Y), checked_labels(topk, checked_k(k), Y.shape)
    return _mark_hits(true, labels)


def checked_labels(topk: TopK, k: int, shape: tuple[int, int]) -> Ints:
    """Return the top k labels if they are valid predictions for a Y of this shape, else raise. Shape (n, k)."""
    n, n_labels = shape
    if len(topk) != n:
        rule = f"Y and the TopK must have one row per document, but have {n} and {len(topk)} rows"
        raise DataError(f"{rule}; predict the documents of Y")
    if topk.k < k:
        rule = f"a metric at k={k} needs k labels per document, but the TopK has {topk.k}"
        raise DataError(f"{rule}; predict with k={k} or more, or pad with topk.padded({k})")
    labels = topk.labels[:, :k]
    outside = labels[(labels < -1) | (labels >= n_labels)]
    if outside.size:
        rule = f"a label must be a column of Y (0 to {n_labels - 1}) or -1 for none, but one is {outside[0]}"
        raise DataError(f"{rule}; give Y the model's number of columns")
    ordered = np.sort(labels, axis=1)
    duplicates = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if duplicates.any():
        row, column = np.argwhere(duplicates)[0]
        rule = f"a label must occur once in a row of a TopK, but label {ordered[row, column]} occurs twice in row {row}"
        raise DataError(f"{rule}; keep the better rank")
    return labels


def _mark_hits(true: Csr, labels: Ints) -> Doubles:
    n_true = np.diff(true.indptr)
    rows = np.repeat(np.arange(len(labels)), n_true)
    # Column-major, because every metric sums over the documents of a rank.
    relevant = np.zeros(labels.shape, order="F")
    for rank in range(labels.shape[1]):
        is_hit = np.repeat(labels[:, rank], n_true) == true.indices
        relevant[rows[is_hit], rank] = 1.0
    return relevant
