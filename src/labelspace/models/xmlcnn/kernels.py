"""Convolutions over words with max-pooling, from a table of products of words and filters.

A filter of width w adds w products, one per word of its window. So the products of each distinct word with all filter
columns are computed once (``products``), and a window only adds rows of that table. Max-pooling passes a gradient to
one window per chunk and filter, so the backward pass only touches these.

``tokens`` are rows of ``products`` for all documents, one after the other; -1 is a word without a vector, which counts
as zeros. Document i has the tokens ``ends[i] : ends[i + 1]``. The columns of a block of n filters of one width are
ordered by offset, then filter.
"""

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import kernel
from labelspace.kernels.sparse_layers import Table, add_active_units, output_topk_row
from labelspace.types import Floats, Ints, Longs


@kernel()
def pool_document(
    products: Floats, first: int, n_filters: int, width: int, tokens: Ints, column: int, sums: Floats, out: Floats,
    at: Ints,
) -> None:  # fmt: skip
    """The largest window of each chunk of a document, for the filters with product columns from ``first`` on.

    A window begins at each word, and ends with the document at the latest. ``out`` and ``at`` (n_chunks, all filters)
    get value and position at the columns from ``column`` on; a document without words gets 0 and -1.
    """
    n_words, n_chunks = len(tokens), len(out)
    for chunk in range(n_chunks):
        best, best_at = out[chunk, column : column + n_filters], at[chunk, column : column + n_filters]
        begin = chunk * n_words // n_chunks
        end = max((chunk + 1) * n_words // n_chunks, begin + 1)  # at least one window, where there are few words
        best[:] = np.float32(0.0)
        best_at[:] = -1
        for t in range(begin, min(end, n_words)):
            for f in range(n_filters):
                sums[f] = np.float32(0.0)
            for offset in range(min(width, n_words - t)):
                if tokens[t + offset] >= 0:
                    begin_column = first + offset * n_filters
                    row = products[tokens[t + offset], begin_column : begin_column + n_filters]
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
def pool_documents(
    products: Floats, n_filters: int, width: int, tokens: Ints, ends: Longs, column: int, out: Floats, at: Ints
) -> None:
    """``pool_document`` for a batch, with the products of one block of filters; ``out`` is (batch, chunks, filters)."""
    sums = np.empty(n_filters, np.float32)
    for i in range(len(out)):
        words = tokens[ends[i] : ends[i + 1]]
        pool_document(products, 0, n_filters, width, words, column, sums, out[i], at[i])


@kernel()
def product_gradients(
    gradient: Floats, at: Ints, n_filters: int, width: int, tokens: Ints, ends: Longs, column: int, out: Floats
) -> None:
    """The gradient by the products of a block of filters, given that by the pooled values (batch, chunks, filters)."""
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


@kernel(fastmath=True)
def word_products(ids: Ints, n: int, vectors: Table, scales: Floats, weights: Floats, out: Floats) -> None:
    """The vectors of the first n ``ids`` times weights (dim, columns), four dimensions at a time."""
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
    """Number the distinct words of a document: ``ids`` gets them, ``local`` the number of each word; -1 stays -1.

    Returns how many there are. ``slots`` (n_tokens,) is scratch, all -1 before and after.
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
    tokens: Ints, ends: Longs, start: int, stop: int, widths: Longs, n_filters: int, n_chunks: int, vectors: Table,
    vector_scales: Floats, filters: Floats, filter_bias: Floats, dense: Table, dense_scales: Floats, dense_bias: Floats,
    weights: Table, weight_scales: Floats, bias: Floats, allowed: npt.NDArray[np.bool_], out_labels: Ints,
    out_scores: Floats,
) -> None:  # fmt: skip
    """The top allowed labels for the documents start..stop, whose ``tokens`` are rows of ``vectors``.

    ``filters`` is (dim, columns), the columns by width, offset and filter; ``dense`` (pooled, hidden) and ``weights``
    (hidden, n_labels) have a scale per column. A document's answer does not depend on the others.
    """
    longest = 0
    for i in range(start, stop):
        longest = max(longest, ends[i + 1] - ends[i])
    slots = np.full(len(vectors), -1, np.int32)
    ids, local = np.empty(longest, np.int32), np.empty(longest, np.int32)
    products = np.empty((longest, filters.shape[1]), np.float32)
    pooled = np.empty((n_chunks, len(filter_bias)), np.float32)
    at = np.empty((n_chunks, len(filter_bias)), np.int32)
    sums, hidden = np.empty(n_filters, np.float32), np.empty(len(dense_bias), np.float32)
    for i in range(start, stop):
        n_words = ends[i + 1] - ends[i]
        n = number_words(tokens[ends[i] : ends[i + 1]], slots, ids, local)
        word_products(ids, n, vectors, vector_scales, filters, products)
        first = 0
        for w in range(len(widths)):
            column = w * n_filters
            pool_document(products, first, n_filters, widths[w], local[:n_words], column, sums, pooled, at)
            first += widths[w] * n_filters
        for chunk in range(n_chunks):
            for f in range(len(filter_bias)):
                pooled[chunk, f] = max(pooled[chunk, f] + filter_bias[f], np.float32(0.0))
        hidden[:] = np.float32(0.0)
        add_active_units(pooled.reshape(-1), dense, hidden)
        for unit in range(len(hidden)):
            hidden[unit] = max(hidden[unit] * dense_scales[unit] + dense_bias[unit], np.float32(0.0))
        output_topk_row(hidden, weights, weight_scales, bias, allowed, out_scores[i], out_labels[i])
