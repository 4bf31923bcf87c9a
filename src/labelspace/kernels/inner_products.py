"""Exact maximum inner product search: all rows are read, and only the top k are stored.

Rows come in blocks that stay in the cache while all queries read them. A product is summed in one order whatever the
other queries are, so a single query gets exactly the result it gets in a batch; BLAS does not guarantee this.
"""

import numpy as np

from labelspace.kernels.compiled import integer, kernel
from labelspace.kernels.quantize import Int8s, Int16s
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints, Longs

ROW_BLOCK = 64  # rows that stay in the cache while all queries read them
INT_ROW_BLOCK = 256  # more, since quantized rows are smaller


@kernel(fastmath={"reassoc", "contract"}, forceinline=True)
def dot(a: Floats, b: Floats) -> np.float32:
    """Return the inner product of two short dense vectors, summed in any order, so that it is vectorized."""
    total = np.float32(0.0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel()
def int_product(query: Int16s, vector: Int8s) -> np.int32:
    """Return the inner product of two integer vectors, exact if it is below 2^31."""
    total = np.int32(0)
    for j in range(len(query)):
        # In 32 bits at each step: numba would use 64, which has no vector instruction.
        total = np.int32(total + np.int32(np.int32(query[j]) * np.int32(vector[j])))
    return total


@kernel()
def int_products(query: Int16s, vectors: Int8s, out: Ints) -> None:
    """Compute ``int_product`` with each row.

    A function of its own: in a larger one, numba would count references to each row.
    """
    for row in range(len(vectors)):
        out[row] = int_product(query, vectors[row])


@kernel()
def push_products(products: Floats, ids: Ints, scores: Floats, labels: Ints, size: int) -> int:
    """Push a block of products onto the heap of a query; return the new size."""
    for i in range(len(products)):
        if size < len(scores) or products[i] >= scores[0]:
            size = push(scores, labels, size, products[i], ids[i])
    return size


@kernel()
def topk_products(queries: Floats, vectors: Floats, ids: Ints, out: Ints, out_scores: Floats) -> None:
    """Find the ids of the best rows of ``vectors`` (n, d) for each of ``queries`` (m, d); ``out`` arrays are (m, k)."""
    sizes, products = np.zeros(len(queries), np.int64), np.empty(ROW_BLOCK, np.float32)
    for start in range(0, len(vectors), ROW_BLOCK):
        stop = min(start + ROW_BLOCK, len(vectors))
        for i in range(len(queries)):
            for row in range(start, stop):
                products[row - start] = dot(queries[i], vectors[row])
            block = products[: stop - start]
            sizes[i] = push_products(block, ids[start:stop], out_scores[i], out[i], sizes[i])
    for i in range(len(queries)):
        sort_best_first(out_scores[i], out[i], sizes[i])


@kernel()
def topk_int_products(
    queries: Int16s, query_scales: Floats, vectors: Int8s, scales: Floats, ids: Ints, out: Ints, out_scores: Floats
) -> None:
    """Find the best rows as ``topk_products`` does, among quantized rows with a scale each."""
    sizes, products = np.zeros(len(queries), np.int64), np.empty(INT_ROW_BLOCK, np.float32)
    exact = np.empty(INT_ROW_BLOCK, np.int32)
    for start in range(0, len(vectors), INT_ROW_BLOCK):
        stop = min(start + INT_ROW_BLOCK, len(vectors))
        for i in range(len(queries)):
            int_products(queries[i], vectors[start:stop], exact)
            for row in range(start, stop):
                products[row - start] = np.float32(exact[row - start]) * (query_scales[i] * scales[row])
            block = products[: stop - start]
            sizes[i] = push_products(block, ids[start:stop], out_scores[i], out[i], sizes[i])
    for i in range(len(queries)):
        sort_best_first(out_scores[i], out[i], sizes[i])


@kernel()
def rerank(queries: Floats, vectors: Floats, ids: Ints, rows: Longs, out_labels: Ints, out_scores: Floats) -> None:
    """Find the best of the candidate ``rows`` (m, s) of ``vectors``, by their products in float32; -1 is no row."""
    for i in range(len(queries)):
        size = integer(0)
        for row in rows[i]:
            if row >= 0:
                size = push(out_scores[i], out_labels[i], size, dot(queries[i], vectors[row]), ids[row])
        sort_best_first(out_scores[i], out_labels[i], size)
