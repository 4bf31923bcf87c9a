"""The transformer encoder of BERT and RoBERTa in NumPy, with a numba kernel for what is no matrix product.

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers" (NAACL 2019); Liu et al., "RoBERTa" (2019).

The tokens of all texts stand one after the other, so that no text is padded: the matrix products read them all, and
only attention is computed text by text. Of the last layer, CLS pooling needs only the first token of each text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labelspace.features.encoders.kernels import add_and_normalize, gelu, softmax_rows
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
class Layer:
    """One layer: attention among the tokens of a text, then two linear layers for each token."""

    qkv: Linear  # queries, keys and values side by side
    attended: Linear
    attended_norm: Norm
    inner: Linear
    outer: Linear
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
    def max_length(self) -> int:
        """Return the most tokens of a text."""
        return len(self.positions)

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
        return np.add.reduceat(x, starts[:-1]) / lengths[:, None].astype(np.float32)

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
        dim = x.shape[1]
        qkv = layer.qkv(x).reshape(len(x), 3, self.n_heads, -1)
        out = np.empty((len(starts) - 1 if first_only else len(x), dim), np.float32)
        by_head = out.reshape(len(out), self.n_heads, -1)
        scale = float((dim // self.n_heads) ** -0.5)
        for at, (start, stop) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
            own = qkv[start : start + 1 if first_only else stop, 0].transpose(1, 0, 2)
            keys, values = qkv[start:stop, 1], qkv[start:stop, 2]
            scores = own @ keys.transpose(1, 2, 0)  # (heads, queries, tokens)
            softmax_rows(scores.reshape(-1, scores.shape[2]), scale)
            rows = slice(at, at + 1) if first_only else slice(start, stop)
            by_head[rows] = (scores @ values.transpose(1, 0, 2)).transpose(1, 0, 2)
        return out
