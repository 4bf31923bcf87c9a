"""NeuralXC: documents and label sets as codes of autoencoders, with a regressor from the one code to the other.

Srinivasan, Rao and Agarwal, "Extreme Classification using Autoencoders" (section 3). With the encoders phi_i and phi_o,
the decoders psi_i and psi_o and the regressor f, the loss of a document (eq. 1) is

    alpha |psi_i(phi_i(x)) - x|^2 + beta |psi_o(phi_o(y)) - y|^2 + BCE(psi_o(f(phi_i(x))), y)

1. Begin with random weights, and the bias of each label at the log-odds of its frequency.
2. ``training="staged"``: first minimize the two reconstruction terms alone, then move f alone by the third;
   ``"pretrained"``: the same beginning, then all terms and all weights; ``"joint"``: all from the start.
3. For each batch of documents x and label sets y, leave some features out (``input_dropout``) and drop some units of
   phi_i's first layer (``dropout``).
4. The code f(phi_i(x)) and the code phi_o(y) go through psi_o together; the errors of both move its weights.
5. The code phi_i(x) goes through psi_i, whose error is counted at the features that a row has and at ``n_sampled_features`` others.
6. Dense weights move by Adam at ``learning_rate``, an encoder's vectors of features by row-wise Adagrad at ``feature_learning_rate``, or
   at ``learning_rate`` while there is nothing but codes to learn, those of psi_i at a tenth of ``learning_rate``. All rates fall to 0.
7. Of what was learned only phi_i, f and psi_o are kept, the two largest tables in 8 bits; labels are ranked by their
   score psi_o(f(phi_i(x))).

| paper | here |
|---|---|
| d_x, d_y | n_features, n_labels |
| phi_i, ld_x | ``input_layers``: widths from the features to the code, the last of which is ld_x |
| phi_o, ld_y | ``output_layers``: widths from the labels to the code, the last of which is ld_y |
| psi_i, psi_o | the same widths backwards |
| f | ``regressor``: widths between the two codes |
| alpha, beta | ``alpha``, ``beta`` |

Where we differ, and why: losses are summed over features and labels, as eq. 1 has them; the authors' programs take the
mean. Biases at the labels' frequency and codes that do not saturate are what keeps it from collapsing to the labels'
frequencies (docs/methods/neuralxc.md). Above ``ALL_LABELS`` labels a batch learns on its own and ``n_negatives`` drawn
ones; above ``n_sampled_features`` features the reconstruction is sampled: both estimate the same sums without a table of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from labelspace.constraints import boolean, integer, layer_sizes, one_of, optional, parse_layer_sizes, real
from labelspace.estimator import learned, param
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.losses import subtract_at
from labelspace.kernels.quantize import Bytes, quantize_int8
from labelspace.kernels.sparse_layers import output_topk, subtract_labels
from labelspace.kernels.threads import run_blocks
from labelspace.models.base import Model
from labelspace.models.checks import Inputs, check_inputs, check_widths
from labelspace.models.fit_context import FitContext
from labelspace.training.autoencoder import (
    LearningRates,
    QuantizedEncoder,
    SparseDecoder,
    SparseEncoder,
    TrainingPhase,
    phases,
)
from labelspace.training.dense_layers import ACTIVATIONS, Chain, Stack, flatten_layers, layer_chain
from labelspace.training.epochs import batch_schedule, batches
from labelspace.training.losses import log_odds, sigmoid, sigmoid_inplace, squared_error_gradient
from labelspace.training.negative_sampling import ALL_LABELS, SampledLabels, choose, seen_labels
from labelspace.training.output_layer import OutputLayer, SampledOutputLayer
from labelspace.training.sparse_layers import batch_rows
from labelspace.types import Csr, Floats, Ints, TopK

STEPS = 500  # batches that suffice to learn
EPOCHS = (6, 15)  # fewest and most that are chosen
ROW_BLOCK = 64  # documents a task
MANY_DOCUMENTS = 30_000  # above, fewer units need be dropped: there is less to overfit
DROPOUT = (0.5, 0.1)  # up to so many documents, and above


class NeuralXC(Model):
    """Two autoencoders and a regressor between their codes.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = NeuralXC().fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.5)
    True
    """

    name = "neuralxc"
    title = "NeuralXC: autoencoders of documents and of label sets (Srinivasan et al.)"
    choose_when = "you compare with the paper, or need codes of documents beside their labels"
    input_layers: int | str = param(512, layer_sizes(), "Units from the features to the code, the last being the code.")
    output_layers: int | str = param(
        512, layer_sizes(), "Units from the labels to their code, the last being the code."
    )
    regressor: int | str = param("", layer_sizes(0), "Units between the two codes.")
    activation: str = param("relu", one_of(*ACTIVATIONS), "Activation function of hidden layers.")
    input_code: str = param("relu", one_of(*ACTIVATIONS), "Activation function of the document code.")
    output_code: str = param("linear", one_of(*ACTIVATIONS), "Activation function of the label code.")
    alpha: float = param(0.1, real(at_least=0), "Weight of the reconstruction of documents.")
    beta: float = param(0.1, real(at_least=0), "Weight of the reconstruction of label sets.")
    training: str = param(
        "joint",
        one_of("joint", "staged", "pretrained"),
        "Joint from the start, staged (autoencoders first), or pretrained (autoencoders first, then all).",
    )
    reduction: str = param("sum", one_of("sum", "mean"), "Sum or mean over features and labels in the losses.")
    prior_bias: bool = param(True, boolean(), "Start label biases at the log-odds of label frequency.")
    epochs: int | None = param(
        None, optional(integer(1)), "Number of epochs; none chooses it by the number of documents."
    )
    batch_size: int = param(256, integer(1), "Maximum batch size.")
    learning_rate: float = param(0.003, real(above=0), "Learning rate.")
    feature_learning_rate: float = param(0.1, real(above=0), "Learning rate of the feature embeddings.")
    dropout: float | None = param(
        None,
        optional(real(at_least=0, below=1)),
        "Share of hidden units dropped in training; none chooses it by the number of documents.",
    )
    input_dropout: float = param(0.0, real(at_least=0, below=1), "Share of a document's features dropped in training.")
    n_sampled_features: int = param(2048, integer(1), "Absent features sampled per batch in the reconstruction loss.")
    n_negatives: int = param(
        2048, integer(1), "Negative labels sampled per batch, where not all labels are trained on."
    )
    random_state: int = param(0, integer(0), "Seed of everything drawn at random.")

    vectors_: Bytes = learned()  # (n_features, width)
    vector_scales_: Floats = learned()  # (n_features,)
    offset_: Floats = learned()  # (width,)
    dense_: Floats = (
        learned()
    )  # the dense layers of phi_i, f and psi_o, one after another: for each its weights (inputs, units)
    weights_: Bytes = learned()  # (last width, n_labels)
    weight_scales_: Floats = learned()  # (n_labels,)
    bias_: Floats = learned()  # (n_labels,)
    seen_: npt.NDArray[np.bool_] = learned()  # (n_labels,) whether a label had a training document
    error_: float | None = learned()  # of the reconstruction of a document, whose length is 1; None with alpha at 0

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X = normalize_rows(X)
        rng = np.random.default_rng(self.random_state)
        net = self._begin(X, Y, rng)  # step 1
        batch, epochs = batch_schedule(X.shape[0], self.batch_size, self.epochs, STEPS, EPOCHS)
        plan, seen = phases(self.training, self.alpha, self.beta), seen_labels(Y)  # step 2
        with threadpool_limits(1, user_api="blas"):
            for number, phase in enumerate(plan):
                for rows, left in batches(X.shape[0], batch, epochs, rng, context.progress, number, len(plan)):
                    self._step(net, phase, X, Y, rows, seen, left, rng)
        self._keep(net, Y)  # step 7

    def _begin(self, X: Csr, Y: Csr, rng: np.random.Generator) -> Net:
        inputs, outputs = parse_layer_sizes(self.input_layers), parse_layer_sizes(self.output_layers)
        hidden = self.activation
        bias = log_odds(Y) if self.prior_bias else np.zeros(Y.shape[1], np.float32)
        last = (OutputLayer if Y.shape[1] <= ALL_LABELS else SampledOutputLayer).random(bias, outputs[0], rng)
        return Net(
            phi_i=SparseEncoder.random(X, inputs, hidden, self.input_code, rng),
            psi_i=SparseDecoder.random(X, inputs[::-1], hidden, self.n_sampled_features, rng),
            f=Stack.random(
                [inputs[-1], *parse_layer_sizes(self.regressor), outputs[-1]], hidden, self.output_code, rng
            ),
            phi_o=SparseEncoder.random(Y, outputs, hidden, self.output_code, rng),
            psi_o=Stack.random(outputs[::-1], hidden, hidden, rng),
            output=last,
        )

    def _step(
        self,
        net: Net,
        phase: TrainingPhase,
        X: Csr,
        Y: Csr,
        rows: Ints,
        seen: Ints,
        left: float,
        rng: np.random.Generator,
    ) -> None:
        """Eq. 1 on some rows; ``left`` is the share of the rates that is left."""
        net.n_steps += 1
        net.classified += phase.classify
        of_features = self.feature_learning_rate if phase.classify else self.learning_rate  # a code alone needs no more
        own = LearningRates(self.learning_rate * left, of_features * left, net.n_steps)
        others = own.none() if phase.freeze_codes else own
        trace = net.phi_i.forward(batch_rows(X, rows, self.input_dropout, rng), self._dropout(X), rng)  # step 3
        by_code = np.zeros_like(trace.code)
        true = Y[rows]
        regressed = net.f.forward(trace.code) if phase.classify else []
        of_labels = net.phi_o.forward((true.data, true.indices, true.indptr), 0.0, rng) if phase.beta else None
        codes = [*regressed[-1:], *([] if of_labels is None else [of_labels.code])]
        if codes:
            chosen = choose(true, seen, self.n_negatives, rng) if isinstance(net.output, SampledOutputLayer) else None
            gradients = self._decode(
                net, np.concatenate(codes), Objective(Y, rows, true, chosen, phase), others
            )  # step 4
            if of_labels is not None:
                net.phi_o.backward(of_labels, gradients[-len(rows) :], others)
            if regressed:
                by_code += net.f.backward(regressed, gradients[: len(rows)], own.dense, net.classified)
        if phase.alpha:
            weight = phase.alpha / len(rows) / (X.shape[1] if self.reduction == "mean" else 1)
            target = batch_rows(X, rows, 0.0, rng)
            by_code += net.psi_i.descend(trace.code, target, weight, others, rng)  # step 5
        if not phase.freeze_codes:
            net.phi_i.backward(trace, by_code, others)

    def _dropout(self, X: Csr) -> float:
        return self.dropout if self.dropout is not None else DROPOUT[X.shape[0] > MANY_DOCUMENTS]

    def _decode(self, net: Net, codes: Floats, lesson: Objective, rates: LearningRates) -> Floats:
        """Move psi_o on the codes of documents and of label sets, in this order; the gradient by them is returned."""
        values = net.psi_o.forward(codes)
        scale = 1 / len(lesson.rows) / (lesson.Y.shape[1] if self.reduction == "mean" else 1)

        def to_errors(scores: Floats, start: int) -> None:
            lesson.to_errors(scores, start)
            scores *= np.float32(scale)

        if isinstance(net.output, SampledOutputLayer):
            ids = np.zeros(0, np.int32) if lesson.chosen is None else lesson.chosen.ids
            gradient = net.output.descend(values[-1], ids, to_errors, rates.sparse)
        else:
            gradient = net.output.descend(values[-1], to_errors, rates.dense, rates.n_steps)
        return net.psi_o.backward(values, gradient, rates.dense, rates.n_steps)

    def _keep(self, net: Net, Y: Csr) -> None:
        self.vectors_, self.vector_scales_ = quantize_int8(net.phi_i.features.vectors)
        self.offset_ = net.phi_i.offset.value
        self.dense_ = flatten_layers([*net.phi_i.stack.layers, *net.f.layers, *net.psi_o.layers])
        self.weights_, self.weight_scales_ = net.output.by_units()
        self.bias_ = net.output.bias_values
        self.seen_ = np.bincount(Y.indices, minlength=Y.shape[1]) > 0
        self.error_ = net.psi_i.error()

    def report(self) -> dict[str, Any]:
        """How well a document can be told from its code."""
        self.check_fitted()
        return {"reconstruction_error": self.error_}

    def _chain(self) -> Chain:
        """Every layer from the features' sum to psi_o's last but one."""
        inputs, outputs = parse_layer_sizes(self.input_layers), parse_layer_sizes(self.output_layers)
        return [
            *layer_chain(inputs, self.activation, self.input_code),
            *layer_chain([*parse_layer_sizes(self.regressor), outputs[-1]], self.activation, self.output_code),
            *((width, self.activation) for width in outputs[-2::-1]),
        ]

    def _stored(self, chain: Chain) -> QuantizedEncoder:
        return QuantizedEncoder(self.vectors_, self.vector_scales_, self.offset_, self.dense_, chain)

    def encode(self, X: Inputs) -> Floats:
        """The codes phi_i(x) of documents: (n, code)."""
        self.check_fitted()
        views = check_inputs(X)
        check_widths(views, self.widths_)
        inputs = parse_layer_sizes(self.input_layers)
        return self._stored(layer_chain(inputs, self.activation, self.input_code)).rows(
            normalize_rows(self.read(views))
        )

    def _predict(self, X: Csr, k: int) -> TopK:
        X = normalize_rows(X)
        out = TopK.empty(X.shape[0], k)
        encode = self._stored(self._chain())

        def score(start: int, stop: int) -> None:
            output_topk(
                encode(X, start, stop), 0, stop - start, self.weights_, self.weight_scales_, self.bias_, self.seen_,
                out.labels[start:stop], out.scores[start:stop],
            )  # fmt: skip

        run_blocks(score, X.shape[0], ROW_BLOCK)
        listed = out.labels >= 0
        out.scores[listed] = sigmoid(out.scores[listed])
        return out


@dataclass
class Net:
    """The parts of eq. 1 while they learn."""

    phi_i: SparseEncoder
    psi_i: SparseDecoder
    f: Stack
    phi_o: SparseEncoder
    psi_o: Stack  # up to the last layer
    output: OutputLayer | SampledOutputLayer
    n_steps: int = 0  # steps begun
    classified: int = 0  # of these, those that move f: Adam counts the steps of what it moves


@dataclass(frozen=True)
class Objective:
    """The labels of a batch, for the errors of psi_o."""

    Y: Csr
    rows: Ints
    true: Csr  # Y[rows]
    chosen: SampledLabels | None  # the labels to learn on; None for all
    phase: TrainingPhase

    def to_errors(self, scores: Floats, start: int) -> None:
        """The gradient of eq. 1's last two terms by scores, in place: documents first, then label sets."""
        first = len(self.rows) if self.phase.classify else 0
        sigmoid_inplace(scores)
        chances = scores[first:].copy()
        for part in (scores[:first], scores[first:]):
            if len(part):
                self._subtract_truth(part, start)
        squared_error_gradient(chances, scores[first:])
        scores[first:] *= np.float32(2 * self.phase.beta)
        if self.chosen is not None and self.chosen.weights is not None:
            scores *= self.chosen.weights

    def _subtract_truth(self, part: Floats, start: int) -> None:
        if self.chosen is None:
            subtract_labels(self.Y.indices, self.Y.indptr, self.rows, start, part)
        else:
            subtract_at(self.chosen.columns, self.chosen.ends, 0, False, part)
