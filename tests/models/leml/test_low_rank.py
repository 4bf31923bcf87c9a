"""The steps for H and W against dense linear algebra, and the objective against finite differences."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.models.leml import model as module
from labelspace.models.leml.model import LowRank, Targets
from labelspace.training.sparse_layers import product

REG = 0.7


@pytest.fixture(params=["without S", "with S"])
def targets(request):
    rng = np.random.default_rng(2)
    X = sp.random(40, 15, 0.4, "csr", np.float32, rng=rng)
    Y = sp.csr_matrix((rng.random((40, 9)) < 0.3).astype(np.float32))
    targets = Targets(X, Y)
    if request.param == "with S":
        targets.S = sp.random(15, 9, 0.2, "csr", np.float32, rng=rng)
    return targets


@pytest.fixture
def start(targets):
    return LowRank.random(targets.X, 9, 4, np.random.default_rng(3))


def dense(targets):
    X, rest = targets.X.toarray().astype(np.float64), targets.Y.toarray().astype(np.float64)
    return X, rest if targets.S is None else rest - X @ targets.S.toarray()


def objective(targets, W, H):
    X, rest = dense(targets)
    return ((rest - X @ W @ H.T) ** 2).sum() / 2 + REG * ((W**2).sum() + (H**2).sum()) / 2


def gradient(targets, W, H, of, step=1e-5):
    """Of the objective by W or H, by central differences."""
    parts = {"W": W.astype(np.float64), "H": H.astype(np.float64)}
    at = parts[of]
    out = np.zeros_like(at)
    for i in np.ndindex(*at.shape):
        values = []
        for change in (step, -step):
            moved = at.copy()
            moved[i] += change
            values.append(objective(targets, **{**parts, of: moved}))
        out[i] = (values[0] - values[1]) / (2 * step)
    return out


def test_products_with_what_is_left(targets):
    X, rest = dense(targets)
    table = np.random.default_rng(0).standard_normal((9, 4), np.float32)
    assert np.allclose(targets.times(table), rest @ table, atol=1e-4)
    other = np.random.default_rng(0).standard_normal((40, 4), np.float32)
    assert np.allclose(targets.transposed_times(other), rest.T @ other, atol=1e-4)
    assert np.allclose(product(targets.X_by_feature, other), X.T @ other, atol=1e-4)


def test_the_gradient_by_h_is_0_after_its_step(targets, start):
    start.update_labels(targets, REG)
    assert np.abs(gradient(targets, start.W, start.H, "W")).max() > 1
    assert np.abs(gradient(targets, start.W, start.H, "H")).max() < 1e-3


def test_the_gradient_by_w_is_0_after_enough_conjugate_gradients(targets, start, monkeypatch):
    monkeypatch.setattr(module, "CG_STEPS", 40)
    monkeypatch.setattr(module, "CG_TOL", 1e-5)
    start.update_labels(targets, REG)
    start.update_features(targets, REG)
    assert np.abs(gradient(targets, start.W, start.H, "W")).max() < 1e-3
    assert np.allclose(start.A, targets.X @ start.W, atol=1e-4)


def test_the_rotation_changes_no_score_and_makes_h_orthogonal(targets, start):
    start.update_labels(targets, REG)
    before, penalty = start.W @ start.H.T, start.penalty()
    diagonal = start.rotate()
    assert np.allclose(start.W @ start.H.T, before, atol=1e-4)
    assert np.isclose(start.penalty(), penalty, rtol=1e-5)
    assert np.allclose(start.H.T @ start.H, np.diag(diagonal), atol=1e-4)


def test_no_step_raises_the_objective(targets, start):
    values = []
    for _ in range(6):
        start.update_labels(targets, REG)
        values.append(objective(targets, start.W, start.H))
        start.update_features(targets, REG)
        values.append(objective(targets, start.W, start.H))
    assert (np.diff(values) < 1e-4).all()
    assert values[-1] < 0.9 * values[0]
    if targets.S is None:
        assert np.isclose(start.squared_error(targets) / 2 + REG * start.penalty(), values[-1], rtol=1e-4)


def test_features_without_documents_have_no_weights(start, targets):
    X = sp.hstack([targets.X, sp.csr_matrix((40, 2), dtype=np.float32)], format="csr")
    wide = Targets(X, targets.Y)
    part = LowRank.random(X, 9, 4, np.random.default_rng(3))
    for _ in range(2):
        part.update_labels(wide, REG)
        part.update_features(wide, REG)
    assert (part.W[-2:] == 0).all()
    assert (part.W[:-2] != 0).any(axis=1).all()
