"""Kernels of XML-CNN: convolutions over words with max-pooling, from a table of products of words and filters.

A filter of width w adds w products, one per word of its window. So the products of each distinct word with all filter
columns are computed once (``products``), and a window only adds rows of that table. Max-pooling passes a gradient to
one window per chunk and filter, so the backward pass only touches these.

Tokens of documents are rows of ``products``; -1 is a word without a vector, which counts as zeros. The columns of a
block of n filters of one width are ordered by offset, then filter.
"""

from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from labelspace.features.sequences import PAD, UNKNOWN
from labelspace.kernels.compiled import kernel
from labelspace.kernels.sparse_layers import Layer, Table, add_active_units, output_topk_row
from labelspace.types import Bools, Csr, Floats, Ints, Longs, Rng


class Documents(NamedTuple):
    """Tokens of documents: document i has those at ends[i] : ends[i + 1]; -1 is a word without a vector.

    >>> documents = Documents.from_token_ids(np.array([[3, 1, 0], [4, 3, 3]], np.int32))
    >>> documents.tokens.tolist(), documents.ends.tolist()
    ([3, -1, 4, 3, 3], [0, 2, 5])
    """

    tokens: Ints
    ends: Longs  # (n + 1,)

    @classmethod
    def from_token_ids(cls, ids: Ints) -> Self:
        """Take the tokens of rows of ids (n, longest) without the padding; unknown words become -1."""
        is_token = ids != PAD
        tokens = ids[is_token]
        tokens[tokens == UNKNOWN] = -1
        return cls(tokens, np.append(0, np.cumsum(is_token.sum(axis=1))).astype(np.int64))

    @property
    def n(self) -> int:
        """The number of documents."""
        return len(self.ends) - 1

    def rows(self, index: Ints) -> Self:
        """Return some documents, in this order."""
        lengths = np.diff(self.ends)[index]
        ends = np.append(0, np.cumsum(lengths))
        return type(self)(self.tokens[np.repeat(self.ends[index] - ends[:-1], lengths) + np.arange(ends[-1])], ends)

    def without_words(self, share: float, rng: Rng) -> Self:
        """Replace a share of the words, drawn at random, by words without a vector."""
        if not share:
            return self
        dropped = rng.random(len(self.tokens), np.float32) < share
        return type(self)(np.where(dropped, np.int32(-1), self.tokens), self.ends)

    def table(self) -> Csr:
        """Return a sparse matrix with a row of tokens per document, in order, for a fingerprint."""
        return sp.csr_matrix((self.tokens, np.zeros_like(self.tokens), self.ends), shape=(self.n, 1))


class Block(NamedTuple):
    """Some filters of one width, and the column of their first one among all filters."""

    width: int
    n_filters: int
    column: int


class Convolutions(NamedTuple):
    """Filters (dim, columns), the columns by width, offset and filter, and how their windows are pooled."""

    weights: Floats
    bias: Floats  # of all filters
    widths: Longs
    n_filters: int  # of each width
    n_chunks: int


class Network(NamedTuple):
    """All layers: ``dense`` (pooled, hidden) and ``output`` (hidden, n_labels) have a scale per column."""

    vectors: Table
    vector_scales: Floats
    filters: Convolutions
    dense: Layer
    output: Layer


@kernel()
def pool_document(products: Floats, first: int, block: Block, words: Ints, sums: Floats, out: Floats, at: Ints) -> None:
    """Find the largest window of each chunk of a document, for the filters with product columns from ``first`` on.

    A window begins at each word, and ends with the document at the latest. ``out`` and ``at`` (n_chunks, all filters)
    get value and position at the columns from ``column`` on; a document without words gets 0 and -1.
    """
    width, n_filters, column = block
    n_words, n_chunks = len(words), len(out)
    for chunk in range(n_chunks):
        best, best_at = out[chunk, column : column + n_filters], at[chunk, column : column + n_filters]
        begin = chunk * n_words // n_chunks
        end = max((chunk + 1) * n_words // n_chunks, begin + 1)  # at least one window, even if there are few words
        best[:] = np.float32(0.0)
        best_at[:] = -1
        for t in range(begin, min(end, n_words)):
            for f in range(n_filters):
                sums[f] = np.float32(0.0)
            for offset in range(min(width, n_words - t)):
                if words[t + offset] >= 0:
                    begin_column = first + offset * n_filters
                    row = products[words[t + offset], begin_column : begin_column + n_filters]
                    for f in range(n_filters):
                        sums[f] += row[f]
            if t == begin:
                for f in range(n_filters):
                    best[f], best_at[f] = sums[f], np.int32(t)
            else:
                for f in range(n_filters):
                    larger = sums[f] > best[f]
                    best[f] = sums[f] if larger else best[f]
                    best_at[f] = np.int32(t) if larger else best_at[f]


@kernel()
def pool_documents(products: Floats, block: Block, documents: Documents, out: Floats, at: Ints) -> None:
    """Call ``pool_document`` for a batch and one block of filters; ``out`` is (batch, chunks, filters)."""
    tokens, ends = documents
    sums = np.empty(block.n_filters, np.float32)
    for i in range(len(out)):
        words = tokens[ends[i] : ends[i + 1]]
        pool_document(products, 0, block, words, sums, out[i], at[i])


@kernel()
def product_gradients(gradient: Floats, at: Ints, block: Block, documents: Documents, out: Floats) -> None:
    """Pass the gradient by the pooled values (batch, chunks, filters) on to the products of a block of filters."""
    tokens, ends = documents
    width, n_filters, column = block
    out[:] = np.float32(0.0)
    for i in range(len(gradient)):
        words = tokens[ends[i] : ends[i + 1]]
        for chunk in range(gradient.shape[1]):
            for f in range(n_filters):
                value, t = gradient[i, chunk, column + f], at[i, chunk, column + f]
                if value == np.float32(0.0) or t < 0:
                    continue
                for offset in range(min(width, len(words) - t)):
                    if words[t + offset] >= 0:
                        out[words[t + offset], offset * n_filters + f] += value


@kernel(fastmath=True, forceinline=True)
def word_products(ids: Ints, n: int, vectors: Table, scales: Floats, weights: Floats, out: Floats) -> None:
    """Multiply the vectors of the first n ``ids`` by weights (dim, columns).

    Four dimensions at a time: each row of products is read and written a quarter as often.
    """
    n_dims, n_columns = weights.shape
    for i in range(n):
        vector, row, scale = vectors[ids[i]], out[i], scales[ids[i]]
        for j in range(n_columns):
            row[j] = np.float32(0.0)
        whole = n_dims - n_dims % 4
        for d in range(0, whole, 4):
            x0, x1 = np.float32(vector[d]) * scale, np.float32(vector[d + 1]) * scale
            x2, x3 = np.float32(vector[d + 2]) * scale, np.float32(vector[d + 3]) * scale
            w0, w1, w2, w3 = weights[d], weights[d + 1], weights[d + 2], weights[d + 3]
            for j in range(n_columns):
                row[j] += (x0 * w0[j] + x1 * w1[j]) + (x2 * w2[j] + x3 * w3[j])
        for d in range(whole, n_dims):
            x0, w0 = np.float32(vector[d]) * scale, weights[d]
            for j in range(n_columns):
                row[j] += x0 * w0[j]


@kernel()
def number_words(words: Ints, slots: Ints, ids: Ints, local: Ints) -> int:
    """Number the distinct words of a document and return how many there are.

    ``ids`` gets the distinct words, ``local`` the number of each word; -1 stays -1. ``slots`` (n_tokens,) is
    scratch, all -1 before and after.
    """
    n = 0
    for t in range(len(words)):
        local[t] = -1
        if words[t] >= 0:
            if slots[words[t]] < 0:
                slots[words[t]], ids[n] = n, words[t]
                n += 1
            local[t] = slots[words[t]]
    for i in range(n):
        slots[ids[i]] = -1
    return n


@kernel()
def convolution_topk(
    documents: Documents, start: int, stop: int, network: Network, allowed: Bools, labels: Ints, scores: Floats
) -> None:
    """Find the top allowed labels for the documents start..stop, whose tokens are rows of the network's vectors.

    The answer for a document does not depend on other documents.
    """
    tokens, ends = documents
    filters, filter_bias, widths, n_filters, n_chunks = network.filters
    dense, dense_scales, dense_bias = network.dense
    longest = 0
    for i in range(start, stop):
        longest = max(longest, ends[i + 1] - ends[i])
    slots = np.full(len(network.vectors), -1, np.int32)
    ids, local = np.empty(longest, np.int32), np.empty(longest, np.int32)
    products = np.empty((longest, filters.shape[1]), np.float32)
    pooled = np.empty((n_chunks, len(filter_bias)), np.float32)
    at = np.empty((n_chunks, len(filter_bias)), np.int32)
    sums, hidden = np.empty(n_filters, np.float32), np.empty(len(dense_bias), np.float32)
    for i in range(start, stop):
        n_words = ends[i + 1] - ends[i]
        n = number_words(tokens[ends[i] : ends[i + 1]], slots, ids, local)
        word_products(ids, n, network.vectors, network.vector_scales, filters, products)
        first = 0
        for w in range(len(widths)):
            block = Block(widths[w], n_filters, w * n_filters)
            pool_document(products, first, block, local[:n_words], sums, pooled, at)
            first += widths[w] * n_filters
        for chunk in range(n_chunks):
            for f in range(len(filter_bias)):
                pooled[chunk, f] = max(pooled[chunk, f] + filter_bias[f], np.float32(0.0))
        hidden[:] = np.float32(0.0)
        add_active_units(pooled.reshape(-1), dense, hidden)
        for unit in range(len(hidden)):
            hidden[unit] = max(hidden[unit] * dense_scales[unit] + dense_bias[unit], np.float32(0.0))
        output_topk_row(hidden, network.output, allowed, scores[i], labels[i])
