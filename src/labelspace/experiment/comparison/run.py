"""The job of one method in a comparison, and its run in this process.

1. Read the training documents. Train a few others first, to compile and load what is timed later.
2. Make the features, which all seeds share; their time is reported separately. Fit and save a model per seed, each
   timed.
3. Read the test documents, which no step above could have seen. Load each model, and measure it.
4. Compute means and standard deviations over the seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np

from labelspace import metrics
from labelspace.data.source import Source
from labelspace.errors import LabelspaceError
from labelspace.experiment.evaluate import evaluate_documents, intervals, megabytes
from labelspace.experiment.timing import timed
from labelspace.experiment.train import Recipe, training_documents
from labelspace.experiment.warmup import compile_kernels, few_documents, few_rows
from labelspace.features.views import FeatureCache
from labelspace.tagger import Tagger
from labelspace.types import Dataset, Progress

DIGITS = 4  # after the decimal point, as in ``evaluate``
STD = "_std"
PerDocument = Mapping[str, metrics.DocumentValues]


@dataclass(frozen=True)
class Job:
    """The runs of one method, on the documents of a source."""

    recipe: Recipe
    seeds: tuple[int | None, ...]  # None leaves random draws to the parameters of the method
    source: Source
    out: Path
    ks: Sequence[int]
    split_seed: int  # of the test documents, if there is no test file

    @property
    def recipes(self) -> list[Recipe]:
        """The recipe with each seed."""
        return [replace(self.recipe, seed=seed) for seed in self.seeds]

    @property
    def folders(self) -> list[Path]:
        """The folder of the model of each seed."""
        return model_folders(self.recipe, self.seeds, self.out)


@dataclass(frozen=True)
class JobResult:
    """The row of a method, and the contribution of each test document to its metrics: means over the seeds."""

    row: dict[str, Any]
    per_document: PerDocument
    n_test: int | None = None  # None if the method failed

    @staticmethod
    def failed(job: Job, error: str) -> JobResult:
        """Return the result of a method that failed."""
        return JobResult({**described(job.recipe), "error": error}, {})


RunJob = Callable[[Job, Progress], JobResult]


def described(recipe: Recipe) -> dict[str, Any]:
    """Return the first columns of a row."""
    return {"method": recipe.method, "params": dict(recipe.params)}


def model_folders(recipe: Recipe, seeds: Sequence[int | None], out: Path) -> list[Path]:
    """Return the folder of the model of each seed.

    >>> [folder.name for folder in model_folders(Recipe("random"), (0, 1), Path("out"))]
    ['random-seed0', 'random-seed1']
    """
    names = [f"{recipe.method}-seed{seed}" for seed in seeds] if len(seeds) > 1 else [recipe.method]
    return [out / "models" / name for name in names]


RUNS = "runs"  # the step that counts the trainings
NOT_KEPT = ("precision_coverage",)  # a long curve, which no page of a comparison shows


def run(job: Job, progress: Progress, warmed_up: Callable[[bool], None] = lambda compiled: None) -> JobResult:
    """Run a job; a failure on these data, or on this machine, becomes the ``error`` of its row.

    ``warmed_up`` is called before anything is timed, with True if kernels had to be compiled.
    """
    try:
        train_set, test_set = training_documents(job.source, job.split_seed)
        progress("warm-up", 0, 1)
        warmed_up(compiles(job.recipe, few_documents() if train_set.X is None else few_rows()))
        return _run(job, train_set, test_set, progress)
    except (LabelspaceError, MemoryError, ArithmeticError) as error:
        return JobResult.failed(job, str(error) or type(error).__name__)


def compiles(recipe: Recipe, documents: Dataset) -> bool:
    """Train on a few documents, so that no kernel is compiled while time is measured; return whether any was compiled.

    A method that cannot learn from these documents is timed without this step.
    """
    with timed() as taken, suppress(LabelspaceError):
        compile_kernels(recipe.method, documents, recipe.params)
    return taken.compiling > 0


def _run(job: Job, train_set: Dataset, test_set: Dataset | None, progress: Progress) -> JobResult:
    cache, runs = FeatureCache(), []
    with timed() as making:
        for view in [] if train_set.X is not None else job.recipe.tagger().views(train_set):
            cache.get(view.create(), train_set.texts or [], progress)
    for number, (recipe, folder) in enumerate(zip(job.recipes, job.folders, strict=True)):
        progress(RUNS, number, len(job.seeds))
        runs.append(_fit(job, recipe, folder, train_set, cache, progress))
    del cache
    progress(RUNS, len(job.seeds), len(job.seeds))
    if test_set is None:
        test_set = job.source.test(train_set.labels)
    assert test_set is not None  # the source has a test file
    evaluated = [evaluate_documents(Tagger.load(folder), test_set, job.ks) for folder in job.folders]
    for about, found in zip(runs, evaluated, strict=True):
        about |= {key: value for key, value in found.figures.items() if key not in NOT_KEPT}
    per_document = mean_values([found.per_document for found in evaluated])
    row = {**described(job.recipe), "seeds": list(job.seeds), "features_seconds": round(making.wall, 3)}
    row |= {**over_seeds(runs), "ci": intervals(per_document, job.split_seed)}
    return JobResult(row, per_document, len(test_set))


def _fit(
    job: Job, recipe: Recipe, folder: Path, train_set: Dataset, cache: FeatureCache, progress: Progress
) -> dict[str, Any]:
    tagger = recipe.tagger()
    with timed() as taken:
        tagger.fit_dataset(train_set, lambda: job.source.dev(train_set.labels), progress, cache=cache)
    tagger.save(folder)
    return {
        "seed": recipe.seed,
        "train_seconds": round(taken.wall, 3),
        "train_cpu_seconds": round(taken.cpu, 3),
        "compile_seconds": round(taken.compiling, 3),
        "model_mb": megabytes(folder),
        "model": str(folder),
    }


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
