import numpy as np
import scipy.sparse as sp

from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.quantize import quantize_int8
from labelspace.models.annexml.kernels import (
    Learners,
    PartitionPoints,
    PartitionVectors,
    nearest_in_partitions,
    quantize_query,
)

LEARNER_STARTS = np.array([0, 2, 5])  # two learners with 2 and 3 partitions


def test_the_nearest_are_those_of_brute_force_in_the_partition_of_the_largest_score():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((20, 15)) < 0.4, rng.random((20, 15)), 0)
    dense[7] = 0  # a document without features has no neighbors
    X = sp.csr_matrix(dense, dtype=np.float32)
    weights = sp.csr_matrix(np.where(rng.random((15, 5)) < 0.5, rng.standard_normal((15, 5)), 0), dtype=np.float32)
    V = rng.standard_normal((15, 5, 6)).astype(np.float32) * (rng.random((15, 5, 1)) < 0.7)
    features, partitions = np.nonzero(V.any(axis=2))
    vectors, scales = quantize_int8(V[features, partitions])
    point_starts = np.array([0, 30, 33, 50, 50, 90])  # of which one has few points, and one none
    points, point_scales = quantize_int8(rng.standard_normal((90, 6)).astype(np.float32))
    documents = rng.permutation(90).astype(np.int32)
    near, cosines = np.empty((20, 2, 4), np.int32), np.empty((20, 2, 4), np.float32)
    vector_starts = np.searchsorted(features, np.arange(16))
    learners = Learners(
        csr_arrays(weights),
        LEARNER_STARTS,
        PartitionVectors(vectors, scales, partitions.astype(np.int32), vector_starts),
        PartitionPoints(points, point_scales, documents, point_starts),
    )
    nearest_in_partitions(csr_arrays(X), 0, 20, learners, near, cosines)
    dequantized = np.zeros(V.shape, np.float32)
    dequantized[features, partitions] = vectors * scales[:, None]
    for row, x in enumerate(X.toarray()):
        for learner in range(2):
            first, last = LEARNER_STARTS[learner], LEARNER_STARTS[learner + 1]
            p = first + int(np.argmax(x @ weights.toarray()[:, first:last]))
            embedded = x @ dequantized[:, p]
            own = np.arange(point_starts[p], point_starts[p + 1]) if embedded.any() else np.zeros(0, int)
            expected = (points[own] * point_scales[own, None]) @ embedded / max(np.linalg.norm(embedded), 1e-9)
            best = np.argsort(-expected)[:4]
            n = len(best)
            assert np.allclose(cosines[row, learner, :n], expected[best], atol=2e-3)
            assert set(near[row, learner, :n]) <= set(documents[own])
            assert (near[row, learner, n:] == -1).all()
            assert np.isneginf(cosines[row, learner, n:]).all()
    assert (near[7] == -1).all()


def test_a_quantized_query_has_norm_1():
    out = np.empty(3, np.int16)
    scale = quantize_query(np.array([3.0, 0.0, -4.0], np.float32), out)
    assert np.allclose(out * scale, [0.6, 0, -0.8], atol=1e-4)
    assert quantize_query(np.zeros(3, np.float32), out) == 0
    wide = np.empty(20_000, np.int16)
    quantize_query(np.ones(20_000, np.float32), wide)
    assert int(wide.astype(np.int64).sum()) * 127 < 2**31
