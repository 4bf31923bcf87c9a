"""Calibration: can scores be read as probabilities?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelspace.errors import DataError, ParameterError
from labelspace.metrics.hits import checked_k, relevance
from labelspace.types import Csr, Doubles, Longs, TopK

N_BINS = 15  # the usual number: with more bins the accuracy in a bin is noise, with fewer gaps cancel within one


@dataclass(frozen=True)
class ReliabilityBins:
    """The top k labels of all documents, grouped by probability into bins of equal width from 0 to 1.

    Documents without labels are included: all of their predictions are wrong. A bin without predictions has NaN as
    ``probability`` and ``accuracy``.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.8, 0.1], [0.8, 0.1]], k=1)
    >>> bins = ReliabilityBins.from_topk(sp.csr_matrix([[1, 0], [0, 1]]), topk, k=1, n_bins=2)
    >>> bins.n.tolist(), bins.accuracy.tolist()
    ([0, 2], [nan, 0.5])
    """

    n: Longs  # (n_bins,), predictions
    probability: Doubles  # (n_bins,), their mean
    accuracy: Doubles  # (n_bins,), share of them that is right

    @staticmethod
    def from_topk(Y: Csr, topk: TopK, k: int, n_bins: int = N_BINS) -> ReliabilityBins:
        """Group the top k labels into bins."""
        if n_bins < 1:
            raise ParameterError(f"n_bins must be at least 1, but is {n_bins}; set n_bins=1 or more")
        k = checked_k(k)
        predicted = topk.labels[:, :k] >= 0
        scores, correct = topk.scores[:, :k][predicted].astype(np.float64), relevance(Y, topk, k)[predicted]
        if scores.size and (scores.min() < 0 or scores.max() > 1):
            worst = scores.min() if scores.min() < 0 else scores.max()
            raise DataError(f"probabilities must lie between 0 and 1, but one is {worst}; pass calibrated scores")
        bin_of = np.minimum((scores * n_bins).astype(np.int64), n_bins - 1)
        n = np.bincount(bin_of, minlength=n_bins)
        sums = np.stack([np.bincount(bin_of, values, minlength=n_bins) for values in (scores, correct)])
        means = np.divide(sums, n, out=np.full(sums.shape, np.nan), where=n > 0)
        return ReliabilityBins(n, *means)

    def expected_calibration_error(self) -> float:
        """Return the mean gap between probability and accuracy: |gap| of each bin, weighted by its predictions."""
        gaps = np.abs(self.probability - self.accuracy)[self.n > 0]
        return float((gaps * self.n[self.n > 0]).sum() / max(self.n.sum(), 1))


def expected_calibration_error(Y: Csr, topk: TopK, k: int, n_bins: int = N_BINS) -> float:
    """Compute ECE@k: the mean gap between the scores of the top k labels and how often they are correct.

    It is from 0 (good) to 1, and computed from the bins of ``ReliabilityBins``.

    >>> import scipy.sparse as sp
    >>> topk = TopK.from_scores([[0.8, 0.1], [0.8, 0.1]], k=1)
    >>> round(expected_calibration_error(sp.csr_matrix([[1, 0], [0, 1]]), topk, k=1), 6)
    0.3
    """
    return ReliabilityBins.from_topk(Y, topk, k, n_bins).expected_calibration_error()
