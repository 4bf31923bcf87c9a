"""NeuralXC: autoencoders of documents and of label sets, with a regressor from one code to the other.

Srinivasan, Rao and Agarwal, "Extreme Classification using Autoencoders" (section 3). With the encoders phi_i and phi_o,
the decoders psi_i and psi_o and the regressor f, the loss of a document (eq. 1) is

    alpha |psi_i(phi_i(x)) - x|^2 + beta |psi_o(phi_o(y)) - y|^2 + BCE(psi_o(f(phi_i(x))), y)

1. Initialize weights at random, and the bias of each label with the log-odds of its frequency.
2. ``training="staged"``: first minimize only the two reconstruction terms, then update only f by the third;
   ``"pretrained"``: the same first phase, then all terms and all weights; ``"joint"``: all terms from the start.
3. For each batch of documents x and label sets y, drop some features (``input_dropout``) and some units of the first
   layer of phi_i (``dropout``).
4. The codes f(phi_i(x)) and phi_o(y) go through psi_o together; the errors of both update its weights.
5. The code phi_i(x) goes through psi_i. The squared error counts at the features of the document and at
   ``n_sampled_features`` other features.
6. Dense weights are updated by Adam at ``learning_rate``, the feature embeddings of an encoder by row-wise Adagrad at
   ``feature_learning_rate`` (``learning_rate`` while only codes are learned), the embeddings of psi_i at a tenth of
   ``learning_rate``. All learning rates fall linearly to 0.
7. Only phi_i, f and psi_o are stored, the two largest tables in 8 bits. Labels are ranked by psi_o(f(phi_i(x))).

| paper | here |
|---|---|
| d_x, d_y | n_features, n_labels |
| phi_i, ld_x | ``input_layers``: units from the features to the code; the last number is ld_x |
| phi_o, ld_y | ``output_layers``: units from the labels to the code; the last number is ld_y |
| psi_i, psi_o | the same layers in reverse order |
| f | ``regressor``: units between the two codes |
| alpha, beta | ``alpha``, ``beta`` |

Where we differ, and why: losses are summed over features and labels, as eq. 1 has them; the authors' programs take the
mean. Biases at the label frequencies and codes that do not saturate keep the model from collapsing to the label
frequencies (docs/methods/neuralxc.md). Above ``MAX_UNSAMPLED_LABELS`` labels a batch is trained on its own labels and
``n_negatives`` sampled ones; above ``n_sampled_features`` features the reconstruction loss is sampled. Both estimate
the same sums without a table of all labels or features. The preset ``paper`` has none of this; ``authors`` is the
authors' program for Bibtex, with its layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import boolean, layer_sizes, one_of, parse_layer_sizes, real
from labelspace.estimator.state_constraints import array, must, part
from labelspace.features.normalize import normalize_rows
from labelspace.kernels.losses import subtract_positives
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.sparse_layers import Layer, output_topk, subtract_label_block
from labelspace.kernels.threads import search_in_blocks
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.checks import Inputs, check_inputs, check_widths
from labelspace.models.fit_context import FitContext
from labelspace.training import autoencoder, dense_layers, losses
from labelspace.training.dense_layers import ACTIVATIONS, MLP, OutputLayer, SampledOutputLayer
from labelspace.training.epochs import batch_schedule, run_phases
from labelspace.training.sparse_layers import batch_rows
from labelspace.types import Bools, Csr, Floats, Ints, TopK

ROW_BLOCK = 64  # documents per task
MANY_DOCUMENTS = 30_000  # with more, less dropout is needed: the network overfits less
DROPOUT = (0.5, 0.1)  # up to this number of documents, and above it
# Section 3; if it is silent, what the authors' programs do for every data set.
PAPER: Mapping[str, Any] = {
    "input_code": "linear",  # programs
    "output_code": "tanh",  # programs
    "alpha": 0.01,  # eq. 1; the value is the programs'
    "beta": 0.01,  # eq. 1; the value is the programs'
    "prior_bias": False,
    "batch_size": 64,  # programs
    "dropout": 0.0,
    "n_sampled_features": None,  # eq. 1: the norm over all features
    "all_labels": True,  # eq. 1: the norm over all labels
    "normalize": False,  # section 5.1: features as given
}
# The authors' program for Bibtex; docs/methods/neuralxc.md has the layers for the other data sets.
AUTHORS: Mapping[str, Any] = {
    **PAPER,
    "input_layers": "1152,600,256",
    "output_layers": "96,32",
    "regressor": 112,
    "reduction": "mean",
    "learning_rate": 0.0003,
}


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
    choose_when = "you compare with the paper, or need codes of documents as well as their labels"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": PAPER, "authors": AUTHORS}

    input_layers: int | str = param(512, layer_sizes(), "Units from the features to the code, the last being the code.")
    output_layers: int | str = param(512, layer_sizes(), "Units from the labels to the code, the last being the code.")
    regressor: int | str = param("", layer_sizes(0), "Units between the two codes.")
    activation: str = param("relu", one_of(*ACTIVATIONS), "Activation function of hidden layers.")
    input_code: str = param("relu", one_of(*ACTIVATIONS), "Activation function of the document code.")
    output_code: str = param("linear", one_of(*ACTIVATIONS), "Activation function of the label code.")
    alpha: float = param(0.1, real(at_least=0), "Weight of the reconstruction of documents.")
    beta: float = param(0.1, real(at_least=0), "Weight of the reconstruction of label sets.")
    training: str = parameters.training()
    reduction: str = param("sum", one_of("sum", "mean"), "Sum or mean over features and labels in the losses.")
    prior_bias: bool = param(True, boolean(), "Start label biases at the log-odds of label frequency.")
    epochs: int | None = parameters.epochs()
    batch_size: int | None = parameters.batch_size()
    learning_rate: float = parameters.learning_rate(0.003)
    feature_learning_rate: float = parameters.feature_learning_rate(0.1)
    dropout: float | None = parameters.dropout(None)
    input_dropout: float = parameters.input_dropout(0.0)
    n_sampled_features: int | None = parameters.n_sampled_features()
    all_labels: bool | None = parameters.all_labels()
    n_negatives: int = parameters.n_negatives(2048)
    normalize: bool = parameters.normalize()
    random_state: int = parameters.random_state()

    # phi_i, f and psi_o without its output layer.
    encoder_: autoencoder.QuantizedEncoder = learned(part(autoencoder.QuantizedEncoder, n_features="n_features"))
    output_weights_: Int8s = learned(array("int8", "units", "n_labels"))
    output_scales_: Floats = learned(array("float32", "n_labels"))
    output_bias_: Floats = learned(array("float32", "n_labels"))
    seen_: npt.NDArray[np.bool_] = learned(array("bool", "n_labels"))  # whether a label has a training document
    # Of a document, which has length 1 if normalized; None with alpha at 0.
    reconstruction_error_: float | None = learned(autoencoder.RECONSTRUCTION_ERROR)

    def check_state(self) -> None:
        """Check that the output layer reads codes of the encoder's dimension."""
        must(len(self.output_weights_) == self.encoder_.code_dim, "an output layer on its codes")

    def _fit(self, X: Csr, Y: Csr, context: FitContext) -> None:
        X = normalize_rows(X) if self.normalize else X
        net = NeuralXCNet(self, X, Y)  # step 1
        plan = autoencoder.phases(self.training, self.alpha, self.beta)  # step 2
        schedule = batch_schedule(X.shape[0], self.batch_size, self.epochs)
        run_phases(partial(self._train_step, net), plan, X.shape[0], schedule, net.rng, context.progress)
        self._store(net)  # step 7

    def layer_widths(self) -> tuple[list[int], list[int], list[int]]:
        """Return the layer widths of phi_i, f and phi_o."""
        inputs, regressor, outputs = map(parse_layer_sizes, (self.input_layers, self.regressor, self.output_layers))
        return inputs, regressor, outputs

    def _train_step(self, net: NeuralXCNet, phase: autoencoder.TrainingPhase, rows: Ints, lr_decay: float) -> None:
        """Make one step on eq. 1, or on the terms of eq. 1 that count in the phase."""
        X, Y, rng = net.X, net.Y, net.rng
        net.n_steps += 1
        net.n_classifier_steps += phase.classify
        rates = phase.rates(self.learning_rate, self.feature_learning_rate, lr_decay, net.n_steps)
        autoencoder_rates = rates.frozen() if phase.freeze_codes else rates
        encoded = net.phi_i.forward(batch_rows(X, rows, self.input_dropout, rng), self._dropout(X), rng)  # step 3
        by_code = np.zeros_like(encoded.code)
        true = Y[rows]
        regressed = net.f.forward(encoded.code) if phase.classify else []
        encoded_labels = net.phi_o.forward((true.data, true.indices, true.indptr), 0.0, rng) if phase.beta else None
        codes = [*regressed[-1:], *([] if encoded_labels is None else [encoded_labels.code])]
        if codes:  # step 4
            sampling = isinstance(net.output, SampledOutputLayer)
            sampled = losses.sample_labels(true, net.seen, self.n_negatives, rng) if sampling else None
            loss = OutputLoss(Y, rows, sampled, phase, self.reduction == "mean")
            gradients = net.descend_psi_o(np.concatenate(codes), loss, autoencoder_rates)
            if encoded_labels is not None:
                net.phi_o.backward(encoded_labels, gradients[-len(rows) :], autoencoder_rates)
            if regressed:
                by_code += net.f.backward(regressed, gradients[: len(rows)], rates.dense, net.n_classifier_steps)
        if phase.alpha:  # step 5
            weight = phase.alpha / len(rows) / (X.shape[1] if self.reduction == "mean" else 1)
            target = batch_rows(X, rows, 0.0, rng)
            by_code += net.psi_i.backward(encoded.code, target, weight, autoencoder_rates, rng)
        if not phase.freeze_codes:
            net.phi_i.backward(encoded, by_code, rates)

    def _dropout(self, X: Csr) -> float:
        return self.dropout if self.dropout is not None else DROPOUT[X.shape[0] > MANY_DOCUMENTS]

    def _store(self, net: NeuralXCNet) -> None:
        inputs, regressor, outputs = self.layer_widths()
        chain = [
            *dense_layers.layer_specs(inputs, self.activation, self.input_code),
            *dense_layers.layer_specs([*regressor, outputs[-1]], self.activation, self.output_code),
            *((units, self.activation) for units in outputs[-2::-1]),
        ]
        layers = dense_layers.flatten_layers([*net.phi_i.mlp.layers, *net.f.layers, *net.psi_o.layers])
        embeddings = quantize_int8(net.phi_i.features.vectors)
        self.encoder_ = autoencoder.QuantizedEncoder(*embeddings, net.phi_i.bias.value, layers, chain)
        self.output_weights_, self.output_scales_ = net.output.quantized_weights()
        self.output_bias_ = net.output.bias_values
        self.seen_ = np.bincount(net.Y.indices, minlength=self.n_labels_) > 0
        self.reconstruction_error_ = net.psi_i.error()

    def report(self) -> dict[str, Any]:
        """Report how well documents are reconstructed from their codes."""
        self.check_fitted()
        return {"reconstruction_error": self.reconstruction_error_}

    def encode(self, X: Inputs) -> Floats:
        """Return the codes phi_i(x) of documents: (n, code)."""
        self.check_fitted()
        views = check_inputs(X)
        check_widths(views, self.widths_)
        n_layers = len(parse_layer_sizes(self.input_layers))
        phi_i = replace(self.encoder_, specs=self.encoder_.specs[:n_layers])
        documents = self.read(views)
        return phi_i.rows(normalize_rows(documents) if self.normalize else documents)

    def _predict(self, X: Csr, k: int, allowed: Bools | None = None) -> TopK:
        candidates = self.seen_ if allowed is None else self.seen_ & allowed
        X = normalize_rows(X) if self.normalize else X
        output = Layer(self.output_weights_, self.output_scales_, self.output_bias_)

        def score(rows: slice, labels: Ints, scores: Floats) -> None:
            codes = self.encoder_(X, rows.start, rows.stop)
            output_topk(codes, 0, len(codes), output, candidates, labels, scores)

        return losses.listed_probabilities(search_in_blocks(score, X.shape[0], k, ROW_BLOCK))


@dataclass(frozen=True)
class OutputLoss:
    """The loss of the scores that psi_o gives a batch: the last two terms of eq. 1.

    The rows of scores come from the codes of documents, if the phase classifies, and then from the codes of label sets.
    """

    Y: Csr
    rows: Ints  # the documents of the batch
    sampled: losses.SampledLabels | None  # the labels to train on; None for all
    phase: autoencoder.TrainingPhase
    mean: bool  # over labels, rather than the sum

    def to_gradient(self, scores: Floats, start: int) -> None:
        """Turn the scores of the labels from ``start`` on into the gradient of the loss by them, in place."""
        n_documents = len(self.rows) if self.phase.classify else 0
        losses.sigmoid_inplace(scores)
        of_documents, of_label_sets = scores[:n_documents], scores[n_documents:]
        probabilities = of_label_sets.copy()
        for block in (of_documents, of_label_sets):
            if not len(block):
                continue
            if self.sampled is None:
                subtract_label_block(self.Y.indices, self.Y.indptr, self.rows, start, block)
            else:
                subtract_positives(self.sampled.columns, self.sampled.indptr, 0, False, block)
        losses.squared_error_gradient(probabilities, of_label_sets)
        of_label_sets *= np.float32(2 * self.phase.beta)
        if self.sampled is not None and self.sampled.weights is not None:
            scores *= self.sampled.weights
        scores *= np.float32(1 / len(self.rows) / (self.Y.shape[1] if self.mean else 1))


class NeuralXCNet:
    """The encoders, decoders and the regressor of eq. 1."""

    def __init__(self, params: NeuralXC, X: Csr, Y: Csr) -> None:
        """Draw the weights (step 1)."""
        self.X, self.Y, self.seen = X, Y, losses.seen_labels(Y)
        self.rng = rng = np.random.default_rng(params.random_state)
        self.n_steps = 0
        self.n_classifier_steps = 0  # steps that update f: Adam counts the steps of what it updates
        inputs, regressor, outputs = params.layer_widths()
        hidden = params.activation
        bias = losses.log_odds(Y) if params.prior_bias else np.zeros(Y.shape[1], np.float32)
        few_labels = Y.shape[1] <= losses.MAX_UNSAMPLED_LABELS
        all_labels = few_labels if params.all_labels is None else params.all_labels
        layer = OutputLayer if all_labels else SampledOutputLayer
        n_sampled = X.shape[1] if params.n_sampled_features is None else params.n_sampled_features
        self.output = layer.random(bias, outputs[0], rng)  # the last layer of psi_o
        self.phi_i = autoencoder.SparseEncoder.random(X, inputs, hidden, params.input_code, rng)
        self.psi_i = autoencoder.SparseDecoder.random(X, inputs[::-1], hidden, n_sampled, rng)
        self.f = MLP.random([inputs[-1], *regressor, outputs[-1]], hidden, params.output_code, rng)
        self.phi_o = autoencoder.SparseEncoder.random(Y, outputs, hidden, params.output_code, rng)
        self.psi_o = MLP.random(outputs[::-1], hidden, hidden, rng)  # without the output layer

    def descend_psi_o(self, codes: Floats, loss: OutputLoss, rates: autoencoder.LearningRates) -> Floats:
        """Update psi_o on the codes of documents and of label sets, in this order; return the gradient by the codes."""
        values = self.psi_o.forward(codes)
        if isinstance(self.output, SampledOutputLayer):
            ids = np.zeros(0, np.int32) if loss.sampled is None else loss.sampled.ids
            gradient = self.output.backward(values[-1], ids, loss.to_gradient, rates.sparse)
        else:
            gradient = self.output.backward(values[-1], loss.to_gradient, rates.dense, rates.n_steps)
        return self.psi_o.backward(values, gradient, rates.dense, rates.n_steps)
