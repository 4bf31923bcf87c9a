"""Exact nearest rows by Euclidean distance among int8 vectors, within the cluster of each query."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.inner_products import int_product
from labelspace.kernels.quantize import Int8s, Int16s
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints, Longs


@kernel()
def nearest_in_cluster(
    queries: Int16s, query_scales: Floats, clusters: Longs, starts: Longs, vectors: Int8s, scales: Floats,
    squares: Floats, ids: Ints, out_ids: Ints, out_scores: Floats,
) -> None:  # fmt: skip
    """The ids of the rows nearest to each query (m, dim), of rows ``starts[c]`` to ``starts[c + 1]`` in its cluster c.

    Vectors have a scale each, and ``squares`` their squared norms. The score of a row v for a query q is 2 q.v - |v|^2:
    the squared norm of q minus the squared distance. Both outputs (m, k) are filled best first, padded with -1 / -inf.
    """
    for i in range(len(queries)):
        size, scores, found = 0, out_scores[i], out_ids[i]
        twice = np.float32(2.0) * query_scales[i]
        for row in range(starts[clusters[i]], starts[clusters[i] + 1]):
            score = np.float32(int_product(queries[i], vectors[row])) * (twice * scales[row]) - squares[row]
            if size < len(scores) or score >= scores[0]:
                size = push(scores, found, size, score, ids[row])
        sort_best_first(scores, found, size)
