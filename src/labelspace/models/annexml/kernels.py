"""Kernels of AnnexML: learn partitions of documents, learn an embedding per partition, and find nearest documents.

Each partition has a weight vector; a document is in the partition of the largest inner product. The weights are learned
so that neighbors in a graph fall into one partition (FTRL-Proximal: McMahan et al., 2013, on a logistic loss).

In the embedding x -> V'x of a partition, the neighbors of a document have a larger cosine with it than other documents.
The loss of a document with neighbors P and other documents Q is the mean over p of
log(1 + sum_q exp(-gamma (cos_p - cos_q))), as in DSSM (Huang et al., 2013) with one map for both sides.
"""

from typing import NamedTuple

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.inner_products import topk_int_products
from labelspace.kernels.quantize import INT8_MAX, INT16_MAX, Int8s, Int16s
from labelspace.kernels.random_numbers import next_state
from labelspace.kernels.sparse_layers import embed_row
from labelspace.kernels.topk import sort_best_first
from labelspace.types import Floats, Ints

FTRL_BETA = np.float32(1.0)  # the paper's beta: it bounds the first steps of a weight
MIN_SQUARE = np.float32(1e-20)  # avoids a division by 0
MIN_SLOPE = 0.01  # share of the largest possible slope by a cosine, below which it counts as 0: saves most steps


class Ftrl(NamedTuple):
    """Weights (n_features, n_partitions), FTRL's z, the roots of the sums of squared gradients, and its settings."""

    weights: Floats
    sums: Floats
    roots: Floats
    learning_rate: float
    l1: float


class CosineLoss(NamedTuple):
    """The documents drawn at random for each one, the sharpness of the softmax of cosines, and the learning rate."""

    n_negatives: int
    gamma: float
    learning_rate: float


class PartitionVectors(NamedTuple):
    """The vectors of feature f, at starts[f] : starts[f + 1]: one for each partition in which the feature occurs."""

    vectors: Int8s
    scales: Floats
    partitions: Ints
    starts: Ints


class PartitionPoints(NamedTuple):
    """The documents of partition p are at starts[p] : starts[p + 1]: unit vectors in 8 bits, with a scale each."""

    points: Int8s
    scales: Floats
    documents: Ints
    starts: Ints


class Learners(NamedTuple):
    """What a search reads: weights (n_features, n_partitions); learner i has partitions starts[i] : starts[i + 1]."""

    weights: CsrArrays
    starts: Ints
    embeddings: PartitionVectors
    points: PartitionPoints


@kernel()
def nearest_partition(data: Floats, features: Ints, weights: Floats, scores: Floats) -> int:
    """Return the first partition of the largest score for one document, by ``weights`` (n_features, K).

    Fills the ``scores`` (K) of the document.
    """
    scores[:] = 0.0
    for j in range(len(features)):
        row = weights[features[j]]
        for c in range(len(scores)):
            scores[c] += data[j] * row[c]
    return int(np.argmax(scores))


@kernel()
def ftrl_step(data: Floats, features: Ints, target: float, c: int, state: Ftrl) -> None:
    """Make one step on the logistic loss of a document being in partition c (``target`` 1) or not (0)."""
    weights, sums, roots, learning_rate, l1 = state
    score = np.float32(0.0)
    for j in range(len(features)):
        score += data[j] * weights[features[j], c]
    error = np.float32(1.0 / (1.0 + np.exp(-score)) - target)
    rate, threshold = np.float32(learning_rate), np.float32(l1)
    for j in range(len(features)):
        f, gradient = features[j], error * data[j]
        root = np.sqrt(roots[f, c] * roots[f, c] + gradient * gradient)
        z = sums[f, c] + gradient - (root - roots[f, c]) / rate * weights[f, c]
        sums[f, c] = z
        roots[f, c] = root
        shrunk = min(z + threshold, np.float32(0.0)) if z < 0.0 else max(z - threshold, np.float32(0.0))
        weights[f, c] = -shrunk * rate / (FTRL_BETA + root)


@kernel()
def train_partitions(X: CsrArrays, graph: CsrArrays, order: Ints, state: np.uint64, ftrl: Ftrl) -> np.uint64:
    """Train one epoch over documents in this ``order``; return the new state of the random numbers.

    The neighbors of a document in the graph are drawn to its partition, and as many random documents away from it.
    """
    data, indices, indptr = X
    n = len(indptr) - 1
    scores = np.empty(ftrl.weights.shape[1], np.float32)
    for row in order:
        own = slice(indptr[row], indptr[row + 1])
        c = nearest_partition(data[own], indices[own], ftrl.weights, scores)
        for m in range(graph.indptr[row], graph.indptr[row + 1]):
            neighbor = graph.indices[m]
            near = slice(indptr[neighbor], indptr[neighbor + 1])
            ftrl_step(data[near], indices[near], 1.0, c, ftrl)
            state = next_state(state)
            drawn = np.int64(state % np.uint64(n))
            other = slice(indptr[drawn], indptr[drawn + 1])
            ftrl_step(data[other], indices[other], 0.0, c, ftrl)
    return state


@kernel()
def assign_partitions(X: CsrArrays, weights: Floats, out: Ints) -> None:
    """Find the partition of every document."""
    data, indices, indptr = X
    scores = np.empty(weights.shape[1], np.float32)
    for row in range(len(out)):
        own = slice(indptr[row], indptr[row + 1])
        out[row] = nearest_partition(data[own], indices[own], weights, scores)


@kernel()
def cosine_loss_gradient(cosines: Floats, n_near: int, gamma: float, out: Floats) -> float:
    """Return the loss for ``cosines`` of ``n_near`` neighbors, then of other documents; ``out`` gets its gradient."""
    loss = 0.0
    weight = gamma / n_near
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


@kernel(fastmath={"reassoc", "contract"}, forceinline=True)
def unit_vector(vector: Floats) -> np.float32:
    """Scale a vector to norm 1, in place, and return the inverse of its norm."""
    total = MIN_SQUARE
    for m in range(len(vector)):
        total += vector[m] * vector[m]
    inverse = np.float32(1.0 / np.sqrt(total))
    for m in range(len(vector)):
        vector[m] *= inverse
    return inverse


@kernel(fastmath={"reassoc", "contract"}, forceinline=True)
def adagrad_row(data: Floats, features: Ints, gradient: Floats, rate: float, vectors: Floats, squares: Floats) -> None:
    """Make a row-wise Adagrad step on the vectors of one document's features, for the gradient by V'x.

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
        step = np.float32(rate) * value / np.sqrt(squares[features[j]] + MIN_SQUARE)
        for m in range(len(gradient)):
            vector[m] -= step * gradient[m]


@kernel()
def draw_documents(row: int, near: Ints, n: int, n_drawn: int, state: np.uint64, out: Ints) -> tuple[int, np.uint64]:
    """List the document, its neighbors and random other documents in ``out``; return their number.

    A random draw of the document or of a neighbor is dropped.
    """
    out[0] = row
    for p in range(len(near)):
        out[1 + p] = near[p]
    size = 1 + len(near)
    for _ in range(n_drawn):
        state = next_state(state)
        drawn = np.int64(state % np.uint64(n))
        is_new = True
        for m in range(1 + len(near)):
            is_new &= drawn != out[m]
        if is_new:
            out[size] = drawn
            size += 1
    return size, state


@kernel(fastmath={"reassoc", "contract"}, forceinline=True)
def document_gradients(units: Floats, inverses: Floats, n_near: int, gamma: float, size: int, out: Floats) -> float:
    """Compute the gradients by V'x of the document (row 0), its neighbors and the others; return the loss."""
    dim = units.shape[1]
    cosines, slopes = np.empty(size - 1, np.float32), np.empty(size - 1, np.float32)
    for i in range(1, size):
        total = np.float32(0.0)
        for m in range(dim):
            total += units[0, m] * units[i, m]
        cosines[i - 1] = total
    loss = cosine_loss_gradient(cosines, n_near, gamma, slopes)
    min_slope = MIN_SLOPE * gamma / n_near
    for m in range(dim):
        out[0, m] = 0.0
    for i in range(1, size):
        cosine = cosines[i - 1]
        slope = slopes[i - 1] if abs(slopes[i - 1]) >= min_slope else np.float32(0.0)
        of_other, of_own = slope * inverses[i], slope * inverses[0]
        for m in range(dim):
            out[i, m] = of_other * (units[0, m] - cosine * units[i, m])
            out[0, m] += of_own * (units[i, m] - cosine * units[0, m])
    return loss


@kernel()
def train_cosine_embeddings(
    X: CsrArrays, graph: CsrArrays, order: Ints, options: CosineLoss, state: np.uint64, vectors: Floats, squares: Floats
) -> tuple[float, np.uint64]:
    """Train one epoch over documents in this ``order``; return the sum of losses and the new random state.

    ``vectors`` V (n_features, dim) are trained by row-wise Adagrad with the state ``squares`` (n_features,).
    """
    data, indices, indptr = X
    n, dim = len(indptr) - 1, vectors.shape[1]
    n_negatives, gamma, learning_rate = options
    most = 0
    for row in range(n):
        most = max(most, graph.indptr[row + 1] - graph.indptr[row])
    width = 1 + most + n_negatives
    documents, inverse_norms = np.empty(width, np.int32), np.empty(width, np.float32)
    units, gradients = np.empty((width, dim), np.float32), np.empty((width, dim), np.float32)
    zeros, ones = np.zeros(dim, np.float32), np.ones(len(vectors), np.float32)
    loss = 0.0
    for row in order:
        near = graph.indices[graph.indptr[row] : graph.indptr[row + 1]]
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
def choose_partitions(x: Floats, features: Ints, learners: Learners, scores: Floats, owner: Ints, chosen: Ints) -> None:
    """Find the partition of each learner with the largest score (``chosen``).

    ``owner`` (n_partitions) gets the learner that chose the partition, or -1; ``scores`` (n_partitions) is
    scratch.
    """
    weights, learner_starts = learners.weights, learners.starts
    scores[:] = 0.0
    owner[:] = -1
    for j in range(len(features)):
        for m in range(weights.indptr[features[j]], weights.indptr[features[j] + 1]):
            scores[weights.indices[m]] += x[j] * weights.data[m]
    for i in range(len(chosen)):
        chosen[i] = learner_starts[i] + np.argmax(scores[learner_starts[i] : learner_starts[i + 1]])
        owner[chosen[i]] = i


@kernel(fastmath={"reassoc", "contract"}, forceinline=True)
def embed_in_partitions(data: Floats, features: Ints, embeddings: PartitionVectors, owner: Ints, out: Floats) -> None:
    """Compute the vectors V'x of one document in the partition of each learner; ``out`` is (n_learners, dim)."""
    vectors, scales, partitions, starts = embeddings
    out[:] = 0.0
    for j in range(len(features)):
        for at in range(starts[features[j]], starts[features[j] + 1]):
            learner = owner[partitions[at]]
            if learner >= 0:
                vector, value, row = vectors[at], data[j] * scales[at], out[learner]
                for m in range(len(row)):
                    row[m] += value * vector[m]


@kernel()
def quantize_query(vector: Floats, out: Int16s) -> np.float32:
    """Write a vector, scaled to norm 1, as integers and return their scale, which is 0 for a vector of zeros."""
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
    X: CsrArrays, start: int, stop: int, learners: Learners, out_documents: Ints, out_cosines: Floats
) -> None:
    """Find the documents of largest cosine with each of the rows start..stop of X, by each learner, best first.

    Both ``out`` arrays are (stop - start, n_learners, m), padded with -1 and -inf. A document whose V'x is 0 has
    no near documents.
    """
    data, indices, indptr = X
    _, starts, embeddings, points = learners
    n_learners, n_partitions = len(starts) - 1, len(points.starts) - 1
    dim = embeddings.vectors.shape[1]
    scores, learner_of = np.empty(n_partitions, np.float32), np.empty(n_partitions, np.int32)
    chosen, embedded = np.empty(n_learners, np.int32), np.empty((n_learners, dim), np.float32)
    query, scale = np.empty((1, dim), np.int16), np.empty(1, np.float32)
    for row in range(start, stop):
        entries = slice(indptr[row], indptr[row + 1])
        choose_partitions(data[entries], indices[entries], learners, scores, learner_of, chosen)
        embed_in_partitions(data[entries], indices[entries], embeddings, learner_of, embedded)
        for learner in range(n_learners):
            near, cosines = out_documents[row - start, learner], out_cosines[row - start, learner]
            scale[0] = quantize_query(embedded[learner], query[0])
            if scale[0] == 0.0:
                sort_best_first(cosines, near, 0)
                continue
            own = slice(points.starts[chosen[learner]], points.starts[chosen[learner] + 1])
            rows = (points.points[own], points.scales[own], points.documents[own])
            topk_int_products(query, scale, *rows, near.reshape(1, -1), cosines.reshape(1, -1))
