"""Predicted pairs of document and label by score, and what a threshold on the score keeps.

F1 at the best threshold and the precision-coverage curve are computed at every threshold there is. The best threshold
is chosen on the same documents that F1 is measured on: no threshold does better there, so the value is an upper bound
of what a threshold chosen on other documents reaches. If scores are probabilities, the threshold with the largest
expected F1 needs no labels at all, and its F1 is an honest figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from labelspace.metrics.evaluation import DocumentValues
from labelspace.metrics.f1 import LabelCounts
from labelspace.metrics.hits import checked_matrix, labeled_rows, relevance
from labelspace.types import Bools, Csr, Doubles, Ints, Longs, TopK

N_POINTS = 100  # of a curve that is drawn


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
        """Return the pairs of all ranks; documents without labels, all of whose pairs are wrong, only on request."""
        true, relevant = checked_matrix(Y), relevance(Y, topk, topk.k)
        rows = np.ones(len(topk), bool) if include_unlabeled else labeled_rows(true)
        labels = topk.labels[rows]
        predicted = labels >= 0
        documents = np.broadcast_to(np.arange(len(labels))[:, None], labels.shape)[predicted]
        scores = topk.scores[rows][predicted].astype(np.float64)
        order = np.argsort(-scores, kind="stable")
        correct, labels = relevant[rows][predicted] > 0, labels[predicted]
        n_true = np.diff(true.indptr)[rows].astype(np.int64)
        counts = np.bincount(true.indices, minlength=true.shape[1])
        return ScoredPairs(scores[order], correct[order], labels[order], documents[order], n_true, counts)

    @cached_property
    def n_kept(self) -> Longs:
        """Count the pairs kept at each threshold that makes a difference, ascending; equal scores are kept together."""
        if not self.scores.size:
            return np.zeros(0, np.int64)
        return np.append(np.flatnonzero(np.diff(self.scores)) + 1, self.scores.size)

    @property
    def thresholds(self) -> Doubles:
        """Return every score that occurs, descending."""
        return self.scores[self.n_kept - 1]

    @property
    def n_hits(self) -> Longs:
        """Count the correct pairs among the pairs kept at each threshold."""
        return np.cumsum(self.correct, dtype=np.int64)[self.n_kept - 1]

    def kept(self, threshold: float | None) -> slice:
        """Return the pairs that a threshold keeps; no pairs without a threshold."""
        return slice(0, 0 if threshold is None else int(np.searchsorted(-self.scores, -threshold, side="right")))

    def micro_f1_values(self, threshold: float | None) -> DocumentValues:
        """Return what each document adds to micro-F1 at a threshold."""
        kept, n = self.kept(threshold), len(self.n_true)
        hits = np.bincount(self.documents[kept][self.correct[kept]], minlength=n)
        predicted = np.bincount(self.documents[kept], minlength=n)
        return DocumentValues(np.float64(2) * hits, (predicted + self.n_true).astype(np.float64))


class AtThreshold(NamedTuple):
    """A metric and the threshold it is reached at; None if nothing is predicted."""

    value: float
    threshold: float | None


def best_micro_f1(pairs: ScoredPairs) -> AtThreshold:
    """Return the largest micro-F1 of all thresholds, and the highest threshold that reaches it.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.75, 0.5], [0.25, 0.5]], k=2)
    >>> best_micro_f1(ScoredPairs.from_topk(sp.csr_matrix([[1, 0], [0, 1]]), topk))
    AtThreshold(value=0.8, threshold=0.5)
    """
    return _best(2 * pairs.n_hits / (pairs.n_kept + pairs.n_true.sum()), pairs)


def best_macro_f1(pairs: ScoredPairs) -> AtThreshold:
    """Return the largest macro-F1 of all thresholds, and the highest threshold that reaches it."""
    return _best(macro_f1_by_threshold(pairs), pairs)


def macro_f1_by_threshold(pairs: ScoredPairs) -> Doubles:
    """Compute macro-F1 at each threshold, over the labels that are true or kept there.

    A pair that is kept changes only the F1 of its label: the sum over the labels is the sum of these changes.
    """
    ranks = ranks_by_label(pairs)
    true = pairs.label_counts[ranks.labels]
    is_first = ranks.n_kept == 1
    f1 = 2 * ranks.n_hits / (ranks.n_kept + true)
    changes = np.empty((2, len(ranks.labels)))  # of the sum of F1, and of the number of labels
    changes[0, ranks.order] = np.where(is_first, f1, np.diff(f1, prepend=0.0))
    changes[1, ranks.order] = is_first & (true == 0)
    total, n_labels = np.cumsum(changes, axis=1)[:, pairs.n_kept - 1]
    return np.asarray(total / (n_labels + np.count_nonzero(pairs.label_counts)))


class LabelRanks(NamedTuple):
    """The pairs by label, and by falling score within a label, with what is kept down to each pair. Shape (m,)."""

    order: Longs  # of these pairs among all pairs
    labels: Ints
    n_kept: Longs  # pairs of the label
    n_hits: Longs  # correct ones among these


def ranks_by_label(pairs: ScoredPairs) -> LabelRanks:
    """Rank the pairs of each label by score.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.5], [0.2, 0.5]], k=2)
    >>> ranks = ranks_by_label(ScoredPairs.from_topk(sp.csr_matrix([[1, 0], [0, 1]]), topk))
    >>> ranks.labels.tolist(), ranks.n_kept.tolist(), ranks.n_hits.tolist()
    ([0, 0, 1, 1], [1, 2, 1, 2], [1, 1, 0, 1])
    """
    order = np.argsort(pairs.labels, kind="stable")
    labels, correct = pairs.labels[order], pairs.correct[order]
    at = np.arange(len(labels))
    start = np.maximum.accumulate(np.where(np.diff(labels, prepend=-1) != 0, at, 0))
    every_hit = np.cumsum(correct, dtype=np.int64)
    return LabelRanks(order, labels, at - start + 1, every_hit - (every_hit - correct)[start])


def expected_threshold(pairs: ScoredPairs) -> float | None:
    """Return the threshold with the largest expected micro-F1 if scores are probabilities; true labels are not used.

    Expected hits are the sum of the kept probabilities, expected true labels the sum of all probabilities.
    """
    expected = np.cumsum(pairs.scores)
    return _best(2 * expected[pairs.n_kept - 1] / (pairs.n_kept + pairs.scores.sum()), pairs).threshold


def label_counts_at(pairs: ScoredPairs, threshold: float | None) -> LabelCounts:
    """Return the counts by label at a threshold; their ``micro()`` and ``macro()`` are F1."""
    labels, correct = (values[pairs.kept(threshold)] for values in (pairs.labels, pairs.correct))
    n_labels = len(pairs.label_counts)
    predicted = np.bincount(labels, minlength=n_labels)
    return LabelCounts(np.bincount(labels[correct], minlength=n_labels), predicted, pairs.label_counts)


def _best(values: Doubles, pairs: ScoredPairs) -> AtThreshold:
    if not values.size:
        return AtThreshold(0.0, None)
    best = int(values.argmax())
    return AtThreshold(float(values[best]), float(pairs.thresholds[best]))


@dataclass(frozen=True)
class PrecisionCoverage:
    """Precision and coverage at each threshold, the highest threshold first. Scores may be of any kind.

    ``precision`` is the share of the kept pairs of document and label that are right. ``coverage`` is the share of all
    true labels of the documents that are kept, which is recall pooled over the documents.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.5], [0.2, 0.5]], k=2)
    >>> curve = PrecisionCoverage.from_pairs(ScoredPairs.from_topk(sp.csr_matrix([[1, 0], [0, 1]]), topk))
    >>> curve.precision.round(2).tolist(), curve.coverage.tolist()
    ([1.0, 0.67, 0.5], [0.5, 1.0, 1.0])
    >>> curve.coverage_at(0.9).value
    0.5
    """

    thresholds: Doubles
    precision: Doubles
    coverage: Doubles

    @staticmethod
    def from_pairs(pairs: ScoredPairs) -> PrecisionCoverage:
        """Compute the curve of these predictions."""
        n_true = max(int(pairs.n_true.sum()), 1)
        return PrecisionCoverage(pairs.thresholds, pairs.n_hits / pairs.n_kept, pairs.n_hits / n_true)

    def coverage_at(self, precision: float) -> AtThreshold:
        """Return the largest coverage with at least this precision, and its threshold; 0 if no threshold has it.

        The threshold is chosen on these documents, but ``labelspace predict --precision`` needs one from others.
        """
        reached = np.flatnonzero(self.precision >= precision)
        if not reached.size or not self.coverage[reached[-1]]:
            return AtThreshold(0.0, None)
        return AtThreshold(float(self.coverage[reached[-1]]), float(self.thresholds[reached[-1]]))

    def points(self, n: int = N_POINTS) -> PrecisionCoverage:
        """Return at most n + 1 points to draw, evenly spaced in coverage; the last point is kept."""
        if not self.coverage.size:
            return self
        wanted = np.linspace(0, self.coverage[-1], n + 1)[1:]
        chosen = np.unique(np.append(np.searchsorted(self.coverage, wanted), self.coverage.size - 1))
        chosen = chosen[chosen < self.coverage.size]
        return PrecisionCoverage(self.thresholds[chosen], self.precision[chosen], self.coverage[chosen])
