"""The network in training: word embeddings, convolutions, dynamic max-pooling, a bottleneck, and the output layer.

Convolutions are computed in blocks of filters, which are spread over threads: each block multiplies the distinct words
of a batch by its columns (a matrix product), and adds the products of each window (``kernels.py``). Blocks do
not depend on the number of threads, and sums over blocks are in one order.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from labelspace.kernels.threads import run_blocks
from labelspace.models.xmlcnn.kernels import Block, Documents, pool_documents, product_gradients
from labelspace.store import Arrays
from labelspace.training.dense_layers import OutputLayer
from labelspace.training.losses import label_block_bce_gradient
from labelspace.training.optimizers import AdamParameter
from labelspace.training.sparse_layers import SparseLayer
from labelspace.types import Csr, Floats, Ints, Rng

FILTER_BLOCK = 64  # filters per task
MIN_STD = np.float32(1e-3)  # lower bound for a filter whose values hardly differ
PART = 256  # documents whose windows are computed at once outside of training
MIN_VARIANCE = np.float32(1e-5)  # is added to the variance, so that one can divide by its root


class Normalized(NamedTuple):
    """The values of a batch with mean 0 and deviation 1, and the deviations they were divided by."""

    values: Floats  # (n, units)
    std: Floats  # (units,)


class BatchNorm:
    """Batch normalization (Ioffe and Szegedy, 2015) before a ReLU: y = (x - mean) / std + shift.

    In training, mean and std are those of the batch. There is no learned scale: after a ReLU, the weights
    of the next layer can scale. Switched off, the layer is a learned bias.
    """

    def __init__(self, units: int, on: bool = True) -> None:
        self.on = on
        self.shift = AdamParameter(np.zeros(units, np.float32))

    def forward(self, values: Floats) -> tuple[Floats, Normalized]:
        """Return the output for values (n, units), and what ``backward`` needs."""
        mean, std = self._statistics(values)
        normalized = (values - mean) / std
        return normalized + self.shift.value, Normalized(normalized, std)

    def backward(self, batch: Normalized, gradient: Floats, rate: float, n_steps: int) -> Floats:
        """Update on the gradient by the output; return the gradient by the input, through mean and std too."""
        values, std = batch
        self.shift.step(gradient.sum(axis=0), rate, n_steps)
        if not self.on:
            return gradient
        along = np.einsum("ij,ij->j", gradient, values) / np.float32(len(values))
        return np.asarray((gradient - gradient.mean(axis=0) - values * along) / std)

    def factor_and_bias(self, values: Floats) -> tuple[Floats, Floats]:
        """Return a > 0 and b such that prediction has y = a x + b, with mean and std of many values."""
        mean, std = self._statistics(values)
        factor: Floats = np.float32(1) / std
        return factor, self.shift.value - factor * mean

    def _statistics(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the mean and standard deviation by which values (n, units) are normalized."""
        if not self.on:
            return np.zeros_like(self.shift.value), np.ones_like(self.shift.value)
        return values.mean(axis=0), np.sqrt(values.var(axis=0) + MIN_VARIANCE)


class FilterBlock(NamedTuple):
    """Some filters of one width: weights (dim, width * n_filters), the columns by offset, then filter."""

    shape: Block
    weights: AdamParameter


class Sizes(NamedTuple):
    """The sizes of a network."""

    widths: list[int]
    n_filters: int  # of each width
    n_chunks: int
    hidden_dim: int


class ConvolutionalNet:
    """The network in training: all that a step changes."""

    def __init__(self, vectors: Floats, sizes: Sizes, bias: Floats, rng: Rng, batch_norm: bool = True) -> None:
        self.words = SparseLayer(vectors)
        self.widths, self.n_filters, self.n_chunks, hidden_dim = sizes
        widths, n_filters, n_chunks, _ = sizes
        self.blocks = [
            _random_block(width, i * n_filters + first, min(FILTER_BLOCK, n_filters - first), vectors.shape[1], rng)
            for i, width in enumerate(widths)
            for first in range(0, n_filters, FILTER_BLOCK)
        ]
        n_all, n_pooled = len(widths) * n_filters, n_chunks * len(widths) * n_filters
        rows: Floats = rng.standard_normal((hidden_dim, n_pooled), np.float32) * np.float32(n_pooled**-0.5)
        self.filter_norm, self.hidden_norm = BatchNorm(n_all, batch_norm), BatchNorm(hidden_dim, batch_norm)
        self.bottleneck = AdamParameter(rows)  # W_h
        self.output = OutputLayer.random(bias, hidden_dim, rng)
        self.n_steps = 0
        self._slots = np.full(len(vectors) + 1, -1, np.int32)  # the last slot is for token -1

    def arrays(self) -> Arrays:
        """Return all arrays that a step changes."""
        dense = {f"filters-{i}": block.weights for i, block in enumerate(self.blocks)}
        dense |= {"filter_bias": self.filter_norm.shift, "bottleneck": self.bottleneck}
        dense |= {"bottleneck_bias": self.hidden_norm.shift, "output": self.output.weights}
        dense["output_bias"] = self.output.bias
        arrays = {"words": self.words.vectors, "word_squares": self.words.squares}
        for name, adam in dense.items():
            arrays |= {name: adam.value, f"{name}-mean": adam.mean, f"{name}-square": adam.square}
        return arrays

    def train_step(
        self, batch: Documents, Y: Csr, rows: Ints, dropout: float, rates: tuple[float, float], rng: Rng
    ) -> None:
        """Make one step on a batch whose labels are ``Y[rows]``; ``rates`` are of dense weights and of embeddings."""
        rate, feature_rate = rates
        self.n_steps += 1
        n_steps = self.n_steps
        ids, batch = self._distinct_words(batch)
        vectors = self.words.vectors[ids]
        largest, at = self._largest_windows(vectors, batch)
        pooled, of_filters = self.filter_norm.forward(largest.reshape(-1, largest.shape[2]))
        np.maximum(pooled, np.float32(0), out=pooled)
        flat = pooled.reshape(batch.n, -1)
        hidden, of_units = self.hidden_norm.forward(flat @ self.bottleneck.value.T)
        mask = (rng.random(hidden.shape, np.float32) >= dropout) / np.float32(1 - dropout)
        mask *= hidden > 0  # dropout and ReLU
        hidden *= mask
        by_hidden = self.output.backward(hidden, partial(label_block_bce_gradient, Y, rows), rate, n_steps)
        by_hidden *= mask
        by_units = self.hidden_norm.backward(of_units, by_hidden, rate, n_steps)
        by_pooled = (by_units @ self.bottleneck.value).reshape(pooled.shape)
        self.bottleneck.step(by_units.T @ flat, rate, n_steps)
        by_pooled *= pooled > 0
        gradient = self.filter_norm.backward(of_filters, by_pooled, rate, n_steps).reshape(largest.shape)
        by_vectors = self._backward(gradient, at, vectors, batch, rate)
        self.words.update_rows(ids, by_vectors, feature_rate)

    def standardize_filters(self, documents: Documents) -> None:
        """Scale and shift the filters so that their pooled values in some documents have mean 0 and deviation 1.

        A start for a net without batch normalization.
        """
        values = self._windows_by_parts(documents).reshape(-1, len(self.filter_norm.shift.value))
        scales = np.float32(1) / np.maximum(values.std(axis=0), MIN_STD)
        self.filter_norm.shift.value[:] = -values.mean(axis=0) * scales
        for (width, n, column), weights in self.blocks:
            weights.value *= np.tile(scales[column : column + n], width)

    def prediction_weights(self, documents: Documents) -> tuple[Floats, Floats, Floats, Floats]:
        """Return weights and biases of filters and bottleneck, normalized as if these documents were the batch.

        h = relu(W_h relu(pooled + filter_bias) + hidden_bias); the columns of the filters (dim, columns) are by width,
        offset and filter, W_h is (hidden_dim, pooled).
        """
        largest = self._windows_by_parts(documents)
        factors, filter_bias = self.filter_norm.factor_and_bias(largest.reshape(-1, largest.shape[2]))
        pooled = np.maximum(largest * factors + filter_bias, np.float32(0)).reshape(documents.n, -1)
        unit_factors, hidden_bias = self.hidden_norm.factor_and_bias(pooled @ self.bottleneck.value.T)
        by_width = zip(np.split(factors, len(self.widths)), self.widths, strict=True)
        filters = self.filter_columns() * np.concatenate([np.tile(part, width) for part, width in by_width])
        return filters, filter_bias, self.bottleneck.value * unit_factors[:, None], hidden_bias

    def filter_columns(self) -> Floats:
        """Return the weights of all filters (dim, columns), the columns by width, offset and filter."""
        parts = []
        for i, width in enumerate(self.widths):
            of_width = [block for block in self.blocks if block.shape.column // self.n_filters == i]
            arrays = [weights.value.reshape(-1, width, shape.n_filters) for shape, weights in of_width]
            parts.append(np.concatenate(arrays, axis=2).reshape(-1, width * self.n_filters))
        return np.concatenate(parts, axis=1)

    def _distinct_words(self, batch: Documents) -> tuple[Ints, Documents]:
        """Return the words of a batch, each once, and the batch with their numbers as tokens."""
        self._slots[batch.tokens] = 0
        self._slots[-1] = -1
        ids = np.flatnonzero(self._slots >= 0).astype(np.int32)
        self._slots[ids] = np.arange(len(ids), dtype=np.int32)
        local = self._slots[batch.tokens]
        self._slots[ids] = -1
        return ids, Documents(local, batch.ends)

    def _windows_by_parts(self, documents: Documents) -> Floats:
        """Return the largest windows of many documents: (n, chunks, filters)."""
        parts = np.split(np.arange(documents.n, dtype=np.int32), range(PART, documents.n, PART))
        batches = (self._distinct_words(documents.rows(part)) for part in parts)
        return np.concatenate([self._largest_windows(self.words.vectors[ids], batch)[0] for ids, batch in batches])

    def _largest_windows(self, vectors: Floats, batch: Documents) -> tuple[Floats, Ints]:
        shape = (batch.n, self.n_chunks, len(self.widths) * self.n_filters)
        out, at = np.empty(shape, np.float32), np.empty(shape, np.int32)

        def pool(start: int, stop: int) -> None:
            for shape, weights in self._widest_first[start:stop]:
                pool_documents(vectors @ weights.value, shape, batch, out, at)

        run_blocks(pool, len(self.blocks), 1)
        return out, at

    def _backward(self, gradient: Floats, at: Ints, vectors: Floats, batch: Documents, rate: float) -> Floats:
        parts = np.empty((len(self.blocks), *vectors.shape), np.float32)

        def update(start: int, stop: int) -> None:
            for i in range(start, stop):
                shape, weights = self._widest_first[i]
                by_products = np.empty((len(vectors), shape.width * shape.n_filters), np.float32)
                product_gradients(gradient, at, shape, batch, by_products)
                parts[i] = by_products @ weights.value.T
                weights.step(vectors.T @ by_products, rate, self.n_steps)

        run_blocks(update, len(self.blocks), 1)
        by_vectors: Floats = parts.sum(axis=0)  # in one order, whatever the threads did
        return by_vectors

    @property
    def _widest_first(self) -> list[FilterBlock]:
        """The blocks, those with the most work first, so that threads end together."""
        return sorted(self.blocks, key=lambda block: -block.shape.width)


def _random_block(width: int, column: int, n: int, dim: int, rng: Rng) -> FilterBlock:
    weights = rng.standard_normal((dim, width * n), np.float32) * np.float32((dim * width) ** -0.5)
    return FilterBlock(Block(width, n, column), AdamParameter(weights))
