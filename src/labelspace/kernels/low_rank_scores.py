"""Scores of a linear model of low rank plus a sparse one: every label once, and only the top k are stored."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.inner_products import dot
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints


@kernel()
def low_rank_sparse_topk(
    data: Floats, indices: Ints, indptr: Ints, start: int, stop: int, queries: Floats, vectors: Floats, ids: Ints,
    s_data: Floats, s_indices: Ints, s_indptr: Ints, n_labels: int, out_labels: Ints, out_scores: Floats,
) -> None:  # fmt: skip
    """Rows start..stop: the best labels by queries (n, dim) times vectors (m, dim) of the labels ``ids``, plus X S.

    X (n, n_features) and S (n_features, n_labels) are CSR. The outputs have a row for every row of X.
    """
    sparse_scores = np.empty(n_labels, np.float32)
    for row in range(start, stop):
        for label in range(n_labels):
            sparse_scores[label] = 0.0
        for j in range(indptr[row], indptr[row + 1]):
            value, feature = data[j], indices[j]
            for m in range(s_indptr[feature], s_indptr[feature + 1]):
                sparse_scores[s_indices[m]] += value * s_data[m]
        scores, labels, size = out_scores[row], out_labels[row], 0
        for i in range(len(ids)):
            score = dot(queries[row], vectors[i]) + sparse_scores[ids[i]]
            if size < len(scores) or score > scores[0]:
                size = push(scores, labels, size, score, ids[i])
        sort_best_first(scores, labels, size)
