"""Epochs and batches, trainings that can be interrupted and resumed, and early stopping on held-out documents."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from labelspace.errors import DataError, ModelError
from labelspace.store import Arrays
from labelspace.training.checkpoints import Checkpoint
from labelspace.types import Bools, Csr, Ints, Progress, Rng, TopK

VALIDATION_K = 5  # labels per document that count in the validation score
HELD_OUT_SHARE, MAX_HELD_OUT = 0.1, 2_000  # documents cut from train, where no validation documents are given
STEPS = 500  # batches that suffice to learn, for most networks
EPOCHS = (6, 15)  # bounds of the number of epochs that is chosen, for most networks
MIN_BATCHES = 16  # per epoch, if there are as many documents: fewer steps would not suffice to learn
STATE = {"epoch": 0, "step": 0, "scores": [0.0]}  # the types of the values of a checkpoint

T = TypeVar("T")
Step = Callable[[T, Ints, float], None]
"""Trains on the rows of a batch in a phase, at a factor of the learning rate."""


class Trainable(Protocol):
    """A model in training: all that a step changes."""

    n_steps: int  # steps started

    def arrays(self) -> Arrays:
        """Return the arrays themselves, not copies."""


def batch_schedule(
    n: int,
    batch_size: int | None,
    epochs: int | None,
    steps: int = STEPS,
    epoch_bounds: tuple[int, int] = EPOCHS,
    usual: int = 256,
) -> tuple[int, int]:
    """Return the batch size and the number of epochs for n documents, as given or chosen.

    Unless given, a batch has the ``usual`` size, or fewer documents so that an epoch has ``MIN_BATCHES``. The number of
    epochs, within bounds, is chosen to make about this many ``steps``.

    >>> batch_schedule(1000, batch_size=None, epochs=None, steps=300, epoch_bounds=(8, 12))
    (63, 12)
    >>> batch_schedule(1000, 256, 20, 300, (8, 12))
    (256, 20)
    """
    batch_size = min(usual, -(-n // MIN_BATCHES)) if batch_size is None else min(batch_size, n)
    fewest, most = epoch_bounds
    return batch_size, epochs or min(max(round(steps / -(-n // batch_size)), fewest), most)


def epoch_batches(n: int, batch_size: int, epoch: int, epochs: int, rng: Rng) -> Iterator[tuple[Ints, float]]:
    """Yield the rows of each batch of one epoch, in random order, and the learning-rate factor.

    The factor falls linearly from 1 at the first batch of epoch 0 towards 0 after the last batch of all ``epochs``.
    """
    order = rng.permutation(n).astype(np.int32)
    starts = range(0, n, batch_size)
    for at, start in enumerate(starts):
        yield order[start : start + batch_size], 1.0 - (epoch * len(starts) + at) / (epochs * len(starts))


def batches(
    n: int, batch_size: int, epochs: int, rng: Rng, progress: Progress, phase: int = 0, phases: int = 1
) -> Iterator[tuple[Ints, float]]:
    """Yield the rows of each batch of all epochs, and the learning-rate factor (see ``epoch_batches``).

    ``progress`` is called with the number of finished epochs in all phases; every phase has ``epochs`` epochs.

    >>> [(len(rows), round(decay, 2)) for rows, decay in batches(5, 3, 2, np.random.default_rng(0), print)]
    epochs 1 2
    epochs 2 2
    [(3, 1.0), (2, 0.75), (3, 0.5), (2, 0.25)]
    """
    for epoch in range(epochs):
        yield from epoch_batches(n, batch_size, epoch, epochs, rng)
        progress("epochs", phase * epochs + epoch + 1, phases * epochs)


def run_phases(step: Step[T], phases: list[T], n: int, schedule: tuple[int, int], rng: Rng, progress: Progress) -> None:
    """Call ``step(phase, rows, lr_decay)`` for each batch of each phase, with a batch size and a number of epochs.

    BLAS has one thread: its sums depend on the number of threads, and blocks of labels and features have threads.
    """
    with threadpool_limits(1, user_api="blas"):
        for number, phase in enumerate(phases):
            for rows, lr_decay in batches(n, *schedule, rng, progress, number, len(phases)):
                step(phase, rows, lr_decay)


@dataclass
class Curve:
    """Metrics after each epoch: the rows that ``measure`` returns, also before an interruption."""

    measure: Callable[[], list[float]]
    rows: list[list[float]] = field(default_factory=list)


def run_epochs(
    net: Trainable,
    epochs: int,
    run_epoch: Callable[[int], None],
    validate: Callable[[], float] | None,
    patience: int | None,
    fingerprint: Mapping[str, Any],
    folder: Path | None,
    name: str = "checkpoint",
    curve: Curve | None = None,
) -> list[float]:
    """Train ``net`` by ``run_epoch(0)``, ``run_epoch(1)``, ...; return the validation score after each epoch.

    The random numbers of an epoch must depend on its number only. An interrupted training with the same ``fingerprint``
    (parameters and data) resumes from the checkpoint in ``folder``. With ``validate`` the net ends as it was after its
    best epoch, and training stops ``patience`` epochs after that at the latest. ``curve`` gets a row after each epoch.
    """
    initial: dict[str, Any] = {"epoch": 0, "step": 0, "scores": []} | ({} if curve is None else {"curve": []})
    like = STATE | ({} if curve is None else {"curve": [[0.0]]})
    with tempfile.TemporaryDirectory() as scratch:
        place = (folder or scratch, fingerprint)
        last = Checkpoint(*place, name)
        best = Checkpoint(*place, "best" if name == "checkpoint" else f"{name}-best", durable=folder is not None)
        with nullcontext() if folder is None else last.in_use():
            state = last.read(net.arrays(), like) or initial
            net.n_steps = state["step"]
            while state["epoch"] < epochs and not should_stop(state["scores"], patience):
                run_epoch(state["epoch"])
                state = {**state, "epoch": state["epoch"] + 1, "step": net.n_steps}
                if curve is not None:
                    state["curve"] = [*state["curve"], curve.measure()]
                if validate is not None:
                    state["scores"] = [*state["scores"], validate()]
                    if int(np.argmax(state["scores"])) == state["epoch"] - 1:
                        best.write(net.arrays(), state)
                if folder is not None:
                    last.write(net.arrays(), state)
            scores: list[float] = state["scores"]
            if curve is not None:
                curve.rows = state["curve"]
            kept = None if validate is None else best.read(net.arrays(), like)
            if validate is not None and (kept is None or kept["epoch"] != int(np.argmax(scores)) + 1):
                rule = f"{best.path} must be of the best epoch of this training"
                raise ModelError(f"{rule}, but is not; delete it and {last.path.name} to start again")
    return scores


def hold_out_rows(Y: Csr, share: float, at_most: int, random_state: int) -> tuple[Ints, Ints] | None:
    """Draw rows to train on, and rows to hold out; return None if either part would have no label.

    A document with a label that no training document has is not held out: its label could not be learned.
    """
    order = np.random.default_rng(random_state).permutation(Y.shape[0])
    n = min(round(share * Y.shape[0]), at_most)
    held_out, train = np.sort(order[:n]), np.sort(order[n:])
    unseen = np.bincount(Y[train].indices, minlength=Y.shape[1]) == 0
    needed = Y[held_out] @ unseen.astype(np.float32) > 0
    train, held_out = np.sort(np.concatenate([train, held_out[needed]])), held_out[~needed]
    return (train, held_out) if Y[held_out].nnz and Y[train].nnz else None


def early_stopping_rows(Y: Csr, random_state: int) -> tuple[Ints, Ints]:
    """Return rows to train on, and rows to stop by, where no validation documents are given."""
    split = hold_out_rows(Y, HELD_OUT_SHARE, MAX_HELD_OUT, random_state)
    if split is None:
        raise too_few_to_stop_by(Y.shape[0])
    return split


def too_few_to_stop_by(n: int) -> DataError:
    """Return the error for data of which no documents can be held out."""
    rule = "early stopping needs some documents with labels to stop by"
    return DataError(f"{rule}, but there are {n} in all; give validation documents, or leave patience out")


def should_stop(scores: Sequence[float], patience: int | None) -> bool:
    """Return whether the best epoch is ``patience`` epochs ago.

    >>> should_stop([0.1, 0.5, 0.4], patience=1), should_stop([0.1, 0.5, 0.4], patience=2), should_stop([0.1], None)
    (True, False, False)
    """
    return patience is not None and len(scores) - 1 - int(np.argmax([*scores, -1])) >= patience


def r_precision(top: TopK, Y: Csr) -> float:
    """Return R-precision at ``VALIDATION_K``: hits over min(VALIDATION_K, labels of the document); 0 without labels."""
    relevant = np.minimum(np.diff(Y.indptr), VALIDATION_K)
    labeled = relevant > 0
    return float((true_labels(top, Y).sum(axis=1)[labeled] / relevant[labeled]).mean()) if labeled.any() else 0.0


def true_labels(top: TopK, Y: Csr) -> Bools:
    """Return which of the listed labels are true ones. Shape (n, k)."""
    rows = np.repeat(np.arange(len(top)), top.k)
    found = np.asarray(Y[rows, np.maximum(top.labels, 0).ravel()]).reshape(top.labels.shape) > 0
    return found & (top.labels >= 0)
