"""What a training may use besides the documents: labels, validation documents, a checkpoint folder, time, machines."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from labelspace.errors import DataError
from labelspace.features.views import take_rows
from labelspace.kernels.threads import run_parallel
from labelspace.training.epochs import early_stopping_rows
from labelspace.types import Csr, Doubles, LabelSpace, Progress, no_progress

Read: TypeAlias = Any  # documents as the method reads them
Held = tuple[Read, Csr]  # documents that are not trained on, and their labels
Shared: TypeAlias = Any  # whatever the tasks of a training need

Tick = Callable[[int], None]
"""Reports that a learner advanced by so many steps."""

Item = TypeVar("Item")
T = TypeVar("T")


class Budget:
    """CPU seconds that a training may take from now on, summed over threads; it notes what was left out."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.process_time) -> None:
        self.seconds, self.clock = seconds, clock
        self.expected: dict[str, float] = {}  # CPU seconds of parts of the training
        self.left_out: list[str] = []  # parts that were skipped to keep to the budget
        self._start = clock()

    @property
    def spent(self) -> float:
        """CPU seconds since the budget was made."""
        return self.clock() - self._start

    @property
    def left(self) -> float:
        """CPU seconds that remain; negative if the budget is exceeded."""
        return self.seconds - self.spent


class Executor(Protocol):
    """Runs independent tasks of a training on the machines of a cluster, several at a time.

    A task is a function of a module. Its result must not depend on where, when or how often the task runs: a task whose
    machine is lost is run again.
    """

    n_cpus: int  # of all machines

    def map_unordered(
        self, task: Callable[[Any, Item], T], shared: Shared, items: Sequence[Item], whole_node: bool = False
    ) -> Iterator[tuple[int, T]]:
        """Yield the position of each item and ``task(shared, item)``, in the order in which tasks finish.

        A task has one thread, or with ``whole_node`` all threads of a machine.
        """


@dataclass(frozen=True)
class FitContext:
    """Everything besides the documents that a training may use; parts that no method reads are not computed."""

    labels: LabelSpace | None = None
    progress: Progress = no_progress
    checkpoint: Path | None = None  # a folder to keep the state of the training in
    label_features: Csr | None = None  # (n_labels, n_features): the labels' own texts as documents
    load_validation: Callable[[], Held | None] | None = None
    budget: Budget | None = None  # for a method that can leave something out
    executor: Executor | None = None  # of a cluster, for a method that can train in tasks
    sample_weight: Doubles | None = None  # (n,) of the documents, above 0; None if all weigh the same

    label_weight: Doubles | None = None  # (n_labels,), above 0; None if all labels weigh the same

    def document_weights(self, n: int) -> Doubles:
        """Return the weights of the documents, 1 unless they are given. Shape (n,)."""
        return np.ones(n) if self.sample_weight is None else self.sample_weight

    @cached_property
    def validation(self) -> Held | None:
        """The validation documents, read on first use; None if none were given or none has a label."""
        held = None if self.load_validation is None else self.load_validation()
        return held if held is not None and held[1].nnz else None

    def train_learners(
        self, train: Callable[..., T], shared: tuple[Any, ...], n: int, progress: Callable[[int], None]
    ) -> list[T]:
        """Return ``train(*shared, number, tick)`` for n learners, trained on threads here or on other machines.

        ``train`` is a function of a module. It calls ``tick(steps)`` as it advances; on threads here, ``progress`` is
        called with the sum of these steps.
        """
        if self.executor is None:
            return run_parallel(lambda number, tick: train(*shared, number, tick), n, progress)
        trained: dict[int, T] = {}
        for number, learner in self.executor.map_unordered(train_learner, (train, shared), range(n)):
            trained[number] = learner
            self.progress("learners", len(trained), n)
        return [trained[number] for number in range(n)]

    def require_labels(self, method: str) -> LabelSpace:
        """Return the labels; raise DataError, naming the method that needs them, if there are none."""
        if self.labels is None:
            raise DataError(f"{method} must know the names of the labels, but labels is None; give labels to fit")
        return self.labels

    def early_stopping_split(
        self, X: Read, Y: Csr, patience: int | None, random_state: int
    ) -> tuple[Any, Csr, Held | None]:
        """Return X and Y to train on, and the documents to stop by, which are None without ``patience``.

        The documents to stop by are the validation documents, or some that are held out of X and Y.
        """
        if patience is None:
            return X, Y, None
        if self.validation is not None:
            return X, Y, self.validation
        train, held = early_stopping_rows(Y, random_state)
        return take_rows(X, train), Y[train], (take_rows(X, held), Y[held])


def train_learner(shared: tuple[Callable[..., T], tuple[Any, ...]], number: int) -> T:
    """Train one learner: a task of a cluster."""
    train, arguments = shared
    return train(*arguments, number, lambda steps: None)
