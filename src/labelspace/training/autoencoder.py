"""Autoencoders of sparse rows: an encoder from rows to codes, and a decoder with the squared reconstruction error.

No dense matrix (batch, n_features) is made where there are more features than are sampled. The encoder reads the
embeddings of the features that a row has. The decoder computes the error at these features, and at features sampled at
random, each weighted by the number of features that it stands for; its expectation is the error over all features.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Self

import numpy as np

from labelspace.estimator.parameter_constraints import optional, real
from labelspace.estimator.state_constraints import array, must, plain
from labelspace.kernels.quantize import Int8s
from labelspace.kernels.sparse_layers import sampled_squared_errors
from labelspace.kernels.threads import fill_in_blocks
from labelspace.training.dense_layers import LAYER_SPECS, MLP, LayerSpecs, activate, activation_derivative, forward_flat
from labelspace.training.optimizers import AdamParameter
from labelspace.training.sparse_layers import ROW_BLOCK, Batch, SparseLayer, embedded
from labelspace.types import Csr, Floats, Ints, Rng

RECONSTRUCTION_ERROR = plain(optional(real()))  # what a model saves of it; None without an autoencoder
DECODER_RATE_FACTOR = 0.1  # of the dense learning rate: at 1 a decoder overshoots, and its error spoils the codes


@dataclass(frozen=True)
class LearningRates:
    """Learning rates of one step: dense weights are updated by Adam, an encoder's embeddings by row-wise Adagrad."""

    dense: float
    sparse: float
    n_steps: int  # the number of this step, from 1

    @property
    def decoder(self) -> float:
        """The rate of a decoder's feature embeddings, which row-wise Adagrad updates too."""
        return DECODER_RATE_FACTOR * self.dense

    def frozen(self) -> Self:
        """Return rates of 0, for weights that are not trained."""
        return replace(self, dense=0.0, sparse=0.0)


@dataclass(frozen=True)
class TrainingPhase:
    """A phase of the training: the weights of the two reconstruction errors, and the parts that are trained."""

    alpha: float
    beta: float
    classify: bool
    freeze_codes: bool = False  # the autoencoders are not trained

    def rates(self, dense: float, sparse: float, lr_decay: float, n_steps: int) -> LearningRates:
        """Return the rates of a step; where only codes are trained, ``dense`` is the rate of the embeddings too."""
        return LearningRates(dense * lr_decay, (sparse if self.classify else dense) * lr_decay, n_steps)


def phases(training: str, alpha: float, beta: float | None = None) -> list[TrainingPhase]:
    """Return the phases of a training, by its name; ``beta`` is None where there is no second autoencoder.

    In a phase of the autoencoders alone a weight of 0 counts as 1: there would be nothing to train.

    >>> [(phase.alpha, phase.classify, phase.freeze_codes) for phase in phases("staged", alpha=0.5)]
    [(0.5, False, False), (0.0, True, True)]
    """
    joint = TrainingPhase(alpha, beta or 0.0, True)
    codes = TrainingPhase(alpha or 1.0, 0.0 if beta is None else beta or 1.0, False)
    classifier = TrainingPhase(0.0, 0.0, True, freeze_codes=True)
    return {"joint": [joint], "pretrained": [codes, joint], "staged": [codes, classifier]}[training]


@dataclass
class EncoderOutput:
    """The output of an encoder for a batch, and the values that ``backward`` needs."""

    batch: Batch
    hidden: Floats  # (batch, width) output of the first layer
    dropout_mask: Floats  # (batch, width) the factor of each unit: 0 where it was dropped
    activations: list[Floats]  # the input of each further layer, and the code

    @property
    def code(self) -> Floats:
        """The code of each row. Shape (batch, code)."""
        return self.activations[-1]


class SparseEncoder:
    """phi in training: the sum of the features' embeddings, and an MLP."""

    def __init__(self, features: SparseLayer, activation: str, mlp: MLP) -> None:
        self.features, self.activation, self.mlp = features, activation, mlp
        self.bias = AdamParameter(np.zeros(features.vectors.shape[1], np.float32))

    @classmethod
    def random(cls, X: Csr, widths: Sequence[int], activation: str, last: str, rng: Rng) -> Self:
        """Draw layers of these widths, from the features of X to the code."""
        features = SparseLayer.random(X, widths[0], rng)
        return cls(features, activation if len(widths) > 1 else last, MLP.random(widths, activation, last, rng))

    def forward(self, batch: Batch, dropout: float, rng: Rng) -> EncoderOutput:
        """Return the codes of a batch, with dropout of units of the first layer."""
        hidden = activate(self.features.embed(batch, self.bias.value), self.activation)
        mask = np.ones_like(hidden)
        if dropout:
            mask[rng.random(hidden.shape, np.float32) < dropout] = 0.0
            mask /= np.float32(1 - dropout)
        return EncoderOutput(batch, hidden, mask, self.mlp.forward(hidden * mask))

    def backward(self, output: EncoderOutput, gradient: Floats, rates: LearningRates) -> None:
        """Update all weights, given the gradient by the codes."""
        by_hidden = self.mlp.backward(output.activations, gradient, rates.dense, rates.n_steps) * output.dropout_mask
        by_sum = by_hidden * activation_derivative(output.hidden, self.activation)
        self.bias.step(by_sum.sum(axis=0), rates.dense, rates.n_steps)
        self.features.backward(output.batch, by_sum, rates.sparse)


class SparseDecoder:
    """psi in training: an MLP, and an embedding per feature whose product with its output is the feature's value."""

    def __init__(self, mlp: MLP, features: SparseLayer, n_sampled: int) -> None:
        self.mlp, self.features, self.n_sampled = mlp, features, n_sampled
        self.errors: list[float] = []  # mean squared error per row, of each batch
        self._sampled_column = np.full(len(features.vectors), -1, np.int32)

    @classmethod
    def random(cls, X: Csr, widths: Sequence[int], activation: str, n_sampled: int, rng: Rng) -> Self:
        """Draw layers of these widths, from the code to the features of X.

        Feature embeddings start at 0: other embeddings would start with an error above that of predicting 0, which
        would grow with the codes.
        """
        features = SparseLayer(np.zeros((X.shape[1], widths[-1]), np.float32))
        return cls(MLP.random(widths, activation, activation, rng), features, n_sampled)

    def backward(self, code: Floats, batch: Batch, weight: float, rates: LearningRates, rng: Rng) -> Floats:
        """Update on ``weight`` times the squared error of the batch's rows; return the gradient by the codes."""
        activations = self.mlp.forward(code)
        hidden, n_features = activations[-1], len(self._sampled_column)
        ids = self._sample_features(n_features, rng)
        self._sampled_column[ids] = np.arange(len(ids))
        sampled: Floats = hidden @ self.features.vectors[ids].T  # (batch, n_sampled)
        present = self.features.entry_scores(batch, hidden, self._sampled_column)
        sample_weight = n_features / max(len(ids), 1)  # there may be no features at all
        error = sampled_squared_errors(*batch, self._sampled_column, sample_weight, present, sampled)
        self.errors.append(error / len(code))
        self._sampled_column[ids] = -1
        for errors in (present, sampled):
            errors *= np.float32(2 * weight)
        gradient: Floats = sampled @ self.features.vectors[ids]
        if len(ids) < n_features:
            entries: Batch = (present, batch[1], batch[2])
            gradient += self.features.embed(entries, np.zeros(hidden.shape[1], np.float32))
            self.features.backward(entries, hidden, rates.decoder)
        self.features.update_rows(ids, sampled.T @ hidden, rates.decoder)
        return self.mlp.backward(activations, gradient, rates.dense, rates.n_steps)

    def error(self) -> float | None:
        """Return the squared error per row, averaged over the last tenth of all batches; None without batches."""
        last = self.errors[-max(1, len(self.errors) // 10) :]
        return round(float(np.mean(last)), 4) if last else None

    def _sample_features(self, n_features: int, rng: Rng) -> Ints:
        """Draw the features that count in every row of a batch, sorted, each once."""
        few = n_features <= self.n_sampled
        ids = np.arange(n_features) if few else np.unique(rng.integers(0, n_features, self.n_sampled))
        return ids.astype(np.int32)


@dataclass(frozen=True)
class QuantizedEncoder:
    """A trained encoder for prediction: the features' embeddings in int8, and the layers that follow in one array."""

    vectors: Annotated[Int8s, array("int8", "n_features", "width")]
    scales: Annotated[Floats, array("float32", "n_features")]
    bias: Annotated[Floats, array("float32", "width")]
    dense: Annotated[Floats, array("float32", "n_dense")]  # see ``flatten_layers``
    specs: Annotated[LayerSpecs, plain(LAYER_SPECS)]

    def check_state(self) -> None:
        """Check that the layers have the widths that their array has room for."""
        widths = [width for width, _ in self.specs]
        must(widths[0] == len(self.bias), "a first layer of the width of the embeddings")
        n_dense = sum((inputs + 1) * units for inputs, units in pairwise(widths))
        must(self.dense.size == n_dense, f"{n_dense} dense weights")

    @property
    def code_dim(self) -> int:
        """The length of a code."""
        return int(self.specs[-1][0])

    def __call__(self, X: Csr, start: int, stop: int) -> Floats:
        """Return the codes of the rows start..stop of X; a row's code does not depend on the other rows."""
        rows = (X.data, X.indices, X.indptr[start : stop + 1])
        return forward_flat(embedded(rows, self.vectors, self.scales, self.bias), self.dense, self.specs)

    def rows(self, X: Csr) -> Floats:
        """Return the codes of all rows of X: (n, code)."""
        out = np.empty((X.shape[0], self.code_dim), np.float32)
        return fill_in_blocks(out, lambda rows: self(X, rows.start, rows.stop), ROW_BLOCK)
