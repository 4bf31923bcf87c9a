"""Document encoder phi: sparse features -> embedding, while it trains and as it is stored.

A document's feature embeddings are summed and go through an activation. Dense layers of the same width may follow, with
activations between them. The result is normalized to length 1, unless ``normalized`` is false.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple, Self

import numpy as np

from labelspace.estimator.parameter_constraints import boolean
from labelspace.estimator.state_constraints import array, must, plain
from labelspace.kernels.normalize import MIN_NORM, row_norms
from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.sparse_layers import dense_forward, embed_rows
from labelspace.kernels.threads import run_blocks
from labelspace.models.glas.optimizers import FixedParameter, SgdLayer, SgdParameter
from labelspace.training.dense_layers import DenseLayer
from labelspace.training.optimizers import AdamParameter
from labelspace.training.sparse_layers import Batch, SparseLayer
from labelspace.types import Csr, Floats

ROW_BLOCK = 64  # documents per task


@dataclass
class Activations:
    """A batch at every layer of the encoder: what the backward pass needs."""

    inputs: Batch
    preactivation: Floats  # (batch, dim) first layer, before the ReLU
    masks: list[Floats]  # (batch, dim) of each activated layer, the factor of a unit: 0 where ReLU or dropout zero it
    hidden: list[Floats]  # (batch, dim) of each, after the mask
    norms: Floats  # (batch,) of the last layer's output
    embeddings: Floats  # (batch, dim) phi


class Encoder:
    """phi while it trains."""

    def __init__(
        self, features: SparseLayer, dense: Sequence[DenseLayer], relu: bool, normalized: bool = True,
        biased: bool = True,
    ) -> None:  # fmt: skip
        self.features, self.dense, self.relu, self.normalized = features, list(dense), relu, normalized
        self.bias = AdamParameter(np.zeros(features.vectors.shape[1], np.float32))
        self.gain = AdamParameter(np.ones(1, np.float32))  # learned norm of the first layer's units, with weight norm
        if isinstance(features, SgdLayer):
            self.bias, self.gain = SgdParameter(self.bias.value), SgdParameter(self.gain.value)
            for layer in self.dense:
                layer.rows, layer.bias = SgdParameter(layer.rows.value), SgdParameter(layer.bias.value)
                layer.norm = SgdParameter(layer.norm.value)
        if not biased:
            self.bias = FixedParameter(self.bias.value)
            for layer in self.dense:
                layer.bias = FixedParameter(layer.bias.value)

    @classmethod
    def random(
        cls, X: Csr, dim: int, n_layers: int, relu: bool, weight_norm: bool, rng: np.random.Generator,
        optimizer: str = "adagrad", normalized: bool = True, biased: bool = True,
    ) -> Self:  # fmt: skip
        """Random weights."""
        features = (SgdLayer if optimizer == "sgd" else SparseLayer).random(X, dim, rng, weight_norm)
        dense = [DenseLayer.random(dim, dim, rng, weight_norm) for _ in range(n_layers - 1)]
        return cls(features, dense, relu, normalized, biased)

    def forward(self, batch: Batch, dropout: float, rng: np.random.Generator) -> Activations:
        """The embeddings of a batch, with dropout of hidden units."""
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

    def _mask(self, values: Floats, dropout: float, rng: np.random.Generator) -> Floats:
        mask = np.ones_like(values)
        if dropout:
            mask[rng.random(values.shape, np.float32) < dropout] = 0.0
            mask /= np.float32(1 - dropout)
        if self.relu:
            mask *= values > 0
        return mask

    def embed(self, X: Csr) -> Floats:
        """The embeddings of documents, without dropout."""
        return self.forward((X.data, X.indices, X.indptr), 0.0, np.random.default_rng(0)).embeddings

    def backward(
        self, activations: Activations, gradient: Floats, learning_rate: float, feature_learning_rate: float, step: int
    ) -> None:
        """Update all weights; ``gradient`` is the loss' with respect to the embeddings."""
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
        """Dense layers have as many units as the first layer."""
        (rows, columns), dim = self.dense_weights.shape, len(self.hidden_bias)
        dense = columns == dim and rows > 0 and rows % max(dim, 1) == 0
        must(dense or rows == columns == 0, "dense layers of the width of the embeddings")

    @classmethod
    def from_trained(cls, encoder: Encoder) -> Self:
        """Quantize a trained encoder, whose float32 feature embeddings are given up."""
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
        """Embeddings (n, dim), of unit rows if ``normalized``; each row by itself, so the batch changes nothing."""
        table, scales, bias = self.feature_embeddings, self.feature_scales, self.hidden_bias
        dim = len(bias)
        out = np.empty((X.shape[0], dim), np.float32)

        def embed(start: int, stop: int) -> None:
            embed_rows(X.data, X.indices, X.indptr, start, stop, table, scales, bias, out)
            block = out[start:stop]
            for at in range(0, max(len(self.dense_weights), 1), dim):
                if self.relu:
                    np.maximum(block, 0, out=block)
                if len(self.dense_weights):
                    dense_forward(
                        block.copy(), self.dense_weights[at : at + dim], self.dense_bias[at : at + dim], block
                    )
            if normalized:
                block /= row_norms(block)[:, None]

        run_blocks(embed, len(out), ROW_BLOCK)
        return out
