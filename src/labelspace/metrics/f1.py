"""F1 of label sets: micro (all labels pooled) and macro (mean over labels).

As everywhere in this folder, documents without labels are left out; on the others the values are scikit-learn's
``f1_score``, for macro with ``labels=`` the labels that occur in Y or in the predictions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelspace.errors import DataError, ParameterError
from labelspace.metrics.hits import checked_k, checked_labels, checked_matrix, labeled_rows
from labelspace.types import Bools, Csr, Ints, Longs, TopK


def micro_f1(Y: Csr, predicted: Csr | TopK, k: int | None = None) -> float:
    """Return 2 * hits / (predicted + true), all labels pooled.

    >>> import scipy.sparse as sp
    >>> round(micro_f1(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), sp.csr_matrix([[1, 0, 0], [0, 1, 1]])), 4)
    0.6667
    """
    return LabelCounts.from_predictions(Y, predicted, k).micro()


def macro_f1(Y: Csr, predicted: Csr | TopK, k: int | None = None) -> float:
    """Return the mean F1 per label, over the labels that occur in Y or in the predictions.

    >>> import scipy.sparse as sp
    >>> round(macro_f1(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), sp.csr_matrix([[1, 0, 0], [0, 1, 1]])), 4)
    0.6667
    """
    return LabelCounts.from_predictions(Y, predicted, k).macro()


@dataclass(frozen=True)
class LabelCounts:
    """True positives, predicted and true occurrences of each label; every F1 is computed from these. Shape (n_labels,).

    >>> counts = LabelCounts(hits=np.array([1, 0]), predicted=np.array([1, 1]), true=np.array([1, 0]))
    >>> round(counts.micro(), 4), counts.macro()
    (0.6667, 0.5)
    """

    hits: Longs
    predicted: Longs
    true: Longs

    @staticmethod
    def from_predictions(Y: Csr, predicted: Csr | TopK, k: int | None = None) -> LabelCounts:
        """Count over the documents that have labels."""
        true, guess = checked_matrix(Y), predicted_set(predicted, k, Y.shape)
        labeled = labeled_rows(true)
        true, guess = true[labeled], guess[labeled]
        return LabelCounts.from_ids(true.multiply(guess).tocsr().indices, guess.indices, true.indices, Y.shape[1])

    @staticmethod
    def from_ids(hits: Ints, predicted: Ints, true: Ints, n_labels: int) -> LabelCounts:
        """Count the label ids of all hits, of all predictions and of all true labels."""
        return LabelCounts(*(np.bincount(ids, minlength=n_labels) for ids in (hits, predicted, true)))

    def subset(self, group: Bools) -> LabelCounts:
        """Return the counts of the labels marked in ``group`` (n_labels,)."""
        return LabelCounts(self.hits[group], self.predicted[group], self.true[group])

    def joined(self, others: LabelCounts) -> LabelCounts:
        """Return the counts of these labels and of other labels, one after the other."""
        pairs = ((self.hits, others.hits), (self.predicted, others.predicted), (self.true, others.true))
        return LabelCounts(*map(np.concatenate, pairs))

    def micro(self) -> float:
        """Return micro-F1; 0 if nothing is true or predicted."""
        return ratio(2 * self.hits.sum(), self.predicted.sum() + self.true.sum())

    def macro(self) -> float:
        """Return macro-F1 over the labels that are true or predicted somewhere; 0 if no label is."""
        occurrences = self.predicted + self.true
        occurs = occurrences > 0
        return ratio((2 * self.hits[occurs] / occurrences[occurs]).sum(), occurs.sum())

    def sizes(self) -> dict[str, float]:
        """Return the number of labels, and of their true occurrences."""
        return {"n_labels": len(self.true), "n_occurrences": int(self.true.sum())}

    def recall(self) -> float:
        """Return the share of the true occurrences that are predicted; 0 if there are none."""
        return ratio(self.hits.sum(), self.true.sum())

    def precision(self) -> float:
        """Return the share of the predictions that are correct; 0 if there are none."""
        return ratio(self.hits.sum(), self.predicted.sum())


def predicted_set(predicted: Csr | TopK, k: int | None, shape: tuple[int, int]) -> Csr:
    """Return the predictions as a checked 0/1 matrix of Y's shape (n, n_labels)."""
    if isinstance(predicted, TopK):
        k = checked_k(predicted.k if k is None else k)
        checked_labels(predicted, k, shape)
        return predicted.padded(k).to_csr(shape[1])
    if k is not None:
        raise ParameterError(f"k is for a TopK, not for a 0/1 matrix, but is {k}; leave it out or pass a TopK")
    if predicted.shape != shape:
        rule = f"the predicted matrix must have the shape of Y, but has {predicted.shape} against {shape}"
        raise DataError(f"{rule}; give one row per document and one column per label")
    return checked_matrix(predicted, "predicted")


def ratio(part: float, total: float) -> float:
    """Return ``part / total``; 0 if the total is 0."""
    return float(part / total) if total else 0.0
