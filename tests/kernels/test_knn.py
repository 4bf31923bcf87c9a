import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.kernels.knn import nearest_rows, vote
from labelspace.types import TopK


def dense_nearest(Q, X, k):
    """The NumPy twin of ``nearest_rows``: all similarities at once."""
    scores = (Q @ X.T).toarray()
    return TopK.from_scores(np.where(scores > 0, scores, -np.inf), k)


def dense_vote(neighbors, weights, Y, extra, k):
    """The NumPy twin of ``vote``."""
    votes = np.zeros((len(neighbors), Y.shape[1]))
    for row in range(len(neighbors)):
        for i, weight in zip(neighbors[row], weights[row], strict=True):
            if i >= 0:
                votes[row] += weight * Y[[i]].toarray()[0]
        for label, weight in zip(extra.labels[row], extra.scores[row], strict=True):
            if label >= 0:
                votes[row, label] += weight
    return TopK.from_scores(np.where(votes > 0, votes, -np.inf), k)


def zipf_rows(rng, n, d, words, signed=False):
    """Documents whose words follow Zipf's law: long and short columns, as in real text."""
    columns = np.minimum((d * rng.random((n, words)) ** 4).astype(int), d - 1)
    values = rng.random((n, words)) / (1 + 20 * (columns < d // 20))  # frequent words weigh little, as with idf
    if signed:
        values *= rng.choice([-1, 1], values.shape)
    rows = np.repeat(np.arange(n), words)
    return normalize_rows(sp.csr_matrix((values.ravel().astype(np.float32), (rows, columns.ravel())), shape=(n, d)))


def run(Q, X, k, n_common):
    """The kernel with the first features stored as common ones."""
    common_column = np.full(X.shape[1], -1, np.int32)
    common_column[:n_common] = np.arange(n_common)
    common = np.ascontiguousarray(X[:, :n_common].toarray())
    rare = X.tolil()
    rare[:, :n_common] = 0
    index = rare.tocsc()
    neighbors, similarity = np.empty((Q.shape[0], k), np.int32), np.empty((Q.shape[0], k), np.float32)
    nearest_rows(
        Q.data, Q.indices, Q.indptr, 0, Q.shape[0], index.data, index.indices, index.indptr,
        common_column, common, np.linalg.norm(common, axis=1).astype(np.float32), neighbors, similarity,
    )  # fmt: skip
    return neighbors, similarity


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("n_common", [0, 20, 2000])
@pytest.mark.parametrize("words", [2, 40, 200])  # few stored rows touched, many, all
def test_neighbors_equal_the_dense_product(words, n_common, signed):
    rng = np.random.default_rng(words)
    X, Q = zipf_rows(rng, 900, 2000, words, signed), zipf_rows(rng, 40, 2000, words, signed)
    Q = sp.vstack([Q[:20], normalize_rows((X[:20] + 0.3 * Q[20:]).tocsr())]).tocsr()  # some with near duplicates
    neighbors, similarity = run(Q, X, 7, n_common)
    expected = dense_nearest(Q, X, 7)
    assert np.allclose(similarity, expected.scores, atol=2e-6)
    steps = np.diff(np.c_[np.full(40, 2), np.maximum(expected.scores, -1), np.full(40, -2)], axis=1)
    clear = (np.abs(steps[:, :-1]) > 1e-5) & (np.abs(steps[:, 1:]) > 1e-5)  # no tie with the one before or behind
    assert np.array_equal(neighbors[clear], expected.labels[clear])
    assert clear[:, 0].any()


def test_an_empty_query_has_no_neighbors():
    X = zipf_rows(np.random.default_rng(0), 50, 100, 5)
    neighbors, similarity = run(sp.csr_matrix((1, 100), dtype=np.float32), X, 3, 10)
    assert neighbors.tolist() == [[-1, -1, -1]]
    assert np.isneginf(similarity).all()


@pytest.mark.parametrize("n_extra", [0, 4])
def test_the_vote_equals_the_dense_one(n_extra):
    rng = np.random.default_rng(3)
    Y = sp.csr_matrix((rng.random((80, 15)) < 0.2).astype(np.float32))
    neighbors = TopK.from_scores(np.where(rng.random((25, 80)) < 0.08, rng.random((25, 80)), -np.inf), 6)
    extra = TopK.from_scores(np.where(rng.random((25, 15)) < 0.2, rng.random((25, 15)), -np.inf), n_extra)
    out = TopK.empty(25, 15)
    vote(
        neighbors.labels, neighbors.scores, Y.indices, Y.indptr, extra.labels, extra.scores, 15, out.labels, out.scores
    )  # fmt: skip
    expected = dense_vote(neighbors.labels, neighbors.scores, Y, extra, 15)
    assert np.allclose(out.scores, expected.scores, atol=1e-6)
    assert (out.to_csr(15) != expected.to_csr(15)).nnz == 0
