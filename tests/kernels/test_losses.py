import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.losses import margin_gradient, pair_shares, subtract_at, take_out


@pytest.fixture
def rng():
    return np.random.default_rng(2)


@pytest.fixture(name="Y")
def some_labels(rng):
    dense = rng.random((8, 12)) < 0.3
    dense[1], dense[5] = False, False
    return sp.csr_matrix(dense, dtype=np.float32)


@pytest.mark.parametrize("shared", [False, True])
def test_true_labels_lose_1_or_a_share_of_it(Y, rng, shared):
    out = rng.random((4, 12)).astype(np.float32)
    true = Y.toarray()[3:7]
    if shared:
        true /= np.maximum(true.sum(axis=1, keepdims=True), 1)
    expected = out - true
    subtract_at(Y.indices, Y.indptr, 3, shared, out)
    assert np.allclose(out, expected)


def slow_margin_errors(scores, Y, drawn, margin, hardest):
    """The same label by label."""
    out = np.zeros_like(scores)
    for row, true in enumerate(Y):
        if not true.any():
            continue
        own = drawn[row]
        wrong = [i for i in np.argsort(-scores[row], kind="stable") if not true[i]][:hardest]
        for i in wrong:
            if scores[row, i] - scores[row, own] + margin > 0:
                out[row, i] += 1 / hardest
                out[row, own] -= 1 / hardest
    return out


@pytest.mark.parametrize(("margin", "hardest"), [(0.3, 3), (0.01, 1), (5.0, 4), (5.0, 12)])
def test_margin_errors_are_those_of_the_hardest_wrong_labels(Y, rng, margin, hardest):
    scores = rng.standard_normal((8, 12)).astype(np.float32)
    places = np.where(np.diff(Y.indptr) > 0, Y.indptr[1:] - 1, -1).astype(np.int64)  # the last label of each
    expected = slow_margin_errors(scores, Y.toarray(), Y.indices[places], margin, hardest)
    for start, stop in ((0, 3), (3, 8)):
        margin_gradient(Y.indices, Y.indptr, start, places, margin, hardest, scores[start:stop])
    assert np.allclose(scores, expected, atol=1e-6)
    assert np.allclose(scores.sum(axis=1), 0, atol=1e-6)
    assert (expected < 0).any()


def test_a_margin_that_is_kept_teaches_nothing():
    scores = np.array([[5.0, 1.0, 4.8]], np.float32)
    margin_gradient(np.array([0, 2], np.int32), np.array([0, 2], np.int32), 0, np.array([1]), 0.3, 2, scores)
    assert scores.tolist() == [[0, 0, 0]], "5.0 is of a true label, 1.0 is far below"


def slow_pair_shares(powers, Y):
    """The same label by label."""
    out = np.zeros(powers.shape)
    for row, true in enumerate(Y > 0):
        wrong = powers[row, ~true].sum()
        for own in np.flatnonzero(true):
            both = powers[row, own] + wrong
            out[row, own] -= wrong / both / true.sum()
            out[row, ~true] += powers[row, ~true] / both / true.sum()
    return out


def test_pair_shares_are_of_each_true_label_against_all_wrong_ones(Y, rng):
    powers = rng.random((8, 12)).astype(np.float32)
    powers[2, 4], powers[3] = 0, 1e-20
    expected = slow_pair_shares(powers.astype(np.float64), Y.toarray())
    for start, stop in ((0, 3), (3, 8)):
        own = np.empty(Y.indptr[stop] - Y.indptr[start], np.float32)
        take_out(Y.indices, Y.indptr, start, powers[start:stop], own)
        assert np.isneginf(powers[start:stop][Y[start:stop].toarray() > 0]).all()
        powers[start:stop][np.isneginf(powers[start:stop])] = 0.0
        pair_shares(Y.indices, Y.indptr, start, own, powers[start:stop])
    assert np.allclose(powers, expected, atol=1e-6)
    assert (expected < 0).any()
    assert not powers[[1, 5]].any(), "no label, nothing to learn"
