"""The kernel of SLEEC: exact nearest rows by Euclidean distance among int8 vectors, in the cluster of each query."""

from typing import NamedTuple

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.inner_products import int_product
from labelspace.kernels.quantize import Int8s, Int16s
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints, Longs


class ClusterRows(NamedTuple):
    """Vectors with a scale, a squared norm and an id each; cluster c has the rows starts[c] : starts[c + 1]."""

    starts: Longs
    vectors: Int8s
    scales: Floats
    squares: Floats
    ids: Ints


@kernel()
def nearest_in_cluster(
    queries: Int16s, query_scales: Floats, clusters: Longs, rows: ClusterRows, out_ids: Ints, out_scores: Floats
) -> None:
    """Find the rows nearest to each query (m, dim) within its cluster.

    The score of a row v for a query q is 2 q.v - |v|^2: the squared norm of q minus the squared distance. Both outputs
    (m, k) are filled best first, padded with -1 / -inf.
    """
    starts, vectors, scales, squares, ids = rows
    for i in range(len(queries)):
        best, found = out_scores[i], out_ids[i]
        size = 0
        twice = np.float32(2.0) * query_scales[i]
        for row in range(starts[clusters[i]], starts[clusters[i] + 1]):
            score = np.float32(int_product(queries[i], vectors[row])) * (twice * scales[row]) - squares[row]
            if size < len(best) or score >= best[0]:
                size = push(best, found, size, score, ids[row])
        sort_best_first(best, found, size)
