"""Sparse linear regression by coordinate descent: each weight in turn gets its best value, most are 0."""

import numpy as np

from labelspace.kernels.compiled import kernel
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
