import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.labels import document_neighbors as voting
from labelspace.labels.document_neighbors import count_votes, total_dcg
from labelspace.types import TopK


@pytest.fixture(name="Y")
def some_labels():
    Y = (np.random.default_rng(1).random((60, 12)) < 0.2).astype(np.float32)
    Y[5] = 0
    return sp.csr_matrix(Y)


def random_ids(n, m, below, seed):
    """Lists of different ids, best first, some of them missing; and weights."""
    rng = np.random.default_rng(seed)
    ids = np.array([rng.permutation(below)[:m] for _ in range(n)], np.int32)
    ids[rng.random((n, m)) < 0.2] = -1
    return ids, rng.random((n, m)).astype(np.float32)


def counted(neighbors, weights, Y, extra=None):
    """All votes, label by label."""
    votes = np.zeros((len(neighbors), Y.shape[1]))
    for row, (ids, row_weights) in enumerate(zip(neighbors, weights, strict=True)):
        for i, weight in zip(ids, row_weights, strict=True):
            if i >= 0:
                votes[row] += weight * Y[[i]].toarray()[0]
    for row in range(len(neighbors) if extra else 0):
        for label, weight in zip(extra.labels[row], extra.scores[row], strict=True):
            if label >= 0:
                votes[row, label] += weight
    return votes


@pytest.mark.parametrize("with_extra", [False, True])
@pytest.mark.parametrize("n", [1, 200])  # one block and several
@pytest.mark.parametrize("k", [1, 5, 12])
def test_labels_are_ranked_by_their_votes(Y, n, k, with_extra):
    neighbors, weights = random_ids(n, 7, 60, 2)
    extra = TopK(*random_ids(n, 3, 12, 3)) if with_extra else None
    expected = counted(neighbors, weights, Y, extra)
    top = count_votes(neighbors, weights, Y, k, extra)
    best = -np.sort(-expected, axis=1)[:, :k]
    assert np.allclose(np.where(top.labels < 0, 0, top.scores), best, atol=1e-5)
    rows, ranks = np.nonzero(top.labels >= 0)
    assert np.allclose(expected[rows, top.labels[rows, ranks]], top.scores[rows, ranks], atol=1e-5)
    assert ((top.labels < 0) == (best == 0)).all(), "a label without votes is not suggested"


def test_the_same_votes_twice_are_counted_twice_and_listed_ones_come_on_top(Y):
    neighbors, weights = np.array([[3, 3]], np.int32), np.array([[0.25, 0.5]], np.float32)
    labels = Y[3].indices
    top = count_votes(
        neighbors, weights, Y, 12, TopK(np.array([[labels[0], -1]], np.int32), np.array([[1, 9]], np.float32))
    )
    assert top.labels[0, 0] == labels[0]
    assert top.scores[0, : len(labels)].tolist() == [1.75] + [0.75] * (len(labels) - 1)
    assert (top.labels[0, len(labels) :] == -1).all()


def test_documents_without_labels_and_missing_neighbors_have_no_vote(Y):
    neighbors = np.array([[5, -1], [-1, -1], [5, 5]], np.int32)
    top = count_votes(neighbors, np.ones((3, 2), np.float32), Y, 4)
    assert (top.labels == -1).all()
    assert np.isneginf(top.scores).all()
    top = count_votes(np.zeros((3, 0), np.int32), np.zeros((3, 0), np.float32), Y, 4)
    assert (top.labels == -1).all()
    assert count_votes(neighbors[:0], np.ones((0, 2), np.float32), Y, 4).labels.shape == (0, 4)


def test_a_weight_of_0_is_no_vote(Y):
    neighbors, weights = np.array([[3, 4]], np.int32), np.array([[0, 1]], np.float32)
    top = count_votes(neighbors, weights, Y, 12)
    assert sorted(top.labels[top.labels >= 0]) == Y[4].indices.tolist()


def test_blocks_and_threads_change_nothing(Y, monkeypatch):
    neighbors, weights = random_ids(100, 7, 60, 4)
    before = count_votes(neighbors, weights, Y, 6)
    monkeypatch.setenv("LABELSPACE_THREADS", "3")
    monkeypatch.setattr(voting, "ROW_BLOCK", 7)
    after = count_votes(neighbors, weights, Y, 6)
    assert np.array_equal(before.labels, after.labels)
    assert np.array_equal(before.scores, after.scores)


def test_dcg_is_the_sum_over_hits_of_1_over_the_logarithm_of_their_rank():
    Y = sp.csr_matrix(np.array([[1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]], np.float32))
    labels = np.array([[1, 2, 0], [0, 1, 2], [3, -1, -1], [0, 1, 2]], np.int32)
    top = TopK(labels, np.zeros((4, 3), np.float32))
    assert np.isclose(total_dcg(top, Y), (1 / np.log2(3) + 1 / np.log2(4)) + 0 + 1)


def test_padding_has_no_gain():
    Y = sp.csr_matrix(np.array([[1, 0]], np.float32))
    assert total_dcg(TopK.empty(1, 3), Y) == 0
