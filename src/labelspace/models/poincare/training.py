"""The training of one learner: held-out documents, batch size and epochs, the steps of a batch, early stopping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from labelspace import index
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.labels.document_neighbors import label_neighbors
from labelspace.models.fit_context import FitContext
from labelspace.models.poincare.losses import label_loss_gradients, pair_loss_gradients, similarity_loss_gradient
from labelspace.models.poincare.network import Net
from labelspace.models.poincare.pairs import SampledPairs, sample_pairs
from labelspace.models.poincare.voting import rank_by_votes, vote_weight_grid
from labelspace.training.epochs import (
    VALIDATION_K,
    batch_schedule,
    epoch_batches,
    hold_out_rows,
    r_precision,
    should_stop,
    too_few_to_stop_by,
)
from labelspace.training.losses import MAX_UNSAMPLED_LABELS, SampledLabels, sample_labels, seen_labels
from labelspace.training.sparse_layers import batch_rows
from labelspace.types import Csr, Floats, Ints, TopK

if TYPE_CHECKING:
    from labelspace.models.poincare.model import Poincare

STEPS = 600  # batches that suffice to learn
EPOCHS = (8, 20)  # fewest and most, where their number is not given
MANY_DOCUMENTS = 30_000  # above, there is less overfitting, and less dropout is needed
INPUT_DROPOUT = (0.2, 0.1)  # up to that many documents, and above

Learner = tuple[Int8s, Floats, Floats, list[float]]
"""Theta in 8 bits, its scales, the points of the labels with a document, and the validation score of each epoch."""


def split_documents(X: Csr, Y: Csr, params: Poincare, context: FitContext) -> tuple[Ints, tuple[Csr, Csr] | None, Ints]:
    """Hold out some documents for early stopping and vote weights, unless validation documents are given.

    Returns the rows to train on, the held-out documents and their labels, and their rows (none, if they are given).
    """
    all_rows, no_rows = np.arange(X.shape[0], dtype=np.int32), np.zeros(0, np.int32)
    if context.validation is not None:
        truth = context.validation[1].copy()
        truth.resize(truth.shape[0], Y.shape[1])  # may have fewer labels than train
        order = np.random.default_rng(params.random_state).permutation(truth.shape[0])
        rows = np.sort(order[: params.max_validation])
        if truth[rows].nnz:
            return all_rows, (params.scaled(context.validation[0])[rows], truth[rows]), no_rows
    split = hold_out_rows(Y, params.validation_share, params.max_validation or X.shape[0], params.random_state)
    if split is not None:
        train, held_out = split
        return train, (X[held_out], Y[held_out]), held_out.astype(np.int32)
    if params.patience is not None:
        raise too_few_to_stop_by(X.shape[0])
    return all_rows, None, no_rows


@dataclass(frozen=True)
class TrainingData:
    """Documents to train on, and how; the columns of Y are the labels with a document."""

    X: Csr
    Y: Csr
    held_out: tuple[Csr, Csr] | None
    label_ids: Ints  # of the columns of Y
    columns: Ints  # of Y: 0, 1, ...
    batch_size: int
    epochs: int
    all_labels: bool
    input_dropout: float
    graph: Csr | None = None  # (n, n): the positives of each document, with loss=neighbors

    @classmethod
    def build(cls, X: Csr, Y: Csr, held_out: tuple[Csr, Csr] | None, params: Poincare) -> TrainingData:
        """Choose by the data what the parameters leave open."""
        n, label_ids = X.shape[0], seen_labels(Y)
        held_out = None if held_out is None else (held_out[0], held_out[1][:, label_ids])
        columns = np.arange(len(label_ids), dtype=np.int32)
        schedule = batch_schedule(n, params.batch_size, params.epochs, STEPS, EPOCHS)
        few = len(label_ids) <= MAX_UNSAMPLED_LABELS and params.negatives == "shared"
        all_labels = few if params.all_labels is None else params.all_labels
        dropout = INPUT_DROPOUT[n > MANY_DOCUMENTS] if params.input_dropout is None else params.input_dropout
        graph = None if params.loss == "labels" else label_neighbors(Y, params.n_label_neighbors)
        return cls(X, Y[:, label_ids], held_out, label_ids, columns, *schedule, all_labels, dropout, graph)

    @property
    def n_batches(self) -> int:
        """Batches per epoch."""
        return len(range(0, self.X.shape[0], self.batch_size))


def train_learner(data: TrainingData, params: Poincare, number: int, tick: Callable[[int], None]) -> Learner:
    """Train one learner; its random numbers depend on the seed and its number alone."""
    rng = np.random.default_rng([params.random_state, number])
    net = Net.random(params, data.X, len(data.label_ids) if data.graph is None else 0, rng)  # step 2
    schedule = params.schedule or ("linear" if params.optimizer == "adagrad" else "constant")
    scores: list[float] = []
    best = None
    for epoch in range(data.epochs):
        for rows, lr_decay in epoch_batches(data.X.shape[0], data.batch_size, epoch, data.epochs, rng):
            train_batch(net, data, params, rows, lr_decay if schedule == "linear" else 1.0, rng)
            tick(1)
        if data.held_out is not None:
            by_labels = params.stop_by == "labels"
            scores.append(net.validation_score(*data.held_out) if by_labels else vote_score(net, data, params))
            if params.patience is not None and int(np.argmax(scores)) == epoch:
                best = (net.theta.vectors.copy(), net.label_points.copy())
            if should_stop(scores, params.patience):
                tick((data.epochs - epoch - 1) * data.n_batches)
                break
    theta, label_points = best or (net.theta.vectors, net.label_points)
    return *quantize_int8(theta), label_points, scores


def vote_score(net: Net, data: TrainingData, params: Poincare) -> float:
    """R-precision of the votes of the nearest training documents, with the first of the weights that will be tried."""
    assert data.held_out is not None
    X, truth = data.held_out
    weights, rows = vote_weight_grid(params)[0], np.arange(data.X.shape[0], dtype=np.int32)
    documents = index.PointIndex(net.embed(data.X), rows, net.manifold.geometry, recall_target=None)
    nearest = documents.search(net.embed(X), min(weights.n_neighbors, len(rows)))
    neighbors = [(nearest, TopK.empty(len(nearest), 0))]
    k = min(VALIDATION_K, data.Y.shape[1])
    return r_precision(rank_by_votes(neighbors, weights, "vote", params.alpha, data.Y, k), truth)


def train_batch(
    net: Net, data: TrainingData, params: Poincare, rows: Ints, lr_decay: float, rng: np.random.Generator
) -> None:
    """Steps 3 to 7 for the documents of one batch; ``lr_decay`` is the factor of the learning rates."""
    if data.graph is not None:
        train_on_neighbors(net, data, data.graph, params, rows, lr_decay, rng)
        return
    batch = batch_rows(data.X, rows, data.input_dropout, rng)  # step 3
    r, true = net.document_vectors(batch), data.Y[rows]
    lifted = net.manifold.lift_projected(r)
    sampled: SampledLabels | SampledPairs
    if params.negatives == "per_document":  # steps 4 and 5
        sampled = sample_pairs(true, true, params.n_negatives, rng)
        points = net.sampled_points(sampled)
        by_lifted, by_targets = pair_loss_gradients(
            net.manifold, lifted, net.manifold.lift(points), sampled, params.alpha
        )
        by_points = net.manifold.lift_backward(points, by_targets)
    else:
        if data.all_labels:
            sampled = SampledLabels(data.columns, true.indices, true.indptr)
        else:
            sampled = sample_labels(true, data.columns, params.n_negatives, rng)
        points = net.sampled_points(sampled)
        by_lifted, by_points = label_loss_gradients(net.manifold, lifted, points, sampled, params.alpha)
    if params.similarity_weight:  # step 6
        by_lifted += similarity_loss_gradient(net.manifold, lifted, true, params.similarity_weight)
    net.update_labels(sampled, by_points, lr_decay)  # step 7
    net.update_theta(batch, net.manifold.lift_projected_backward(r, by_lifted), lr_decay)


def train_on_neighbors(
    net: Net, data: TrainingData, graph: Csr, params: Poincare, rows: Ints, lr_decay: float, rng: np.random.Generator
) -> None:
    """The same with loss=neighbors: the targets are documents, which are embedded and moved as those of the batch."""
    true = graph[rows]
    itself = sp.csr_matrix((np.ones(len(rows), np.float32), rows, np.arange(len(rows) + 1)), shape=true.shape)
    pairs = sample_pairs(true, true + itself, params.n_negatives, rng)  # step 4
    batch = batch_rows(data.X, np.concatenate([rows, pairs.ids]), data.input_dropout, rng)  # step 3
    r, n = net.document_vectors(batch), len(rows)
    lifted = net.manifold.lift_projected(r)
    by_documents, by_targets = pair_loss_gradients(net.manifold, lifted[:n], lifted[n:], pairs, params.alpha)  # step 5
    if params.similarity_weight:  # step 6
        by_documents += similarity_loss_gradient(net.manifold, lifted[:n], data.Y[rows], params.similarity_weight)
    by_lifted = np.concatenate([by_documents, by_targets])
    net.update_theta(batch, net.manifold.lift_projected_backward(r, by_lifted), lr_decay)  # step 7
