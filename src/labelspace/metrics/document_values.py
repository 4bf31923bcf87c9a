"""Metrics as sums over documents: what one document adds to a metric. Intervals and tests resample these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labelspace.metrics import propensity, ranking
from labelspace.metrics.hits import RankedHits
from labelspace.types import Bools, Doubles


@dataclass(frozen=True)
class DocumentValues:
    """A metric is the sum of the numerators over that of the denominators; a mean has denominators of 1.

    >>> DocumentValues(np.array([1.0, 0.0]), np.ones(2)).value()
    0.5
    """

    numerators: Doubles  # (n,)
    denominators: Doubles  # (n,)

    @staticmethod
    def of_mean(values: Doubles) -> DocumentValues:
        """A metric that is the mean of these values (n,)."""
        return DocumentValues(values, np.ones(len(values)))

    def value(self) -> float:
        """The metric; 0 where the denominators are 0."""
        total = self.denominators.sum()
        return float(self.numerators.sum() / total) if total else 0.0

    def among(self, labeled: Bools, default: float) -> DocumentValues:
        """The same with the other documents too (n_all,): they add 0 to the numerator, and ``default`` below it."""
        numerators, denominators = np.zeros(labeled.size), np.full(labeled.size, default)
        numerators[labeled], denominators[labeled] = self.numerators, self.denominators
        return DocumentValues(numerators, denominators)


def means(hits: RankedHits, ks: Sequence[int]) -> dict[str, DocumentValues]:
    """P and nDCG at each k, R and RP at the largest: means over the documents."""
    max_k = max(ks)
    values = {f"P@{k}": ranking.precisions(hits, k) for k in ks}
    values |= {f"nDCG@{k}": ranking.ndcgs(hits, k) for k in ks}
    values[f"R@{max_k}"] = ranking.recalls(hits, max_k)
    values[f"RP@{max_k}"] = ranking.r_precisions(hits, max_k)
    return {name: DocumentValues.of_mean(value) for name, value in values.items()}


def ratios(hits: RankedHits, weights: Doubles, ks: Sequence[int]) -> dict[str, DocumentValues]:
    """PSP and PSnDCG at each k: the gains of all documents over their ideal gains."""
    gains, ideal = propensity.gains(hits, weights), propensity.ideal_gains(hits, weights)
    values = {f"PSP@{k}": DocumentValues(gains[:, :k].sum(axis=1), ideal[:, :k].sum(axis=1)) for k in ks}
    for k in ks:
        discounts = ranking.discounts(k)
        values[f"PSnDCG@{k}"] = DocumentValues(gains[:, :k] @ discounts, ideal[:, :k] @ discounts)
    return values
