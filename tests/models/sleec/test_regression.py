import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.models.sleec import learner
from labelspace.models.sleec.learner import Ridge, fit_regressors


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    monkeypatch.setattr(learner, "TOLERANCE", 1e-6)


def documents(n: int = 40, d: int = 12) -> tuple[sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(0)
    return sp.random(n, d, 0.4, "csr", np.float32, rng), rng.standard_normal((n, 3), np.float32)


def test_ridge_regression_equals_the_normal_equations():
    X, Z = documents()
    dense = X.toarray().astype(np.float64)
    expected = np.linalg.solve(dense.T @ dense + np.eye(12) / (2 * 0.3), dense.T @ Z)
    assert np.allclose(fit_regressors(X, Z, 0.3, 0.0, 0.1, 1), expected, atol=1e-4)


def test_conjugate_gradients_start_from_a_solution():
    X, Z = documents()
    ridge = Ridge(X, 0.3)
    A = ridge.dual(Z)
    assert np.array_equal(ridge.dual(Z, A), A)


def test_admm_satisfies_the_optimality_conditions_of_the_l1_problem():
    # At the minimum, 0 = W + 2 C X'(XW - Z) + C l1 X's, with s the sign of XW, or between -1 and 1 where XW is 0.
    X, Z = sp.identity(5, np.float32, "csr"), np.array([[3.0], [-2.0], [0.2], [-0.1], [0.0]], np.float32)
    C, l1 = 0.5, 1.0
    W = fit_regressors(X, Z, C, l1, 1.0, 200)
    expected = np.sign(Z) * np.maximum(2 * C * np.abs(Z) - C * l1, 0) / (1 + 2 * C)  # X is the identity
    assert np.allclose(W, expected, atol=1e-2)
