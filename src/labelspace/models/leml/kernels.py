"""Sparse linear regression by coordinate descent: each weight in turn gets its best value, most are 0.

Scores of a linear model of low rank plus a sparse one: every label once, and only the top k are stored.
"""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.inner_products import dot
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints


@kernel()
def descend_lasso(
    data: Floats, indices: Ints, indptr: Ints, squares: Floats, l1: Floats, l2: float, max_iter: int, tol: float,
    weights: Floats, residual: Floats,
) -> None:  # fmt: skip
    """Minimize |r - X w|^2 / 2 + sum_j l1_j |w_j| + l2 |w|^2 / 2, from the weights given; X is by features (CSC).

    ``residual`` (n,) is r before, and r - X w after. ``squares`` are the squared norms of the features; one of norm 0
    keeps its weight. The first pass is over all features, later ones over those with a weight, until a pass moves no
    score of a document by more than ``tol``, or ``max_iter`` passes are done.
    """
    for j in range(len(weights)):
        if weights[j] != 0.0:
            for i in range(indptr[j], indptr[j + 1]):
                residual[indices[i]] -= weights[j] * data[i]
    for sweep in range(max_iter):
        largest = np.float32(0.0)
        for j in range(len(weights)):
            if squares[j] == 0.0 or (sweep > 0 and weights[j] == 0.0):
                continue
            product = squares[j] * weights[j]
            for i in range(indptr[j], indptr[j + 1]):
                product += data[i] * residual[indices[i]]
            excess = max(abs(product) - l1[j], np.float32(0.0))
            change = np.float32(np.sign(product) * excess / (squares[j] + l2)) - weights[j]
            if change != 0.0:
                weights[j] += change
                for i in range(indptr[j], indptr[j + 1]):
                    residual[indices[i]] -= change * data[i]
                    largest = max(largest, abs(change * data[i]))
        if largest <= tol:
            break


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
