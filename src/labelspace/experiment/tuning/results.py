"""The results of a search: all trials, the best one, and how much each parameter matters.

The importance of a parameter is the share of the differences between trials that it explains by itself.
The trials are ranked by the metric, so that a few very bad ones do not count for all. Those with a parameter are parted
into groups: by its values, or where these are numbers into quarters. The share of the variance of the ranks that lies
between groups, less what chance would give, is epsilon squared (Kelley, 1935). Trials are few and not drawn
independently, so this is a hint. Optuna has finer estimators, but they import scikit-learn, which takes seconds.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from labelspace.experiment.train import Recipe
from labelspace.experiment.tuning.space import PREFIX, SearchSpace, set_option
from labelspace.experiment.tuning.study import Outcome, Study
from labelspace.types import Doubles, Longs
from labelspace.version import __version__

MIN_TRIALS = 12  # with a parameter: 3 for each of 4 groups; with fewer, a share is mostly chance
N_GROUPS = 4  # that numbers are parted into; more groups need more trials


def shown_params(params: Mapping[str, Any]) -> str:
    """Return parameters in one line.

    >>> shown_params({"C": 0.25, "normalize": False})
    'C=0.25, normalize=false'
    """
    return ", ".join(set_option(key, value) for key, value in params.items())


def results_of(study: Study, about: Mapping[str, Any], command: Sequence[str]) -> dict[str, Any]:
    """Return everything that the search found, as plain values; ``about`` describes the documents."""
    outcomes, space = study.outcomes, study.space
    good = [i for i, outcome in enumerate(outcomes) if outcome.value is not None]
    ranked = sorted(good, key=lambda i: (-(outcomes[i].value or 0.0), i))  # of equal trials the first
    rank = {trial: place for place, trial in enumerate(ranked, start=1)}
    default = outcomes[0].value
    best = ranked[0] if ranked else None
    return {
        **{key: value for key, value in study.settings.items() if key != "documents"},
        **about,
        "labelspace": __version__,
        "n_trials": len(outcomes),
        "n_failed": len(outcomes) - len(good),
        "cpu_seconds": round(sum(outcome.cpu_seconds for outcome in outcomes), 3),
        "default": default,
        "best": None if best is None else _best(space, outcomes[best], best, default, command),
        "importance": importance([(outcomes[i].drawn, outcomes[i].value or 0.0) for i in good]),
        "ranges": {key: asdict(searched) for key, searched in space.ranges.items()},
        "trials": [_row(space, outcome, i, rank.get(i)) for i, outcome in enumerate(outcomes)],
    }


def _best(
    space: SearchSpace, outcome: Outcome, trial: int, default: float | None, command: Sequence[str]
) -> dict[str, Any]:
    """Return the best trial, its gain over the default, and the command that trains it."""
    assert outcome.value is not None
    return {
        "trial": trial,
        "value": outcome.value,
        "gain": None if default is None else round(outcome.value - default, 4),
        "params": space.changed(outcome.drawn),
        "command": shlex.join([*command, *_recipe_options(space, space.with_values(outcome.drawn))]),
    }


def _recipe_options(space: SearchSpace, recipe: Recipe) -> list[str]:
    """Return a recipe as options of the command line; defaults are left out."""
    options = ["--method", recipe.method]
    options += ["--features", recipe.features] if recipe.features is not None else []
    options += ["--seed", str(recipe.seed)] if recipe.seed else []
    defaults = space.cls.defaults()
    given = {key: value for key, value in recipe.params.items() if value != defaults[key]}
    given |= {PREFIX + key: value for key, value in recipe.feature_params.items()}
    return options + [part for key, value in given.items() for part in ("--set", set_option(key, value))]


def _row(space: SearchSpace, outcome: Outcome, trial: int, rank: int | None) -> dict[str, Any]:
    """Return a trial as plain values."""
    return {
        "trial": trial,
        "rank": rank,
        "value": outcome.value,
        "params": dict(outcome.drawn),
        "changed": space.changed(outcome.drawn),
        "cpu_seconds": outcome.cpu_seconds,
        **({} if outcome.error is None else {"error": outcome.error}),
        "figures": dict(outcome.figures),
    }


def table_row(trial: Mapping[str, Any], searched: Iterable[str]) -> dict[str, Any]:
    """Return the line of a trial in ``results.csv``; ``searched`` are the parameters that have a column."""
    about = {key: trial.get(key) for key in ("trial", "rank", "cpu_seconds", "error")}
    return {**about, **trial["figures"], **{key: trial["params"].get(key) for key in searched}}


def importance(trials: Sequence[tuple[Mapping[str, Any], float]]) -> dict[str, float]:
    """Return the share of each parameter in the differences between trials, the most important first.

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
    """Return the group of each value: its quarter for numbers, else a group for each value. Shape (n,)."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) <= N_GROUPS or not all(type(value) in (int, float) for value in distinct):
        return np.array([distinct.index(value) for value in values], dtype=np.int64)
    return (ranks(values) * N_GROUPS / len(values)).astype(np.int64).clip(max=N_GROUPS - 1)


def ranks(values: Sequence[float]) -> Doubles:
    """Return the rank of each value, from 0; equal values have the mean of their ranks. Shape (n,)."""
    _, place, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    means = np.cumsum(counts) - (counts + 1) / 2
    return np.asarray(means[place], dtype=np.float64)


def explained(group: Longs, rank: Doubles) -> float:
    """Return the share of the variance of the ranks between groups, less the share by chance; at least 0."""
    n, n_groups = len(rank), len(np.unique(group))
    total = float(((rank - rank.mean()) ** 2).sum())
    if n_groups < 2 or n <= n_groups or total == 0:
        return 0.0
    within = sum(float(((rank[group == g] - rank[group == g].mean()) ** 2).sum()) for g in np.unique(group))
    return max(1 - (within / (n - n_groups)) / (total / (n - 1)), 0.0)
