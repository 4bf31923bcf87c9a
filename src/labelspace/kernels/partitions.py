"""Partitions of documents, each with a weight vector: a document is in the one of the largest inner product.

They are learned so that documents which are neighbors in a graph fall into one partition (FTRL-Proximal: McMahan et
al., 2013, on a logistic loss).
"""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.random_numbers import next_state
from labelspace.types import Floats, Ints

FTRL_BETA = np.float32(1.0)


@kernel()
def nearest_partition(data: Floats, features: Ints, weights: Floats, scores: Floats) -> int:
    """The partition of one document, by ``weights`` (n_features, K); fills its ``scores`` (K). Of equals the first."""
    scores[:] = 0.0
    for j in range(len(features)):
        row = weights[features[j]]
        for c in range(len(scores)):
            scores[c] += data[j] * row[c]
    best = 0
    for c in range(1, len(scores)):
        if scores[c] > scores[best]:
            best = c
    return best


@kernel()
def ftrl_step(
    data: Floats, features: Ints, target: float, c: int, learning_rate: float, l1: float, weights: Floats, sums: Floats,
    roots: Floats,
) -> None:  # fmt: skip
    """One step on the logistic loss of a document being in partition c (``target`` 1) or not (0).

    ``sums`` are FTRL's z, and ``roots`` the square roots of the sums of squared gradients; both are as ``weights``.
    """
    score = np.float32(0.0)
    for j in range(len(features)):
        score += data[j] * weights[features[j], c]
    error = np.float32(1.0 / (1.0 + np.exp(-score)) - target)
    rate, threshold = np.float32(learning_rate), np.float32(l1)
    for j in range(len(features)):
        f, gradient = features[j], error * data[j]
        root = np.sqrt(roots[f, c] * roots[f, c] + gradient * gradient)
        z = sums[f, c] + gradient - (root - roots[f, c]) / rate * weights[f, c]
        sums[f, c], roots[f, c] = z, root
        shrunk = min(z + threshold, np.float32(0.0)) if z < 0.0 else max(z - threshold, np.float32(0.0))
        weights[f, c] = -shrunk * rate / (FTRL_BETA + root)


@kernel()
def train_partitions(
    data: Floats, indices: Ints, indptr: Ints, neighbors: Ints, neighbor_indptr: Ints, order: Ints,
    learning_rate: float, l1: float, state: np.uint64, weights: Floats, sums: Floats, roots: Floats,
) -> np.uint64:  # fmt: skip
    """One epoch over documents in this ``order``; returns the new state of the random numbers.

    The neighbors of a document are drawn to its partition, and as many documents, drawn at random, away from it.
    """
    n, scores = len(indptr) - 1, np.empty(weights.shape[1], np.float32)
    for row in order:
        own = slice(indptr[row], indptr[row + 1])
        c = nearest_partition(data[own], indices[own], weights, scores)
        for m in range(neighbor_indptr[row], neighbor_indptr[row + 1]):
            near = slice(indptr[neighbors[m]], indptr[neighbors[m] + 1])
            ftrl_step(data[near], indices[near], 1.0, c, learning_rate, l1, weights, sums, roots)
            state = next_state(state)
            drawn = np.int64(state % np.uint64(n))
            other = slice(indptr[drawn], indptr[drawn + 1])
            ftrl_step(data[other], indices[other], 0.0, c, learning_rate, l1, weights, sums, roots)
    return state


@kernel()
def assign_partitions(data: Floats, indices: Ints, indptr: Ints, weights: Floats, out: Ints) -> None:
    """The partition of every document."""
    scores = np.empty(weights.shape[1], np.float32)
    for row in range(len(out)):
        own = slice(indptr[row], indptr[row + 1])
        out[row] = nearest_partition(data[own], indices[own], weights, scores)
