"""A ranking laid against the true labels: which places are right. Every ranking metric is read off this one table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError
from labelspace.metrics.inputs import checked_k, checked_matrix, labeled_rows
from labelspace.types import Csr, Ints, Longs, TopK

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RankedHits:
    """The first k places of the documents that have labels; those without are counted and left out.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.1, 0.5], [0.2, 0.1, 0.7]], k=2)
    >>> RankedHits.of(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), topk, k=2).hits.tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """

    true: Csr  # (n, n_labels), 0/1
    labels: Ints  # (n, k)
    hits: Doubles  # (n, k), 1 where the label of the place is right
    n_without_labels: int

    @staticmethod
    def of(Y: Csr, topk: TopK, k: int) -> RankedHits:
        """Check that the two fit, drop the documents without labels, and mark the right places."""
        true, labels = checked_matrix(Y), checked_places(topk, checked_k(k), Y.shape)
        labeled = labeled_rows(true)
        n_without_labels = int(labeled.size - labeled.sum())
        if n_without_labels:
            true, labels = true[labeled], labels[labeled]
        return RankedHits(true, labels, _mark_hits(true, labels), n_without_labels)

    def __len__(self) -> int:
        return int(self.true.shape[0])

    @property
    def n_true(self) -> Longs:
        """Number of true labels of each document. Shape (n,)."""
        return np.asarray(np.diff(self.true.indptr), np.int64)

    def cut(self, k: int) -> Doubles:
        """The hits among the first k places. Shape (n, k)."""
        return self.hits[:, :k]


def checked_places(topk: TopK, k: int, shape: tuple[int, int]) -> Ints:
    """The labels of the first k places, if they can be predictions for a Y of this shape. Shape (n, k)."""
    n, n_labels = shape
    if len(topk) != n:
        raise DataError(
            f"Y and the TopK must have one row a document, but have {n} and {len(topk)} rows; predict those of Y"
        )
    if topk.k < k:
        raise DataError(
            f"a metric at k={k} needs k places a document, but the TopK has {topk.k}; "
            f"predict with k={k} or more, or pad with topk.padded({k})"
        )
    labels = topk.labels[:, :k]
    outside = labels[(labels < -1) | (labels >= n_labels)]
    if outside.size:
        raise DataError(
            f"a label must be a column of Y (0 to {n_labels - 1}) or -1 for none, but one is {outside[0]}; "
            "give Y the model's number of columns"
        )
    _refuse_twins(labels)
    return labels


def _refuse_twins(labels: Ints) -> None:
    ordered = np.sort(labels, axis=1)
    twins = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twins.any():
        row, place = np.argwhere(twins)[0]
        raise DataError(
            f"a label must stand once in a row of a TopK, but label {ordered[row, place]} stands twice in row {row}; "
            "keep the better place of the two"
        )


def _mark_hits(true: Csr, labels: Ints) -> Doubles:
    n_true = np.diff(true.indptr)
    rows = np.repeat(np.arange(len(labels)), n_true)
    # Column-major, because every metric adds up whole places.
    hits = np.zeros(labels.shape, order="F")
    for place in range(labels.shape[1]):
        right = np.repeat(labels[:, place], n_true) == true.indices
        hits[rows[right], place] = 1.0
    return hits
