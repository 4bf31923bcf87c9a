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

Documents that are learned later (``partial_fit``) make a few steps together with documents that are replayed. A new
label starts in the direction from the mean hidden units of all documents to those of its own. E, W and b are updated by
row-wise Adagrad, which goes on from the gradients of the training; c, which all documents share, stays as it is.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from labelspace.estimator import learned
from labelspace.estimator.state_constraints import array, part
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.normalize import MIN_NORM, row_norms
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.sparse_layers import Layer, network_topk
from labelspace.kernels.threads import topk_in_blocks
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.evidence import ColumnShares, Evidence, logit, relu_slopes
from labelspace.models.fit_context import FitContext
from labelspace.models.partial_fit import NewDocuments
from labelspace.training.dense_layers import LossGradient, OutputLayer
from labelspace.training.epochs import batch_schedule, run_phases
from labelspace.training.losses import label_block_bce_gradient, listed_probabilities, log_odds
from labelspace.training.optimizers import ADAM_DECAY, AdamParameter, FixedParameter, RowAdagradParameter
from labelspace.training.replay import (
    MAX_SHARE,
    Examples,
    GradientRoots,
    Replay,
    Squares,
    check_finite,
    nothing_to_replay,
    refusing_overflow,
)
from labelspace.training.sparse_layers import Batch, SparseLayer, batch_rows
from labelspace.types import Bools, Csr, Doubles, Floats, Ints, Longs, Rng, TopK

ROW_BLOCK = 64  # documents per task
# Of going on learning, chosen on documents held out of train.
LEARN_EPOCHS = 4
LEARN_BATCH = 128
LEARN_RATE = 5.0  # of W and b, as a multiple of Adam's rate in the training
LEARN_FEATURE_RATE = 2.0  # of E, as a multiple of its rate in the training
NEW_LABEL_NORM = 0.5  # of the weights of a new label, relative to the usual one: few documents show the direction


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
    weighs_documents = True
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
    # For ``partial_fit``; None for models that were saved before there was any.
    replay_: Replay | None = learned(
        part(Replay, optional=True, n_features="n_features", n_labels="n_labels"), default=None
    )
    gradient_roots_: GradientRoots | None = learned(
        part(GradientRoots, optional=True, n_features="n_features", n_labels="n_labels"), default=None
    )

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X = normalize_rows(X) if self.normalize else X
        rng = np.random.default_rng(self.random_state)
        net = HiddenLayerNet.random(X, Y, self.hidden_dim, rng)  # step 1
        schedule = batch_schedule(X.shape[0], self.batch_size, self.epochs)  # step 2

        def step(_: None, rows: Ints, lr_decay: float) -> None:  # steps 3 and 4
            batch = batch_rows(X, rows, self.input_dropout, rng)
            rates = (self.learning_rate * lr_decay, self.feature_learning_rate * lr_decay)
            net.train_step(batch, Labels(Y, context.sample_weight, rows), self.dropout, rates, rng)

        run_phases(step, [None], X.shape[0], schedule, rng, context.progress)
        self.feature_embeddings_, self.feature_scales_ = quantize_int8(net.features.vectors)  # step 5
        self.output_weights_, self.output_scales_ = net.output.quantized_weights()
        self.hidden_bias_, self.output_bias_ = net.hidden_bias.value, net.output.bias_values
        self.seen_ = np.bincount(Y.indices, minlength=Y.shape[1]) > 0
        self.replay_ = Replay.of(X, Y, self._replay_bytes, np.random.default_rng([self.random_state, 1]))
        self.gradient_roots_ = net.gradient_roots(schedule[0], ~self.seen_)

    @property
    def _replay_bytes(self) -> int:
        """The most that the documents to replay may take."""
        return int(MAX_SHARE * (self.feature_embeddings_.size + self.output_weights_.size))

    def partial_fit(self, new: NewDocuments) -> Sequence[str]:
        """Make a few steps on further documents, and on some that are replayed."""
        replay, roots = self.replay_, self.gradient_roots_
        if replay is None or roots is None:
            raise nothing_to_replay(self.name)
        X = normalize_rows(new.X) if self.normalize else new.X
        rng = np.random.default_rng([self.random_state, 2, replay.n_learned])
        examples = Examples.of(X, new.Y, new.rejected, new.are_complete, replay)
        has_documents = np.bincount(new.Y.indices, minlength=new.n_labels) > 0
        seen = np.pad(self.seen_, (0, new.n_labels - len(self.seen_)))
        roots = roots.with_labels(new.n_labels)
        counts, n_learned = new.counts, replay.n_learned + X.shape[0]
        rate, feature_rate = LEARN_RATE * self.learning_rate, LEARN_FEATURE_RATE * self.feature_learning_rate
        with threadpool_limits(1, user_api="blas"), refusing_overflow():
            net = self._resumed(examples, roots)
            net.place_labels(np.flatnonzero(has_documents & ~seen), examples)
            net.calibrate(np.flatnonzero(has_documents & ~seen), examples, counts, n_learned)
            for rows, decay in examples.batches(LEARN_EPOCHS, LEARN_BATCH, rng):
                rates = (rate * decay, feature_rate * decay)
                net.learn_step(examples, rows, (self.input_dropout, self.dropout), rates, rng)
        self._store(net, examples.features, roots)
        self.seen_ = seen | has_documents
        complete = np.flatnonzero(new.are_complete)
        self.replay_ = replay.with_documents(X[complete], new.Y[complete], self._replay_bytes, rng)
        return ()

    def _resumed(self, examples: Examples, roots: GradientRoots) -> "HiddenLayerNet":
        """Return the network that goes on from what is stored, with the embeddings of the examples' features only."""
        features, n_further = examples.features, len(roots.labels) - len(self.seen_)
        embeddings = self.feature_embeddings_[features] * self.feature_scales_[features, None]
        layer = SparseLayer(embeddings)
        squares = roots.squares(LEARN_BATCH)
        layer.squares[:] = squares.features[features]
        weights = np.ascontiguousarray((self.output_weights_ * self.output_scales_).T)
        unsuggested = self.output_bias_.min(initial=0)  # of a label without documents
        output = OutputLayer(
            np.pad(weights, ((0, n_further), (0, 0))),
            np.pad(self.output_bias_, (0, n_further), constant_values=unsuggested),
        )
        output.weights = RowAdagradParameter(output.weights.value, squares.labels)
        output.bias = RowAdagradParameter(output.bias.value, squares.bias)
        return HiddenLayerNet(layer, FixedParameter(np.array(self.hidden_bias_)), output)

    def _store(self, net: "HiddenLayerNet", features: Ints, roots: GradientRoots) -> None:
        """Store what has changed, in new arrays."""
        check_finite(net.features.vectors, net.output.weights.value, net.output.bias.value)
        table, scales = np.array(self.feature_embeddings_), np.array(self.feature_scales_)
        table[features], scales[features] = quantize_int8(net.features.vectors)
        self.feature_embeddings_, self.feature_scales_ = table, scales
        self.output_weights_, self.output_scales_ = net.output.quantized_weights()
        self.output_bias_ = net.output.bias_values
        self.gradient_roots_ = roots.with_squares(features, net.squares, LEARN_BATCH)

    def growing_views(self) -> Collection[str]:
        """Return the view of the documents."""
        return (self.view.name,)

    def insert_features(self, at: Mapping[str, Longs]) -> None:
        """Insert features that no document has before these columns: their embedding is 0."""
        columns = at[self.view.name]
        self.feature_embeddings_ = np.insert(self.feature_embeddings_, columns, 0, axis=0)
        self.feature_scales_ = np.insert(self.feature_scales_, columns, 0)
        if self.gradient_roots_ is not None:
            self.gradient_roots_ = self.gradient_roots_.insert_features(columns)
        if self.replay_ is not None:
            self.replay_ = self.replay_.insert_features(columns, len(self.feature_scales_))

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


class Labels(NamedTuple):
    """The labels of a batch: some rows of Y, with the weights of all documents, None if they weigh the same."""

    Y: Csr
    weights: Doubles | None
    rows: Ints

    def loss_gradient(self, scores: Floats, start: int) -> None:
        """Replace the scores of a block of labels by the gradient of the loss, each row times its weight."""
        label_block_bce_gradient(self.Y, self.rows, scores, start)
        if self.weights is not None:
            scores *= self.weights[self.rows, None].astype(np.float32)


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

    def train_step(self, batch: Batch, labels: Labels, dropout: float, rates: tuple[float, float], rng: Rng) -> None:
        """Make one step on a batch with its labels; ``rates`` are of dense weights and of embeddings."""
        self._step(batch, labels.loss_gradient, dropout, rates, rng)

    def _step(
        self, batch: Batch, loss_gradient: LossGradient, dropout: float, rates: tuple[float, float], rng: Rng
    ) -> None:
        learning_rate, feature_learning_rate = rates
        self.n_steps += 1
        hidden = self.features.embed(batch, self.hidden_bias.value)  # (batch, hidden)
        mask = (rng.random(hidden.shape, np.float32) >= dropout) / np.float32(1 - dropout)
        mask *= hidden > 0  # dropout and ReLU
        hidden *= mask
        gradient = self.output.backward(hidden, loss_gradient, learning_rate, self.n_steps)
        gradient *= mask
        self.hidden_bias.step(gradient.sum(axis=0), learning_rate, self.n_steps)
        self.features.backward(batch, gradient, feature_learning_rate)

    def learn_step(
        self, examples: Examples, rows: Ints, dropouts: tuple[float, float], rates: tuple[float, float], rng: Rng
    ) -> None:
        """Make one step on a batch of examples, some labels of which may be unknown; ``dropouts`` as in training."""
        input_dropout, dropout = dropouts

        def loss_gradient(scores: Floats, start: int) -> None:
            label_block_bce_gradient(examples.Y, rows, scores, start)
            examples.forget_unknown(scores, rows, slice(start, start + scores.shape[1]))

        self._step(batch_rows(examples.X, rows, input_dropout, rng), loss_gradient, dropout, rates, rng)

    def place_labels(self, labels: Longs, examples: Examples) -> None:
        """Start the weights of new labels: from the mean hidden units of all documents towards that of their own."""
        if not len(labels):
            return
        hidden = self._hidden(examples)
        mean, weights, norms = hidden.mean(axis=0), self.output.weights.value, row_norms(self.output.weights.value)
        usual = float(np.median(norms[norms > MIN_NORM])) if (norms > MIN_NORM).any() else 1.0
        by_label = examples.Y[: examples.n_new].tocsc()
        for label in labels.tolist():
            own = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
            direction = hidden[own].mean(axis=0) - mean
            weights[label] = NEW_LABEL_NORM * usual * direction / max(float(np.linalg.norm(direction)), 1e-12)

    def calibrate(self, labels: Longs, examples: Examples, counts: Longs | None, n_documents: int) -> None:
        """Set the biases of new labels, so that as many documents are expected to have each as do."""
        if len(labels):
            scores = self._hidden(examples) @ self.output.weights.value[labels].T
            self.output.bias.value[labels] = examples.biases(scores, labels, counts, n_documents)

    def _hidden(self, examples: Examples) -> Floats:
        """Return the hidden units of new documents and of some that are replayed."""
        X = examples.X[examples.to_calibrate()]
        return np.maximum(self.features.embed(csr_arrays(X), self.hidden_bias.value), 0)

    @property
    def squares(self) -> Squares:
        """The sums of squared gradients, when the output layer has them too."""
        weights, bias = self.output.weights, self.output.bias
        assert isinstance(weights, RowAdagradParameter)
        assert isinstance(bias, RowAdagradParameter)
        return Squares(self.features.squares, weights.squares, bias.squares)

    def gradient_roots(self, batch_size: int, is_new: Bools) -> GradientRoots:
        """Return the roots of the sums of squared gradients over the training; Adam has their means."""
        total = self.n_steps / (1.0 - ADAM_DECAY**self.n_steps)
        by_label = (
            self.output.weights.square.mean(axis=1) * np.float32(total),
            self.output.bias.square * np.float32(total),
        )
        return GradientRoots.of(Squares(self.features.squares, *by_label), batch_size, is_new)
