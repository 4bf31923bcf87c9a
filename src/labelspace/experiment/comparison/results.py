"""The results of a comparison: means over seeds, the paired test of the differences, and the files."""

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

import numpy as np

from labelspace import metrics
from labelspace.experiment.evaluate import percent
from labelspace.metrics import bootstrap

DIGITS = 4  # after the decimal point, as in ``evaluate``
STD = "_std"
PerDocument = Mapping[str, metrics.DocumentValues]


def over_seeds(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the mean figures of runs, each with its standard deviation (n - 1) as ``NAME_std``, and all ``runs``.

    The figures of a single run are returned as they are.

    >>> row = over_seeds([{"seed": 0, "P@1": 70.0, "n": 9}, {"seed": 1, "P@1": 72.0, "n": 9}])
    >>> row["P@1"], row["P@1_std"], row["n"], [run["P@1"] for run in row["runs"]]
    (71.0, 1.4142, 9, [70.0, 72.0])
    """
    if len(runs) == 1:
        return {key: value for key, value in runs[0].items() if key != "seed"}
    row = _means(runs)
    row.pop("seed")
    row.pop("seed" + STD, None)
    row["runs"] = [{key: value for key, value in run.items() if not isinstance(value, dict | list)} for run in runs]
    return row


def _means(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the means of numbers and of numbers in groups; other values are taken from the first run."""
    row: dict[str, Any] = {}
    for key, first in runs[0].items():
        values: list[Any] = [run.get(key) for run in runs]
        if key == "reliability":
            row[key] = pooled_bins(values)
        elif isinstance(first, Mapping):
            row[key] = {name: _means([value[name] for value in values if value]) for name in first}
        elif all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            same = all(value == first for value in values)
            row[key] = first if same else round(mean(values), DIGITS)
            if any(isinstance(value, float) for value in values):
                row[key + STD] = round(stdev(values), DIGITS)
        else:
            row[key] = first if all(value == first for value in values) or isinstance(first, str) else None
    return row


def pooled_bins(runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Merge the bins of the reliability diagrams of all runs into the bins of all their predictions.

    >>> one, other = {"n": 1, "probability": 90.0, "accuracy": 100.0}, {"n": 3, "probability": 94.0, "accuracy": 80.0}
    >>> pooled_bins([[one, {"n": 0}], [other, {"n": 0}]])
    [{'n': 4, 'probability': 93.0, 'accuracy': 85.0}, {'n': 0}]
    """
    pooled: list[dict[str, Any]] = []
    for bins in zip(*runs, strict=True):
        n = sum(row["n"] for row in bins)
        pooled.append({"n": n})
        for key in ("probability", "accuracy") if n else ():
            pooled[-1][key] = round(sum(row["n"] * row[key] for row in bins if row["n"]) / n, DIGITS)
    return pooled


def mean_values(runs: Sequence[PerDocument]) -> dict[str, metrics.DocumentValues]:
    """Return the contribution of each document to the metrics, as means over the runs."""
    names = [name for name in runs[0] if all(name in run for run in runs)]
    means = {}
    for name in names:
        numerators, denominators = zip(*((run[name].numerators, run[name].denominators) for run in runs), strict=True)
        means[name] = metrics.DocumentValues(np.mean(numerators, axis=0), np.mean(denominators, axis=0))
    return means


def tested(per_document: Mapping[str, PerDocument], seed: int) -> dict[str, Any]:
    """Return the best method by each metric, and the distance of the others from it in percent, with p-values."""
    tests = bootstrap.compare_with_best(per_document, seed=seed)
    for test in tests.values():
        for other in test["others"].values():
            other["difference"] = percent(other["difference"])
            other["interval"] = [percent(bound) for bound in other["interval"]]
            other |= {key: round(other[key], 6) for key in ("p", "p_holm")}
    return {"n_resamples": bootstrap.N_PAIRED_RESAMPLES, "significance": bootstrap.SIGNIFICANT, "metrics": tests}
