"""Tune: search good parameters of a method on validation documents; resumable, and the same again with the same seed.

1. The space comes from the declared parameters of the method, or is given (``tuning.space``).
2. The first trial is the default. Some are drawn near it, then a tree-structured Parzen estimator (Bergstra et al.,
   2011; Optuna) learns from the trials before.
3. Every trial is trained on the training documents and measured on the validation documents. What is best there is
   named, with the command that trains it on all training documents.

With ``parallel``, trials are drawn so many at a time from those before all of them, and can run on a cluster at
the same time. The results depend on that number, and not on where the trials run.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from labelspace.data.source import Source
from labelspace.errors import ParameterError, require
from labelspace.experiment.timing import shown_duration
from labelspace.experiment.train import Recipe
from labelspace.experiment.tuning.results import results_of, shown_params, write_results
from labelspace.experiment.tuning.space import Search, SearchSpace, search_space
from labelspace.experiment.tuning.study import Outcome, Study, check_folder
from labelspace.experiment.tuning.trials import Documents, TrialRunner, metric_k, run_trials
from labelspace.models.fit_context import Executor
from labelspace.types import Dataset, Progress, no_progress

METRIC = "nDCG@5"
N_TRIALS = 30
PARALLEL = 8  # trials that are drawn at a time on a cluster of any size: it changes the results


def tune(
    source: Source,
    method: str | Recipe,
    n_trials: int = N_TRIALS,
    out: str | Path | None = None,
    *,
    search: Search | None = None,
    metric: str = METRIC,
    seed: int = 0,
    cpu_seconds: float | None = None,
    progress: Progress = no_progress,
    tell: Callable[[str], None] = lambda line: None,
    inspect: Callable[[Dataset], None] | None = None,
    train_options: Sequence[str] = (),
    parallel: int | None = None,
    executor: Executor | None = None,
) -> dict[str, Any]:
    """Search good parameters of a method, or of a recipe whose settings stay fixed; returns all trials and the best.

    ``search`` says what to search, as ``{"C": "0.1:10:log", "loss": ["bce", "softmax"]}``; without it, all that the
    method declares. With ``out`` every trial is kept in that folder, from where the same call goes on, and at the end
    ``results.json`` and ``results.csv`` are written. No trial begins after ``cpu_seconds`` of training. ``tell`` is
    called with lines on what happens, ``inspect`` with all training documents. ``train_options`` are further options of
    the command that trains the best model. ``executor`` runs trials on a cluster. ``parallel`` trials are drawn at a
    time, by default one, and 8 on a cluster.
    """
    require("optuna", "tune", "labelspace tune")
    recipe = Recipe(method, seed=seed) if isinstance(method, str) else method
    parallel = parallel if parallel is not None else 1 if executor is None else PARALLEL
    check_search(recipe, search, metric, n_trials, out, parallel)
    documents = Documents.read(source, seed, inspect)
    space = search_space(recipe, search, documents.train.labels.hierarchy is not None)
    runner = TrialRunner(space, documents, metric)
    about = {**_settings(space, metric, seed), "documents": documents.fingerprint}
    study = Study(space, about, seed, None if out is None else Path(out), parallel)
    with study.opened():
        tell(f"searching {space.text}")
        _run(study, runner, n_trials, cpu_seconds, progress, tell, executor)
        results = results_of(study, documents, metric, ["labelspace", "train", str(source.path), *train_options])
        results = {"data": source.path.name, **results}
        if out is not None:
            write_results(results, Path(out))
    return results


def check_search(
    recipe: Recipe, search: Search | None, metric: str, n_trials: int, out: str | Path | None = None, parallel: int = 1
) -> None:
    """Refuse what is known to fail before any data are read."""
    metric_k(metric)
    if n_trials < 1:
        raise ParameterError(f"the number of trials must be at least 1, but is {n_trials}; try 20 or more")
    if parallel < 1:
        raise ParameterError(f"trials at a time must be at least 1, but are {parallel}; leave --parallel out for one")
    search_space(recipe, search)
    if out is not None:
        check_folder(Path(out))


def _run(
    study: Study, runner: TrialRunner, n_trials: int, cpu_seconds: float | None, progress: Progress,
    tell: Callable[[str], None], executor: Executor | None,
) -> None:  # fmt: skip
    """Run the trials that are missing."""
    if study.outcomes:
        tell(f"{len(study.outcomes)} trials are done already")
    progress("trials", len(study.outcomes), max(n_trials, len(study.outcomes)))
    while len(study.outcomes) < n_trials:
        used = sum(outcome.cpu_seconds for outcome in study.outcomes)
        if cpu_seconds is not None and used >= cpu_seconds:
            tell(f"the budget of {shown_duration(cpu_seconds)} is used up after {len(study.outcomes)} trials")
            return
        batch = study.next(n_trials)
        trained = run_trials(runner, study.untried(batch), executor)
        for drawn in batch:
            old = study.repeated(drawn)
            outcome = next(trained) if old is None else Outcome(drawn, old.value, old.figures, 0.0, old.error)
            best = max((done.value for done in study.outcomes if done.value is not None), default=None)
            study.finish(outcome)
            said = _said(study, outcome, best, runner.metric)
            if said and old is None:
                tell(f"trial {len(study.outcomes) - 1}{said}")
            progress("trials", len(study.outcomes), n_trials)


def _said(study: Study, outcome: Outcome, best: float | None, metric: str) -> str:
    """What is worth a line: the default, a failure, a new best."""
    changed = shown_params(study.space.changed(outcome.drawn))
    if outcome.value is None:
        return f" failed ({changed or 'the default'}): {outcome.error}"
    if len(study.outcomes) == 1:
        return f", the default: {metric} {outcome.value:.2f}"
    return (
        f", the best so far: {metric} {outcome.value:.2f} ({changed})" if best is None or outcome.value > best else ""
    )


def _settings(space: SearchSpace, metric: str, seed: int) -> dict[str, Any]:
    """What makes two searches the same, beside the documents."""
    return {
        "method": space.recipe.method,
        "features": space.recipe.features,
        "fixed": space.fixed,
        "searched": space.texts,
        "metric": metric,
        "seed": seed,
    }
