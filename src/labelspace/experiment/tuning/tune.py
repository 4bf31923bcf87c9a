"""Tune: search good parameters of a method on validation documents; resumable, and repeatable with the same seed.

1. The space comes from the declared parameters of the method, or is given (``tuning.space``).
2. The first trial is the default. Some are drawn near it, then a tree-structured Parzen estimator (Bergstra et al.,
   2011; Optuna) learns from the earlier trials.
3. Every trial is trained on the training documents and measured on the validation documents. The best trial is
   reported with the command that trains it on all training documents.

With ``parallel``, a batch of that many trials is drawn from the trials before the batch, and its trials can run on a
cluster at the same time. The results depend on the size of a batch, and not on where the trials run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

from labelspace.data.source import Source
from labelspace.errors import ParameterError, require
from labelspace.experiment.timing import shown_duration
from labelspace.experiment.train import Recipe
from labelspace.experiment.tuning.results import results_of, shown_params, write_results
from labelspace.experiment.tuning.space import Search, SearchSpace, search_space
from labelspace.experiment.tuning.study import Outcome, Study, check_folder
from labelspace.experiment.tuning.trials import Documents, TrialRunner, metric_k, run_trials
from labelspace.models.fit_context import Executor
from labelspace.options import check_names
from labelspace.types import Dataset, Progress, no_progress

METRIC = "nDCG@5"
N_TRIALS = 30
PARALLEL = 8  # trials of a batch on a cluster, whatever its size: another number gives other results


class TuneOptions(TypedDict, total=False):
    """Options of ``tune``."""

    search: Search | None
    """What to search: ``{"C": "0.1:10:log", "loss": ["bce", "softmax"]}``; by default all declared parameters."""
    metric: str
    """The metric to improve, by default nDCG@5."""
    seed: int
    """The seed of the search, of the trainings and of the split into training and validation documents."""
    cpu_seconds: float | None
    """No trial begins after this much training."""
    parallel: int | None
    """Trials that are drawn at a time: by default 1, and 8 on a cluster."""
    executor: Executor | None
    """A cluster that runs the trials of a batch at the same time."""
    progress: Progress
    """Called with the number of finished trials."""
    tell: Callable[[str], None]
    """Called with a line on each event, such as a new best trial."""
    inspect: Callable[[Dataset], None] | None
    """Called with all training documents."""
    train_options: Sequence[str]
    """Further options of the command that trains the best model."""


def tune(
    source: Source,
    method: str | Recipe,
    n_trials: int = N_TRIALS,
    out: str | Path | None = None,
    **options: Unpack[TuneOptions],
) -> dict[str, Any]:
    """Search good parameters of a method, or of a recipe whose settings stay fixed; return all trials and the best.

    With ``out`` every trial is kept in that folder, where the same call resumes the search, and at the end
    ``results.json`` and ``results.csv`` are written. The other options are those of ``TuneOptions``.
    """
    require("optuna", "tune", "labelspace tune")
    check_names(options, TuneOptions)
    seed, metric, executor = options.get("seed", 0), options.get("metric", METRIC), options.get("executor")
    search, tell = options.get("search"), options.get("tell", _tell_nothing)
    parallel = options.get("parallel")
    if parallel is None:
        parallel = 1 if executor is None else PARALLEL
    recipe = Recipe(method, seed=seed) if isinstance(method, str) else method
    check_search(recipe, search, metric, n_trials, out, parallel)
    documents = Documents.read(source, seed, options.get("inspect"))
    space = search_space(recipe, search, documents.train.labels.hierarchy is not None)
    about = {**_settings(space, metric, seed), "documents": documents.fingerprint}
    study = Study(space, about, seed, None if out is None else Path(out), parallel)
    runner = TrialRunner(space, documents, metric)
    with study.opened():
        tell(f"searching {space.text}")
        _Run(study, runner, options.get("progress", no_progress), tell, executor).run(
            n_trials, options.get("cpu_seconds")
        )
        command = ["labelspace", "train", str(source.path), *options.get("train_options", ())]
        results = {"data": source.path.name, **results_of(study, documents, metric, command)}
        if out is not None:
            write_results(results, Path(out))
    return results


def check_search(
    recipe: Recipe, search: Search | None, metric: str, n_trials: int, out: str | Path | None = None, parallel: int = 1
) -> None:
    """Raise ParameterError for a search that is bound to fail, before any data are read."""
    metric_k(metric)
    if n_trials < 1:
        raise ParameterError(f"the number of trials must be at least 1, but is {n_trials}; try 20 or more")
    if parallel < 1:
        raise ParameterError(f"trials at a time must be at least 1, but are {parallel}; leave --parallel out for one")
    search_space(recipe, search)
    if out is not None:
        check_folder(Path(out))


def _tell_nothing(line: str) -> None:
    """Ignore a line."""


def _settings(space: SearchSpace, metric: str, seed: int) -> dict[str, Any]:
    """Return the settings that two searches of the same documents share only if they are the same search."""
    return {
        "method": space.recipe.method,
        "features": space.recipe.features,
        "fixed": space.fixed,
        "searched": space.texts,
        "metric": metric,
        "seed": seed,
    }


@dataclass(frozen=True)
class _Run:
    """A study whose missing trials are run, here or on a cluster."""

    study: Study
    runner: TrialRunner
    progress: Progress
    tell: Callable[[str], None]
    executor: Executor | None

    def run(self, n_trials: int, cpu_seconds: float | None) -> None:
        """Run trials until there are ``n_trials`` of them, or the budget is used up."""
        study = self.study
        if study.outcomes:
            self.tell(f"{len(study.outcomes)} trials are done already")
        self.progress("trials", len(study.outcomes), max(n_trials, len(study.outcomes)))
        while len(study.outcomes) < n_trials:
            used = sum(outcome.cpu_seconds for outcome in study.outcomes)
            if cpu_seconds is not None and used >= cpu_seconds:
                n_done = len(study.outcomes)
                self.tell(f"the budget of {shown_duration(cpu_seconds)} is used up after {n_done} trials")
                return
            self._run_batch(n_trials)

    def _run_batch(self, n_trials: int) -> None:
        study = self.study
        batch = study.next(n_trials)
        trained = run_trials(self.runner, study.untried(batch), self.executor)
        for drawn in batch:
            old = study.repeated(drawn)
            outcome = next(trained) if old is None else Outcome(drawn, old.value, old.figures, 0.0, old.error)
            best = max((done.value for done in study.outcomes if done.value is not None), default=None)
            study.finish(outcome)
            news = None if old is not None else self._news(outcome, best)
            if news is not None:
                self.tell(f"trial {len(study.outcomes) - 1}{news}")
            self.progress("trials", len(study.outcomes), n_trials)

    def _news(self, outcome: Outcome, best: float | None) -> str | None:
        """Return the end of a line for a failure, the default or a new best trial; None for other trials."""
        changed, metric = shown_params(self.study.space.changed(outcome.drawn)), self.runner.metric
        if outcome.value is None:
            return f" failed ({changed or 'the default'}): {outcome.error}"
        if len(self.study.outcomes) == 1:
            return f", the default: {metric} {outcome.value:.2f}"
        if best is None or outcome.value > best:
            return f", the best so far: {metric} {outcome.value:.2f} ({changed})"
        return None
