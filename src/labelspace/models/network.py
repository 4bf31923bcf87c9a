"""Network: one hidden layer on sparse features, learned on every label of every document at once.

With unit rows x, features' vectors E, and z = W relu(E'x + c) + b, a label's score is 1 / (1 + exp(-z)).

1. Begin with random E and W, c = 0, and b at the log-odds of each label's frequency.
2. Where the number of epochs is not given, choose it: ``STEPS`` batches, within the bounds of ``EPOCHS``.
3. For each batch of documents, drop some features (``input_dropout``) and some hidden units (``dropout``).
4. Minimize the binary cross-entropy, summed over all labels: W, b and c move by Adam at ``learning_rate``, the vectors of the
   batch's features by row-wise Adagrad at ``feature_learning_rate``. Both rates fall to 0 in a straight line.
5. Store E and W in 8 bits, with one scale a feature and one a label.
6. Rank the labels of a document by z.

Where we differ from a textbook network, and why: a feature's vector is touched by the few documents that have it, so
it gets Adagrad's step of its own, one number of memory in place of Adam's two vectors, and nothing is done for
features a batch does not have. The output layer is done in blocks of labels, each from its scores to its Adam step
while it is in the cache; the blocks are spread over threads and BLAS is held to one thread: on two busy cores, BLAS'
own threads took 1.6 to 25 times the CPU time. A label without training documents is never suggested.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from labelspace.constraints import integer, optional, real
from labelspace.estimator import learned, param
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.quantize import Bytes, quantize_int8
from labelspace.kernels.sparse_layers import network_topk, subtract_labels
from labelspace.kernels.threads import run_blocks
from labelspace.models.base import Model
from labelspace.models.fit_context import FitContext
from labelspace.training.epochs import batch_schedule, batches
from labelspace.training.losses import log_odds, sigmoid, sigmoid_inplace
from labelspace.training.optimizers import AdamParameter
from labelspace.training.output_layer import OutputLayer
from labelspace.training.sparse_layers import Batch, SparseLayer, batch_rows
from labelspace.types import Csr, Floats, Ints, TopK

STEPS = 500  # batches that suffice to learn
EPOCHS = (6, 15)  # fewest and most that are chosen
ROW_BLOCK = 64  # documents a task


class Network(Model):
    """A hidden layer that all labels share, so that frequent ones help the rare.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = Network().fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "network"
    title = "one hidden layer, binary cross-entropy over all labels"
    choose_when = "a document has many labels, and the labels are at most some tens of thousands"
    hidden_dim: int = param(256, integer(1), "Units of the hidden layer.")
    epochs: int | None = param(
        None, optional(integer(1)), "Number of epochs; none chooses it by the number of documents."
    )
    batch_size: int = param(256, integer(1), "Maximum batch size.")
    learning_rate: float = param(0.003, real(above=0), "Learning rate.")
    feature_learning_rate: float = param(0.1, real(above=0), "Learning rate of the feature embeddings.")
    dropout: float = param(0.1, real(at_least=0, below=1), "Share of hidden units dropped in training.")
    input_dropout: float = param(0.0, real(at_least=0, below=1), "Share of a document's features dropped in training.")
    random_state: int = param(0, integer(0), "Seed of everything drawn at random.")

    vectors_: Bytes = learned()  # (n_features, hidden)
    vector_scales_: Floats = learned()  # (n_features,)
    hidden_bias_: Floats = learned()  # (hidden,)
    weights_: Bytes = learned()  # (hidden, n_labels): prediction reads the rows of active units
    weight_scales_: Floats = learned()  # (n_labels,)
    bias_: Floats = learned()  # (n_labels,)
    seen_: npt.NDArray[np.bool_] = learned()  # (n_labels,) whether a label had a training document

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X = normalize_rows(X)
        rng = np.random.default_rng(self.random_state)
        layers = Layers.random(X, Y, self.hidden_dim, rng)  # step 1
        batch, epochs = batch_schedule(X.shape[0], self.batch_size, self.epochs, STEPS, EPOCHS)  # step 2
        with threadpool_limits(1, user_api="blas"):
            for rows, left in batches(X.shape[0], batch, epochs, rng, context.progress):
                self._learn(layers, X, Y, rows, left, rng)
        self.vectors_, self.vector_scales_ = quantize_int8(layers.features.vectors)  # step 5
        self.weights_, self.weight_scales_ = layers.output.by_units()
        self.hidden_bias_, self.bias_ = layers.hidden_bias.value, layers.output.bias_values
        self.seen_ = np.bincount(Y.indices, minlength=Y.shape[1]) > 0

    def _learn(self, layers: Layers, X: Csr, Y: Csr, rows: Ints, left: float, rng: np.random.Generator) -> None:
        """One step on some rows; ``left`` is the share of the rates that is left."""
        given = batch_rows(X, rows, self.input_dropout, rng)  # step 3
        activity = layers.features.embed(given, layers.hidden_bias.value)  # (batch, hidden)
        gate = (rng.random(activity.shape, np.float32) >= self.dropout) / np.float32(1 - self.dropout)
        gate *= activity > 0
        activity *= gate
        gradient = layers.descend_output(activity, Y, rows, self.learning_rate * left)  # step 4
        gradient *= gate
        layers.descend_input(given, gradient, self.learning_rate * left, self.feature_learning_rate * left)

    def _predict(self, X: Csr, k: int) -> TopK:
        X = normalize_rows(X)
        out = TopK.empty(X.shape[0], k)

        def score(start: int, stop: int) -> None:
            network_topk(
                X.data, X.indices, X.indptr, start, stop, self.vectors_, self.vector_scales_, self.hidden_bias_,
                self.weights_, self.weight_scales_, self.bias_, self.seen_, out.labels, out.scores,
            )  # fmt: skip  # step 6

        run_blocks(score, X.shape[0], ROW_BLOCK)
        listed = out.labels >= 0
        out.scores[listed] = sigmoid(out.scores[listed])
        return out


@dataclass
class Layers:
    """The network while it learns."""

    features: SparseLayer  # E (n_features, hidden)
    hidden_bias: AdamParameter  # c (hidden,)
    output: OutputLayer  # W (n_labels, hidden) and b
    n_steps: int = 0  # steps begun

    @classmethod
    def random(cls, X: Csr, Y: Csr, hidden: int, rng: np.random.Generator) -> Layers:
        """Random vectors and weights, and labels at their frequency."""
        features = SparseLayer.random(X, hidden, rng)
        return cls(features, AdamParameter(np.zeros(hidden, np.float32)), OutputLayer.random(log_odds(Y), hidden, rng))

    def descend_output(self, activity: Floats, Y: Csr, rows: Ints, rate: float) -> Floats:
        """Move W and b on the rows of Y; the gradient by their activity (batch, hidden) is returned."""
        self.n_steps += 1
        to_errors = partial(to_label_errors, Y, rows)
        return self.output.descend(activity, to_errors, rate, self.n_steps)

    def descend_input(self, given: Batch, gradient: Floats, rate: float, feature_rate: float) -> None:
        """Move c and the rows of E that a batch has; ``gradient`` (batch, hidden) is that by E'x + c."""
        self.hidden_bias.step(gradient.sum(axis=0), rate, self.n_steps)
        self.features.descend(given, gradient, feature_rate)


def to_label_errors(Y: Csr, rows: Ints, scores: Floats, start: int) -> None:
    """Score minus truth, over the size of the batch: the loss' gradient by z. For the labels from start on."""
    sigmoid_inplace(scores)
    subtract_labels(Y.indices, Y.indptr, rows, start, scores)
    scores /= np.float32(len(rows))
