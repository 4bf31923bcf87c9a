"""Linear embeddings x -> V'x in which the neighbors of a document have a larger cosine with it than others do.

The loss of a document with neighbors P and others Q is the mean over p of log(1 + sum_q exp(-gamma (cos_p - cos_q))),
as in DSSM (Huang et al., 2013) with one map for both sides.
"""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.random_numbers import next_state
from labelspace.kernels.sparse_layers import embed_row
from labelspace.types import Floats, Ints

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
