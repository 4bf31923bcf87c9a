"""Precision against coverage: how much is kept, and how much of it is right, as a threshold on the score falls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelspace.metrics.f1_thresholds import AtThreshold
from labelspace.metrics.scored_pairs import ScoredPairs
from labelspace.types import Doubles

N_POINTS = 100  # of a curve that is drawn


@dataclass(frozen=True)
class PrecisionCoverage:
    """Precision and coverage at each threshold, the highest first. Works for scores of any kind.

    ``precision`` is the share of the kept pairs of document and label that are right, ``coverage`` the share of all
    true labels of the documents that are kept: the same as recall, pooled over the documents.

    >>> import scipy.sparse as sp
    >>> from labelspace.types import TopK
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
        """The curve of these predictions."""
        n_true = max(int(pairs.n_true.sum()), 1)
        return PrecisionCoverage(pairs.thresholds, pairs.n_hits / pairs.n_kept, pairs.n_hits / n_true)

    def coverage_at(self, precision: float) -> AtThreshold:
        """The largest coverage at which precision is at least this; 0 where it is at no threshold.

        The threshold is chosen on these very documents: ``labelspace predict --precision`` needs one from others.
        """
        reached = np.flatnonzero(self.precision >= precision)
        if not reached.size or not self.coverage[reached[-1]]:
            return AtThreshold(0.0, None)
        return AtThreshold(float(self.coverage[reached[-1]]), float(self.thresholds[reached[-1]]))

    def points(self, n: int = N_POINTS) -> PrecisionCoverage:
        """At most n + 1 points to draw the curve by, evenly spaced in coverage; the last one is kept."""
        if not self.coverage.size:
            return self
        wanted = np.linspace(0, self.coverage[-1], n + 1)[1:]
        chosen = np.unique(np.append(np.searchsorted(self.coverage, wanted), self.coverage.size - 1))
        chosen = chosen[chosen < self.coverage.size]
        return PrecisionCoverage(self.thresholds[chosen], self.precision[chosen], self.coverage[chosen])
