"""The transformer encoder of BERT and RoBERTa in NumPy, with a numba kernel for what is no matrix product.

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers" (NAACL 2019); Liu et al., "RoBERTa" (2019).

The tokens of all texts stand one after the other, so that no text is padded: the matrix products read them all, and
only attention is computed text by text. Of the last layer, CLS pooling needs only the first token of each text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.features.encoders.kernels import add_and_normalize, attend, gelu
from labelspace.kernels.byte_products import CENTER, GROUP, HAS_INSTRUCTION, ByteMatrix, multiply, pack, quantize_groups
from labelspace.types import Floats, Longs


@dataclass(frozen=True)
class Norm:
    """Gain and bias of a layer normalization. Shapes (dim,)."""

    gain: Floats
    bias: Floats


@dataclass(frozen=True)
class Linear:
    """A linear layer: x W + b."""

    weights: Floats  # (n_inputs, n_outputs)
    bias: Floats  # (n_outputs,)

    def __call__(self, x: Floats) -> Floats:
        """Return x W + b. Shape (n, n_outputs)."""
        out: Floats = x @ self.weights
        out += self.bias
        return out


@dataclass(frozen=True)
class ByteLinear:
    """A linear layer whose weights have 8 bits, with a scale for each 64 inputs; so have its inputs while it runs."""

    weights: npt.NDArray[np.int8]  # (n_outputs, n_inputs)
    scales: Floats  # (n_outputs, n_inputs / 64)
    bias: Floats  # (n_outputs,)

    def __call__(self, x: Floats) -> Floats:
        """Return x W + b. Shape (n, n_outputs)."""
        codes, scales = np.empty(x.shape, np.uint8), np.empty((len(x), self.scales.shape[1]), np.float32)
        quantize_groups(x, codes, scales)
        if HAS_INSTRUCTION:
            out = np.empty((len(x), len(self.bias)), np.float32)
            multiply(codes, scales, *self._packed, out)
            return out
        centered = codes.astype(np.float32) - CENTER
        return self._floats(in_groups(centered, scales))

    @cached_property
    def _packed(self) -> ByteMatrix:
        return pack(self.weights, self.scales, self.bias)

    @cached_property
    def _floats(self) -> Linear:
        """For processors without the instruction: the same numbers in float32."""
        return Linear(np.ascontiguousarray(in_groups(self.weights, self.scales).T), self.bias)


def in_groups(table: npt.NDArray[Any], scales: Floats) -> Floats:
    """Return a table with each 64 numbers of a row times their scale."""
    scaled = table.reshape(len(table), -1, GROUP) * scales[:, :, None]
    return np.asarray(scaled.reshape(table.shape), np.float32)


AnyLinear = Linear | ByteLinear


@dataclass(frozen=True)
class Layer:
    """One layer: attention among the tokens of a text, then two linear layers for each token."""

    qkv: AnyLinear  # queries, keys and values side by side
    attended: AnyLinear
    attended_norm: Norm
    inner: AnyLinear
    outer: AnyLinear
    outer_norm: Norm


@dataclass(frozen=True)
class Network:
    """A transformer encoder."""

    tokens: Floats  # (vocabulary, dim)
    positions: Floats  # (max_length, dim), with the embedding of the one token type
    norm: Norm
    layers: Sequence[Layer]
    n_heads: int
    eps: float
    pools_mean: bool  # else the vector of the first token

    @property
    def uses_blas(self) -> bool:
        """Return whether NumPy's library of matrix products runs."""
        return not HAS_INSTRUCTION or any(isinstance(layer.qkv, Linear) for layer in self.layers)

    def __call__(self, texts: Sequence[Sequence[int]]) -> Floats:
        """Return the vectors of texts of token ids, each with one token at least. Shape (n, dim)."""
        lengths = np.array([len(text) for text in texts])
        starts = np.concatenate([[0], np.cumsum(lengths)])
        ids = np.concatenate([np.asarray(text, np.int64) for text in texts])
        position = np.arange(len(ids)) - np.repeat(starts[:-1], lengths)
        x = self.tokens[ids]
        add_and_normalize(x, self.positions[position], self.norm.gain, self.norm.bias, self.eps)
        for layer in self.layers[:-1]:
            x = self._layer(layer, x, x, starts)
        last = self.layers[-1]
        if not self.pools_mean:
            return self._layer(last, x, np.ascontiguousarray(x[starts[:-1]]), starts)
        x = self._layer(last, x, x, starts)
        return np.asarray(np.add.reduceat(x, starts[:-1]) / lengths[:, None], np.float32)

    def _layer(self, layer: Layer, x: Floats, queried: Floats, starts: Longs) -> Floats:
        """Return the outputs of a layer for some tokens: all, or the first of each text. Shape of ``queried``."""
        y = queried.copy()
        add_and_normalize(
            y,
            layer.attended(self._attend(layer, x, len(queried) < len(x), starts)),
            layer.attended_norm.gain,
            layer.attended_norm.bias,
            self.eps,
        )
        inner = layer.inner(y)
        gelu(inner)
        add_and_normalize(y, layer.outer(inner), layer.outer_norm.gain, layer.outer_norm.bias, self.eps)
        return y

    def _attend(self, layer: Layer, x: Floats, first_only: bool, starts: Longs) -> Floats:
        """Return the mean of the values by attention, of all heads side by side."""
        qkv = layer.qkv(x).reshape(len(x), 3, self.n_heads, -1)
        out = np.empty((len(starts) - 1 if first_only else len(x), *qkv.shape[2:]), np.float32)
        for at, (start, stop) in enumerate(pairwise(starts.tolist())):
            queried = slice(start, start + 1) if first_only else slice(start, stop)
            rows = slice(at, at + 1) if first_only else queried
            attend(qkv[queried, 0], qkv[start:stop, 1], qkv[start:stop, 2], out[rows])
        return out.reshape(len(out), -1)
