"""How much each parameter matters: the share of the differences between trials that it explains alone.

The trials are ranked by the metric, so that a few very bad ones do not count for all. Those with a parameter are parted
into groups: by its values, or where these are numbers into quarters. The share of the variance of the ranks that lies
between groups, less what chance would give, is epsilon squared (Kelley, 1935). Trials are few and not drawn
independently, so this is a hint. Optuna has finer estimators, but they import scikit-learn, which takes seconds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelspace.types import Doubles, Longs

MIN_TRIALS = 12  # with a parameter; fewer say nothing of it
N_GROUPS = 4  # of numbers


def importance(trials: Sequence[tuple[Mapping[str, Any], float]]) -> dict[str, float]:
    """The share of each parameter in the differences between trials, the most important first.

    >>> trials = [({"C": i, "loss": "ab"[i % 2]}, 50.0 + i) for i in range(20)]
    >>> importance(trials)
    {'C': 0.9286, 'loss': 0.0}
    """
    keys = dict.fromkeys(key for params, _ in trials for key in params)
    found = {}
    for key in keys:
        having = [(params[key], value) for params, value in trials if key in params]
        if len(having) >= MIN_TRIALS:
            values, metric = zip(*having, strict=True)
            found[key] = round(explained(groups(values), ranks(metric)), 4)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def groups(values: Sequence[Any]) -> Longs:
    """The group of each value: quarters of numbers, or else one group for each value. Shape (n,)."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) <= N_GROUPS or not all(type(value) in (int, float) for value in distinct):
        return np.array([distinct.index(value) for value in values], dtype=np.int64)
    return (ranks(values) * N_GROUPS / len(values)).astype(np.int64).clip(max=N_GROUPS - 1)


def ranks(values: Sequence[float]) -> Doubles:
    """Ranks from 0, the mean of them for equal values. Shape (n,)."""
    _, place, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    means = np.cumsum(counts) - (counts + 1) / 2
    return np.asarray(means[place], dtype=np.float64)


def explained(group: Longs, rank: Doubles) -> float:
    """The share of the variance of the ranks that lies between groups, less what chance would give; at least 0."""
    n, n_groups = len(rank), len(np.unique(group))
    total = float(((rank - rank.mean()) ** 2).sum())
    if n_groups < 2 or n <= n_groups or total == 0:
        return 0.0
    within = sum(float(((rank[group == g] - rank[group == g].mean()) ** 2).sum()) for g in np.unique(group))
    return max(1 - (within / (n - n_groups)) / (total / (n - 1)), 0.0)
