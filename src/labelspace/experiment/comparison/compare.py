"""Compare: several methods under one protocol, on the same documents, with a test of the differences.

1. Check methods, parameters and folders, then the training documents, before anything is trained.
2. Run each method in a process of its own, one after the other: fit once per seed, save, then read the test documents
   and measure (``comparison.run``). A method that fails, or whose process dies, is reported, and the others continue.
   On a cluster, methods run at the same time on different machines (``comparison.tasks``).
3. Test the differences on the same test documents, each the mean over the seeds; write the results.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from labelspace import store
from labelspace.data.read_options import ReadOptions
from labelspace.data.source import Source
from labelspace.errors import MissingExtraError, ParameterError
from labelspace.experiment.comparison import process, tasks
from labelspace.experiment.comparison.job import Job, JobResult, RunJob, model_folders, seeds_of
from labelspace.experiment.comparison.results import tested, write_results
from labelspace.experiment.comparison.run import RUNS, run
from labelspace.experiment.evaluate import check_ks
from labelspace.experiment.splits import tested_on, training_documents
from labelspace.experiment.train import Recipe
from labelspace.models.fit_context import Executor
from labelspace.options import check_names
from labelspace.types import Dataset, OverallProgress, Progress, no_progress
from labelspace.version import __version__


class CompareOptions(TypedDict, total=False):
    """Options of ``compare``."""

    ks: Sequence[int]
    """The ranks to measure at, by default 1, 3 and 5."""
    seed: int
    """The seed of the split into training and test documents, if there is no test file."""
    seeds: Sequence[int] | None
    """Train each method once per seed, or once if it draws nothing at random; figures are means, with standard
    deviations as ``NAME_std``."""
    only_runnable: bool
    """Leave out methods that need a package that is not installed, or texts if there are none; ``left_out`` of the
    results has the reasons."""
    isolated: bool
    """False runs all methods in this process, for methods that this program registers; peak memory is not measured."""
    executor: Executor | None
    """A cluster that runs the methods at the same time, each on a machine of its own."""
    progress: Progress | None
    """Called with the steps of all runs."""


def compare(
    source: Source, recipes: Sequence[Recipe], out: str | Path, **options: Unpack[CompareOptions]
) -> dict[str, Any]:
    """Run several methods under one protocol; write ``results.json``, ``results.csv`` and the models to a folder.

    Unknown methods and parameters raise an error before any data are read. A method that fails on the data is reported
    in its row, and the others continue. ``paired_test`` of the results names the best method by each metric, and the
    methods that are significantly worse on these documents (``metrics.bootstrap``). The options are those of
    ``CompareOptions``.
    """
    check_names(options, CompareOptions)
    ks, seed, seeds = options.get("ks", (1, 3, 5)), options.get("seed", 0), options.get("seeds")
    only_runnable, executor = options.get("only_runnable", False), options.get("executor")
    progress = options.get("progress") or no_progress
    out = Path(out)
    left_out: dict[str, str] = {}
    if only_runnable:
        recipes, left_out = installed(recipes)
    check_comparison(recipes, out, seeds)
    out.mkdir(parents=True, exist_ok=True)  # before the work, not after it
    quiet = replace(source, options=replace(source.options, say=ReadOptions().say))  # detected formats are told once
    sizes, recipes, unreadable = _examined(source, recipes, ks, seed, only_runnable)
    jobs = [Job(recipe, seeds_of(recipe, seeds), quiet, out, ks, seed) for recipe in recipes]
    run_job = process.run_isolated if options.get("isolated", True) else run
    if executor is None:
        found = _run_all(jobs, run_job, progress)
    else:
        found = tasks.run_all(executor, jobs, run_job, progress)
    results = {
        "data": source.path.name,
        "n_train": sizes.n_train,
        "n_test": _n_test(found, sizes, source),
        "n_labels": sizes.n_labels,
        "test": tested_on(source),
        "seed": seed,
        "seeds": None if seeds is None else list(seeds),
        "labelspace": __version__,
        "left_out": {**left_out, **unreadable},
        "rows": [result.row for result in found],
        "paired_test": tested({r.row["method"]: r.per_document for r in found if "error" not in r.row}, seed),
    }
    write_results(results, out)
    return results


def check_comparison(recipes: Sequence[Recipe], out: Path, seeds: Sequence[int] | None = None) -> None:
    """Raise an error for methods, parameters or folders that are bound to fail, before any data are read."""
    if not recipes:
        raise ParameterError("there must be a method to compare, but there is none; name one, such as neighbors")
    for recipe in recipes:
        recipe.check()
        for folder in model_folders(recipe, seeds_of(recipe, seeds), out):
            store.check_writable(folder)


@dataclass(frozen=True)
class Sizes:
    """The sizes of a comparison; ``n_test`` is None if there is a test file, which is not read yet."""

    n_train: int
    n_test: int | None
    n_labels: int


def _examined(
    source: Source, recipes: Sequence[Recipe], ks: Sequence[int], seed: int, only_runnable: bool
) -> tuple[Sizes, Sequence[Recipe], dict[str, str]]:
    """Read the training documents once; return their sizes, the recipes that can read them, and the others' reasons."""
    train_set, test_set = training_documents(source, seed)
    check_ks(ks, len(train_set.labels))
    sizes = Sizes(len(train_set), None if test_set is None else len(test_set), len(train_set.labels))
    kept, left_out = readable(recipes, train_set) if only_runnable else (recipes, {})
    return sizes, kept, left_out


def _run_all(jobs: Sequence[Job], run_job: RunJob, progress: Progress) -> list[JobResult]:
    done, total, found = 0, sum(len(job.seeds) for job in jobs), []
    for job in jobs:
        found.append(run_job(job, JobProgress(job, done, total, progress)))
        done += len(job.seeds)
    return found


@dataclass
class JobProgress:
    """A ``Progress`` that shows the steps of one job as parts of all runs."""

    job: Job
    before: int  # runs of other jobs that are done
    total: int
    progress: Progress
    here: int = 0  # runs of this job that are done

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show the progress of a step."""
        if step == RUNS:
            self.here, step = done, "training" if done < total else "evaluation"
        runs, number = self.before + self.here, min(self.here, len(self.job.seeds) - 1)
        seed = f", seed {self.job.seeds[number]}" if len(self.job.seeds) > 1 else ""
        what = f"{self.job.recipe.method}{seed}, run {self.before + number + 1} of {self.total}"
        shown: object = self.progress
        if isinstance(shown, OverallProgress):
            shown.overall(what, f"{what}: {step}", runs / self.total, None)
        else:
            self.progress(RUNS, runs, self.total)


def _n_test(found: Sequence[JobResult], sizes: Sizes, source: Source) -> int:
    known = [result.n_test for result in found if result.n_test is not None]
    if sizes.n_test is not None or known:
        return known[0] if sizes.n_test is None else sizes.n_test
    test_set = source.test()  # all methods failed; a damaged test file, if that is the cause, raises its error here
    return 0 if test_set is None else len(test_set)


def installed(recipes: Sequence[Recipe]) -> tuple[list[Recipe], dict[str, str]]:
    """Return the recipes whose packages are installed, and the reason for each method that is left out.

    >>> installed([Recipe("popular")])
    ([Recipe(method='popular', ...)], {})
    """
    kept, left_out = [], {}
    for recipe in recipes:
        try:
            recipe.check()
            kept.append(recipe)
        except MissingExtraError as error:
            left_out[recipe.method] = str(error)
    return kept, left_out


def readable(recipes: Sequence[Recipe], documents: Dataset) -> tuple[list[Recipe], dict[str, str]]:
    """Return the recipes whose methods can read the documents, and the reason for each method that is left out."""
    reason = "it reads texts, but the data hold ready-made features"
    left_out = {recipe.method: reason for recipe in recipes if not _reads(recipe, documents)}
    return [recipe for recipe in recipes if recipe.method not in left_out], left_out


def _reads(recipe: Recipe, documents: Dataset) -> bool:
    """Return whether a method can read the documents: texts, or ready-made features if one of its views is a matrix."""
    return documents.texts is not None or any(view.is_matrix for view in recipe.tagger().views(documents))
