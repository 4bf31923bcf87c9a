"""The training of GLaS: documents and label similarities, the labels of each batch, and the steps of Algorithm 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from labelspace.errors import ParameterError
from labelspace.kernels.sparse_layers import dense_submatrix
from labelspace.labels.statistics import similarity
from labelspace.models.fit_context import FitContext, Held
from labelspace.models.glas.encoder import Encoder, EncoderShape
from labelspace.models.glas.hard_negatives import LabelLists, mine_hard_negatives
from labelspace.models.glas.losses import USE_SIMILARITIES, loss_gradient, regularizer_gradient
from labelspace.models.glas.network import Net
from labelspace.training.checkpoints import data_fingerprint
from labelspace.training.epochs import Curve, batch_schedule, epoch_batches, run_epochs
from labelspace.training.losses import MAX_UNSAMPLED_LABELS, SampledLabels, sample_labels, seen_labels
from labelspace.training.sparse_layers import batch_rows, default_input_dropout
from labelspace.types import Csr, Floats, Ints, Longs, Progress, Rng

if TYPE_CHECKING:
    from labelspace.models.glas.model import Glas

ENOUGH_STEPS = 300  # batches that suffice to learn
EPOCH_BOUNDS = (8, 12)  # of the number of epochs, where it is chosen
SCALE = 20.0  # s at first, of cross-entropies: inner products of unit vectors alone could not give probabilities near 1
SCALE_LEARNING_RATE = 0.01  # of log s, by Adam
CURVE_DOCUMENTS = 2_000  # training documents by which the curve is measured

Rows = list[list[float]]
"""P@1 on training and on held-out documents, a row per epoch."""


@dataclass(frozen=True)
class TrainingData:
    """The documents to train on, and their batches."""

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
    def build(cls, X: Csr, Y: Csr, params: Glas) -> TrainingData:
        """Choose by the size of the data what the parameters leave open."""
        seen = seen_labels(Y)
        all_labels = len(seen) <= MAX_UNSAMPLED_LABELS if params.all_labels is None else params.all_labels
        input_dropout = default_input_dropout(X.shape[0]) if params.input_dropout is None else params.input_dropout
        labels = np.arange(Y.shape[1], dtype=np.int32) if all_labels else seen
        U = similarity(Y, params.similarity) if params.regularizer in USE_SIMILARITIES else None
        schedule = batch_schedule(X.shape[0], params.batch_size, params.epochs, ENOUGH_STEPS, EPOCH_BOUNDS)
        return cls(X, Y, labels, all_labels, U, *schedule, input_dropout, np.full(Y.shape[1], -1, np.int32))

    def sample_labels(self, Y: Csr, n_negatives: int, hard: Ints | None, rng: Rng) -> SampledLabels:
        """Return the labels that a batch trains on: all, or its labels Y with ``hard`` and random negatives."""
        if self.all_labels:
            return SampledLabels(self.labels, Y.indices, Y.indptr)
        return sample_labels(Y, self.labels, n_negatives, rng, hard)

    def similarities(self, labels: Ints) -> Floats:
        """Return the submatrix of U of some labels, dense."""
        assert self.U is not None
        out = np.empty((len(labels), len(labels)), np.float32)
        dense_submatrix(self.U.data, self.U.indices, self.U.indptr, labels, self.scratch, out)
        return out


def sample_positives(ends: Ints, rng: Rng) -> Longs:
    """Draw one label of each document, as its position in the csr indices; -1 for a document without labels."""
    counts = np.diff(ends)
    positions = ends[:-1] + (rng.random(len(counts)) * counts).astype(np.int64)
    return np.where(counts > 0, positions, -1)


def initial_net(params: Glas, X: Csr, Y: Csr) -> Net:
    """Draw the initial weights (step 1)."""
    rng, sgd = np.random.default_rng([params.random_state, 0]), params.optimizer == "sgd"
    shape = EncoderShape(
        dim=params.embedding_dim,
        n_layers=params.n_layers,
        relu=params.activation == "relu",
        weight_norm=params.weight_norm,
        normalized=params.normalize_document_embeddings,
        biased=params.hidden_bias,
        sgd=sgd,
    )
    scale, bias = (1.0, "zero") if params.loss == "margin" else (SCALE, "log_odds")
    bias = bias if params.bias else "none"
    encoder = Encoder.random(X, shape, rng)
    return Net.random(encoder, Y, params.scale or scale, bias, rng, sgd, params.normalize_label_embeddings)


def train(params: Glas, X: Csr, Y: Csr, held_out: Held | None, context: FitContext) -> tuple[Net, Rows | None]:
    """Run steps 1 to 7, from the last checkpoint on; return the net, and the rows of the curve.

    With early stopping the net ends as it was after its best epoch.
    """
    net, data = initial_net(params, X, Y), TrainingData.build(X, Y, params)
    if not data.all_labels and params.n_hard_negatives and len(data.labels):
        net.lists = LabelLists(data.labels, net.label_embeddings.shape[1])
    seen = seen_labels(Y)
    score = net.validation_score if params.stop_by == "r_precision" else net.precision_at_1
    curve = None
    if params.curve:  # on a sample of the training documents, the same in each epoch, and on documents not trained on
        rows = np.sort(np.random.default_rng([params.random_state, 3]).permutation(X.shape[0])[:CURVE_DOCUMENTS])
        measured = [(X[rows], Y[rows])] + ([] if held_out is None else [held_out])
        curve = Curve(lambda: [net.precision_at_1(*documents, seen) for documents in measured])
    run_epochs(
        net,
        data.epochs,
        lambda epoch: run_epoch(params, net, data, epoch, context.progress),
        None if held_out is None or params.patience is None else lambda: score(*held_out, seen),
        params.patience,
        {"params": params.get_params(), "data": data_fingerprint(X, Y, *(held_out or ()))},
        context.checkpoint,
        curve=curve,
    )
    return net, None if curve is None else curve.rows


def run_epoch(params: Glas, net: Net, data: TrainingData, epoch: int, progress: Progress) -> None:
    """Pass over the documents once; random numbers depend on the seed and the epoch's number only."""
    rng = np.random.default_rng([params.random_state, 1, epoch])
    hard = None
    if net.lists is not None and epoch:
        hard = mine_hard_negatives(net, net.lists, data.X, params.n_hard_negatives, params.random_state, progress)
    n_batches = len(range(0, data.X.shape[0], data.batch_size))
    batches = epoch_batches(data.X.shape[0], data.batch_size, epoch, data.epochs, rng)
    for done, (rows, lr_decay) in enumerate(batches, epoch * n_batches + 1):
        factor = lr_decay if params.decay else 1.0
        train_step(params, net, data, rows, None if hard is None else hard[rows], factor, rng)
        progress("batches", done, data.epochs * n_batches)
    if params.optimizer == "sgd" and not net.is_finite():
        rule = f"learning rates must be small enough for SGD, but weights overflowed in epoch {epoch + 1}"
        raise ParameterError(f"{rule}; set a smaller learning_rate and feature_learning_rate")


def train_step(
    params: Glas, net: Net, data: TrainingData, rows: Ints, hard: Ints | None, lr_decay: float, rng: Rng
) -> None:
    """Update on one batch, the body of Algorithm 2; ``hard`` are the hard negatives of its documents."""
    net.n_steps += 1
    learning_rate, feature_learning_rate = params.learning_rate * lr_decay, params.feature_learning_rate * lr_decay
    sgd, Y_batch = params.optimizer == "sgd", data.Y[rows]
    one_positive = params.positives == "one" or (params.positives is None and params.loss == "margin")
    learns_scale = params.loss != "margin" if params.learn_scale is None else params.learn_scale
    inputs = batch_rows(data.X, rows, data.input_dropout, rng)  # step 2
    activations = net.encoder.forward(inputs, params.dropout, rng)
    phi = activations.embeddings
    positives = sample_positives(Y_batch.indptr, rng)  # step 3
    sampled = data.sample_labels(Y_batch, params.n_negatives, hard, rng)  # step 4
    scores = net.scores(phi, sampled)
    counted = positives if one_positive else None
    n_hardest = None if params.pairs == "all" else params.n_hardest
    score_gradient = loss_gradient(scores, sampled, counted, params.loss, params.margin, n_hardest)  # step 5
    labels, counts = np.unique(Y_batch.indices[positives[positives >= 0]], return_counts=True)  # step 6
    V, drawn = net.label_embeddings[labels, :-1], counts if params.repeat_labels else None
    regularizer = regularizer_gradient(params.regularizer, params.reg_weight, labels, V, phi, data.similarities, drawn)
    gradient = net.update_labels(score_gradient, phi, sampled, regularizer, learning_rate)  # step 7
    if learns_scale:
        by_log_scale = np.array([np.vdot(gradient, phi)], np.float32)
        net.log_scale.step(by_log_scale, learning_rate if sgd else SCALE_LEARNING_RATE * lr_decay, net.n_steps)
    if regularizer.of_documents is not None:
        gradient += regularizer.of_documents
    dense_rate = feature_learning_rate if sgd else learning_rate
    net.encoder.backward(activations, gradient, dense_rate, feature_learning_rate, net.n_steps)
