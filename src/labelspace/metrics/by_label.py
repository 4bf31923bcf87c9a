"""Figures of each label, and the labels that it is confused with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from labelspace.metrics.f1 import LabelCounts, predicted_set
from labelspace.metrics.hits import checked_matrix
from labelspace.metrics.thresholds import ScoredPairs, label_counts_at, ranks_by_label
from labelspace.types import Csr, Doubles, TopK

N_CONFUSED = 3  # labels that each label is confused with


@dataclass(frozen=True)
class LabelFigures:
    """Figures of each label as fractions, NaN where one is not defined. Shape (n_labels,) each."""

    counts: LabelCounts  # of the labels whose score reaches the threshold
    average_precision: Doubles
    best_f1: Doubles  # of all thresholds
    best_threshold: Doubles  # the highest one that reaches it; NaN if no threshold finds the label

    @property
    def precision(self) -> Doubles:
        """Return the share of the answers with a label that are right; NaN if there are none."""
        return _ratio(self.counts.hits, self.counts.predicted)

    @property
    def recall(self) -> Doubles:
        """Return the share of the documents of a label whose answer has it; NaN if there are none."""
        return _ratio(self.counts.hits, self.counts.true)

    @property
    def f1(self) -> Doubles:
        """Return F1; NaN for a label that is neither true nor answered."""
        return _ratio(2 * self.counts.hits, self.counts.predicted + self.counts.true)


class Confusions(NamedTuple):
    """For each label the most frequent ones that it is confused with; scores are numbers of documents."""

    given_instead: TopK  # wrong labels of the answers that miss it
    missing_beside: TopK  # missed labels of the documents whose answer wrongly has it


def label_figures(pairs: ScoredPairs, threshold: float | None) -> LabelFigures:
    """Return the figures of each label at a threshold, and at its own best one.

    Average precision is the mean precision at the score of each true document; a true label that is not among the
    pairs counts as never found. Equal scores are kept together.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.9, 0.5], [0.25, 0.5]], k=2)
    >>> found = label_figures(ScoredPairs.from_topk(sp.csr_matrix([[1, 0], [1, 1]]), topk), 0.5)
    >>> found.recall.tolist(), found.average_precision.tolist(), found.best_threshold.tolist()
    ([0.5, 1.0], [1.0, 0.5], [0.25, 0.5])
    """
    ranks, n_labels = ranks_by_label(pairs), len(pairs.label_counts)
    scores, correct = pairs.scores[ranks.order], pairs.correct[ranks.order]
    changes = (np.diff(ranks.labels) != 0) | (np.diff(scores) != 0)
    ends = np.flatnonzero(np.append(changes, True)[: len(scores)])  # of pairs with equal label and score
    end = ends[np.searchsorted(ends, np.arange(len(scores)))]
    precision = (ranks.n_hits / ranks.n_kept)[end]
    summed = np.bincount(ranks.labels[correct], precision[correct], minlength=n_labels)
    f1 = (2 * ranks.n_hits / (ranks.n_kept + pairs.label_counts[ranks.labels]))[ends]
    by_f1 = np.lexsort((-f1, ranks.labels[ends]))  # stable: of equal F1 the highest threshold
    found, first = np.unique(ranks.labels[ends][by_f1], return_index=True)
    best_f1, best_threshold = np.zeros(n_labels), np.full(n_labels, np.nan)
    best_f1[found] = f1[by_f1[first]]
    best_threshold[found] = np.where(best_f1[found] > 0, scores[ends[by_f1[first]]], np.nan)
    average_precision = _ratio(summed, pairs.label_counts)
    return LabelFigures(label_counts_at(pairs, threshold), average_precision, best_f1, best_threshold)


def confusions(Y: Csr, predicted: Csr | TopK, n: int = N_CONFUSED) -> Confusions:
    """Return the n labels that each label is most often confused with, in the documents that have labels.

    >>> import scipy.sparse as sp
    >>> found = confusions(sp.csr_matrix([[1, 0, 0], [1, 0, 1]]), sp.csr_matrix([[0, 1, 0], [0, 1, 1]]), n=1)
    >>> found.given_instead.labels.tolist(), found.missing_beside.labels.tolist()
    ([[1], [-1], [-1]], [[-1], [0], [-1]])
    """
    true, answered = checked_matrix(Y), predicted_set(predicted, None, Y.shape)
    hits = true.multiply(answered)
    missed, wrong = (true - hits).tocsr(), (answered - hits).tocsr()
    missed.eliminate_zeros()
    wrong.eliminate_zeros()
    together = (missed.T @ wrong).tocsr()
    return Confusions(TopK.from_sparse(together, n), TopK.from_sparse(together.T.tocsr(), n))


def _ratio(parts: npt.ArrayLike, totals: npt.ArrayLike) -> Doubles:
    """Return the ratios; NaN where a total is 0."""
    of = np.asarray(totals, np.float64)
    return np.asarray(np.divide(parts, of, out=np.full(of.shape, np.nan), where=of > 0))
