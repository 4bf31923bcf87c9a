"""Network: one hidden layer on sparse features, trained on all labels of a document at once.

With unit rows x, feature embeddings E, and z = W relu(E'x + c) + b, the score of a label is 1 / (1 + exp(-z)).

1. Initialize E and W at random, c = 0, and b with the log-odds of each label's frequency.
2. If ``epochs`` is not given, choose it: 500 batches, but at least 6 and at most 15 epochs.
3. For each batch of documents, drop some features (``input_dropout``) and some hidden units (``dropout``).
4. Minimize the binary cross-entropy, summed over all labels. W, b and c are updated by Adam at ``learning_rate``, the
   embeddings of the batch's features by row-wise Adagrad at ``feature_learning_rate``. Both learning rates fall
   linearly to 0.
5. Store E and W in 8 bits, with one scale per feature and one per label.
6. Rank the labels of a document by z.

Where we differ from a textbook network, and why: a feature embedding is updated only by the few documents that have the
feature, so it gets Adagrad's own step size, one number of memory in place of Adam's two vectors, and features that a
batch does not have cost nothing. The output layer is computed in blocks of labels, each from its scores to its Adam
step while it is in the cache. The blocks are spread over threads, and BLAS is limited to one thread: on two busy cores,
BLAS' own threads took 1.6 to 25 times the CPU time. A label without training documents is never suggested.
"""

from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
import numpy.typing as npt

from labelspace.estimator import learned
from labelspace.estimator.state_constraints import array
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.sparse_layers import Layer, network_topk
from labelspace.kernels.threads import topk_in_blocks
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.evidence import ColumnShares, Evidence, logit, relu_slopes
from labelspace.models.fit_context import FitContext
from labelspace.training.dense_layers import OutputLayer
from labelspace.training.epochs import batch_schedule, run_phases
from labelspace.training.losses import label_block_bce_gradient, listed_probabilities, log_odds
from labelspace.training.optimizers import AdamParameter
from labelspace.training.sparse_layers import Batch, SparseLayer, batch_rows
from labelspace.types import Bools, Csr, Floats, Ints, Rng, TopK

ROW_BLOCK = 64  # documents per task


class Network(Model):
    """A hidden layer that all labels share, so that frequent labels help rare ones.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = Network().fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "network"
    trains_from_cache = True
    title = "one hidden layer, binary cross-entropy over all labels"
    choose_when = "a document has many labels, and the labels are at most some tens of thousands"

    hidden_dim: int = parameters.hidden_dim(256)
    epochs: int | None = parameters.epochs()
    batch_size: int | None = parameters.batch_size()
    learning_rate: float = parameters.learning_rate(0.003)
    feature_learning_rate: float = parameters.feature_learning_rate(0.1)
    dropout: float = parameters.dropout(0.1)
    input_dropout: float = parameters.input_dropout(0.0)
    normalize: bool = parameters.normalize()
    random_state: int = parameters.random_state()

    feature_embeddings_: Int8s = learned(array("int8", "n_features", "hidden"))  # E
    feature_scales_: Floats = learned(array("float32", "n_features"))
    hidden_bias_: Floats = learned(array("float32", "hidden"))  # c
    output_weights_: Int8s = learned(array("int8", "hidden", "n_labels"))  # W' : prediction reads rows of active units
    output_scales_: Floats = learned(array("float32", "n_labels"))
    output_bias_: Floats = learned(array("float32", "n_labels"))  # b
    seen_: npt.NDArray[np.bool_] = learned(array("bool", "n_labels"))  # whether a label has a training document

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X = normalize_rows(X) if self.normalize else X
        rng = np.random.default_rng(self.random_state)
        net = HiddenLayerNet.random(X, Y, self.hidden_dim, rng)  # step 1
        schedule = batch_schedule(X.shape[0], self.batch_size, self.epochs)  # step 2

        def step(_: None, rows: Ints, lr_decay: float) -> None:  # steps 3 and 4
            batch = batch_rows(X, rows, self.input_dropout, rng)
            rates = (self.learning_rate * lr_decay, self.feature_learning_rate * lr_decay)
            net.train_step(batch, Y, rows, self.dropout, rates, rng)

        run_phases(step, [None], X.shape[0], schedule, rng, context.progress)
        self.feature_embeddings_, self.feature_scales_ = quantize_int8(net.features.vectors)  # step 5
        self.output_weights_, self.output_scales_ = net.output.quantized_weights()
        self.hidden_bias_, self.output_bias_ = net.hidden_bias.value, net.output.bias_values
        self.seen_ = np.bincount(Y.indices, minlength=Y.shape[1]) > 0

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        candidates = self.seen_ if allowed is None else self.seen_ & allowed
        X = normalize_rows(X) if self.normalize else X
        hidden = Layer(self.feature_embeddings_, self.feature_scales_, self.hidden_bias_)
        output = Layer(self.output_weights_, self.output_scales_, self.output_bias_)
        parts = (csr_arrays(X), hidden, output, candidates)
        return listed_probabilities(topk_in_blocks(network_topk, *parts, n=X.shape[0], k=k, block=ROW_BLOCK))  # step 6

    def explain(self, X: Csr, labels: Ints) -> list[Evidence]:
        """Explain the scores of labels by integrated gradients, which have a closed form for one ReLU layer."""
        X = normalize_rows(X) if self.normalize else X
        embeddings = self.feature_embeddings_[X.indices] * self.feature_scales_[X.indices, None]  # (nnz, hidden)
        before = self.hidden_bias_.astype(np.float64)
        after = before + X.data @ embeddings.astype(np.float64)
        unit_slopes = relu_slopes(after, before)
        found = []
        for label in labels.tolist():
            if not self.seen_[label]:
                found.append(Evidence(logit(0.0), logit(0.0)))
                continue
            weights = self.output_weights_[:, label] * np.float64(self.output_scales_[label])
            shares = X.data * (embeddings @ (weights * unit_slopes))
            baseline = float(np.maximum(before, 0) @ weights + self.output_bias_[label])
            log_odds = float(np.maximum(after, 0) @ weights + self.output_bias_[label])
            found.append(Evidence(log_odds, baseline, {self.view.name: ColumnShares(X.indices, shares)}))
        return found


@dataclass
class HiddenLayerNet:
    """The network in training."""

    features: SparseLayer  # E (n_features, hidden)
    hidden_bias: AdamParameter  # c (hidden,)
    output: OutputLayer  # W (n_labels, hidden) and b
    n_steps: int = 0

    @classmethod
    def random(cls, X: Csr, Y: Csr, hidden_dim: int, rng: Rng) -> Self:
        """Draw embeddings and weights at random, and start label biases at the log-odds of their frequency."""
        features = SparseLayer.random(X, hidden_dim, rng)
        hidden_bias = AdamParameter(np.zeros(hidden_dim, np.float32))
        return cls(features, hidden_bias, OutputLayer.random(log_odds(Y), hidden_dim, rng))

    def train_step(
        self, batch: Batch, Y: Csr, rows: Ints, dropout: float, rates: tuple[float, float], rng: Rng
    ) -> None:
        """Make one step on a batch whose labels are ``Y[rows]``; ``rates`` are of dense weights and of embeddings."""
        learning_rate, feature_learning_rate = rates
        self.n_steps += 1
        hidden = self.features.embed(batch, self.hidden_bias.value)  # (batch, hidden)
        mask = (rng.random(hidden.shape, np.float32) >= dropout) / np.float32(1 - dropout)
        mask *= hidden > 0  # dropout and ReLU
        hidden *= mask
        gradient = self.output.backward(hidden, partial(label_block_bce_gradient, Y, rows), learning_rate, self.n_steps)
        gradient *= mask
        self.hidden_bias.step(gradient.sum(axis=0), learning_rate, self.n_steps)
        self.features.backward(batch, gradient, feature_learning_rate)
