import numpy as np
import scipy.sparse as sp

from labelspace.kernels.csr_arrays import CsrArrays, csr_arrays
from labelspace.kernels.linear_scores import linear_topk
from labelspace.types import TopK


def stored(W):
    """Whole numbers as a model has its weights."""
    return CsrArrays(W.data.astype(np.int8), W.indices.astype(np.uint16), W.indptr.astype(np.int64))


def test_it_equals_a_dense_product():
    rng = np.random.default_rng(1)
    X = sp.random(30, 50, 0.2, "csr", np.float32, rng=rng)
    W = sp.random(50, 20, 0.3, "csr", np.float32, rng=rng)
    W.data = rng.integers(-127, 128, W.nnz).astype(np.float32)
    bias = 20 * rng.standard_normal(20).astype(np.float32)
    allowed = rng.random(20) > 0.2
    out = TopK.empty(30, 6)
    linear_topk(csr_arrays(X), 0, 30, stored(W), bias, allowed, out.labels, out.scores)
    dense = np.where(allowed, X.toarray() @ W.toarray() + bias, -np.inf)
    expected = TopK.from_scores(dense, 6)
    assert np.array_equal(out.labels, expected.labels)
    assert np.allclose(out.scores, expected.scores, atol=1e-4)


def test_only_rows_start_to_stop_are_written():
    X = sp.csr_matrix(np.ones((4, 3), np.float32))
    W = sp.csr_matrix(np.eye(3, dtype=np.float32))
    out = TopK.empty(4, 2)
    zeros, every = np.zeros(3, np.float32), np.ones(3, bool)
    linear_topk(csr_arrays(X), 1, 3, stored(W), zeros, every, out.labels, out.scores)
    assert out.labels[:, 0].tolist() == [-1, 0, 0, -1]
