"""The network in training: word embeddings, convolutions, dynamic max-pooling, a bottleneck, and the output layer.

Convolutions are computed in blocks of filters, which are spread over threads: each block multiplies the distinct words
of a batch by its columns (a matrix product), and adds the products of each window (``kernels.convolution``). Blocks do
not depend on the number of threads, and sums over blocks are in one order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from labelspace.kernels.convolution import pool_documents, product_gradients
from labelspace.kernels.threads import run_blocks
from labelspace.models.xmlcnn.documents import Documents
from labelspace.store import Arrays
from labelspace.training.dense_layers import DenseLayer
from labelspace.training.losses import label_block_bce_gradient
from labelspace.training.optimizers import AdamParameter
from labelspace.training.output_layer import OutputLayer
from labelspace.training.sparse_layers import SparseLayer
from labelspace.types import Csr, Floats, Ints

FILTER_BLOCK = 64  # filters per task
MIN_STD = np.float32(1e-3)  # of a filter whose values hardly differ


@dataclass(frozen=True)
class FilterBlock:
    """Some filters of one width: weights (dim, width * n), the columns by offset, then filter."""

    width: int
    column: int  # of its first filter among all
    n: int
    weights: AdamParameter

    def pool(self, vectors: Floats, batch: Documents, out: Floats, at: Ints) -> None:
        """The largest window of each chunk, and where it begins: (batch, chunks, filters)."""
        products = vectors @ self.weights.value
        pool_documents(products, self.n, self.width, batch.tokens, batch.ends, self.column, out, at)

    def backward(
        self, gradient: Floats, at: Ints, vectors: Floats, batch: Documents, rate: float, n_steps: int
    ) -> Floats:
        """Update on the gradient by the pooled values; returns that by the words' vectors."""
        by_products = np.empty((len(vectors), self.width * self.n), np.float32)
        product_gradients(gradient, at, self.n, self.width, batch.tokens, batch.ends, self.column, by_products)
        by_vectors: Floats = by_products @ self.weights.value.T
        self.weights.step(vectors.T @ by_products, rate, n_steps)
        return by_vectors


@dataclass(frozen=True)
class StepSettings:
    """What a step needs beside the documents."""

    dropout: float
    learning_rate: float
    feature_learning_rate: float


class ConvolutionalNet:
    """All that a step changes."""

    def __init__(
        self, vectors: Floats, widths: Sequence[int], n_filters: int, n_chunks: int, hidden_dim: int, bias: Floats,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.words, self.widths, self.n_filters, self.n_chunks = SparseLayer(vectors), widths, n_filters, n_chunks
        self.blocks = [
            _random_block(width, i * n_filters + first, min(FILTER_BLOCK, n_filters - first), vectors.shape[1], rng)
            for i, width in enumerate(widths)
            for first in range(0, n_filters, FILTER_BLOCK)
        ]
        n_all = len(widths) * n_filters
        self.filter_bias = AdamParameter(np.zeros(n_all, np.float32))
        self.bottleneck = DenseLayer.random(n_chunks * n_all, hidden_dim, rng)
        self.output = OutputLayer.random(bias, hidden_dim, rng)
        self.n_steps = 0
        self._slots = np.full(len(vectors) + 1, -1, np.int32)  # the last one is that of token -1

    def arrays(self) -> Arrays:
        """All that a step changes."""
        dense = {f"filters-{i}": block.weights for i, block in enumerate(self.blocks)} | {
            "filter_bias": self.filter_bias, "bottleneck": self.bottleneck.rows,
            "bottleneck_bias": self.bottleneck.bias, "output": self.output.weights, "output_bias": self.output.bias,
        }  # fmt: skip
        arrays = {"words": self.words.vectors, "word_squares": self.words.squares}
        for name, adam in dense.items():
            arrays |= {name: adam.value, f"{name}-mean": adam.mean, f"{name}-square": adam.square}
        return arrays

    def train_step(
        self, batch: Documents, Y: Csr, rows: Ints, settings: StepSettings, rng: np.random.Generator
    ) -> None:
        """One step on a batch whose labels are ``Y[rows]``."""
        self.n_steps += 1
        ids, batch = self._distinct_words(batch)
        vectors = self.words.vectors[ids]
        pooled, at = self._pool(vectors, batch)
        flat = pooled.reshape(len(pooled), -1)
        hidden = self.bottleneck.forward(flat)
        mask = (rng.random(hidden.shape, np.float32) >= settings.dropout) / np.float32(1 - settings.dropout)
        mask *= hidden > 0  # dropout and ReLU
        hidden *= mask
        rate, loss_gradient = settings.learning_rate, partial(label_block_bce_gradient, Y, rows)
        by_hidden = self.output.backward(hidden, loss_gradient, rate, self.n_steps)
        by_hidden *= mask
        gradient = self.bottleneck.backward(flat, by_hidden, rate, self.n_steps).reshape(pooled.shape)
        gradient *= pooled > 0
        self.filter_bias.step(gradient.sum(axis=(0, 1)), rate, self.n_steps)
        by_vectors = self._backward(gradient, at, vectors, batch, rate)
        self.words.update_rows(ids, by_vectors, settings.feature_learning_rate)

    def standardize_filters(self, batch: Documents) -> None:
        """Scale and shift the filters so that their pooled values in a batch have mean 0 and standard deviation 1.

        The largest of many windows is far above 0 in every document: without this, what all documents have in common
        would hide what they differ in.
        """
        ids, batch = self._distinct_words(batch)
        values = self._largest_windows(self.words.vectors[ids], batch)[0].reshape(-1, len(self.filter_bias.value))
        scales = np.float32(1) / np.maximum(values.std(axis=0), MIN_STD)
        self.filter_bias.value[:] = -values.mean(axis=0) * scales
        for block in self.blocks:
            block.weights.value *= np.tile(scales[block.column : block.column + block.n], block.width)

    def filter_columns(self) -> Floats:
        """The weights of all filters (dim, columns), the columns by width, offset and filter."""
        parts = []
        for i, width in enumerate(self.widths):
            of_width = [block for block in self.blocks if block.column // self.n_filters == i]
            arrays = [block.weights.value.reshape(-1, width, block.n) for block in of_width]
            parts.append(np.concatenate(arrays, axis=2).reshape(-1, width * self.n_filters))
        return np.concatenate(parts, axis=1)

    def _distinct_words(self, batch: Documents) -> tuple[Ints, Documents]:
        """The words of a batch, each once, and the batch with their numbers as tokens."""
        self._slots[batch.tokens] = 0
        self._slots[-1] = -1
        ids = np.flatnonzero(self._slots >= 0).astype(np.int32)
        self._slots[ids] = np.arange(len(ids), dtype=np.int32)
        local = self._slots[batch.tokens]
        self._slots[ids] = -1
        return ids, Documents(local, batch.ends)

    def _pool(self, vectors: Floats, batch: Documents) -> tuple[Floats, Ints]:
        """The pooled values after bias and ReLU, and where their windows begin: (batch, chunks, filters)."""
        out, at = self._largest_windows(vectors, batch)
        out += self.filter_bias.value
        return np.maximum(out, np.float32(0), out=out), at

    def _largest_windows(self, vectors: Floats, batch: Documents) -> tuple[Floats, Ints]:
        shape = (batch.n, self.n_chunks, len(self.filter_bias.value))
        out, at = np.empty(shape, np.float32), np.empty(shape, np.int32)

        def pool(start: int, stop: int) -> None:
            for block in self._widest_first[start:stop]:
                block.pool(vectors, batch, out, at)

        run_blocks(pool, len(self.blocks), 1)
        return out, at

    def _backward(self, gradient: Floats, at: Ints, vectors: Floats, batch: Documents, rate: float) -> Floats:
        parts = np.empty((len(self.blocks), *vectors.shape), np.float32)

        def update(start: int, stop: int) -> None:
            for i in range(start, stop):
                block = self._widest_first[i]
                parts[i] = block.backward(gradient, at, vectors, batch, rate, self.n_steps)

        run_blocks(update, len(self.blocks), 1)
        by_vectors: Floats = parts.sum(axis=0)  # in one order, whatever the threads did
        return by_vectors

    @property
    def _widest_first(self) -> list[FilterBlock]:
        """The blocks with the most work first, so that threads end together."""
        return sorted(self.blocks, key=lambda block: -block.width)


def _random_block(width: int, column: int, n: int, dim: int, rng: np.random.Generator) -> FilterBlock:
    weights = rng.standard_normal((dim, width * n), np.float32) * np.float32((dim * width) ** -0.5)
    return FilterBlock(width, column, n, AdamParameter(weights))
