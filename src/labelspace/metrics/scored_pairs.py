"""Predicted pairs of document and label by score: what a threshold on the score keeps.

F1 at the best threshold and the precision-coverage curve are computed from these, at every threshold there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from labelspace.metrics.checks import checked_matrix, labeled_rows
from labelspace.metrics.document_values import DocumentValues
from labelspace.metrics.hits import relevance
from labelspace.types import Bools, Csr, Doubles, Ints, Longs, TopK


@dataclass(frozen=True)
class ScoredPairs:
    """All predicted pairs, the highest score first; a threshold keeps the pairs whose score is at least as high.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.5], [0.2, 0.5]], k=2)
    >>> pairs = ScoredPairs.from_topk(sp.csr_matrix([[1, 0], [0, 1]]), topk)
    >>> pairs.correct.tolist(), pairs.thresholds.round(1).tolist(), pairs.n_kept.tolist()
    ([True, False, True, False], [0.9, 0.5, 0.2], [1, 3, 4])
    """

    scores: Doubles  # (m,), descending
    correct: Bools  # (m,)
    labels: Ints  # (m,)
    documents: Longs  # (m,), row of each pair
    n_true: Longs  # (n,), true labels of each document, predicted or not
    label_counts: Longs  # (n_labels,), true occurrences of each label, predicted or not

    @staticmethod
    def from_topk(Y: Csr, topk: TopK, include_unlabeled: bool = False) -> ScoredPairs:
        """The pairs of all ranks, of the documents that have labels, or of all: then those of the others are wrong."""
        true, relevant = checked_matrix(Y), relevance(Y, topk, topk.k)
        rows = np.ones(len(topk), bool) if include_unlabeled else labeled_rows(true)
        labels, predicted = topk.labels[rows], topk.labels[rows] >= 0
        documents = np.broadcast_to(np.arange(len(labels))[:, None], labels.shape)[predicted]
        scores = topk.scores[rows][predicted].astype(np.float64)
        order = np.argsort(-scores, kind="stable")
        return ScoredPairs(
            scores[order],
            relevant[rows][predicted][order] > 0,
            labels[predicted][order],
            documents[order],
            np.diff(true.indptr)[rows].astype(np.int64),
            np.bincount(true.indices, minlength=true.shape[1]),
        )

    @cached_property
    def n_kept(self) -> Longs:
        """Pairs kept at each threshold that makes a difference, ascending: equal scores are kept together."""
        if not self.scores.size:
            return np.zeros(0, np.int64)
        return np.append(np.flatnonzero(np.diff(self.scores)) + 1, self.scores.size)

    @property
    def thresholds(self) -> Doubles:
        """The thresholds: every score that occurs, descending."""
        return self.scores[self.n_kept - 1]

    @property
    def n_hits(self) -> Longs:
        """Correct pairs among those kept at each threshold."""
        return np.cumsum(self.correct, dtype=np.int64)[self.n_kept - 1]

    def kept(self, threshold: float | None) -> slice:
        """The pairs that a threshold keeps; none without one."""
        return slice(0, 0 if threshold is None else int(np.searchsorted(-self.scores, -threshold, side="right")))

    def micro_f1_values(self, threshold: float | None) -> DocumentValues:
        """What each document adds to micro-F1 at a threshold."""
        kept, n = self.kept(threshold), len(self.n_true)
        hits = np.bincount(self.documents[kept][self.correct[kept]], minlength=n)
        predicted = np.bincount(self.documents[kept], minlength=n)
        return DocumentValues(np.float64(2) * hits, (predicted + self.n_true).astype(np.float64))
