"""The rows of a table of largest inner product with a query, whole table read, nothing kept but the best.

Rows come in blocks that stay in the cache while all queries meet them. A product is summed in one order whatever the
queries beside it, so a query alone gets the very answer it gets among others; BLAS does not promise that.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.kernels.quantize import Bytes, Words
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints, Longs

ROW_BLOCK = 64


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def dot(a: Floats, b: Floats) -> np.float32:
    """Inner product of two short dense vectors; free to be summed in any order, so that it is vectorized."""
    total = np.float32(0.0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True)
def whole_product(query: Words, vector: Bytes) -> np.int32:
    """The inner product of two rows of whole numbers, exact where it is below 2^31."""
    total = np.int32(0)
    for j in range(len(query)):
        # In 32 bits at each step: numba would go on in 64, which has no vector instruction here.
        total = np.int32(total + np.int32(np.int32(query[j]) * np.int32(vector[j])))
    return total


@njit(cache=True, nogil=True)
def keep_best(products: Floats, ids: Ints, scores: Floats, labels: Ints, size: int) -> int:
    """Offer a block of products to the heap of a query; the heap's new size is returned."""
    for i in range(len(products)):
        if size < len(scores) or products[i] >= scores[0]:
            size = push(scores, labels, size, products[i], ids[i])
    return size


@njit(cache=True, nogil=True)
def best_products(queries: Floats, vectors: Floats, ids: Ints, out_labels: Ints, out_scores: Floats) -> None:
    """The ids of the best rows of ``vectors`` (n, d) for each of ``queries`` (m, d); ``out`` arrays are (m, k)."""
    sizes, products = np.zeros(len(queries), np.int64), np.empty(ROW_BLOCK, np.float32)
    for start in range(0, len(vectors), ROW_BLOCK):
        stop = min(start + ROW_BLOCK, len(vectors))
        for i in range(len(queries)):
            for row in range(start, stop):
                products[row - start] = dot(queries[i], vectors[row])
            block = products[: stop - start]
            sizes[i] = keep_best(block, ids[start:stop], out_scores[i], out_labels[i], sizes[i])
    for i in range(len(queries)):
        sort_best_first(out_scores[i], out_labels[i], sizes[i])


@njit(cache=True, nogil=True)
def best_whole_products(
    queries: Words, query_scales: Floats, vectors: Bytes, scales: Floats, ids: Ints, out_labels: Ints,
    out_scores: Floats,
) -> None:  # fmt: skip
    """The same for rows of whole numbers with a scale each."""
    sizes, products = np.zeros(len(queries), np.int64), np.empty(ROW_BLOCK, np.float32)
    for start in range(0, len(vectors), ROW_BLOCK):
        stop = min(start + ROW_BLOCK, len(vectors))
        for i in range(len(queries)):
            for row in range(start, stop):
                whole = np.float32(whole_product(queries[i], vectors[row]))
                products[row - start] = whole * (query_scales[i] * scales[row])
            block = products[: stop - start]
            sizes[i] = keep_best(block, ids[start:stop], out_scores[i], out_labels[i], sizes[i])
    for i in range(len(queries)):
        sort_best_first(out_scores[i], out_labels[i], sizes[i])


@njit(cache=True, nogil=True)
def rank_again(
    queries: Floats, vectors: Floats, ids: Ints, places: Longs, out_labels: Ints, out_scores: Floats
) -> None:  # fmt: skip
    """The best of the rows of ``vectors`` listed in ``places`` (m, s), by their products in float32; -1 is no row."""
    for i in range(len(queries)):
        size = 0
        for place in places[i]:
            if place >= 0:
                product = dot(queries[i], vectors[place])
                size = push(out_scores[i], out_labels[i], size, product, ids[place])
        sort_best_first(out_scores[i], out_labels[i], size)
