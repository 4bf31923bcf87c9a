import numpy as np
import scipy.sparse as sp

from labelspace.kernels.topk import largest_entries
from labelspace.labels.clustering import pifa_embeddings


def test_the_largest_entries_of_each_row_are_those_of_a_stable_sort():
    rng = np.random.default_rng(0)
    X = sp.random(50, 40, 0.4, format="csr", dtype=np.float32, random_state=rng)
    X.data = rng.integers(1, 6, X.nnz).astype(np.float32)  # many ties
    expected = []
    for start, stop in zip(X.indptr, X.indptr[1:], strict=False):
        best = np.argsort(-X.data[start:stop], kind="stable")[:5]
        expected += (start + np.sort(best)).tolist()
    assert largest_entries(X.data, X.indptr, 5).tolist() == expected


def test_centroids_keep_their_largest_features(monkeypatch):
    monkeypatch.setattr("labelspace.labels.clustering.LABEL_BLOCK", 7)
    rng = np.random.default_rng(1)
    X = sp.random(60, 50, 0.3, format="csr", dtype=np.float32, random_state=rng)
    Y = sp.csr_matrix((rng.random((60, 20)) < 0.2).astype(np.float32))
    whole, capped = pifa_embeddings(X, Y).toarray(), pifa_embeddings(X, Y, 6).toarray()
    assert ((capped > 0).sum(axis=1) <= 6).all()
    np.testing.assert_allclose(np.linalg.norm(capped, axis=1), 1, rtol=1e-5)
    for row, few in zip(whole, capped, strict=True):
        assert set(np.flatnonzero(few)) == set(np.argsort(-row, kind="stable")[:6])
    np.testing.assert_allclose(pifa_embeddings(X, Y, 50).toarray(), whole, rtol=1e-5)
