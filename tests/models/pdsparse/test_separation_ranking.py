import numpy as np
import pytest
from scipy.optimize import minimize

from labelspace.data.synthetic import planted
from labelspace.models.pdsparse.kernels import ActiveLabels, PassScratch, add_most_violating, project_on_equal_sums
from labelspace.models.pdsparse.model import SeparationTraining
from labelspace.training.linear_weights import with_bias_column


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("C", [0.3, 2.0, 50.0])
def test_the_projection_is_the_nearest_point(C, seed):
    b, positive = np.random.default_rng(seed).normal(0.5, 1.0, 7), np.arange(7) < 3
    ours, sign = b.copy(), np.where(positive, 1.0, -1.0)
    project_on_equal_sums(ours, positive, 7, C)
    limits = [{"type": "eq", "fun": lambda a: sign @ a}, {"type": "ineq", "fun": lambda a: C - a[~positive].sum()}]
    theirs = minimize(
        lambda a: np.square(a - b).sum(), np.zeros(7), bounds=[(0, None)] * 7, constraints=limits, tol=1e-12
    )
    np.testing.assert_allclose(ours, theirs.x, atol=1e-5)


def test_the_best_ranked_violating_labels_become_active():
    scores = np.array([0.0, 3.0, -0.5, 1.0, -2.0, 2.0], np.float32)
    active = ActiveLabels(np.array([[0, 1, -1, -1]], np.int32), np.ones((1, 4), np.float32), np.array([2], np.int32))
    slot = np.full(6, -1, np.int32)  # label 0 is true, label 1 active
    scratch = PassScratch(scores, np.empty(2, np.float32), np.empty(2, np.int32), np.empty(4, bool), np.empty(4))
    size = add_most_violating(np.array([0], np.int32), np.arange(6) != 5, slot, active, np.int32(0), scratch)
    assert active.labels[0, :size].tolist() == [0, 1, 3, 2]  # 5 is not allowed, 4 does not violate the margin
    assert active.alpha.tolist() == [[1, 1, 0, 0]]
    assert (slot == -1).all()


def objectives(training, X, Y):
    """The primal and the dual, in NumPy; at the optimum one is the other's negative."""
    problem, active = training.problem, training.active
    C, l1 = problem.C[0], problem.l1[:, None]
    X, Y = X.toarray().astype(float), Y.toarray() > 0
    a = np.zeros(Y.shape)
    for i, n in enumerate(active.sizes):
        a[i, active.labels[i, :n]] = active.alpha[i, :n]
    np.testing.assert_allclose((a * Y).sum(axis=1), (a * ~Y).sum(axis=1), atol=1e-4)
    assert (a.sum(axis=1) <= 2 * C + 1e-4).all()
    V = X.T @ np.where(Y, a, -a)
    W = np.sign(V) * np.maximum(np.abs(V) - l1, 0)
    np.testing.assert_allclose(training.weights().toarray(), W, atol=1e-3)
    scores = X @ W
    worst = np.where(Y, scores, np.inf).min(axis=1)
    loss = np.maximum(0, 1 + np.where(Y, -np.inf, scores).max(axis=1) - worst).sum()
    return np.square(W).sum() / 2 + (l1 * np.abs(W)).sum() + C * loss, np.square(W).sum() / 2 - (a * ~Y).sum()


@pytest.mark.parametrize("n_selected", [1, 10])
def test_the_duality_gap_closes(n_selected):
    data = planted(n=80, d=60, l=12, seed=2)
    Y = data.Y[np.diff(data.Y.indptr) > 0]
    X = with_bias_column(data.X[np.diff(data.Y.indptr) > 0])
    training = SeparationTraining(X, Y, np.ones(X.shape[0]), 0.05, n_selected, average=False)
    training.problem.allowed[:] = True  # the twin knows no other labels
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(4):
        for _ in range(60):
            training.run_pass(rng.permutation(X.shape[0]).astype(np.int32))
        gaps.append(sum(objectives(training, X, Y)))
    primal = objectives(training, X, Y)[0]
    assert gaps[-1] < gaps[0]
    assert -1e-3 * primal < gaps[-1] < 0.02 * primal


def test_the_average_weighs_each_step_by_its_number():
    data = planted(n=40, d=30, l=8, seed=3)
    X, order = with_bias_column(data.X), np.random.default_rng(0).permutation(40).astype(np.int32)
    whole, stepwise = (
        SeparationTraining(X, data.Y, np.ones(X.shape[0]), 0.05, 3, average) for average in (True, False)
    )
    mean, total = np.zeros((X.shape[1], 8)), 0
    for t, document in enumerate(np.concatenate([order, order]), 1):
        stepwise.run_pass(document[None])
        mean += t * stepwise.V.above(0 * stepwise.problem.l1, 8).toarray()
        total += t
    for _ in range(2):
        whole.run_pass(order)
    mean /= total
    W = np.sign(mean) * np.maximum(np.abs(mean) - whole.problem.l1[:, None], 0)
    np.testing.assert_allclose(whole.weights().toarray(), W, atol=1e-5)
    assert np.abs(W - stepwise.weights().toarray()).max() > 0.01
