import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.losses import (
    extract_positive_scores,
    margin_gradient,
    pairwise_softmax_from_exp,
    subtract_positives,
)


@pytest.fixture
def rng():
    return np.random.default_rng(2)


@pytest.fixture(name="Y")
def random_labels(rng):
    dense = rng.random((8, 12)) < 0.3
    dense[1], dense[5] = False, False
    return sp.csr_matrix(dense, dtype=np.float32)


@pytest.mark.parametrize("normalize", [False, True])
def test_positives_lose_1_or_their_share_of_1(Y, rng, normalize):
    out = rng.random((4, 12)).astype(np.float32)
    is_true = Y.toarray()[3:7]
    if normalize:
        is_true /= np.maximum(is_true.sum(axis=1, keepdims=True), 1)
    expected = out - is_true
    subtract_positives(Y.indices, Y.indptr, 3, normalize, out)
    assert np.allclose(out, expected)


def margin_gradient_twin(scores, Y, drawn, margin, n_hardest):
    """NumPy twin, label by label."""
    out = np.zeros_like(scores)
    for row, is_true in enumerate(Y):
        if not is_true.any():
            continue
        positive = drawn[row]
        negatives = [i for i in np.argsort(-scores[row], kind="stable") if not is_true[i]][:n_hardest]
        for i in negatives:
            if scores[row, i] - scores[row, positive] + margin > 0:
                out[row, i] += 1 / n_hardest
                out[row, positive] -= 1 / n_hardest
    return out


@pytest.mark.parametrize(("margin", "n_hardest"), [(0.3, 3), (0.01, 1), (5.0, 4), (5.0, 12)])
def test_the_margin_gradient_is_that_of_the_hardest_negatives(Y, rng, margin, n_hardest):
    scores = rng.standard_normal((8, 12)).astype(np.float32)
    positives = np.where(np.diff(Y.indptr) > 0, Y.indptr[1:] - 1, -1).astype(np.int64)  # the last label of each
    expected = margin_gradient_twin(scores, Y.toarray(), Y.indices[positives], margin, n_hardest)
    for start, stop in ((0, 3), (3, 8)):
        margin_gradient(Y.indices, Y.indptr, start, positives, margin, n_hardest, scores[start:stop])
    assert np.allclose(scores, expected, atol=1e-6)
    assert np.allclose(scores.sum(axis=1), 0, atol=1e-6)
    assert (expected < 0).any()


def test_a_satisfied_margin_has_no_gradient():
    scores = np.array([[5.0, 1.0, 4.8]], np.float32)
    margin_gradient(np.array([0, 2], np.int32), np.array([0, 2], np.int32), 0, np.array([1]), 0.3, 2, scores)
    assert scores.tolist() == [[0, 0, 0]], "5.0 is a positive, 1.0 is far below"


def pairwise_softmax_twin(exps, Y):
    """NumPy twin, label by label."""
    out = np.zeros(exps.shape)
    for row, is_true in enumerate(Y > 0):
        negatives = exps[row, ~is_true].sum()
        for positive in np.flatnonzero(is_true):
            total = exps[row, positive] + negatives
            out[row, positive] -= negatives / total / is_true.sum()
            out[row, ~is_true] += exps[row, ~is_true] / total / is_true.sum()
    return out


def test_the_pairwise_softmax_is_each_positive_against_all_negatives(Y, rng):
    exps = rng.random((8, 12)).astype(np.float32)
    exps[2, 4], exps[3] = 0, 1e-20
    expected = pairwise_softmax_twin(exps.astype(np.float64), Y.toarray())
    for start, stop in ((0, 3), (3, 8)):
        positive = np.empty(Y.indptr[stop] - Y.indptr[start], np.float32)
        extract_positive_scores(Y.indices, Y.indptr, start, exps[start:stop], positive)
        assert np.isneginf(exps[start:stop][Y[start:stop].toarray() > 0]).all()
        exps[start:stop][np.isneginf(exps[start:stop])] = 0.0
        pairwise_softmax_from_exp(Y.indices, Y.indptr, start, positive, exps[start:stop])
    assert np.allclose(exps, expected, atol=1e-6)
    assert (expected < 0).any()
    assert not exps[[1, 5]].any(), "no label, no gradient"
