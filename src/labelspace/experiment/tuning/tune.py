"""Tune: search good parameters of a method on validation documents; resumable, and repeatable with the same seed.

1. The space comes from the declared parameters of the method, or is given (``tuning.space``).
2. The first trial is the default. Some are drawn near it, then a tree-structured Parzen estimator (Bergstra et al.,
   2011; Optuna) learns from the earlier trials.
3. Every trial is trained on the training documents and measured on the validation documents. The best trial is
   reported with the command that trains it on all training documents.

With ``parallel``, a batch of that many trials is drawn from the trials before the batch, and its trials can run on a
cluster at the same time. The results depend on the size of a batch, and not on where the trials run.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from labelspace import metrics
from labelspace.data.source import Source
from labelspace.errors import DataError, LabelspaceError, MissingExtraError, ParameterError, require
from labelspace.experiment.evaluate import check_ks, predict_unfiltered, without_filtered
from labelspace.experiment.results import write_results
from labelspace.experiment.timing import shown_duration, timed
from labelspace.experiment.train import TEST_SHARE, Recipe, hold_out_test, labeled
from labelspace.experiment.tuning.results import results_of, shown_params, table_row
from labelspace.experiment.tuning.space import Search, SearchSpace, search_space
from labelspace.experiment.tuning.study import Outcome, Study, check_folder
from labelspace.features.views import FeatureCache
from labelspace.models.fit_context import Executor
from labelspace.tagger import Tagger
from labelspace.types import Dataset, Progress, no_progress

METRIC = "nDCG@5"
N_TRIALS = 30
PARALLEL = 8  # trials of a batch on a cluster, whatever its size: another number gives other results
METRICS = re.compile(r"(P|nDCG|PSP|PSnDCG|R|RP|coverage)@([1-9]\d{0,8})")
KS = (1, 3, 5)  # ranks of further metrics, which are reported next to the searched one


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
    parallel: int | None = None,
    executor: Executor | None = None,
    progress: Progress = no_progress,
    tell: Callable[[str], None] = lambda line: None,
    inspect: Callable[[Dataset], None] | None = None,
    train_options: Sequence[str] = (),
) -> dict[str, Any]:
    """Search good parameters of a method, or of a recipe whose settings stay fixed; return all trials and the best.

    Args:
        source: The data; the test documents are never read.
        method: The method, or a recipe.
        n_trials: The number of trials, with those that are done already.
        out: A folder that keeps every trial, where the same call resumes the search; at the end ``results.json`` and
            ``results.csv`` are written to it.
        search: What to search: ``{"C": "0.1:10:log", "loss": ["bce", "softmax"]}``; by default all declared parameters.
        metric: The metric to improve.
        seed: The seed of the search, of the trainings and of the split into training and validation documents.
        cpu_seconds: No trial begins after this much training.
        parallel: Trials that are drawn at a time: by default 1, and 8 on a cluster.
        executor: A cluster that runs the trials of a batch at the same time.
        progress: Called with the number of finished trials.
        tell: Called with a line on each event, such as a new best trial.
        inspect: Called with all training documents.
        train_options: Further options of the command that trains the best model.
    """
    require("optuna", "tune", "labelspace tune")
    if parallel is None:
        parallel = 1 if executor is None else PARALLEL
    recipe = Recipe(method, seed=seed) if isinstance(method, str) else method
    check_search(recipe, search, metric, n_trials, out, parallel)
    documents = Documents.read(source, seed, inspect)
    space = search_space(recipe, search, documents.train.labels.hierarchy is not None)
    settings = {**_settings(space, metric, seed), "documents": documents.fingerprint}
    study = Study(space, settings, seed, None if out is None else Path(out), parallel)
    runner = TrialRunner(space, documents, metric)
    with study.opened():
        tell(f"searching {space.text}")
        _Run(study, runner, progress, tell, executor).run(n_trials, cpu_seconds)
        command = ["labelspace", "train", str(source.path), *train_options]
        results = {"data": source.path.name, **results_of(study, documents.sizes(), command)}
        if out is not None:
            rows = [table_row(trial, results["searched"]) for trial in results["trials"]]
            write_results(results, rows, Path(out))
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
class Documents:
    """The documents that trials are trained and measured on."""

    train: Dataset
    validation: Dataset
    validated_on: str  # the origin of the validation documents, in words

    @classmethod
    def read(cls, source: Source, seed: int, inspect: Callable[[Dataset], None] | None = None) -> "Documents":
        """Read the training documents, and ``dev.*`` or else a seeded part of the training documents."""
        documents = labeled(source, inspect)
        dev = source.dev(documents.labels)
        if dev is None:
            train, dev = hold_out_test(documents, seed)
            name = f"a seeded {TEST_SHARE:.0%} of the training documents"
        else:
            train = documents
            name = "the validation file"
        if dev.Y.nnz == 0:
            raise DataError(f"validation needs labels, but no document of {name} has any; give more documents")
        return cls(train, dev, name)

    def sizes(self) -> dict[str, Any]:
        """Return the number of documents and labels, and the origin of the validation documents."""
        return {
            "n_train": len(self.train),
            "n_validation": len(self.validation),
            "n_labels": len(self.train.labels),
            "validation": self.validated_on,
        }

    @property
    def fingerprint(self) -> str:
        """A hash of all documents."""
        digest = blake2b(digest_size=16)
        for part in (self.train, self.validation):
            for array in _arrays(part):
                digest.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
            for text in (*(part.texts or ()), *part.labels.names):
                digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        return digest.hexdigest()


def _arrays(documents: Dataset) -> Iterable[Any]:
    """Yield the numbers of a data set: labels, features, filtered labels, hierarchy."""
    hierarchy = documents.labels.hierarchy
    parents = None if hierarchy is None else hierarchy.parents
    for matrix in (documents.Y, documents.X, documents.filtered, parents):
        if matrix is not None:
            yield from (matrix.data, matrix.indices, matrix.indptr)


class TrialRunner:
    """Runs trials; features with the same settings are made once for all trials."""

    def __init__(self, space: SearchSpace, documents: Documents, metric: str) -> None:
        self.space, self.documents, self.metric = space, documents, metric
        self.k = metric_k(metric)
        check_ks((self.k,), len(documents.train.labels))
        self._cache = FeatureCache()

    def run(self, drawn: Mapping[str, Any]) -> Outcome:
        """Train with these values and measure; a failure becomes an outcome."""
        train = self.documents.train
        try:
            tagger = self.space.with_values(drawn).tagger()
            if train.X is None:  # untimed, so that the first trial does not pay for the features of all trials
                for view in tagger.views(train):
                    self._cache.get(view.create(), train.texts or [])
            with timed() as taken:
                tagger.fit_dataset(train, cache=self._cache)
            figures = self._figures(tagger)
        except MissingExtraError:  # every other trial would fail too
            raise
        except (LabelspaceError, MemoryError, ArithmeticError) as error:
            return Outcome(dict(drawn), error=str(error) or type(error).__name__)
        return Outcome(dict(drawn), figures[self.metric], figures, round(taken.cpu, 3))

    def _figures(self, tagger: Tagger) -> dict[str, float]:
        """Return the metrics of the validation documents, in percent."""
        validation, known = without_filtered(self.documents.validation), tagger.labels_
        inputs, depth = tagger.inputs_of(validation), max(*KS, self.k)
        top = predict_unfiltered(tagger.predict_topk, inputs, validation.filtered, depth)
        figures: dict[str, float] = {}
        for ks in (KS, (self.k,)):  # some metrics are measured only at the largest k
            figures |= metrics.evaluate(validation.Y, top, known.counts, known.n_documents, ks)
        return {name: value for name, value in figures.items() if "@" in name}


def run_trials(runner: TrialRunner, batch: Sequence[Mapping[str, Any]], executor: Executor | None) -> Iterator[Outcome]:
    """Yield the outcomes of a batch in its order, run here or on a cluster with a CPU for each trial."""
    if executor is None:
        yield from map(runner.run, batch)
        return
    early: dict[int, Outcome] = {}  # outcomes that wait for an earlier trial
    following = 0
    for at, outcome in executor.map_unordered(TrialRunner.run, runner, batch):
        early[at] = outcome
        while following in early:
            yield early.pop(following)
            following += 1


def metric_k(metric: str) -> int:
    """Return the rank k of a metric.

    >>> metric_k("nDCG@5")
    5
    """
    match = METRICS.fullmatch(metric)
    if match is None:
        named = "P@k, nDCG@k, PSP@k, PSnDCG@k, R@k, RP@k or coverage@k"
        raise ParameterError(f"--metric must be {named}, but is {metric!r}; write for example nDCG@5")
    return int(match[2])


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
