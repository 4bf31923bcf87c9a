"""The training of one learner, a document map and label points: its data, the steps of a batch, early stopping."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from labelspace import index
from labelspace.estimator.parameter_constraints import Constraint, integer
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.threads import fill_in_blocks
from labelspace.labels.document_neighbors import label_neighbors
from labelspace.models.fit_context import FitContext
from labelspace.models.poincare import losses
from labelspace.models.poincare.geometry import Manifold
from labelspace.models.poincare.voting import rank_by_votes, vote_weight_grid
from labelspace.training import epochs
from labelspace.training.losses import MAX_UNSAMPLED_LABELS, SampledLabels, sample_labels, seen_labels
from labelspace.training.optimizers import RowAdagrad, RowAdam, RowOptimizer, RowSgd
from labelspace.training.sparse_layers import Batch, SparseLayer, batch_rows, default_input_dropout, embedded
from labelspace.types import Csr, Floats, Ints, Rng, TopK

if TYPE_CHECKING:
    from labelspace.models.poincare.model import Poincare

STEPS = 600  # batches that suffice to learn
EPOCHS = (8, 20)  # fewest and most, where their number is not given
LEARNING_RATES = {"adagrad": (0.2, 0.03), "adam": (0.01, 0.001), "sgd": (1.0, 10.0)}  # of label points, and of theta
LABEL_SCALE = 1e-3  # standard deviation of label points at the start
ROW_BLOCK = 64  # documents per task
CLUSTERS = Constraint("an integer of at least 1, or auto", lambda value: value == "auto" or integer(1).holds(value))

Learner = tuple[Int8s, Floats, Floats, list[float]]
"""Theta in 8 bits, its scales, the points of the labels with a document, and the validation score of each epoch."""


def split_documents(X: Csr, Y: Csr, params: Poincare, context: FitContext) -> tuple[Ints, tuple[Csr, Csr] | None, Ints]:
    """Hold out some documents for early stopping and vote weights, unless validation documents are given.

    Return the rows to train on, the held-out documents with their labels, and their rows (none, if they are given).
    """
    all_rows, no_rows = np.arange(X.shape[0], dtype=np.int32), np.zeros(0, np.int32)
    if context.validation is not None:
        truth = context.validation[1].copy()
        truth.resize(truth.shape[0], Y.shape[1])  # may have fewer labels than train
        order = np.random.default_rng(params.random_state).permutation(truth.shape[0])
        rows = np.sort(order[: params.max_validation])
        if truth[rows].nnz:
            return all_rows, (params.scaled(context.validation[0])[rows], truth[rows]), no_rows
    split = epochs.hold_out_rows(Y, params.validation_share, params.max_validation or X.shape[0], params.random_state)
    if split is not None:
        train, held_out = split
        return train, (X[held_out], Y[held_out]), held_out.astype(np.int32)
    if params.patience is not None:
        raise epochs.too_few_to_stop_by(X.shape[0])
    return all_rows, None, no_rows


class TrainingData:
    """The documents to train on, and their batches; the columns of Y are the labels with a document."""

    def __init__(self, X: Csr, Y: Csr, held_out: tuple[Csr, Csr] | None, params: Poincare) -> None:
        """Choose by the data what the parameters leave open."""
        n, label_ids = X.shape[0], seen_labels(Y)
        self.X, self.Y, self.label_ids = X, Y[:, label_ids], label_ids
        self.columns: Ints = np.arange(len(label_ids), dtype=np.int32)  # of Y
        self.held_out = None if held_out is None else (held_out[0], held_out[1][:, label_ids])
        self.batch_size, self.epochs = epochs.batch_schedule(n, params.batch_size, params.epochs, STEPS, EPOCHS)
        self.n_batches = len(range(0, n, self.batch_size))  # per epoch
        few = len(label_ids) <= MAX_UNSAMPLED_LABELS and params.negatives == "shared"
        self.all_labels = few if params.all_labels is None else params.all_labels
        self.input_dropout = default_input_dropout(n) if params.input_dropout is None else params.input_dropout
        # (n, n): the positives of each document, with loss=neighbors
        self.graph = None if params.loss == "labels" else label_neighbors(Y, params.n_label_neighbors)


class Net:
    """Theta (n_features, dimension) and the label points (n_labels, dimension) on a manifold, with their optimizers."""

    def __init__(self, params: Poincare, X: Csr, n_labels: int, rng: Rng) -> None:
        """Draw theta and label points near the origin; the row of theta is 0 for a feature without documents."""
        self.manifold = params.manifold
        self.theta = SparseLayer.random(X, params.embedding_dim, rng, init_std=params.init_std)
        label_points = rng.standard_normal((n_labels, params.embedding_dim), np.float32) * np.float32(LABEL_SCALE)
        self.label_points: Floats = self.manifold.project(label_points) if params.geometry == "cosine" else label_points
        label_rate, theta_rate = LEARNING_RATES[params.optimizer]
        self.learning_rate = label_rate if params.learning_rate is None else params.learning_rate
        self.theta_learning_rate = theta_rate if params.feature_learning_rate is None else params.feature_learning_rate
        self.label_optimizer = create_optimizer(params.optimizer, label_points)
        has_own = params.optimizer == "adagrad"  # the layer has an Adagrad inside
        self.theta_optimizer = None if has_own else create_optimizer(params.optimizer, self.theta.vectors)
        self.zeros = np.zeros(params.embedding_dim, np.float32)

    def document_vectors(self, batch: Batch) -> Floats:
        """Return the vectors r = theta'x of documents. Shape (batch, dimension)."""
        return self.theta.embed(batch, self.zeros)

    def embed(self, X: Csr) -> Floats:
        """Return the points of documents. Shape (n, dimension)."""
        return self.manifold.project(self.document_vectors((X.data, X.indices, X.indptr)))

    def sampled_points(self, sampled: SampledLabels | losses.SampledPairs) -> Floats:
        """Return the points of the sampled labels. Shape (n, dimension)."""
        return self.label_points if sampled.covers_all else self.label_points[sampled.ids]

    def update_labels(self, sampled: SampledLabels | losses.SampledPairs, gradient: Floats, lr_decay: float) -> None:
        """Move the points of the sampled labels on their Euclidean gradient."""
        points, learning_rate = self.sampled_points(sampled), self.learning_rate * lr_decay
        updated = self.manifold.riemannian_step(points, gradient, self.label_optimizer, sampled.ids, learning_rate)
        self.label_points[sampled.ids] = updated

    def update_theta(self, batch: Batch, gradient: Floats, lr_decay: float) -> None:
        """Move theta on the gradient (batch, dimension) by r."""
        learning_rate = self.theta_learning_rate * lr_decay
        if self.theta_optimizer is None:
            self.theta.backward(batch, gradient, learning_rate)
            return
        features, rows = self.theta.gradients(batch, gradient)
        self.theta.vectors[features] += self.theta_optimizer.updates(features, rows, learning_rate)

    def validation_score(self, X: Csr, Y: Csr) -> float:
        """Return the R-precision of the nearest labels."""
        ids, geometry = np.arange(len(self.label_points)), self.manifold.geometry
        labels = index.PointIndex(self.label_points, ids, geometry, recall_target=None)
        return epochs.r_precision(labels.search(self.embed(X), epochs.VALIDATION_K), Y)


def create_optimizer(name: str, table: Floats) -> RowOptimizer:
    """Return the optimizer of this name for the rows of a table."""
    if name == "sgd":
        return RowSgd()
    return RowAdagrad(len(table)) if name == "adagrad" else RowAdam(*table.shape)


def embed_documents(X: Csr, theta: Int8s, scales: Floats, manifold: Manifold) -> Floats:
    """Return the points of documents by a quantized theta; each depends on its row only. Shape (n, dimension)."""
    out = embedded(csr_arrays(X), theta, scales, None, ROW_BLOCK)
    return fill_in_blocks(out, lambda rows: manifold.project(out[rows]), ROW_BLOCK)


def train_learner(data: TrainingData, params: Poincare, number: int, tick: Callable[[int], None]) -> Learner:
    """Train one learner; its random numbers depend on the seed and its number only."""
    rng = np.random.default_rng([params.random_state, number])
    net = Net(params, data.X, len(data.label_ids) if data.graph is None else 0, rng)  # step 2
    schedule = params.schedule or ("linear" if params.optimizer == "adagrad" else "constant")
    scores: list[float] = []
    best = None
    for epoch in range(data.epochs):
        for rows, lr_decay in epochs.epoch_batches(data.X.shape[0], data.batch_size, epoch, data.epochs, rng):
            train_batch(net, data, params, rows, lr_decay if schedule == "linear" else 1.0, rng)
            tick(1)
        if data.held_out is not None:
            by_labels = params.stop_by == "labels"
            scores.append(net.validation_score(*data.held_out) if by_labels else vote_score(net, data, params))
            if params.patience is not None and int(np.argmax(scores)) == epoch:
                best = (net.theta.vectors.copy(), net.label_points.copy())
            if epochs.should_stop(scores, params.patience):
                tick((data.epochs - epoch - 1) * data.n_batches)
                break
    theta, label_points = best or (net.theta.vectors, net.label_points)
    return *quantize_int8(theta), label_points, scores


def vote_score(net: Net, data: TrainingData, params: Poincare) -> float:
    """Return the R-precision of the votes of the nearest training documents, with the first weights of the grid."""
    assert data.held_out is not None
    X, truth = data.held_out
    weights, rows = vote_weight_grid(params)[0], np.arange(data.X.shape[0], dtype=np.int32)
    documents = index.PointIndex(net.embed(data.X), rows, net.manifold.geometry, recall_target=None)
    nearest = documents.search(net.embed(X), min(weights.n_neighbors, len(rows)))
    neighbors = [(nearest, TopK.empty(len(nearest), 0))]
    k = min(epochs.VALIDATION_K, data.Y.shape[1])
    return epochs.r_precision(rank_by_votes(neighbors, weights, "vote", params.alpha, data.Y, k), truth)


def train_batch(net: Net, data: TrainingData, params: Poincare, rows: Ints, lr_decay: float, rng: Rng) -> None:
    """Update on the documents of one batch (steps 3 to 7); ``lr_decay`` is the factor of the learning rates."""
    if data.graph is not None:
        train_on_neighbors(net, data, data.graph, params, rows, lr_decay, rng)
        return
    manifold = net.manifold
    batch = batch_rows(data.X, rows, data.input_dropout, rng)  # step 3
    r, true = net.document_vectors(batch), data.Y[rows]
    lifted = manifold.lift_projected(r)
    sampled: SampledLabels | losses.SampledPairs
    if params.negatives == "per_document":  # steps 4 and 5
        sampled = losses.sample_pairs(true, true, params.n_negatives, rng)
        points = net.sampled_points(sampled)
        targets = manifold.lift(points)
        by_lifted, by_targets = losses.pair_loss_gradients(manifold, lifted, targets, sampled, params.alpha)
        by_points = manifold.lift_backward(points, by_targets)
    else:
        if data.all_labels:
            sampled = SampledLabels(data.columns, true.indices, true.indptr)
        else:
            sampled = sample_labels(true, data.columns, params.n_negatives, rng)
        points = net.sampled_points(sampled)
        by_lifted, by_points = losses.label_loss_gradients(manifold, lifted, points, sampled, params.alpha)
    if params.similarity_weight:  # step 6
        by_lifted += losses.similarity_loss_gradient(manifold, lifted, true, params.similarity_weight)
    net.update_labels(sampled, by_points, lr_decay)  # step 7
    net.update_theta(batch, manifold.lift_projected_backward(r, by_lifted), lr_decay)


def train_on_neighbors(
    net: Net, data: TrainingData, graph: Csr, params: Poincare, rows: Ints, lr_decay: float, rng: Rng
) -> None:
    """Update on one batch with loss=neighbors: targets are documents, which are embedded and moved like the batch."""
    true = graph[rows]
    itself = sp.csr_matrix((np.ones(len(rows), np.float32), rows, np.arange(len(rows) + 1)), shape=true.shape)
    pairs = losses.sample_pairs(true, true + itself, params.n_negatives, rng)  # step 4
    batch = batch_rows(data.X, np.concatenate([rows, pairs.ids]), data.input_dropout, rng)  # step 3
    manifold = net.manifold
    r = net.document_vectors(batch)
    documents, targets = np.split(manifold.lift_projected(r), [len(rows)])
    by_documents, by_targets = losses.pair_loss_gradients(manifold, documents, targets, pairs, params.alpha)  # step 5
    if params.similarity_weight:  # step 6
        by_documents += losses.similarity_loss_gradient(manifold, documents, data.Y[rows], params.similarity_weight)
    by_lifted = np.concatenate([by_documents, by_targets])
    net.update_theta(batch, manifold.lift_projected_backward(r, by_lifted), lr_decay)  # step 7
