"""Document encoder phi: sparse features -> embedding of length 1, while it trains and as it is stored.

A document's feature embeddings are summed and go through an activation, with ``n_layers=2`` through a dense layer too.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple, Self

import numpy as np

from labelspace.kernels.quantize import Int8s, quantize_int8
from labelspace.kernels.sparse_layers import dense_forward, embed_rows
from labelspace.kernels.threads import run_blocks
from labelspace.parameter_constraints import boolean
from labelspace.state_constraints import array, must, plain
from labelspace.training.dense_layers import MIN_NORM, DenseLayer, row_norms
from labelspace.training.optimizers import AdamParameter
from labelspace.training.sparse_layers import Batch, SparseLayer
from labelspace.types import Csr, Floats

ROW_BLOCK = 64  # documents per task


@dataclass
class Activations:
    """A batch at every layer of the encoder: what the backward pass needs."""

    inputs: Batch
    preactivation: Floats  # (batch, dim) first layer, before the ReLU
    mask: Floats  # (batch, dim) factor of each unit: 0 where the ReLU or dropout zeroes it
    hidden: Floats  # (batch, dim) after the mask
    norms: Floats  # (batch,) of the last layer's output
    embeddings: Floats  # (batch, dim) phi


class Encoder:
    """phi while it trains."""

    def __init__(self, features: SparseLayer, dense: DenseLayer | None, relu: bool) -> None:
        self.features, self.dense, self.relu = features, dense, relu
        self.bias = AdamParameter(np.zeros(features.vectors.shape[1], np.float32))
        self.gain = AdamParameter(np.ones(1, np.float32))  # learned norm of the first layer's units, with weight norm

    @classmethod
    def random(cls, X: Csr, dim: int, n_layers: int, relu: bool, weight_norm: bool, rng: np.random.Generator) -> Self:
        """Random weights."""
        features = SparseLayer.random(X, dim, rng, weight_norm)
        return cls(features, DenseLayer.random(dim, dim, rng, weight_norm) if n_layers == 2 else None, relu)

    def forward(self, batch: Batch, dropout: float, rng: np.random.Generator) -> Activations:
        """The embeddings of a batch, with dropout of hidden units."""
        bias = self.bias.value
        if self.features.normalized:
            preactivation = self.features.embed(batch, np.zeros_like(bias)) * self.gain.value + bias
        else:
            preactivation = self.features.embed(batch, bias)
        mask = np.ones_like(preactivation)
        if dropout:
            mask[rng.random(preactivation.shape, np.float32) < dropout] = 0.0
            mask /= np.float32(1 - dropout)
        if self.relu:
            mask *= preactivation > 0
        hidden: Floats = preactivation * mask
        output = hidden if self.dense is None else self.dense.forward(hidden)
        norms = row_norms(output)
        return Activations(batch, preactivation, mask, hidden, norms, output / norms[:, None])

    def embed(self, X: Csr) -> Floats:
        """The embeddings of documents, without dropout."""
        return self.forward((X.data, X.indices, X.indptr), 0.0, np.random.default_rng(0)).embeddings

    def backward(
        self, activations: Activations, gradient: Floats, learning_rate: float, feature_learning_rate: float, step: int
    ) -> None:
        """Update all weights; ``gradient`` is the loss' with respect to the embeddings."""
        phi, norms = activations.embeddings, activations.norms
        gradient = gradient - np.einsum("ij,ij->i", gradient, phi)[:, None] * phi
        gradient /= norms[:, None]
        gradient[norms <= MIN_NORM] = 0.0  # a zero vector has no direction: no features, or all units dropped
        if self.dense is not None:
            gradient = self.dense.backward(activations.hidden, gradient, learning_rate, step)
        gradient *= activations.mask
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
    # (dim, dim), a row per input unit; empty without a dense layer.
    dense_weights: Annotated[Floats, array("float32", "dense_dim", "dense_dim")]
    dense_bias: Annotated[Floats, array("float32", "dense_dim")]
    relu: Annotated[bool, plain(boolean())]

    def check_state(self) -> None:
        """A dense layer has as many units as the first layer."""
        must(len(self.dense_bias) in (0, len(self.hidden_bias)), "a dense layer of the width of the embeddings")

    @classmethod
    def from_trained(cls, encoder: Encoder) -> Self:
        """Quantize a trained encoder, whose float32 feature embeddings are given up."""
        table = encoder.features.vectors
        if encoder.features.normalized:
            table *= encoder.features.unit_scales * encoder.gain.value
        weights, bias = np.zeros((0, 0), np.float32), np.zeros(0, np.float32)
        if encoder.dense is not None:
            weights, bias = np.ascontiguousarray(encoder.dense.weights.T), encoder.dense.bias.value
        del encoder.features  # to free the memory before the index is built
        return cls(*quantize_int8(table), encoder.bias.value, weights, bias, encoder.relu)

    def embed(self, X: Csr) -> Floats:
        """Embeddings (n, dim) of unit rows; each row by itself, so the batch changes nothing."""
        table, scales, bias = self.feature_embeddings, self.feature_scales, self.hidden_bias
        out = np.empty((X.shape[0], len(bias)), np.float32)

        def embed(start: int, stop: int) -> None:
            embed_rows(X.data, X.indices, X.indptr, start, stop, table, scales, bias, out)
            block = out[start:stop]
            if self.relu:
                np.maximum(block, 0, out=block)
            if len(self.dense_weights):
                dense_forward(block.copy(), self.dense_weights, self.dense_bias, block)
            block /= row_norms(block)[:, None]

        run_blocks(embed, len(out), ROW_BLOCK)
        return out
