import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.labels import voting as votes
from labelspace.labels.voting import gain, tally
from labelspace.types import TopK


@pytest.fixture(name="Y")
def some_labels():
    Y = (np.random.default_rng(1).random((60, 12)) < 0.2).astype(np.float32)
    Y[5] = 0
    return sp.csr_matrix(Y)


def drawn(n, m, below, seed):
    """Lists of different ids, best first, of which some places are empty; and weights."""
    rng = np.random.default_rng(seed)
    ids = np.array([rng.permutation(below)[:m] for _ in range(n)], np.int32)
    ids[rng.random((n, m)) < 0.2] = -1
    return ids, rng.random((n, m)).astype(np.float32)


def counted(near, weights, Y, listed=None):
    """All votes, label by label."""
    found = np.zeros((len(near), Y.shape[1]))
    for row, (ids, own) in enumerate(zip(near, weights, strict=True)):
        for i, weight in zip(ids, own, strict=True):
            if i >= 0:
                found[row] += weight * Y[[i]].toarray()[0]
    for row in range(len(near) if listed else 0):
        for label, weight in zip(listed.labels[row], listed.scores[row], strict=True):
            if label >= 0:
                found[row, label] += weight
    return found


@pytest.mark.parametrize("with_listed", [False, True])
@pytest.mark.parametrize("n", [1, 200])  # one block and several
@pytest.mark.parametrize("k", [1, 5, 12])
def test_labels_are_ranked_by_their_votes(Y, n, k, with_listed):
    near, weights = drawn(n, 7, 60, 2)
    listed = TopK(*drawn(n, 3, 12, 3)) if with_listed else None
    expected = counted(near, weights, Y, listed)
    top = tally(near, weights, Y, k, listed)
    best = -np.sort(-expected, axis=1)[:, :k]
    assert np.allclose(np.where(top.labels < 0, 0, top.scores), best, atol=1e-5)
    rows, places = np.nonzero(top.labels >= 0)
    assert np.allclose(expected[rows, top.labels[rows, places]], top.scores[rows, places], atol=1e-5)
    assert ((top.labels < 0) == (best == 0)).all(), "a label without votes is not suggested"


def test_the_same_votes_twice_are_counted_twice_and_listed_ones_come_on_top(Y):
    near, weights = np.array([[3, 3]], np.int32), np.array([[0.25, 0.5]], np.float32)
    own = Y[3].indices
    top = tally(near, weights, Y, 12, TopK(np.array([[own[0], -1]], np.int32), np.array([[1, 9]], np.float32)))
    assert top.labels[0, 0] == own[0]
    assert top.scores[0, : len(own)].tolist() == [1.75] + [0.75] * (len(own) - 1)
    assert (top.labels[0, len(own) :] == -1).all()


def test_documents_without_labels_and_places_without_documents_have_no_vote(Y):
    near = np.array([[5, -1], [-1, -1], [5, 5]], np.int32)
    top = tally(near, np.ones((3, 2), np.float32), Y, 4)
    assert (top.labels == -1).all()
    assert np.isneginf(top.scores).all()
    top = tally(np.zeros((3, 0), np.int32), np.zeros((3, 0), np.float32), Y, 4)
    assert (top.labels == -1).all()
    assert tally(near[:0], np.ones((0, 2), np.float32), Y, 4).labels.shape == (0, 4)


def test_a_weight_of_0_is_no_vote(Y):
    near, weights = np.array([[3, 4]], np.int32), np.array([[0, 1]], np.float32)
    top = tally(near, weights, Y, 12)
    assert sorted(top.labels[top.labels >= 0]) == Y[4].indices.tolist()


def test_a_tally_is_the_same_whatever_the_blocks_and_threads(Y, monkeypatch):
    near, weights = drawn(100, 7, 60, 4)
    before = tally(near, weights, Y, 6)
    monkeypatch.setenv("LABELSPACE_THREADS", "3")
    monkeypatch.setattr(votes, "BLOCK", 7)
    after = tally(near, weights, Y, 6)
    assert np.array_equal(before.labels, after.labels)
    assert np.array_equal(before.scores, after.scores)


def test_gain_is_the_sum_of_right_labels_over_the_logarithm_of_their_places():
    truth = sp.csr_matrix(np.array([[1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0]], np.float32))
    labels = np.array([[1, 2, 0], [0, 1, 2], [3, -1, -1], [0, 1, 2]], np.int32)
    top = TopK(labels, np.zeros((4, 3), np.float32))
    assert np.isclose(gain(top, truth), (1 / np.log2(3) + 1 / np.log2(4)) + 0 + 1)


def test_an_empty_place_gains_nothing_though_the_first_label_is_right():
    truth = sp.csr_matrix(np.array([[1, 0]], np.float32))
    assert gain(TopK.empty(1, 3), truth) == 0
