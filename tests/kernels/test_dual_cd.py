import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from labelspace.data.synthetic import planted
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.dual_cd import SolverOptions, solve_logistic, solve_squared_hinge, squared_norms
from labelspace.kernels.lanes import LANES


def fit(X, positive, C, tolerance=1e-6, max_iter=1000, seed=0, solve=solve_squared_hinge):
    """Weights (D + 1,) of one label; for the squared hinge (D + 1, labels) where ``positive`` is (n, labels)."""
    norms, order = squared_norms(X.data, X.indptr, 1.0), np.empty(X.shape[0], np.int32)
    if solve is solve_squared_hinge:
        labels = positive.reshape(len(positive), -1)
        shape, target = (X.shape[0], LANES), np.zeros((X.shape[0], LANES), np.float32)
        target[:, : labels.shape[1]] = np.where(labels, 1, -1)
        w, alpha = np.zeros((X.shape[1] + 1, LANES), np.float32), np.empty(shape, np.float32)
    else:
        w, alpha, target = np.zeros(X.shape[1] + 1, np.float32), np.empty(X.shape[0], np.float32), positive
    n_iter = solve(
        csr_arrays(X),
        norms,
        np.ones(X.shape[0]),
        target,
        1.0,
        SolverOptions(C, tolerance, max_iter),
        seed,
        w,
        alpha,
        order,
    )
    if solve is solve_squared_hinge:
        assert not w[:, labels.shape[1] :].any()  # lanes without a label
        w = w[:, : labels.shape[1]].reshape((-1, *positive.shape[1:]))
    return w, n_iter


def objective(w, X, positive, C):
    """The NumPy twin: the primal that the kernel minimizes through its dual."""
    margins = np.where(positive, 1.0, -1.0) * (X @ w[:-1] + w[-1])
    return 0.5 * np.square(w.astype(np.float64)).sum() + C * np.square(np.maximum(0.0, 1.0 - margins)).sum()


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_it_reaches_the_optimum_of_liblinear(C):
    data = planted(n=400, d=200, l=8, seed=2)
    positive = data.Y[:, 2].toarray().ravel() > 0
    w, _ = fit(data.X, positive, C)
    svc = LinearSVC(C=C, tol=1e-8, max_iter=20000, dual=True, random_state=0).fit(data.X, positive)
    best = np.append(svc.coef_.ravel(), svc.intercept_)
    assert objective(w, data.X, positive, C) == pytest.approx(objective(best, data.X, positive, C), rel=1e-4)
    assert np.allclose(w, best, atol=2e-3)


def test_labels_side_by_side_reach_the_optimum_of_each_alone():
    data = planted(n=400, d=200, l=8, seed=2)
    positive = data.Y.toarray() > 0
    together, _ = fit(data.X, positive, 1.0)
    for label in range(8):
        alone, _ = fit(data.X, positive[:, label], 1.0)
        assert np.allclose(together[:, label], alone, atol=2e-3)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_the_logistic_solver_reaches_the_optimum_of_scikit_learn(C):
    data = planted(n=400, d=200, l=8, seed=2)
    positive = data.Y[:, 2].toarray().ravel() > 0
    w, _ = fit(data.X, positive, C, solve=solve_logistic)
    with_bias = np.hstack([data.X.toarray(), np.ones((400, 1))])
    best = LogisticRegression(C=C, tol=1e-8, max_iter=5000, fit_intercept=False).fit(with_bias, positive).coef_.ravel()

    def loss(w):
        margins = np.where(positive, 1.0, -1.0) * (with_bias @ w)
        return 0.5 * np.square(w.astype(np.float64)).sum() + C * np.logaddexp(0, -margins).sum()

    assert loss(w) == pytest.approx(loss(best), rel=1e-3)
    assert np.allclose(w, best, atol=1e-2 * np.abs(best).max())


def test_no_small_step_lowers_the_objective():
    data = planted(n=200, d=100, l=5, seed=4)
    positive = data.Y[:, 1].toarray().ravel() > 0
    w, _ = fit(data.X, positive, 1.0)
    best = objective(w, data.X, positive, 1.0)
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert objective(w + 0.01 * rng.standard_normal(len(w)), data.X, positive, 1.0) >= best - 1e-3


def test_the_seed_decides_and_iterations_are_bounded():
    data = planted(n=200, d=100, l=5, seed=4)
    positive = data.Y[:, 0].toarray().ravel() > 0
    one, n_iter = fit(data.X, positive, 1.0, tolerance=1e-9, max_iter=3)
    two, _ = fit(data.X, positive, 1.0, tolerance=1e-9, max_iter=3)
    other, _ = fit(data.X, positive, 1.0, tolerance=1e-9, max_iter=3, seed=1)
    assert n_iter == 3
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_squared_norms_equal_numpy():
    X = planted(n=50, d=40, l=5, seed=1).X
    expected = X.multiply(X).sum(axis=1).A1 + 4.0
    assert np.allclose(squared_norms(X.data, X.indptr, 2.0), expected, rtol=1e-6)
