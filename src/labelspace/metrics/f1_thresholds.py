"""F1 of the labels whose score reaches a threshold: at the best threshold, and at one that probabilities choose.

The best threshold is chosen on the very documents that F1 is measured on: no threshold does better there, so the value
is an upper bound of what a threshold chosen on other documents reaches. Where scores are probabilities, the threshold
with the largest expected F1 needs no labels at all, and its F1 is an honest figure.
"""

from typing import NamedTuple

import numpy as np

from labelspace.metrics.f1 import LabelCounts
from labelspace.metrics.scored_pairs import ScoredPairs
from labelspace.types import Doubles


class AtThreshold(NamedTuple):
    """A metric and the threshold it is reached at; None where nothing is predicted."""

    value: float
    threshold: float | None


def best_micro_f1(pairs: ScoredPairs) -> AtThreshold:
    """The largest micro-F1 of all thresholds, at the highest threshold that reaches it.

    >>> import scipy.sparse as sp
    >>> from labelspace.types import TopK
    >>> topk = TopK.from_scores([[0.75, 0.5], [0.25, 0.5]], k=2)
    >>> best_micro_f1(ScoredPairs.from_topk(sp.csr_matrix([[1, 0], [0, 1]]), topk))
    AtThreshold(value=0.8, threshold=0.5)
    """
    return _best(2 * pairs.n_hits / (pairs.n_kept + pairs.n_true.sum()), pairs)


def best_macro_f1(pairs: ScoredPairs) -> AtThreshold:
    """The largest macro-F1 of all thresholds, at the highest threshold that reaches it."""
    return _best(macro_f1_by_threshold(pairs), pairs)


def macro_f1_by_threshold(pairs: ScoredPairs) -> Doubles:
    """Macro-F1 at each threshold, over the labels that are true or kept there.

    A pair that is kept changes the F1 of its label alone: the sum over the labels is the sum of these changes.
    """
    order = np.argsort(pairs.labels, kind="stable")  # by label, and by score within a label
    labels, true = pairs.labels[order], pairs.label_counts[pairs.labels[order]]
    is_first = np.diff(labels, prepend=-1) != 0
    start = np.maximum.accumulate(np.where(is_first, np.arange(len(labels)), 0))
    every_hit = np.cumsum(pairs.correct[order], dtype=np.int64)
    hits = every_hit - (every_hit - pairs.correct[order])[start]  # those of the label alone
    f1 = 2 * hits / (np.arange(len(labels)) - start + 1 + true)
    changes = np.empty((2, len(labels)))  # of the sum of F1, and of the number of labels
    changes[0, order] = np.where(is_first, f1, np.diff(f1, prepend=0.0))
    changes[1, order] = is_first & (true == 0)
    total, n_labels = np.cumsum(changes, axis=1)[:, pairs.n_kept - 1]
    return np.asarray(total / (n_labels + np.count_nonzero(pairs.label_counts)))


def expected_threshold(pairs: ScoredPairs) -> float | None:
    """The threshold with the largest expected micro-F1 where scores are probabilities; true labels are not looked at.

    Expected hits are the sum of the probabilities kept, expected true labels that of all of them.
    """
    expected = np.cumsum(pairs.scores)
    return _best(2 * expected[pairs.n_kept - 1] / (pairs.n_kept + pairs.scores.sum()), pairs).threshold


def label_counts_at(pairs: ScoredPairs, threshold: float | None) -> LabelCounts:
    """The counts by label at a threshold, of which ``micro()`` and ``macro()`` are F1."""
    labels, correct = (values[pairs.kept(threshold)] for values in (pairs.labels, pairs.correct))
    n_labels = len(pairs.label_counts)
    predicted = np.bincount(labels, minlength=n_labels)
    return LabelCounts(np.bincount(labels[correct], minlength=n_labels), predicted, pairs.label_counts)


def _best(values: Doubles, pairs: ScoredPairs) -> AtThreshold:
    if not values.size:
        return AtThreshold(0.0, None)
    best = int(values.argmax())
    return AtThreshold(float(values[best]), float(pairs.thresholds[best]))
