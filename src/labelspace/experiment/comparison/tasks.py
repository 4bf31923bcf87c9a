"""Run jobs as tasks of a cluster, each on a machine of its own, so that times are not disturbed by other jobs.

The documents go to the machines, and the models and figures come back, so that only this machine needs the files. On a
machine, each split is a file that is read when the job needs it: the test documents after the training, as without a
cluster.
"""

import pickle  # nosec B403
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from labelspace import store
from labelspace.data.source import Source
from labelspace.experiment.comparison.run import RUNS, Job, JobResult, RunJob
from labelspace.experiment.train import training_documents
from labelspace.models.fit_context import Executor
from labelspace.store.atomic import replacing_folder
from labelspace.types import Dataset, LabelSpace, Progress, no_progress

Bytes = npt.NDArray[np.uint8]  # Ray does not copy arrays on their way
SplitBytes = dict[str, Bytes]  # of the documents of train, test, and dev if there is one; each becomes a file
FOLDERS = "labelspace-compare-"  # prefix of temporary folders
LOCK = "lock"  # a file that is locked while its folder is in use
NEW_SECONDS = 60.0  # age below which a folder is not removed: its process may not have locked it yet


class SavedSource(Source):
    """A source whose splits are files of the bytes of ``split_bytes``."""

    @classmethod
    def write(cls, splits: SplitBytes, folder: Path) -> Self:
        """Write the splits as files to a folder, and return a source that reads them."""
        paths = {name: folder / name for name in splits}
        for name, path in paths.items():
            splits[name].tofile(path)
        return cls(folder, paths["train"], paths.get("dev"), paths["test"])

    def train(self) -> Dataset:
        """Return the training documents."""
        return _loaded(self.train_path)

    def dev(self, labels: LabelSpace | None = None) -> Dataset | None:
        """Return the validation documents, or None; their labels are known already."""
        return None if self.dev_path is None else _loaded(self.dev_path)

    def test(self, labels: LabelSpace | None = None) -> Dataset | None:
        """Return the test documents; their labels are known already."""
        return None if self.test_path is None else _loaded(self.test_path)


def _loaded(path: Path) -> Dataset:
    with path.open("rb") as file:
        documents: Dataset = pickle.load(file)  # nosec B301 - this process wrote it
    return documents


def split_bytes(source: Source, seed: int) -> SplitBytes:
    """Read all splits of a source; ``seed`` draws the test documents if there is no test file."""
    train_set, test_set = training_documents(source, seed)
    test_set = source.test(train_set.labels) if test_set is None else test_set
    splits = {"train": train_set, "dev": source.dev(train_set.labels), "test": test_set}
    packed = {name: pickle.dumps(split, 5) for name, split in splits.items() if split is not None}
    return {name: np.frombuffer(content, np.uint8) for name, content in packed.items()}


class DoneJob(NamedTuple):
    """The result of a job, and the files of the model of each seed."""

    result: JobResult
    models: list[dict[str, Bytes]]


def run_all(executor: Executor, jobs: Sequence[Job], run_job: RunJob, progress: Progress) -> list[JobResult]:
    """Run all jobs on the same documents; return the results in the order of the jobs, and write the models."""
    if not jobs:
        return []
    done, total, found = 0, sum(len(job.seeds) for job in jobs), dict[int, JobResult]()
    shared = split_bytes(jobs[0].source, jobs[0].split_seed), run_job
    progress(RUNS, done, total)
    for at, (result, models) in executor.map_unordered(run_task, shared, jobs, whole_node=True):
        for folder, files in zip(jobs[at].folders, models, strict=False):  # a failed job has fewer models
            with replacing_folder(folder, store.check_writable) as made:
                for name, content in files.items():
                    content.tofile(made / name)
        found[at] = result
        done += len(jobs[at].seeds)
        progress(RUNS, done, total)
    return [found[at] for at in range(len(jobs))]


def run_task(shared: tuple[SplitBytes, RunJob], job: Job) -> DoneJob:
    """Run a job in a temporary folder, as a task of a cluster."""
    splits, run_job = shared
    with job_folder() as folder:
        here = replace(job, source=SavedSource.write(splits, folder), out=folder / "out")
        result = run_job(here, no_progress)
        saved = [folder for folder in here.folders if folder.is_dir()]
        models = [{file.name: np.fromfile(file, np.uint8) for file in folder.iterdir()} for folder in saved]
    return DoneJob(replace(result, row=_moved(result.row, here.out, job.out)), models)


@contextmanager
def job_folder() -> Iterator[Path]:
    """Make a temporary folder, after removing the folders of killed tasks, which could not remove them."""
    for left in Path(tempfile.gettempdir()).glob(f"{FOLDERS}*"):
        with suppress(OSError):  # another task removes it at this moment, or it belongs to another user
            if time.time() - left.stat().st_mtime > NEW_SECONDS:
                with store.locked(left / LOCK) as is_free:
                    if is_free:
                        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=FOLDERS) as folder, store.locked(Path(folder) / LOCK):
        yield Path(folder)


def _moved(row: dict[str, Any], old: Path, new: Path) -> dict[str, Any]:
    """Change the paths of models in a row from one folder to another."""
    for run in (row, *row.get("runs", ())):
        if "model" in run:
            run["model"] = str(new / Path(run["model"]).relative_to(old))
    return row
