"""Partitions of documents, each with a weight vector: a document is in the one of the largest inner product.

They are learned so that documents which are neighbors in a graph fall into one partition (FTRL-Proximal: McMahan et
al., 2013, on a logistic loss).

Linear embeddings x -> V'x in which the neighbors of a document have a larger cosine with it than others do.

The loss of a document with neighbors P and others Q is the mean over p of log(1 + sum_q exp(-gamma (cos_p - cos_q))),
as in DSSM (Huang et al., 2013) with one map for both sides.

Nearest documents by several learners, each with partitions that have an embedding and points of their own.

Feature f has the vectors vector_starts[f] to vector_starts[f + 1] - 1, one for each of those ``vector_partitions`` in
which it occurs; partition p has the points point_starts[p] to point_starts[p + 1] - 1. Vectors and points are int8 with
a scale each. The partitions of learner i are learner_starts[i] to learner_starts[i + 1] - 1.
"""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.inner_products import topk_int_products
from labelspace.kernels.quantize import INT8_MAX, INT16_MAX, Int8s, Int16s
from labelspace.kernels.random_numbers import next_state
from labelspace.kernels.sparse_layers import embed_row
from labelspace.kernels.topk import sort_best_first
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


MIN_SQUARE = np.float32(1e-20)  # avoids a division by 0
MIN_SLOPE = 0.01  # share of the largest possible slope by a cosine, below which it counts as 0: saves most steps


@kernel()
def cosine_loss_gradient(cosines: Floats, n_near: int, gamma: float, out: Floats) -> float:
    """The loss for ``cosines`` of ``n_near`` neighbors and then of others; ``out`` is its gradient by them."""
    loss, weight = 0.0, gamma / n_near
    out[:] = 0.0
    for p in range(n_near):
        total = 1.0
        for q in range(n_near, len(cosines)):
            total += np.exp(gamma * (cosines[q] - cosines[p]))
        loss += np.log(total) / n_near
        for q in range(n_near, len(cosines)):
            out[q] += weight * np.exp(gamma * (cosines[q] - cosines[p])) / total
        out[p] = weight * (1.0 / total - 1.0)
    return loss


@kernel(fastmath={"reassoc", "contract"})
def unit_vector(vector: Floats) -> np.float32:
    """Scale a vector to norm 1, in place; returns the inverse of its norm."""
    total = MIN_SQUARE
    for m in range(len(vector)):
        total += vector[m] * vector[m]
    inverse = np.float32(1.0 / np.sqrt(total))
    for m in range(len(vector)):
        vector[m] *= inverse
    return inverse


@kernel(fastmath={"reassoc", "contract"})
def adagrad_row(
    data: Floats, features: Ints, gradient: Floats, learning_rate: float, vectors: Floats, squares: Floats
) -> None:
    """Row-wise Adagrad step on the vectors of one document's features, for the gradient by V'x.

    ``squares`` (n_features,) sums the mean square of each vector's gradients.
    """
    total = np.float32(0.0)
    for m in range(len(gradient)):
        total += gradient[m] * gradient[m]
    total /= np.float32(len(gradient))
    if total < MIN_SQUARE:
        return
    for j in range(len(features)):
        vector, value = vectors[features[j]], data[j]
        squares[features[j]] += value * value * total
        step = np.float32(learning_rate) * value / np.sqrt(squares[features[j]] + MIN_SQUARE)
        for m in range(len(gradient)):
            vector[m] -= step * gradient[m]


@kernel()
def draw_documents(
    row: int, neighbors: Ints, n_documents: int, n_negatives: int, state: np.uint64, out: Ints
) -> tuple[int, np.uint64]:
    """The document, its neighbors and others drawn at random; returns their number. A draw of one of them is void."""
    out[0] = row
    for p in range(len(neighbors)):
        out[1 + p] = neighbors[p]
    size = 1 + len(neighbors)
    for _ in range(n_negatives):
        state = next_state(state)
        drawn = np.int64(state % np.uint64(n_documents))
        is_new = True
        for m in range(1 + len(neighbors)):
            is_new &= drawn != out[m]
        if is_new:
            out[size] = drawn
            size += 1
    return size, state


@kernel(fastmath={"reassoc", "contract"})
def document_gradients(
    units: Floats, inverse_norms: Floats, n_near: int, gamma: float, size: int, out: Floats
) -> float:
    """The gradients of the loss by V'x of the document (row 0), its neighbors and the others; returns the loss."""
    dim = units.shape[1]
    cosines, slopes = np.empty(size - 1, np.float32), np.empty(size - 1, np.float32)
    for i in range(1, size):
        total = np.float32(0.0)
        for m in range(dim):
            total += units[0, m] * units[i, m]
        cosines[i - 1] = total
    loss, min_slope = cosine_loss_gradient(cosines, n_near, gamma, slopes), MIN_SLOPE * gamma / n_near
    for m in range(dim):
        out[0, m] = 0.0
    for i in range(1, size):
        cosine, slope = cosines[i - 1], slopes[i - 1] if abs(slopes[i - 1]) >= min_slope else np.float32(0.0)
        of_other, of_own = slope * inverse_norms[i], slope * inverse_norms[0]
        for m in range(dim):
            out[i, m] = of_other * (units[0, m] - cosine * units[i, m])
            out[0, m] += of_own * (units[i, m] - cosine * units[0, m])
    return loss


@kernel()
def train_cosine_embeddings(
    data: Floats, indices: Ints, indptr: Ints, neighbors: Ints, neighbor_indptr: Ints, order: Ints, n_negatives: int,
    gamma: float, learning_rate: float, state: np.uint64, vectors: Floats, squares: Floats,
) -> tuple[float, np.uint64]:  # fmt: skip
    """One epoch over documents in this ``order``; returns the sum of losses and the new state of the random numbers.

    ``vectors`` V (n_features, dim) are trained by row-wise Adagrad with the state ``squares`` (n_features,).
    """
    n, most = len(indptr) - 1, 0
    for row in range(n):
        most = max(most, neighbor_indptr[row + 1] - neighbor_indptr[row])
    width = 1 + most + n_negatives
    documents, inverse_norms = np.empty(width, np.int32), np.empty(width, np.float32)
    units, gradients = np.empty((width, vectors.shape[1]), np.float32), np.empty((width, vectors.shape[1]), np.float32)
    zeros, ones = np.zeros(vectors.shape[1], np.float32), np.ones(len(vectors), np.float32)
    loss = 0.0
    for row in order:
        near = neighbors[neighbor_indptr[row] : neighbor_indptr[row + 1]]
        size, state = draw_documents(row, near, n, n_negatives, state, documents)
        if len(near) == 0 or size == 1 + len(near):
            continue
        for i in range(size):
            entries = slice(indptr[documents[i]], indptr[documents[i] + 1])
            embed_row(data[entries], indices[entries], vectors, ones, zeros, units[i])
            inverse_norms[i] = unit_vector(units[i])
        loss += document_gradients(units, inverse_norms, len(near), gamma, size, gradients)
        for i in range(size):
            entries = slice(indptr[documents[i]], indptr[documents[i] + 1])
            adagrad_row(data[entries], indices[entries], gradients[i], learning_rate, vectors, squares)
    return loss, state


@kernel()
def choose_partitions(
    data: Floats, features: Ints, weights: Floats, weight_partitions: Ints, weight_starts: Ints, learner_starts: Ints,
    scores: Floats, learner_of: Ints, chosen: Ints,
) -> None:  # fmt: skip
    """The partition of each learner with the largest score (``chosen``), and in ``learner_of`` (p) its learner, or -1.

    The weights are a matrix (n_features, n_partitions) in CSR form; ``scores`` (n_partitions) is scratch.
    """
    scores[:] = 0.0
    learner_of[:] = -1
    for j in range(len(features)):
        for m in range(weight_starts[features[j]], weight_starts[features[j] + 1]):
            scores[weight_partitions[m]] += data[j] * weights[m]
    for i in range(len(chosen)):
        best = learner_starts[i]
        for p in range(learner_starts[i] + 1, learner_starts[i + 1]):
            if scores[p] > scores[best]:
                best = p
        chosen[i] = best
        learner_of[best] = i


@kernel(fastmath={"reassoc", "contract"})
def embed_in_partitions(
    data: Floats, features: Ints, vectors: Int8s, vector_scales: Floats, vector_partitions: Ints, vector_starts: Ints,
    learner_of: Ints, out: Floats,
) -> None:  # fmt: skip
    """The vectors V'x of one document in the partition of each learner; ``out`` is (n_learners, dim)."""
    out[:] = 0.0
    for j in range(len(features)):
        for at in range(vector_starts[features[j]], vector_starts[features[j] + 1]):
            learner = learner_of[vector_partitions[at]]
            if learner >= 0:
                vector, value, row = vectors[at], data[j] * vector_scales[at], out[learner]
                for m in range(len(row)):
                    row[m] += value * vector[m]


@kernel()
def quantize_query(vector: Floats, out: Int16s) -> np.float32:
    """A vector scaled to norm 1, in integers, and their scale, which is 0 for a vector of zeros."""
    total, largest = np.float32(0.0), np.float32(0.0)
    for m in range(len(vector)):
        total += vector[m] * vector[m]
        largest = max(largest, abs(vector[m]))
    if not total > 0.0:
        return np.float32(0.0)
    max_value = min(INT16_MAX, (2**31 - 1) // (INT8_MAX * len(vector)))  # products with int8 rows fit into 32 bits
    step = largest / np.float32(max_value)
    for m in range(len(vector)):
        out[m] = np.int16(np.rint(vector[m] / step))
    return np.float32(step / np.sqrt(total))


@kernel()
def nearest_in_partitions(
    data: Floats, indices: Ints, indptr: Ints, start: int, stop: int, weights: Floats, weight_partitions: Ints,
    weight_starts: Ints, learner_starts: Ints, vectors: Int8s, vector_scales: Floats, vector_partitions: Ints,
    vector_starts: Ints, points: Int8s, point_scales: Floats, point_documents: Ints, point_starts: Ints,
    out_documents: Ints, out_cosines: Floats,
) -> None:  # fmt: skip
    """The documents of largest cosine with each of the rows start..stop of X (CSR), by each learner, best first.

    Both ``out`` arrays are (stop - start, n_learners, m), padded with -1 and -inf. Where V'x is 0 there are none.
    """
    n_learners, n_partitions, dim = len(learner_starts) - 1, len(point_starts) - 1, vectors.shape[1]
    scores, learner_of = np.empty(n_partitions, np.float32), np.empty(n_partitions, np.int32)
    chosen, embedded = np.empty(n_learners, np.int32), np.empty((n_learners, dim), np.float32)
    query, scale = np.empty((1, dim), np.int16), np.empty(1, np.float32)
    for row in range(start, stop):
        entries = slice(indptr[row], indptr[row + 1])
        choose_partitions(
            data[entries], indices[entries], weights, weight_partitions, weight_starts, learner_starts, scores,
            learner_of, chosen,
        )  # fmt: skip
        embed_in_partitions(
            data[entries], indices[entries], vectors, vector_scales, vector_partitions, vector_starts, learner_of,
            embedded,
        )  # fmt: skip
        for learner in range(n_learners):
            near, cosines = out_documents[row - start, learner], out_cosines[row - start, learner]
            scale[0] = quantize_query(embedded[learner], query[0])
            if scale[0] == 0.0:
                sort_best_first(cosines, near, 0)
                continue
            own = slice(point_starts[chosen[learner]], point_starts[chosen[learner] + 1])
            topk_int_products(
                query, scale, points[own], point_scales[own], point_documents[own], near.reshape(1, -1),
                cosines.reshape(1, -1),
            )  # fmt: skip
