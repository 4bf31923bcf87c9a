"""``TopK``: the best labels of documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.types.arrays import Bools, Csr, Floats, Ints


@dataclass(frozen=True)
class TopK:
    """The k best labels of each document, best first, padded with -1 / -inf.

    >>> TopK.from_scores(np.array([[0.1, 0.9, 0.5]]), k=2).labels
    array([[1, 2]], dtype=int32)
    """

    labels: Ints  # (n, k) int32
    scores: Floats  # (n, k) float32

    def __post_init__(self) -> None:
        if self.labels.ndim != 2 or self.labels.shape != self.scores.shape:
            rule = "labels and scores of a TopK must be 2-dimensional and of equal shape, but have shapes"
            raise DataError(f"{rule} {self.labels.shape} and {self.scores.shape}; pass one score per label")
        object.__setattr__(self, "labels", np.ascontiguousarray(self.labels, dtype=np.int32))
        object.__setattr__(self, "scores", np.ascontiguousarray(self.scores, dtype=np.float32))

    def __len__(self) -> int:
        return int(self.labels.shape[0])

    @property
    def k(self) -> int:
        """Return the number of labels per document."""
        return int(self.labels.shape[1])

    @staticmethod
    def empty(n: int, k: int) -> TopK:
        """Return a TopK of padding only."""
        labels, scores = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
        labels.fill(-1)  # takes half of the time of np.full, which counts where one document is tagged at a time
        scores.fill(-np.inf)
        return TopK(labels, scores)

    @staticmethod
    def from_scores(scores: npt.ArrayLike, k: int) -> TopK:
        """Take the k best of dense scores (n, n_labels); ties go to the smaller label id, -inf is no label."""
        table = np.asarray(scores, dtype=np.float32)
        order = np.argsort(-table, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(table, order, axis=1)
        return TopK(np.where(best > -np.inf, order, -1).astype(np.int32), best).padded(k)

    @staticmethod
    def from_sparse(scores: Csr, k: int) -> TopK:
        """Take the k largest values above 0 of each row of a sparse score table (n, n_labels).

        >>> table = sp.csr_matrix(np.array([[0.0, 0.2, 0.7], [0.5, 0.0, 0.0]], np.float32))
        >>> TopK.from_sparse(table, k=2).labels.tolist()
        [[2, 1], [0, -1]]
        """
        rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
        order = np.lexsort((scores.indices, -scores.data, rows))
        rank = np.arange(len(order)) - scores.indptr[rows]  # order has the rows one after the other
        kept = (rank < k) & (scores.data[order] > 0)
        top = TopK.empty(scores.shape[0], k)
        top.labels[rows[kept], rank[kept]] = scores.indices[order[kept]]
        top.scores[rows[kept], rank[kept]] = scores.data[order[kept]]
        return top

    def padded(self, k: int) -> TopK:
        """Return exactly k labels per document: truncated, or padded with -1 / -inf."""
        if self.k == k:
            return self
        if self.k > k:
            return TopK(self.labels[:, :k], self.scores[:, :k])
        out = TopK.empty(len(self), k)
        out.labels[:, : self.k] = self.labels
        out.scores[:, : self.k] = self.scores
        return out

    def at_least(self, score: float) -> TopK:
        """Drop the labels of a lower score.

        >>> TopK.from_scores([[0.9, 0.1]], k=2).at_least(0.5).labels.tolist()
        [[0, -1]]
        """
        low = self.scores < score
        return TopK(np.where(low, -1, self.labels), np.where(low, -np.inf, self.scores))

    def among(self, allowed: Bools, k: int) -> TopK:
        """Return the first k labels of each document that are allowed (n_labels,).

        >>> TopK.from_scores([[0.9, 0.1, 0.5]], k=3).among(np.array([False, True, True]), k=3).labels.tolist()
        [[2, 1, -1]]
        """
        return self.where(allowed[self.labels], k)

    def where(self, kept: Bools, k: int) -> TopK:
        """Return the first k labels of each document that are marked (n, k)."""
        kept = kept & (self.labels >= 0)
        order = np.argsort(~kept, axis=1, kind="stable")[:, :k]
        labels, scores = np.where(kept, self.labels, -1), np.where(kept, self.scores, -np.inf)
        return TopK(np.take_along_axis(labels, order, 1), np.take_along_axis(scores, order, 1)).padded(k)

    def best_of_both(self, other: TopK) -> TopK:
        """Return the best labels of this list and another one, as many as this one has places; it wins ties.

        >>> one, other = TopK.from_scores([[0.5, -np.inf]], k=2), TopK.from_scores([[-np.inf, 0.1]], k=2)
        >>> one.best_of_both(other).labels.tolist()
        [[0, 1]]
        """
        labels, scores = np.concatenate([self.labels, other.labels], 1), np.concatenate([self.scores, other.scores], 1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, : self.k]
        return TopK(np.take_along_axis(labels, order, 1), np.take_along_axis(scores, order, 1))

    def to_csr(self, n_labels: int, with_scores: bool = False) -> Csr:
        """Return the labels as a 0/1 matrix (n, n_labels), or with their scores in place of ones.

        >>> TopK.from_scores([[0.125, 0.75, 0.25]], k=2).to_csr(3, with_scores=True).toarray().tolist()
        [[0.0, 0.75, 0.25]]
        """
        is_label = self.labels >= 0
        indptr = np.concatenate([[0], np.cumsum(is_label.sum(axis=1))])
        values = self.scores[is_label] if with_scores else np.ones(int(indptr[-1]), np.float32)
        matrix = sp.csr_matrix((values, self.labels[is_label], indptr), shape=(len(self), n_labels))
        matrix.sort_indices()
        return matrix
