"""The members of all folds, and those on all documents, trained on the machines of a cluster: a task each.

What a task made becomes a finished step of the training, in its checkpoint folder. So the training goes on as one that
was interrupted when only the stacking model was left, and one whose cluster is lost resumes.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelspace import store
from labelspace.features.views import Views
from labelspace.models.blend.checkpoints import FinishedSteps
from labelspace.models.blend.training import Fold, MemberSettings, member_key, predict_member
from labelspace.models.fit_context import Executor
from labelspace.types import Csr, Progress, TopK


class MemberStep(NamedTuple):
    """A member of a fold, or on all documents; both count from 1."""

    member: int
    fold: int | None
    about: dict[str, Any]  # for the files of a member on all documents

    @property
    def key(self) -> str:
        """The name of the step among the finished steps."""
        return member_key(self.member, self.fold)


@dataclass(frozen=True)
class StepData:
    """The data and settings that all steps share."""

    settings: MemberSettings
    views: Views
    Y: Csr
    folds: Sequence[Fold]
    k: int  # labels that a member of a fold predicts


@contextmanager
def steps_folder(checkpoint: Path | None, executor: Executor | None) -> Iterator[Path | None]:
    """Yield the folder of finished steps: ``checkpoint``, or a temporary folder if steps come from a cluster."""
    if checkpoint is not None or executor is None:
        yield checkpoint
        return
    with tempfile.TemporaryDirectory(prefix="labelspace-") as folder:
        yield Path(folder)


def train_on_cluster(executor: Executor, data: StepData, finished: FinishedSteps, progress: Progress) -> None:
    """Run all steps that are not finished, steps on all documents first: they take longest."""
    members = list(enumerate(data.settings.members, 1))
    steps = [MemberStep(number, None, finished.about(member_key(number), m.method)) for number, m in members]
    steps += [MemberStep(number, fold, {}) for fold in range(1, len(data.folds) + 1) for number, _ in members]
    left = [step for step in steps if not finished.is_finished(step.key)]
    progress("members", len(steps) - len(left), len(steps))
    for done, (at, (made, seconds)) in enumerate(executor.map_unordered(run_step, data, left, whole_node=True), 1):
        if isinstance(made, TopK):
            finished.keep_topk(left[at].key, made, seconds)
        else:
            finished.keep_member_files(left[at].key, made)
        progress("members", len(steps) - len(left) + done, len(steps))


def run_step(data: StepData, step: MemberStep) -> tuple[TopK | dict[str, bytes], float]:
    """Run a step, a task of a cluster; return its result and its seconds."""
    start = time.perf_counter()
    return _made(data, step), time.perf_counter() - start


def _made(data: StepData, step: MemberStep) -> TopK | dict[str, bytes]:
    """Return the predictions of a member of a fold, or the files of a member on all documents."""
    member = data.settings.members[step.member - 1]
    if step.fold is None:
        model = data.settings.train(member, data.views, data.Y)
        with tempfile.TemporaryDirectory(prefix="labelspace-") as folder:
            path = Path(folder) / "member"
            store.save(path, step.about, {"model": model}, None)
            return {file.name: file.read_bytes() for file in path.iterdir()}
    fold = data.folds[step.fold - 1]
    train = np.setdiff1d(np.arange(data.Y.shape[0]), fold.held)
    model = data.settings.train(member, data.views.rows(train), data.Y[train])
    return predict_member(model, data.views.rows(fold.stacked), member.view, data.k)
