"""Compare: several methods under one protocol, on the same documents, with a test of the differences.

1. Check methods, parameters and folders, then the training documents, before anything is trained.
2. Run each method in a process of its own, one after the other: fit once per seed, save, then read the test documents
   and measure (``comparison.run``). A method that fails, or whose process dies, is reported, and the others continue.
   On a cluster, methods run at the same time on different machines (``comparison.tasks``).
3. Test the differences on the same test documents, each the mean over the seeds; write the results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from labelspace import store
from labelspace.data.read_options import ReadOptions
from labelspace.data.source import Source
from labelspace.errors import MissingExtraError, ParameterError
from labelspace.experiment.comparison import process, tasks
from labelspace.experiment.comparison.run import RUNS, Job, JobResult, PerDocument, RunJob, model_folders, run
from labelspace.experiment.evaluate import check_ks, percent
from labelspace.experiment.results import write_results
from labelspace.experiment.train import Recipe, seeds_of, tested_on, training_documents
from labelspace.metrics import bootstrap
from labelspace.models.fit_context import Executor
from labelspace.types import Dataset, OverallProgress, Progress, no_progress
from labelspace.version import __version__


def compare(
    source: Source,
    recipes: Sequence[Recipe],
    out: str | Path,
    *,
    ks: Sequence[int] = (1, 3, 5),
    seed: int = 0,
    seeds: Sequence[int] | None = None,
    only_runnable: bool = False,
    isolated: bool = True,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run several methods under one protocol; write ``results.json``, ``results.csv`` and the models to a folder.

    Unknown methods and parameters raise an error before any data are read. A method that fails on the data is reported
    in its row, and the others continue. ``paired_test`` of the results names the best method by each metric, and the
    methods that are significantly worse on these documents (``metrics.bootstrap``).

    Args:
        source: The data.
        recipes: The methods with their settings.
        out: The folder to write to.
        ks: The ranks to measure at.
        seed: The seed of the split into training and test documents, if there is no test file.
        seeds: Train each method once per seed, or once if it draws nothing at random; figures are means, with standard
            deviations as ``NAME_std``.
        only_runnable: Leave out methods that need a package that is not installed, or texts if there are none;
            ``left_out`` of the results has the reasons.
        isolated: False runs all methods in this process, for methods that this program registers; peak memory is not
            measured.
        executor: A cluster that runs the methods at the same time, each on a machine of its own.
        progress: Called with the steps of all runs.
    """
    out = Path(out)
    left_out: dict[str, str] = {}
    if only_runnable:
        recipes, left_out = installed(recipes)
    check_comparison(recipes, out, seeds)
    out.mkdir(parents=True, exist_ok=True)  # before the work, not after it
    quiet = replace(source, options=replace(source.options, say=ReadOptions().say))  # detected formats are told once
    train_set, test_set = training_documents(source, seed)
    n_train, n_labels = len(train_set), len(train_set.labels)
    n_test = None if test_set is None else len(test_set)
    check_ks(ks, n_labels)
    if only_runnable:
        recipes, unreadable = readable(recipes, train_set)
        left_out |= unreadable
    del train_set, test_set  # not in memory next to those of the runs
    jobs = [Job(recipe, seeds_of(recipe, seeds), quiet, out, ks, seed) for recipe in recipes]
    run_job = process.run_isolated if isolated else run
    if executor is None:
        found = _run_all(jobs, run_job, progress or no_progress)
    else:
        found = tasks.run_all(executor, jobs, run_job, progress or no_progress)
    if n_test is None:
        n_test = next((result.n_test for result in found if result.n_test is not None), None)
    if n_test is None:  # all methods failed; a damaged test file, if that is the cause, raises its error here
        n_test = len(source.test() or ())
    results: dict[str, Any] = {
        "data": source.path.name,
        "n_train": n_train,
        "n_test": n_test,
        "n_labels": n_labels,
        "test": tested_on(source),
        "seed": seed,
        "seeds": None if seeds is None else list(seeds),
        "labelspace": __version__,
        "left_out": left_out,
        "rows": [result.row for result in found],
        "paired_test": tested({r.row["method"]: r.per_document for r in found if "error" not in r.row}, seed),
    }
    write_results(results, results["rows"], out)
    return results


def tested(per_document: Mapping[str, PerDocument], seed: int) -> dict[str, Any]:
    """Return the best method by each metric, and the distance of the others from it in percent, with p-values."""
    tests = bootstrap.compare_with_best(per_document, seed=seed)
    for test in tests.values():
        for other in test["others"].values():
            other["difference"] = percent(other["difference"])
            other["interval"] = [percent(bound) for bound in other["interval"]]
            other |= {key: round(other[key], 6) for key in ("p", "p_holm")}
    return {"n_resamples": bootstrap.N_PAIRED_RESAMPLES, "significance": bootstrap.SIGNIFICANT, "metrics": tests}


def check_comparison(recipes: Sequence[Recipe], out: Path, seeds: Sequence[int] | None = None) -> None:
    """Raise an error for methods, parameters or folders that are bound to fail, before any data are read."""
    if not recipes:
        raise ParameterError("there must be a method to compare, but there is none; name one, such as neighbors")
    for recipe in recipes:
        recipe.check()
        for folder in model_folders(recipe, seeds_of(recipe, seeds), out):
            store.check_writable(folder)


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
    if documents.texts is not None:
        return list(recipes), {}
    kept = [recipe for recipe in recipes if any(view.is_matrix for view in recipe.tagger().views(documents))]
    reason = "it reads texts, but the data hold ready-made features"
    return kept, {recipe.method: reason for recipe in recipes if recipe not in kept}
