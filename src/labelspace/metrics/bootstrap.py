"""How far a figure would move with other documents: the bootstrap (Efron, 1979).

A resample draws n of the n documents with replacement, which is a weight for each of them; a metric of the resample is
the weighted sum of its numerators over that of its denominators. The middle 95 % of the resampled values are the
interval. Only the choice of test documents varies: the model, and thresholds, stay as they are.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from labelspace.metrics.document_values import DocumentValues
from labelspace.types import Doubles

N_RESAMPLES = 1000
LEVEL = 0.95
AT_ONCE = 1 << 22  # weights of documents in memory


def confidence_intervals(
    values: Mapping[str, DocumentValues], n_resamples: int = N_RESAMPLES, level: float = LEVEL, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """The percentile interval of each metric; all of the same documents.

    >>> values = {"P@1": DocumentValues.of_mean(np.array([1.0, 0.0] * 50))}
    >>> low, high = confidence_intervals(values)["P@1"]
    >>> 0.35 < low < 0.45 < 0.55 < high < 0.65
    True
    """
    names = list(values)
    table = resampled([values[name] for name in names], n_resamples, seed)
    return {name: interval(column, level) for name, column in zip(names, table.T, strict=True)}


def interval(samples: Doubles, level: float = LEVEL) -> tuple[float, float]:
    """The middle share of the samples (n_resamples,)."""
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def resampled(values: Sequence[DocumentValues], n_resamples: int = N_RESAMPLES, seed: int = 0) -> Doubles:
    """The metrics of each resample, all metrics from the same resamples. Shape (n_resamples, metrics)."""
    if not values:
        return np.zeros((n_resamples, 0))
    sums = np.stack([part for value in values for part in (value.numerators, value.denominators)], axis=1)
    n, rng = len(sums), np.random.default_rng(seed)
    drawn = np.empty((n_resamples, sums.shape[1]))
    block = max(1, AT_ONCE // max(n, 1))
    for start in range(0, n_resamples, block):
        size = min(block, n_resamples - start)
        weights = np.stack([np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(size)])
        drawn[start : start + size] = weights.astype(np.float64) @ sums
    numerators, denominators = drawn[:, 0::2], drawn[:, 1::2]
    return np.divide(numerators, denominators, out=np.zeros_like(numerators), where=denominators > 0)
