"""Whether one method is better than another on the same documents, or was lucky with them: the paired bootstrap.

1. The same resamples of the documents for all methods; what is hard for all of them cancels in the differences.
2. For each metric the best method is compared with each of the others: the difference in each resample.
3. The interval of a difference is the middle 95 % of the resampled ones; its p-value twice the share on the other side
   of 0 (at most 1), with one resample added, so that it is never 0.
4. Holm (1979): the p-values of the others, in ascending order, are multiplied by the number of those not yet passed, so
   that the chance to call any of them worse by mistake stays near 5 %: measured 6 % of three equal methods and 7 % of
   six, since the best is chosen after the fact. Nothing is corrected for the number of metrics.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.metrics.bootstrap import interval, resampled
from labelspace.metrics.document_values import DocumentValues
from labelspace.types import Doubles

N_RESAMPLES = 2000  # the smallest p-value is about 1/1000: above 0.05 only with more than 50 methods
SIGNIFICANT = 0.05
ROUNDING = 1e-12  # a smaller difference of two sums is none


def compare_with_best(
    values: Mapping[str, Mapping[str, DocumentValues]], n_resamples: int = N_RESAMPLES, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """For each metric that all methods have, the best method and how far the others are behind it, as fractions.

    ``values`` are by method and metric, all of the same documents in the same order. For each metric the result has
    ``best`` and, by method, ``others``: ``difference`` (best minus other), ``interval``, ``p``, ``p_holm`` and
    ``significant``. Where two are equally good the first one is the best.

    >>> good, poor = (DocumentValues.of_mean(np.array(v)) for v in ([1.0] * 30, [1.0, 0.0] * 15))
    >>> test = compare_with_best({"good": {"P@1": good}, "poor": {"P@1": poor}})["P@1"]
    >>> test["best"], test["others"]["poor"]["difference"], test["others"]["poor"]["significant"]
    ('good', 0.5, True)
    """
    methods = list(values)
    if len(methods) < 2:
        return {}
    shared = [name for name in values[methods[0]] if all(name in values[method] for method in methods)]
    flat = [values[method][name] for name in shared for method in methods]
    samples = resampled(flat, n_resamples, seed).reshape(n_resamples, len(shared), len(methods))
    tests = {}
    for i, name in enumerate(shared):
        figures = np.array([values[method][name].value() for method in methods])
        best = int(figures.argmax())
        others = [j for j in range(len(methods)) if j != best]
        differences = samples[:, i, best, None] - samples[:, i, others]
        differences[np.abs(differences) < ROUNDING] = 0.0
        rows = _differences(figures[best] - figures[others], differences)
        tests[name] = {"best": methods[best], "others": {methods[j]: row for j, row in zip(others, rows, strict=True)}}
    return tests


def _differences(measured: Doubles, samples: Doubles) -> list[dict[str, Any]]:
    """Of each other method: difference, interval and p-values; ``samples`` (n_resamples, others)."""
    below = (1 + (samples <= 0).sum(axis=0)) / (1 + len(samples))
    above = (1 + (samples >= 0).sum(axis=0)) / (1 + len(samples))
    p = np.minimum(1.0, 2 * np.minimum(below, above))
    corrected = holm(p)
    return [
        {
            "difference": float(measured[j]),
            "interval": interval(samples[:, j]),
            "p": float(p[j]),
            "p_holm": float(corrected[j]),
            "significant": bool(corrected[j] < SIGNIFICANT),
        }
        for j in range(len(p))
    ]


def holm(p: npt.ArrayLike) -> Doubles:
    """P-values corrected for the number of tests, as Holm does.

    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    corrected = np.empty(values.size)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1)))
    return corrected
