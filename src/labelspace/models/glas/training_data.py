"""Training documents, label similarities and the batch schedule; the labels that each batch trains on."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from labelspace.kernels.sparse_layers import dense_submatrix
from labelspace.labels.statistics import similarity
from labelspace.training.epochs import batch_schedule
from labelspace.training.losses import MAX_UNSAMPLED_LABELS, SampledLabels, sample_labels, seen_labels
from labelspace.types import Csr, Floats, Ints, Longs

ENOUGH_STEPS = 300  # batches that suffice to learn
EPOCH_BOUNDS = (8, 12)  # of the number of epochs, where it is chosen
MANY_DOCUMENTS = 30_000  # above, less input dropout is needed: there is less to overfit
INPUT_DROPOUT = (0.2, 0.1)  # up to so many documents, and above


@dataclass(frozen=True)
class TrainingData:
    """What is trained on, and in which batches."""

    X: Csr
    Y: Csr
    labels: Ints  # labels to train on: all, or, where they are sampled, those with a document
    all_labels: bool  # train on all labels in each step
    U: Csr | None  # label similarities of eq. 3
    batch_size: int
    epochs: int
    input_dropout: float
    scratch: Ints  # (n_labels,) of -1, for ``similarities``

    @classmethod
    def build(
        cls, X: Csr, Y: Csr, measure: str | None, batch_size: int | None, epochs: int | None,
        input_dropout: float | None, all_labels: bool | None,
    ) -> Self:  # fmt: skip
        """Choose what is None by the size of the data; ``measure`` is that of U, None without it."""
        seen = seen_labels(Y)
        if all_labels is None:
            all_labels = len(seen) <= MAX_UNSAMPLED_LABELS
        if input_dropout is None:
            input_dropout = INPUT_DROPOUT[X.shape[0] > MANY_DOCUMENTS]
        labels = np.arange(Y.shape[1], dtype=np.int32) if all_labels else seen
        U = None if measure is None else similarity(Y, measure)
        schedule = batch_schedule(X.shape[0], batch_size, epochs, ENOUGH_STEPS, EPOCH_BOUNDS)
        return cls(X, Y, labels, all_labels, U, *schedule, input_dropout, np.full(Y.shape[1], -1, np.int32))

    def sample_labels(self, Y: Csr, n_negatives: int, hard: Ints | None, rng: np.random.Generator) -> SampledLabels:
        """The labels that a batch trains on: all, or its labels Y with ``hard`` and random negatives."""
        if self.all_labels:
            return SampledLabels(self.labels, Y.indices, Y.indptr)
        return sample_labels(Y, self.labels, n_negatives, rng, hard)

    def similarities(self, labels: Ints) -> Floats:
        """The submatrix of U of some labels, dense."""
        assert self.U is not None
        out = np.empty((len(labels), len(labels)), np.float32)
        dense_submatrix(self.U.data, self.U.indices, self.U.indptr, labels, self.scratch, out)
        return out


def sample_positives(ends: Ints, rng: np.random.Generator) -> Longs:
    """One label of each document at random, as its position in the csr indices; -1 for a document without labels."""
    counts = np.diff(ends)
    positions = ends[:-1] + (rng.random(len(counts)) * counts).astype(np.int64)
    return np.where(counts > 0, positions, -1)
