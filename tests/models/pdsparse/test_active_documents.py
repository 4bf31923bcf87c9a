import numpy as np
import pytest
from sklearn.svm import LinearSVC

from labelspace.data.synthetic import planted
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.dual_cd import SolverOptions, squared_norms
from labelspace.models.pdsparse.kernels import LabelProblem, solve_l1_squared_hinge


def fit(data, label, C, l1, tolerance=1e-5, max_iter=2000, seed=0):
    X, by_feature = data.X, data.X.tocsc()
    v, positives = np.zeros(X.shape[1] + 1, np.float32), data.Y[:, label].tocsc().indices
    norms, options = squared_norms(X.data, X.indptr, 1.0), SolverOptions(C, tolerance, max_iter)
    problem = LabelProblem(csr_arrays(X), csr_arrays(by_feature), norms, np.ones(X.shape[0]), l1, options)
    n_iter = solve_l1_squared_hinge(problem, positives, seed, v)
    return np.append(np.sign(v[:-1]) * np.maximum(np.abs(v[:-1]) - l1, 0), v[-1]), n_iter


def objective(w, data, label, C, l1):
    """The NumPy twin."""
    margins = np.where(data.Y[:, label].toarray().ravel() > 0, 1, -1) * (data.X @ w[:-1] + w[-1])
    loss = C * np.square(np.maximum(0, 1 - margins)).sum()
    return 0.5 * np.square(w).sum() + l1 * np.abs(w[:-1]).sum() + loss


def test_without_l1_it_is_the_optimum_of_liblinear():
    data = planted(n=300, d=150, l=8, seed=2)
    w, _ = fit(data, 2, C=1.0, l1=0.0)
    svc = LinearSVC(C=1.0, tol=1e-8, max_iter=20000, dual=True, random_state=0)
    svc.fit(data.X, data.Y[:, 2].toarray().ravel())
    assert np.allclose(w, np.append(svc.coef_.ravel(), svc.intercept_), atol=3e-3)


@pytest.mark.parametrize("l1", [0.05, 0.5])
def test_with_l1_no_step_lowers_the_objective(l1):
    data = planted(n=300, d=150, l=8, seed=2)
    w, n_iter = fit(data, 1, C=1.0, l1=l1)
    assert n_iter < 2000
    assert 0 < (w == 0).sum() < len(w)
    best, rng = objective(w, data, 1, 1.0, l1), np.random.default_rng(0)
    steps = [*np.eye(len(w)), *-np.eye(len(w)), *rng.standard_normal((50, len(w)))]
    assert min(objective(w + 0.003 * step, data, 1, 1.0, l1) for step in steps) >= best - 1e-3
