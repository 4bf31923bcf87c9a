"""Document encoder phi: sparse features -> embedding, in training and as it is stored; SGD in place of Adam.

A document's feature embeddings are summed and go through an activation. Dense layers of the same width may follow, with
activations between them. The result is normalized to length 1, unless ``normalized`` is false.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple, Self

import numpy as np

from labelspace.estimator.parameter_constraints import boolean
from labelspace.estimator.state_constraints import array, must, plain
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.normalize import MIN_NORM, row_norms
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.sparse_layers import dense_forward
from labelspace.kernels.threads import run_blocks
from labelspace.training.dense_layers import DenseLayer
from labelspace.training.optimizers import AdagradParameter, AdamParameter, FixedParameter, SgdParameter
from labelspace.training.sparse_layers import Batch, SparseLayer, embedded
from labelspace.types import Csr, Floats, Ints, Rng

ROW_BLOCK = 64  # documents per task


class SgdNumbers(AdagradParameter):
    """Single numbers trained by SGD."""

    def __post_init__(self) -> None:
        self.square = np.zeros(0, np.float32)

    def step(self, gradient: Floats, rate: float, ids: Ints | slice) -> None:
        """Update the numbers with these ids, each named once, given their gradient."""
        self.value[ids] -= np.float32(rate) * gradient


class FixedNumbers(SgdNumbers):
    """Single numbers that are not trained."""

    def step(self, gradient: Floats, rate: float, ids: Ints | slice) -> None:
        """Leave the weights as they are."""


class SgdLayer(SparseLayer):
    """Feature embeddings trained by SGD."""

    def backward(self, batch: Batch, gradient: Floats, rate: float) -> None:
        """Update the embeddings of a batch's features, as ``SparseLayer.backward``."""
        if self.normalized:
            gradient = gradient * self.unit_scales
        features, by_features = self.gradients(batch, gradient)
        before = self.vectors[features]
        self.vectors[features] = after = before - np.float32(rate) * by_features
        if self.normalized:
            self.squared_norms += (np.square(after, dtype=np.float64) - np.square(before, dtype=np.float64)).sum(axis=0)


def update_rows(
    gradient: Floats, ids: Ints, rate: float, vectors: Floats, squares: Floats | None, normalized: bool
) -> None:
    """Update the rows ``ids`` of some vectors, which may be wider than the gradient, given their gradient.

    ``squares`` is the state of row-wise Adagrad, None with SGD. Normalized rows move along the sphere.
    """
    width = gradient.shape[1]
    rows = vectors[ids, :width]
    if normalized:
        gradient = gradient - np.einsum("ij,ij->i", gradient, rows)[:, None] * rows
    if squares is not None:
        squares[ids] += np.einsum("ij,ij->i", gradient, gradient) / np.float32(width)
        gradient = gradient / (np.sqrt(squares[ids]) + np.float32(1e-10))[:, None]
    rows -= np.float32(rate) * gradient
    vectors[ids, :width] = rows / row_norms(rows)[:, None] if normalized else rows


@dataclass(frozen=True)
class EncoderShape:
    """The parameters of an encoder."""

    dim: int
    n_layers: int = 1
    relu: bool = True
    weight_norm: bool = False
    normalized: bool = True  # embeddings have length 1
    biased: bool = True
    sgd: bool = False


@dataclass
class Activations:
    """A batch at every layer of the encoder, for the backward pass."""

    inputs: Batch
    preactivation: Floats  # (batch, dim) first layer, before the ReLU
    masks: list[Floats]  # (batch, dim) of each activated layer, the factor of a unit: 0 where ReLU or dropout zero it
    hidden: list[Floats]  # (batch, dim) of each, after the mask
    norms: Floats  # (batch,) of the last layer's output
    embeddings: Floats  # (batch, dim) phi


class Encoder:
    """phi in training."""

    def __init__(self, features: SparseLayer, dense: Sequence[DenseLayer], shape: EncoderShape) -> None:
        self.features, self.dense, self.relu, self.normalized = features, list(dense), shape.relu, shape.normalized
        weights = SgdParameter if shape.sgd else AdamParameter
        biases = weights if shape.biased else FixedParameter
        self.bias = biases(np.zeros(features.vectors.shape[1], np.float32))
        self.gain = weights(np.ones(1, np.float32))  # learned norm of the first layer's units, with weight norm
        for layer in self.dense:
            layer.rows, layer.norm = weights(layer.rows.value), weights(layer.norm.value)
            layer.bias = biases(layer.bias.value)

    @classmethod
    def random(cls, X: Csr, shape: EncoderShape, rng: Rng) -> Self:
        """Draw the weights."""
        layer, dim = SgdLayer if shape.sgd else SparseLayer, shape.dim
        features = layer.random(X, dim, rng, shape.weight_norm)
        dense = [DenseLayer.random(dim, dim, rng, shape.weight_norm) for _ in range(shape.n_layers - 1)]
        return cls(features, dense, shape)

    def forward(self, batch: Batch, dropout: float, rng: Rng) -> Activations:
        """Return the embeddings of a batch, with dropout of hidden units."""
        bias = self.bias.value
        if self.features.normalized:
            preactivation = self.features.embed(batch, np.zeros_like(bias)) * self.gain.value + bias
        else:
            preactivation = self.features.embed(batch, bias)
        output, masks, hidden = preactivation, [], []
        for at in range(max(len(self.dense), 1)):
            masks.append(self._mask(output, dropout, rng))
            hidden.append(output * masks[at])
            output = self.dense[at].forward(hidden[at]) if self.dense else hidden[at]
        norms = row_norms(output)
        embeddings = output / norms[:, None] if self.normalized else output
        return Activations(batch, preactivation, masks, hidden, norms, embeddings)

    def _mask(self, values: Floats, dropout: float, rng: Rng) -> Floats:
        mask = np.ones_like(values)
        if dropout:
            mask[rng.random(values.shape, np.float32) < dropout] = 0.0
            mask /= np.float32(1 - dropout)
        if self.relu:
            mask *= values > 0
        return mask

    def embed(self, X: Csr) -> Floats:
        """Return the embeddings of documents, without dropout."""
        return self.forward((X.data, X.indices, X.indptr), 0.0, np.random.default_rng(0)).embeddings

    def backward(
        self, activations: Activations, gradient: Floats, learning_rate: float, feature_learning_rate: float, step: int
    ) -> None:
        """Update all weights, given the gradient of the loss by the embeddings."""
        if self.normalized:
            phi, norms = activations.embeddings, activations.norms
            gradient = gradient - np.einsum("ij,ij->i", gradient, phi)[:, None] * phi
            gradient /= norms[:, None]
            gradient[norms <= MIN_NORM] = 0.0  # a zero vector has no direction: no features, or all units dropped
        for at in reversed(range(len(activations.masks))):
            if self.dense:
                gradient = self.dense[at].backward(activations.hidden[at], gradient, learning_rate, step)
            gradient = gradient * activations.masks[at]
        if self.features.normalized:
            gain = self.gain.value.copy()
            gain_gradient = np.vdot(gradient, activations.preactivation - self.bias.value) / gain
            self.gain.step(gain_gradient.astype(np.float32), learning_rate, step)
            self.features.backward(activations.inputs, gradient * gain, feature_learning_rate)
        else:
            self.features.backward(activations.inputs, gradient, feature_learning_rate)
        self.bias.step(gradient.sum(axis=0), learning_rate, step)


class Int8Encoder(NamedTuple):
    """phi as it is stored: feature embeddings in 8 bits."""

    feature_embeddings: Annotated[Int8s, array("int8", "n_features", "dim")]
    feature_scales: Annotated[Floats, array("float32", "n_features")]
    hidden_bias: Annotated[Floats, array("float32", "dim")]
    # Of each dense layer (dim, dim), a row per input unit, one below the other; empty without dense layers.
    dense_weights: Annotated[Floats, array("float32", "dense_rows", "dense_dim")]
    dense_bias: Annotated[Floats, array("float32", "dense_rows")]  # (dim,) of each, one after another
    relu: Annotated[bool, plain(boolean())]

    def check_state(self) -> None:
        """Check that dense layers have as many units as the first layer."""
        (rows, columns), dim = self.dense_weights.shape, len(self.hidden_bias)
        dense = columns == dim and rows > 0 and rows % max(dim, 1) == 0
        must(dense or rows == columns == 0, "dense layers of the width of the embeddings")

    @classmethod
    def from_trained(cls, encoder: Encoder) -> Self:
        """Quantize a trained encoder, which loses its float32 feature embeddings."""
        table = encoder.features.vectors
        if encoder.features.normalized:
            table *= encoder.features.unit_scales * encoder.gain.value
        weights, bias = np.zeros((0, 0), np.float32), np.zeros(0, np.float32)
        if encoder.dense:
            weights = np.ascontiguousarray(np.concatenate([layer.weights.T for layer in encoder.dense]))
            bias = np.concatenate([layer.bias.value for layer in encoder.dense])
        del encoder.features  # to free the memory before the index is built
        return cls(*quantize_int8(table), encoder.bias.value, weights, bias, encoder.relu)

    def embed(self, X: Csr, normalized: bool = True) -> Floats:
        """Return embeddings (n, dim), of length 1 if ``normalized``; each depends on its document only."""
        out = embedded(csr_arrays(X), self.feature_embeddings, self.feature_scales, self.hidden_bias, ROW_BLOCK)
        dim = out.shape[1]

        def transform(start: int, stop: int) -> None:
            block = out[start:stop]
            for at in range(0, max(len(self.dense_weights), 1), dim):
                layer = slice(at, at + dim)
                if self.relu:
                    np.maximum(block, 0, out=block)
                if len(self.dense_weights):
                    dense_forward(block.copy(), self.dense_weights[layer], self.dense_bias[layer], block)
            if normalized:
                block /= row_norms(block)[:, None]

        run_blocks(transform, len(out), ROW_BLOCK)
        return out
