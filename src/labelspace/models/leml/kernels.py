"""Kernels of LEML: sparse linear regression by coordinate descent, and the scores of both parts of the model."""

from typing import NamedTuple

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.inner_products import dot
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints


class LabelVectors(NamedTuple):
    """The vectors (m, dim) of some labels, the ids of these labels, and the number of all labels."""

    vectors: Floats
    ids: Ints
    n_labels: int


class Lasso(NamedTuple):
    """X by features (CSC), the squared norms of the features, their L1 weights, and the L2 weight."""

    by_feature: CsrArrays
    squares: Floats
    l1: Floats
    l2: float


@kernel()
def descend_lasso(problem: Lasso, max_iter: int, tol: float, weights: Floats, residual: Floats) -> None:
    """Minimize |r - X w|^2 / 2 + sum_j l1_j |w_j| + l2 |w|^2 / 2, from the weights given.

    Each weight in turn gets its best value; most are 0. ``residual`` (n,) is r before, and r - X w after. A feature of
    norm 0 keeps its weight. The first pass is over all features,
    later passes over the features with a weight, until a pass moves no score of a document by more than ``tol``, or
    ``max_iter`` passes are done.
    """
    (data, indices, indptr), squares, l1, l2 = problem
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
    X: CsrArrays, start: int, stop: int, queries: Floats, H: LabelVectors, S: CsrArrays, labels: Ints, scores: Floats
) -> None:
    """Find the best labels for rows start..stop by queries (n, dim) times the vectors of some labels, plus X S.

    X is (n, n_features) and S (n_features, n_labels). The outputs have a row for every row of X. Every label is scored
    once, and only the top k are stored.
    """
    data, indices, indptr = X
    s_data, s_indices, s_indptr = S
    vectors, ids, n_labels = H
    sparse_scores = np.empty(n_labels, np.float32)
    for row in range(start, stop):
        for label in range(n_labels):
            sparse_scores[label] = 0.0
        for j in range(indptr[row], indptr[row + 1]):
            value, feature = data[j], indices[j]
            for m in range(s_indptr[feature], s_indptr[feature + 1]):
                sparse_scores[s_indices[m]] += value * s_data[m]
        best, found = scores[row], labels[row]
        size = 0
        for i in range(len(ids)):
            score = dot(queries[row], vectors[i]) + sparse_scores[ids[i]]
            if size < len(best) or score > best[0]:
                size = push(best, found, size, score, ids[i])
        sort_best_first(best, found, size)
