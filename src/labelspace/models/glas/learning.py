"""Going on learning with GLaS: a few steps on new documents and on some that are replayed.

1. Read what is stored: the embeddings of the features that occur, and of all labels; where labels are many, those of
   the documents, the nearest ones to each of these, and a random sample.
2. Place the new labels as ``place_label`` does: from the mean of the replayed documents to the mean of their own. With
   binary cross-entropy the bias is such that as many documents are expected to have the label as do; it is found again
   after the steps, since a new label may be more frequent among the new documents than among all.
3. Make steps of the loss as in the training, on feature and label embeddings and on the biases of labels. Row-wise
   Adagrad goes on from the gradients of the training. What all documents share stays as it is: the scale, the biases
   of units and dense layers.
4. Store the embeddings that were read in step 1, and put those of labels into the index.

There is no regularizer: few documents say little of which labels occur together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from labelspace.errors import ParameterError
from labelspace.kernels.quantize import quantize_int8
from labelspace.models.glas.encoder import Encoder, EncoderShape, FixedNumbers, SgdLayer, SgdNumbers
from labelspace.models.glas.losses import RegularizerGradient, loss_gradient
from labelspace.models.glas.network import Net, append_bias
from labelspace.models.glas.training import sample_positives
from labelspace.models.partial_fit import NewDocuments
from labelspace.training.dense_layers import DenseLayer
from labelspace.training.losses import MAX_UNSAMPLED_LABELS, SampledLabels
from labelspace.training.optimizers import AdagradParameter, AdamParameter, FixedParameter, SgdParameter
from labelspace.training.replay import Examples, GradientRoots, Replay, Squares, check_finite, refusing_overflow
from labelspace.training.sparse_layers import SparseLayer, batch_rows, default_input_dropout
from labelspace.types import Csr, Floats, Ints, Longs, Rng

if TYPE_CHECKING:
    from labelspace.models.glas.model import Glas

# Chosen on documents held out of train.
LEARN_EPOCHS = 4
LEARN_BATCH = 128
LEARN_RATE = 0.25  # of labels, as a multiple of their rate in the training
LEARN_FEATURE_RATE = 1.0  # of features, likewise
MAX_NEW_SHARE = 0.5  # of documents that a new label may be expected to have


@dataclass
class PartialTraining:
    """The part of a trained net that further documents change, and these documents; its labels are numbered anew."""

    net: Net
    labels: Ints  # (m,) the ids of the net's labels, ascending
    weights: Floats | None  # (m,) how many labels each stands for; None if these are all labels
    examples: Examples
    Y: Csr  # (n, m) the examples' labels

    def embed(self) -> Floats:
        """Return the embeddings of new documents and of some that are replayed."""
        return self.net.encoder.embed(self.examples.X[self.examples.to_calibrate()])

    def step(self, params: Glas, rows: Ints, input_dropout: float, decay: float, rng: Rng) -> None:
        """Make one step on a batch of examples (step 3)."""
        net, Y, rate, feature_rate = self.net, self.Y[rows], params.learning_rate, params.feature_learning_rate
        activations = net.encoder.forward(batch_rows(self.examples.X, rows, input_dropout, rng), params.dropout, rng)
        phi = activations.embeddings
        sampled = SampledLabels(np.arange(len(self.labels), dtype=np.int32), Y.indices, Y.indptr, self.weights)
        one_positive = params.positives == "one" or (params.positives is None and params.loss == "margin")
        counted = sample_positives(Y.indptr, rng) if one_positive else None
        n_hardest = None if params.pairs == "all" else params.n_hardest
        gradient = loss_gradient(net.scores(phi, sampled), sampled, counted, params.loss, params.margin, n_hardest)
        self.examples.forget_unknown(gradient, rows, self.labels)
        nothing = RegularizerGradient(self.labels[:0], net.label_embeddings[:0, :-1])
        by_phi = net.update_labels(gradient, phi, sampled, nothing, LEARN_RATE * decay * rate)
        net.n_steps += 1
        net.encoder.backward(activations, by_phi, 0.0, LEARN_FEATURE_RATE * decay * feature_rate, net.n_steps)


def learn(model: Glas, X: Csr, new: NewDocuments, replay: Replay, roots: GradientRoots, rng: Rng) -> None:
    """Learn from new documents, whose rows X are scaled as those of the training were."""
    examples = Examples.of(X, new.Y, new.rejected, new.are_complete, replay)
    has_documents = np.bincount(new.Y.indices, minlength=new.n_labels) > 0
    known = np.isin(np.arange(new.n_labels), model.index_.ids)
    fresh = np.flatnonzero(has_documents & ~known & ~np.isin(np.arange(new.n_labels), model.removed))
    with threadpool_limits(1, user_api="blas"), refusing_overflow():
        training = partial_training(model, X, examples, fresh, roots, rng)
        n_learned = replay.n_learned + X.shape[0]
        place_new_labels(model, training, fresh, n_learned)
        calibrate_biases(model, training, fresh, new.counts, n_learned)
        input_dropout = model.input_dropout
        if input_dropout is None:
            input_dropout = default_input_dropout(replay.n_learned)
        for rows, decay in examples.batches(LEARN_EPOCHS, LEARN_BATCH, rng):
            training.step(model, rows, input_dropout, decay, rng)
        touched = np.flatnonzero(has_documents & roots.is_new)
        calibrate_biases(model, training, np.intersect1d(touched, training.labels), new.counts, n_learned)
    store_embeddings(model, training, roots)


def partial_training(
    model: Glas, X: Csr, examples: Examples, fresh: Longs, roots: GradientRoots, rng: Rng
) -> PartialTraining:
    """Return a net of what is stored (step 1); the embeddings of ``fresh`` labels are 0."""
    labels, weights = choose_labels(model, X, examples, fresh, rng)
    is_known = ~np.isin(labels, fresh)
    embeddings = np.zeros((len(labels), model.index_.dimension), np.float32)
    embeddings[is_known] = model.index_.vectors(labels[is_known])
    bias = embeddings[:, -1] * np.float32(model.bias_scale_)
    embeddings[:, :-1] /= np.float32(model.scale_)
    squares, sgd = roots.squares(LEARN_BATCH), model.optimizer == "sgd"
    numbers = SgdNumbers(bias) if sgd else AdagradParameter(bias)
    numbers.square = squares.bias[labels]
    if not model.bias:
        numbers = FixedNumbers(bias)
    log_scale = np.full(1, np.log(model.scale_), np.float32)
    scale = SgdParameter(log_scale) if sgd else AdamParameter(log_scale)
    encoder = stored_encoder(model, examples.features, squares)
    net = Net(encoder, embeddings, numbers, scale, model.normalize_label_embeddings)
    net.label_squares = squares.labels[labels]
    return PartialTraining(net, labels, weights, examples, examples.Y[:, labels].sorted_indices())


def choose_labels(model: Glas, X: Csr, examples: Examples, fresh: Longs, rng: Rng) -> tuple[Ints, Floats | None]:
    """Return the labels to train on, and how many labels each stands for: None if these are all labels."""
    known = np.sort(model.index_.ids)
    every = len(known) <= MAX_UNSAMPLED_LABELS if model.all_labels is None else model.all_labels
    if every or not len(known):
        return np.union1d(known, fresh).astype(np.int32), None
    found = [np.intersect1d(known, np.append(examples.Y.indices, examples.known.indices)), fresh]
    if model.n_hard_negatives and X.shape[0]:
        queries = append_bias(model.embed(X), model.bias_scale_)
        found.append(model.index_.search(queries, model.n_hard_negatives).labels.ravel())
    fixed = np.unique(np.concatenate(found))
    fixed = fixed[fixed >= 0]
    sampled = np.setdiff1d(known[rng.integers(0, len(known), model.n_negatives)], fixed)
    labels = np.union1d(fixed, sampled).astype(np.int32)
    each = max(len(known) - len(fixed), 0) / max(len(sampled), 1)
    return labels, np.where(np.isin(labels, sampled), each, 1.0).astype(np.float32)


def stored_encoder(model: Glas, features: Ints, squares: Squares) -> Encoder:
    """Return the encoder with the embeddings of some features, which alone are trained."""
    stored, sgd = model.encoder_, model.optimizer == "sgd"
    dim = len(stored.hidden_bias)
    table = stored.feature_embeddings[features] * stored.feature_scales[features, None]
    layer = SgdLayer(table) if sgd else SparseLayer(table)
    layer.squares[:] = squares.features[features]
    dense = [
        DenseLayer(np.ascontiguousarray(stored.dense_weights[at : at + dim].T))
        for at in range(0, len(stored.dense_weights), max(dim, 1))
    ]
    shape = EncoderShape(dim, relu=stored.relu, normalized=model.normalize_document_embeddings, sgd=sgd)
    encoder = Encoder(layer, dense, shape)
    encoder.bias = FixedParameter(np.array(stored.hidden_bias))
    for at, one in enumerate(dense):
        one.rows = FixedParameter(one.rows.value)
        one.bias = FixedParameter(np.array(stored.dense_bias[at * dim : (at + 1) * dim]))
    return encoder


def place_new_labels(model: Glas, training: PartialTraining, fresh: Longs, n_learned: int) -> None:
    """Start the embeddings of new labels, and their biases where these are no log-odds (step 2)."""
    if not len(fresh):
        return
    net, examples = training.net, training.examples
    embeddings, by_label = training.embed(), training.Y[: examples.n_new].tocsc()
    background = embeddings[examples.n_new :]
    if not len(background):
        background = model.background_.astype(np.float32)
    for at in np.searchsorted(training.labels, fresh).tolist():
        own = by_label.indices[by_label.indptr[at] : by_label.indptr[at + 1]]
        v, b = place_label(embeddings[own], background, model.scale_, min(len(own) / n_learned, MAX_NEW_SHARE))
        net.label_embeddings[at, :-1] = v
        net.bias.value[at] = b if model.bias else 0.0


def calibrate_biases(
    model: Glas, training: PartialTraining, labels: Longs, counts: Longs | None, n_learned: int
) -> None:
    """Set the biases of new labels, so that as many documents are expected to have each as do."""
    if len(labels) and model.loss == "bce" and model.bias:
        at = np.searchsorted(training.labels, labels)
        scores = training.embed() @ (model.scale_ * training.net.label_embeddings[at, :-1]).T.astype(np.float32)
        training.net.bias.value[at] = training.examples.biases(scores, labels, counts, n_learned)


def store_embeddings(model: Glas, training: PartialTraining, roots: GradientRoots) -> None:
    """Put what was trained into new arrays of the model (step 4)."""
    net, features, stored = training.net, training.examples.features, model.encoder_
    check_finite(net.encoder.features.vectors, net.label_embeddings, net.bias.value)
    table, scales = np.array(stored.feature_embeddings), np.array(stored.feature_scales)
    table[features], scales[features] = quantize_int8(net.encoder.features.vectors)
    model.encoder_ = stored._replace(feature_embeddings=table, feature_scales=scales)
    vectors = net.label_embeddings * np.float32(model.scale_)
    vectors[:, -1] = net.bias.value / np.float32(model.bias_scale_)
    model.index_ = model.index_.with_vectors(training.labels, vectors)
    squares = roots.squares(LEARN_BATCH)
    if model.optimizer != "sgd":
        squares.labels[training.labels] = net.label_squares
        if model.bias:
            squares.bias[training.labels] = net.bias.square
    squares = squares._replace(features=net.encoder.features.squares)
    model.gradient_roots_ = roots.with_squares(features, squares, LEARN_BATCH)


def place_label(examples: Floats, background: Floats, scale: float, share: float) -> tuple[Floats, float]:
    """Return the embedding v and bias b of a new label, by the embeddings of documents that carry it and of others.

    v points from the mean of the others (the background) to the mean of the examples. b is such that z is above 0 for
    this share of the background: no more documents than are expected to carry the label.
    """
    if not 0 < share < 1:
        raise ParameterError(f"share must be above 0 and below 1, but is {share}; give a part of all documents")
    v: Floats = examples.mean(axis=0) - background.mean(axis=0)
    v /= max(float(np.linalg.norm(v)), 1e-12)
    return v, -scale * float(np.quantile(background @ v, 1.0 - share))
