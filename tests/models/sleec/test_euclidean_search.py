import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelspace.kernels.quantize import quantize_int16
from labelspace.models.sleec.kernels import ClusterRows, nearest_in_cluster
from labelspace.types import TopK


@given(st.integers(0, 40), st.integers(1, 40), st.integers(1, 9), st.integers(1, 12), st.integers(0, 999))
def test_nearest_rows_of_a_cluster_equal_all_distances_sorted(n_first, n_second, dim, k, seed):
    rng = np.random.default_rng(seed)
    n, starts = n_first + n_second, np.array([0, n_first, n_first + n_second])
    vectors, queries = rng.integers(-127, 128, (n, dim)).astype(np.int8), rng.standard_normal((5, dim), np.float32)
    scales = rng.uniform(0.5, 2, n).astype(np.float32) / 127
    rows = vectors.astype(np.float64) * scales[:, None]
    ids, clusters = rng.permutation(2 * n)[:n].astype(np.int32), rng.integers(0, 2, 5)
    quantized, query_scales = quantize_int16(queries)
    exact = quantized.astype(np.float64) * query_scales[:, None]
    out = TopK.empty(5, k)
    squares = np.square(rows).sum(axis=1).astype(np.float32)
    stored = ClusterRows(starts, vectors, scales, squares, ids)
    nearest_in_cluster(quantized, query_scales, clusters, stored, out.labels, out.scores)
    for i, query in enumerate(exact):
        members = slice(starts[clusters[i]], starts[clusters[i] + 1])
        squares = np.square(query - rows[members]).sum(axis=1)
        order = np.argsort(squares)[:k]
        found = len(order)
        assert np.array_equal(out.labels[i, :found], ids[members][order])
        assert np.allclose(out.scores[i, :found], query @ query - squares[order], atol=1e-4)
        assert (out.labels[i, found:] == -1).all()
        assert (out.scores[i, found:] == -np.inf).all()
