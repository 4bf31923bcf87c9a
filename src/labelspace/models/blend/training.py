"""Training of the members, in folds and on all documents; a step that a checkpoint has is not done again.

On a cluster, a member of a fold, or one on all documents, is a task. What a task made becomes a finished step of the
training, in its checkpoint folder. So the training goes on as one that was interrupted when only the stacking model was
left, and one whose cluster is lost resumes.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelspace import store
from labelspace.features.language import AUTO
from labelspace.features.views import EMBEDDINGS, GIVEN, Views
from labelspace.models.base import Model
from labelspace.models.blend.checkpoints import FinishedSteps
from labelspace.models.blend.members import BEST, FAST, NORMAL, Member, member_params, view_for, view_width
from labelspace.models.blend.stacking_model import Cooccurrence, count_pairs
from labelspace.models.blend.stacking_table import MemberTopK
from labelspace.models.blend.steps import Step, Steps
from labelspace.models.capabilities import PredictsTwice, WeighsDocuments
from labelspace.models.fit_context import Budget, Executor, FitContext
from labelspace.models.registry import create
from labelspace.types import Bools, Csr, Doubles, LabelSpace, Longs, Progress, TopK, no_progress


class Fold(NamedTuple):
    """The rows that are held out, and the rows among them that members predict."""

    held: Longs
    stacked: Longs


class Training(NamedTuple):
    """Documents to train members on."""

    views: Views
    Y: Csr
    weights: Doubles | None  # (n,) of the documents; None if all weigh the same

    def rows(self, rows: Longs) -> "Training":
        """Return the documents with these row numbers."""
        weights = None if self.weights is None else self.weights[rows]
        return Training(self.views.rows(rows), self.Y[rows], weights)


class HeldOut(NamedTuple):
    """The predictions of members for documents that they were not trained on."""

    topk: MemberTopK
    truth: Csr  # the labels of these documents
    pairs: Cooccurrence  # of the documents that the members were trained on: labels are as rare as there


def plan(members: Sequence[Member], fold_sizes: Sequence[int], n_documents: int) -> list[Step]:
    """Return all steps: each member in each fold, each member on all documents, and the stacking model."""
    methods = Counter(member.method for member in members)
    names = [member.method if methods[member.method] == 1 else str(member) for member in members]
    phases = [(f"fold {at} of {len(fold_sizes)}", n) for at, n in enumerate(fold_sizes, 1)]
    phases.append(("all documents", n_documents))
    return [
        *(Step(phase, name, n) for phase, n in phases for name in names),
        Step("stacking", "boosted trees", n_documents),
    ]


@dataclass(frozen=True)
class MemberSettings:
    """The settings that members are trained with, on this machine or another."""

    members: Sequence[Member]
    random_state: int
    labels: LabelSpace | None
    tuned: Mapping[Member, Mapping[str, Any]]
    language: str = AUTO
    label_features: Csr | None = None  # the labels' texts under the view of embeddings, or as ready-made features

    def create(self, member: Member) -> Model:
        """Return a member that is not trained yet."""
        params = member_params(member, self.random_state, self.language)
        if member.method == "lexical" and any(other.method == "semantic" for other in self.members):
            params["new_labels"] = True  # together they judge labels without documents
        return create(member.method, **{**params, **self.tuned.get(member, {})})

    def train(
        self, member: Member, train: Training, progress: Progress = no_progress, checkpoint: Path | None = None
    ) -> Model:
        """Return a member that is trained on its view of the documents."""
        model = self.create(member)
        model.check_params()
        is_read = member.view == EMBEDDINGS.name or GIVEN in train.views.tables
        features = self.label_features if is_read else None
        weights = train.weights if isinstance(model, WeighsDocuments) else None
        context = FitContext(self.labels, progress, checkpoint, features, sample_weight=weights)
        return model.fit_checked(view_for(model, train.views, member.view), train.Y, context).keep_for_prediction()


class MemberTraining:
    """Trains members one after another in the order of ``steps``, and keeps finished steps."""

    def __init__(
        self, settings: MemberSettings, steps: Steps, finished: FinishedSteps, budget: Budget | None = None
    ) -> None:
        self.settings, self.members, self.labels = settings, settings.members, settings.labels
        self.steps, self.finished, self.budget = steps, finished, budget
        self._spent_before = 0.0 if budget is None else budget.spent

    def must_skip_fold(self, fold: int, n_folds: int) -> bool:
        """Leave out the next fold if all steps are expected to exceed the budget; return whether it is left out."""
        share, budget = self.steps.share_done(), self.budget
        if budget is None or share is None:
            return False
        expected = self._spent_before + (budget.spent - self._spent_before) / share
        if expected <= budget.seconds:
            return False
        self.steps.drop_next(len(self.members))
        budget.left_out.append(f"fold {fold} of {n_folds}")
        return True

    def out_of_fold(self, number: int, fold: Fold, train: Training, k: int) -> HeldOut:
        """Return the k labels that members predict for documents held out of their training; folds count from 1."""
        rest = train.rows(np.setdiff1d(np.arange(train.Y.shape[0]), fold.held))
        topk = self._predict_fold(number, rest, train.views.rows(fold.stacked), k)
        return HeldOut(topk, train.Y[fold.stacked], count_pairs(rest.Y))

    def _predict_fold(self, fold: int, train: Training, held: Views, k: int) -> MemberTopK:
        """Return what each member, trained on some documents, predicts for the documents held out."""
        predicted = []
        for number, member in enumerate(self.members, 1):
            key = member_key(number, fold)
            kept = self.finished.read_topk(key, (held.n, k), train.Y.shape[1])
            if kept is None:
                with self.steps.running() as progress:
                    top = predict_member(self._train(key, member, train, progress), held, member.view, k)
                self.finished.keep_topk(key, top, self.steps.last_seconds)
            else:
                top, seconds = kept
                self.steps.skip(seconds)
            predicted.append(top)
        return side_by_side(predicted)

    def final_members(self, train: Training) -> dict[int, Model]:
        """Return the members, trained on all documents, by their place; members over the budget are left out."""
        trained: dict[int, Model] = {}
        begin = 0.0 if self.budget is None else self.budget.spent
        for number, member in enumerate(self.members, 1):
            if trained and self._must_skip(member, [self.members[at] for at in trained], begin):
                continue
            key, untrained = member_key(number), self.settings.create(member)
            widths = {untrained.view.name: view_width(train.views, member.view)}
            model = self.finished.read_member(key, untrained, widths, train.Y.shape[1])
            if model is None:
                with self.steps.running() as progress:
                    model = self._train(key, member, train, progress)
                self.finished.keep_member(key, model)
            else:
                model.attach_labels(None if self.labels is None else self.labels.counted(train.Y))
                self.steps.skip()
            trained[number - 1] = model
        return trained

    def _must_skip(self, member: Member, trained: Sequence[Member], begin: float) -> bool:
        """Leave out a member that is expected to exceed the budget; return whether it is left out.

        The expectation is scaled by how much longer the other members took than expected.
        """
        if self.budget is None:
            return False
        expected = sum(self.budget.expected.get(str(other), 0.0) for other in trained)
        slower = (self.budget.spent - begin) / expected if expected else 1.0
        if slower * self.budget.expected.get(str(member), 0.0) <= self.budget.left:
            return False
        self.steps.drop_next()
        self.budget.left_out.append(str(member))
        return True

    def _train(self, key: str, member: Member, train: Training, progress: Progress) -> Model:
        checkpoint = self.finished.training_folder(key, self.settings.create(member))
        return self.settings.train(member, train, progress, checkpoint)


def member_key(number: int, fold: int | None = None) -> str:
    """Return the name of a member, or of a member of a fold, among the finished steps; both count from 1."""
    return f"member-{number}" if fold is None else f"fold-{fold}-member-{number}"


def predict_member(member: Model, views: Views, view: str, k: int, allowed: Bools | None = None) -> TopK:
    """Return the k best labels of each document by a member, among the allowed ones; inputs are checked already."""
    X = member.read(view_for(member, views, view))
    if allowed is not None:
        allowed = allowed[: member.n_labels_]
        if not allowed.any():
            return TopK.empty(views.n, k)
    return member._predict(X, min(k, member.n_labels_), allowed).padded(k)


def predict_member_twice(
    member: Model, views: Views, view: str, k: int, depth: int, allowed: Bools
) -> tuple[TopK, TopK]:
    """Return the k best of all labels by a member, and the ``depth`` best of the allowed ones."""
    X = member.read(view_for(member, views, view))
    if isinstance(member, PredictsTwice) and len(allowed) == member.n_labels_:
        return member.predict_twice(X, k, depth, allowed)
    return predict_member(member, views, view, k), predict_member(member, views, view, depth, allowed)


def side_by_side(predicted: Sequence[TopK]) -> MemberTopK:
    """Join the predictions of all members for the same documents."""
    shape = (len(predicted), *predicted[0].labels.shape)
    members = MemberTopK(np.empty(shape, np.int32), np.empty(shape, np.float32))
    for at, top in enumerate(predicted):
        members.labels[at], members.scores[at] = top.labels, top.scores
    return members


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
    train: Training
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
        model = data.settings.train(member, data.train)
        with tempfile.TemporaryDirectory(prefix="labelspace-") as folder:
            path = Path(folder) / "member"
            store.save(path, step.about, {"model": model}, None)
            return {file.name: file.read_bytes() for file in path.iterdir()}
    fold = data.folds[step.fold - 1]
    rest = np.setdiff1d(np.arange(data.train.Y.shape[0]), fold.held)
    model = data.settings.train(member, data.train.rows(rest))
    return predict_member(model, data.train.views.rows(fold.stacked), member.view, data.k)


MIN_DOCUMENTS = 50  # with fewer there is nothing to learn from
MANY_ENOUGH = 200  # with fewer and most labels without any, label texts alone are better
MAX_OUT_OF_FOLD = 20_000  # documents up to which all are predicted out of fold; above, a sample is held out once
FOLDS = {FAST: 1, NORMAL: 2, BEST: 5}
SAMPLE_SHARE, MAX_SAMPLE = 0.1, 6_000
MAX_STACKED = 8_000  # documents that the stacking model learns from


def folds(Y: Csr, n_folds: int | None, effort: str, random_state: int) -> list[Fold]:
    """Return the rows held out in each fold, except folds that hold all labels and leave none to train."""
    held_out = held_out_folds(Y.shape[0], n_folds or choose_folds(Y.shape[0], effort), random_state)
    kept = [held for held in held_out if Y[held].nnz < Y.nnz]
    return [Fold(held, stacked_rows(held, len(kept), random_state)) for held in kept]


def are_too_few(Y: Csr) -> bool:
    """Return whether documents tell less of their labels than the labels' texts do: most labels have none."""
    return bool(Y.shape[0] < MANY_ENOUGH and Y.nnz < Y.shape[1])


def choose_folds(n: int, effort: str = NORMAL) -> int:
    """Return the number of folds for n documents; 1 holds out a sample once.

    >>> choose_folds(4_000), choose_folds(4_000, "best"), choose_folds(30_000)
    (2, 5, 1)
    """
    return FOLDS[effort] if n <= MAX_OUT_OF_FOLD else 1


def held_out_folds(n: int, n_folds: int, random_state: int) -> list[Longs]:
    """Return the rows held out of n documents: one sample, or all rows fold by fold; none of too few documents.

    >>> [len(rows) for rows in held_out_folds(103, 5, 0)], held_out_folds(40, 5, 0)
    ([21, 21, 21, 20, 20], [])
    """
    order = np.random.default_rng(random_state).permutation(n)
    if n < MIN_DOCUMENTS:
        return []
    if n_folds == 1:
        return [np.sort(order[: min(round(SAMPLE_SHARE * n), MAX_SAMPLE)])]
    return [np.sort(rows) for rows in np.array_split(order, min(n_folds, n))]


def stacked_rows(held: Longs, n_folds: int, random_state: int) -> Longs:
    """Return the rows held out in a fold that the stacking model learns from: more rows gain nothing.

    >>> len(stacked_rows(np.arange(9_000), 2, 0)), len(stacked_rows(np.arange(3_000), 2, 0))
    (4000, 3000)
    """
    most = MAX_STACKED // n_folds
    if len(held) <= most:
        return held
    return np.sort(np.random.default_rng(random_state).choice(held, most, replace=False))
