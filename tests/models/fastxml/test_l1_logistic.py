import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.models.fastxml.kernels import solve_l1_logistic


def problem(n, d, seed, density=0.3):
    rng = np.random.default_rng(seed)
    X = sp.hstack([sp.random(n, d, density, rng=rng), np.ones((n, 1))]).tocsc().astype(np.float32)
    positive = X @ rng.normal(size=d + 1) + rng.normal(size=n) > 0
    return X, positive, rng.uniform(0.5, 3, n)


def arrays(X):
    """The arrays of a matrix with starts as those of a node have them."""
    return CsrArrays(X.data, X.indices, X.indptr.astype(np.int64))


def solve(X, positive, costs, tolerance=1e-7, max_iter=200):
    w, margins = np.zeros(X.shape[1]), np.zeros(X.shape[0])
    steps = solve_l1_logistic(arrays(X), positive, costs, tolerance, max_iter, w, margins)
    return w, margins, steps


def gradient(X, positive, costs, w):
    y = np.where(positive, 1.0, -1.0)
    return X.T @ (-costs * y / (1 + np.exp(y * (X @ w))))


@pytest.mark.parametrize(("n", "d", "seed"), [(200, 30, 1), (60, 100, 2), (500, 60, 3)])
def test_the_solution_is_optimal(n, d, seed):
    X, positive, costs = problem(n, d, seed)
    w, margins, steps = solve(X, positive, costs)
    g = gradient(X.toarray().astype(np.float64), positive, costs, w)
    assert steps < 200
    assert 0 < (w != 0).sum() < len(w)
    assert np.allclose(g[w != 0], -np.sign(w[w != 0]), atol=1e-4)
    assert (np.abs(g[w == 0]) <= 1 + 1e-4).all()
    assert np.allclose(margins, X @ w, atol=1e-6)


def test_a_looser_tolerance_makes_fewer_steps():
    given = problem(200, 30, 4)
    assert solve(*given, tolerance=0.1)[2] < solve(*given)[2]
    assert solve(*given, max_iter=1)[2] == 1


def test_sides_that_no_feature_tells_apart_have_no_weights():
    X = sp.csc_matrix(np.ones((4, 2), np.float32))
    w, margins, _ = solve(X, np.array([True, False, True, False]), np.ones(4))
    assert not w.any()
    assert not margins.any()


def test_separable_sides_and_large_values_stay_finite():
    X = sp.csc_matrix(np.array([[1e6], [-1e6], [2e6], [0]], np.float32))
    w, margins, _ = solve(X, np.array([True, False, True, True]), np.full(4, 100.0))
    assert np.isfinite(w).all()
    assert (np.sign(margins) == [1, -1, 1, 0]).all()
