"""Nearest documents by several learners, each with partitions that have an embedding and points of their own.

Feature f has the vectors vector_starts[f] to vector_starts[f + 1] - 1, one for each of those ``vector_partitions`` in
which it occurs; partition p has the points point_starts[p] to point_starts[p + 1] - 1. Vectors and points are int8 with
a scale each. The partitions of learner i are learner_starts[i] to learner_starts[i + 1] - 1.
"""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.inner_products import topk_int_products
from labelspace.kernels.quantize import INT8_MAX, INT16_MAX, Int8s, Int16s
from labelspace.kernels.topk import sort_best_first
from labelspace.types import Floats, Ints


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
