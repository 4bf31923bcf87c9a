import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet

from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.models.leml.kernels import Lasso, descend_lasso

TOLERANCE = 1e-7


@pytest.fixture
def problem():
    rng = np.random.default_rng(4)
    X = sp.random(60, 25, 0.3, "csc", np.float32, rng=rng)
    X.data -= 0.3
    y = rng.standard_normal(60).astype(np.float32)
    return X, y


def descend(X, y, l1, l2, max_iter=2000, weights=None):
    squares = np.asarray(X.multiply(X).sum(axis=0), np.float32).ravel()
    weights = np.zeros(X.shape[1], np.float32) if weights is None else weights
    residual = y.copy()
    l1 = np.full(X.shape[1], l1, np.float32) if np.isscalar(l1) else l1
    descend_lasso(Lasso(csr_arrays(X), squares, l1, l2), max_iter, TOLERANCE, weights, residual)
    return weights, residual


def reference_pass(X, y, l1, l2, weights):
    """The first pass, in NumPy."""
    X, weights = X.toarray().astype(np.float64), weights.astype(np.float64)
    for j in range(X.shape[1]):
        product = X[:, j] @ (y - X @ weights) + X[:, j] @ X[:, j] * weights[j]
        weights[j] = np.sign(product) * max(abs(product) - l1[j], 0) / (X[:, j] @ X[:, j] + l2)
    return weights


@pytest.mark.parametrize("start", [0.0, 0.7])
def test_the_first_pass_equals_the_reference(problem, start):
    X, y = problem
    l1, before = np.linspace(0, 1, 25).astype(np.float32), np.float32(start) * (np.arange(25, dtype=np.float32) % 3 - 1)
    weights, residual = descend(X, y, l1, 0.5, max_iter=1, weights=before.copy())
    assert np.allclose(weights, reference_pass(X, y, l1, 0.5, before), atol=1e-5)
    assert np.allclose(residual, y - X @ weights, atol=1e-5)
    assert 0 < np.count_nonzero(weights) < 25


def test_it_ends_at_the_optimum_of_scikit_learn(problem):
    X, y = problem
    l1, l2 = 0.4, 0.5
    net = ElasticNet((l1 + l2) / 60, l1_ratio=l1 / (l1 + l2), fit_intercept=False, tol=1e-9, max_iter=100_000)
    expected = net.fit(X.toarray().astype(np.float64), y).coef_
    weights = np.zeros(25, np.float32)
    for _ in range(20):  # a call adds features in its first pass only
        weights, _ = descend(X, y, l1, l2, weights=weights)
    assert np.allclose(weights, expected, atol=1e-4)
    assert 0 < np.count_nonzero(weights) < 25


def test_a_feature_of_norm_0_keeps_its_weight(problem):
    X, y = problem
    X = sp.csc_matrix(X.toarray() * (np.arange(25) != 3))
    X.eliminate_zeros()
    weights, _ = descend(X, y, 0.1, 0.0)
    assert weights[3] == 0
