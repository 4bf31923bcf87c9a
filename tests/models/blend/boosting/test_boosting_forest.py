import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from labelspace.models.blend.boosting.forest import GROWTH, BinnedColumns, Forest, fit_forest
from labelspace.training.losses import sigmoid

OPTIONS = GROWTH._replace(learning_rate=0.1, max_leaves=8)


def problem(seed, n=3000):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, 5)).astype(np.float32)
    odds = 2 * np.sin(2 * F[:, 0]) + F[:, 1] * F[:, 2] - 1
    return F, (rng.random(n) < sigmoid(odds)).astype(np.float32)


def test_it_is_as_good_as_scikit_learns():
    F, y = problem(0)
    G, z = problem(1)
    ours = fit_forest(
        BinnedColumns.of(F), y, n_rounds=80, options=GROWTH._replace(learning_rate=0.1, max_leaves=8)
    ).probabilities(G)
    theirs = HistGradientBoostingClassifier(max_iter=80, learning_rate=0.1, max_leaf_nodes=8, l2_regularization=1.0)
    expected = theirs.fit(F, y).predict_proba(G)[:, 1]
    assert log_loss(z, ours) < log_loss(z, expected) + 0.01
    assert np.corrcoef(ours, expected)[0, 1] > 0.98


def test_probabilities_are_calibrated():
    F, y = problem(2)
    G, z = problem(3)
    p = fit_forest(
        BinnedColumns.of(F), y, n_rounds=80, options=GROWTH._replace(learning_rate=0.1, max_leaves=8)
    ).probabilities(G)
    for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0)):
        some = (p >= low) & (p < high)
        assert abs(p[some].mean() - z[some].mean()) < 0.05


def test_a_target_that_never_or_always_is_yes_is_no_trouble():
    F, _ = problem(4, 100)
    for answer in (0.0, 1.0):
        p = fit_forest(BinnedColumns.of(F), np.full(100, answer, np.float32), n_rounds=5).probabilities(F)
        assert np.abs(p - answer).max() < 1e-3


def test_columns_of_few_values_of_one_value_and_of_very_many_rows():
    rng = np.random.default_rng(5)
    F = np.stack([rng.integers(0, 2, 250_000), np.zeros(250_000), rng.random(250_000)], axis=1).astype(np.float32)
    forest = fit_forest(BinnedColumns.of(F), F[:, 0].copy(), n_rounds=20, options=GROWTH._replace(learning_rate=0.3))
    assert forest.probabilities(np.array([[0, 0, 0.5], [1, 0, 0.5]], np.float32)).round(1).tolist() == [0.0, 1.0]
    assert all(isinstance(getattr(forest, part), np.ndarray) for part in Forest.__dataclass_fields__)
