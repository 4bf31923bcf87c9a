import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.kernels.csr_arrays import CsrArrays, csr_arrays
from labelspace.kernels.knn import LabelSets, nearest_rows, vote, vote_by_similarity
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


def run(Q, X, k):
    index, sums = X.tocsc(), np.zeros(X.shape[0], np.float32)
    neighbors, similarity = np.empty((Q.shape[0], k), np.int32), np.empty((Q.shape[0], k), np.float32)
    nearest_rows(
        csr_arrays(Q), 0, Q.shape[0], CsrArrays(index.data, index.indices, index.indptr), neighbors, similarity, sums
    )
    assert not sums.any(), "the scratch is left as it was"
    return neighbors, similarity


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("words", [2, 40])  # few stored rows touched, many
def test_neighbors_equal_the_dense_product(words, signed):
    rng = np.random.default_rng(words)
    X, Q = zipf_rows(rng, 900, 2000, words, signed), zipf_rows(rng, 40, 2000, words, signed)
    neighbors, similarity = run(Q, X, 7)
    expected = dense_nearest(Q, X, 7)
    assert np.allclose(similarity, expected.scores, atol=2e-6)
    steps = np.diff(np.c_[np.full(40, 2), np.maximum(expected.scores, -1), np.full(40, -2)], axis=1)
    clear = (np.abs(steps[:, :-1]) > 1e-5) & (np.abs(steps[:, 1:]) > 1e-5)  # no tie with the one before or behind
    assert np.array_equal(neighbors[clear], expected.labels[clear])
    assert clear[:, 0].any()


def test_an_empty_query_has_no_neighbors():
    X = zipf_rows(np.random.default_rng(0), 50, 100, 5)
    neighbors, similarity = run(sp.csr_matrix((1, 100), dtype=np.float32), X, 3)
    assert neighbors.tolist() == [[-1, -1, -1]]
    assert np.isneginf(similarity).all()


@pytest.mark.parametrize("n_voters", [1, 4, 6])
def test_shares_of_votes_equal_the_dense_ones(n_voters):
    rng = np.random.default_rng(4)
    Y = sp.csr_matrix((rng.random((80, 15)) < 0.2).astype(np.float32))
    near = TopK.from_scores(np.where(rng.random((25, 80)) < 0.08, rng.random((25, 80)), -np.inf), 6)
    near.labels[3], near.scores[3] = -1, -np.inf  # a document without neighbors
    out, votes = TopK.empty(25, 15), np.zeros(15, np.float32)
    vote_by_similarity(
        near.labels,
        near.scores,
        n_voters,
        3.0,
        np.zeros(0, np.float32),
        LabelSets(Y.indices.astype(np.uint16), Y.indptr),
        votes,
        out.labels,
        out.scores,
    )
    assert not votes.any(), "the scratch is left as it was"
    weights = np.where(near.labels >= 0, np.maximum(near.scores, 0), 0)[:, :n_voters] ** 3
    expected = dense_vote(near.labels[:, :n_voters], weights, Y, TopK.empty(25, 0), 15)
    listed = expected.labels >= 0
    shares = (expected.scores / np.maximum(weights.sum(axis=1, keepdims=True), 1e-30))[listed]
    assert np.allclose(out.scores[listed], shares, atol=1e-5)
    assert (out.to_csr(15) != expected.to_csr(15)).nnz == 0
    assert (out.labels[3] == -1).all()


@pytest.mark.parametrize("n_extra", [0, 4])
def test_the_vote_equals_the_dense_one(n_extra):
    rng = np.random.default_rng(3)
    Y = sp.csr_matrix((rng.random((80, 15)) < 0.2).astype(np.float32))
    neighbors = TopK.from_scores(np.where(rng.random((25, 80)) < 0.08, rng.random((25, 80)), -np.inf), 6)
    extra = TopK.from_scores(np.where(rng.random((25, 15)) < 0.2, rng.random((25, 15)), -np.inf), n_extra)
    out = TopK.empty(25, 15)
    label_sets = LabelSets(Y.indices, Y.indptr)
    vote(neighbors.labels, neighbors.scores, label_sets, extra.labels, extra.scores, 15, out.labels, out.scores)
    expected = dense_vote(neighbors.labels, neighbors.scores, Y, extra, 15)
    assert np.allclose(out.scores, expected.scores, atol=1e-6)
    assert (out.to_csr(15) != expected.to_csr(15)).nnz == 0
