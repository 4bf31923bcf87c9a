import numpy as np
import scipy.sparse as sp

from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.models.leml.kernels import LabelVectors, low_rank_sparse_topk
from labelspace.types import TopK


def test_it_equals_a_dense_product():
    rng = np.random.default_rng(1)
    X = sp.random(30, 50, 0.2, "csr", np.float32, rng=rng)
    S = sp.random(50, 20, 0.1, "csr", np.float32, rng=rng)
    queries = rng.standard_normal((30, 7), np.float32)
    ids = np.flatnonzero(rng.random(20) > 0.3).astype(np.int32)
    vectors = rng.standard_normal((len(ids), 7), np.float32)
    out = TopK.empty(30, 6)
    low_rank_sparse_topk(
        csr_arrays(X), 2, 28, queries, LabelVectors(vectors, ids, 20), csr_arrays(S), out.labels, out.scores
    )
    dense = np.full((30, 20), -np.inf)
    dense[:, ids] = queries @ vectors.T + (X @ S).toarray()[:, ids]
    expected = TopK.from_scores(dense[2:28], 6)
    assert np.array_equal(out.labels[2:28], expected.labels)
    assert np.allclose(out.scores[2:28], expected.scores, atol=1e-5)
    assert (out.labels[[0, 1, 28, 29]] == -1).all()
