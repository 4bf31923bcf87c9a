import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from labelspace.data.synthetic import planted
from labelspace.errors import ModelError
from labelspace.kernels import warm_start as kernels
from labelspace.kernels.beam_search import Tree
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.dual_cd import SolverOptions
from labelspace.models.one_vs_rest import OneVsRest
from labelspace.training import warm_start
from labelspace.training.linear_weights import LinearWeights
from labelspace.training.warm_start import Examples, WarmOptions, continue_training, sums_of_squares, violated

EXACT = SolverOptions(1.0, 1e-6, 2000)
ROOT = Tree(np.zeros(1, np.int32), np.full(1, 6, np.int32), np.full(1, -1, np.int32))


@pytest.fixture
def problem():
    """Weights of 6 classifiers for 40 features, and 30 documents with one label each."""
    data = planted(n=30, d=40, l=6, seed=3)
    rng = np.random.default_rng(0)
    W = sp.random(40, 6, 0.5, "csr", np.float32, rng, lambda n: rng.uniform(0.2, 1.0, n).astype(np.float32))
    weights = LinearWeights.from_matrix(W, np.full(6, -0.9, np.float32))
    reached = sp.csr_matrix(np.ones((30, 1), np.float32))
    return weights, Examples(data.X, data.Y, reached, weights.bias)


def objective(w, before, X, signs, h, options, negative_C):
    """The NumPy twin."""
    margins = signs * (X @ w - 0.9)
    C = np.where(signs > 0, warm_start.POSITIVE_C, negative_C) * options.solver.C
    loss = np.logaddexp(0, -margins) if options.logistic else np.square(np.maximum(0, 1 - margins))
    return 0.5 * (h * np.square(w - before)).sum() + (C * loss).sum()


@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_the_weights_are_the_optimum_of_the_objective(monkeypatch, problem, logistic, known):
    weights, examples = problem
    monkeypatch.setattr(warm_start, "FEW_FEATURES", examples.X.nnz / 30 / 4)
    squares = sums_of_squares(examples.X) if known else None
    options = WarmOptions(EXACT, 0.0, logistic=logistic)
    learned = continue_training(weights, ROOT, examples, squares, np.ones(6, np.float32), options, seed=0)
    limit = warm_start.LOGISTIC_VIOLATION if logistic else warm_start.VIOLATION
    signs = examples.signs - violated(weights, ROOT, examples, limit)
    before, after = (own.to_matrix().toarray().astype(float) for own in (weights, learned))
    more = 4**warm_start.GROWTH  # documents of four times as many features
    h = 1 + warm_start.STIFFNESS * more * (squares.astype(float) if known else np.zeros(40))
    for label in range(6):
        own = signs[:, label].toarray().ravel()
        rows = np.flatnonzero(own)
        parts = (before[:, label], examples.X[rows].astype(float), own[rows], h, options, warm_start.NEGATIVE_C * more)
        best = minimize(objective, before[:, label], parts, tol=1e-10).x
        rounding = learned.scales.max() / 2 + 2e-3
        np.testing.assert_allclose(after[:, label], best, atol=rounding)


def test_violations_are_those_of_a_dense_product(problem):
    weights, examples = problem
    margins = examples.X @ weights.to_matrix().toarray() + weights.bias
    expected = (margins > -0.8) & (examples.signs.toarray() == 0)
    assert 0 < expected.sum() < expected.size - examples.signs.nnz
    assert np.array_equal(violated(weights, ROOT, examples, -0.8).toarray() > 0, expected)


def test_with_l1_small_weights_stay_away_and_known_ones_move_on(problem):
    weights, examples = problem
    ones = np.ones(6, np.float32)
    plain, sparse = (
        continue_training(weights, ROOT, examples, None, ones, WarmOptions(EXACT, 0.0, l1), seed=0) for l1 in (0.0, 0.3)
    )
    assert len(weights.values) < len(sparse.values) < len(plain.values)


def test_only_changed_weights_are_other_and_scales_only_grow(problem):
    weights, examples = problem
    one = Examples(examples.X[:1], examples.signs[:1], examples.reached[:1], examples.search_bias)
    options = WarmOptions(EXACT, 0.0)
    learned = continue_training(weights, ROOT, one, None, np.ones(6, np.float32), options, seed=0)
    assert (learned.scales >= weights.scales).all()
    touched = np.isin(np.arange(40), one.X.indices)
    before, after = weights.to_matrix(), learned.to_matrix()
    assert (before[~touched] != after[~touched]).nnz == 0
    assert (before[touched] != after[touched]).nnz > 0
    same_scale = touched & (learned.scales == weights.scales)
    of_label = one.signs.indices[0]
    others = np.setdiff1d(np.arange(6), np.append(violated(weights, ROOT, one, -0.8).indices, of_label))
    assert len(others)
    assert (before[same_scale][:, others] != after[same_scale][:, others]).nnz == 0


def test_merging_is_that_of_a_dense_table():
    rng = np.random.default_rng(1)
    before = sp.random(12, 9, 0.4, "csr", np.float32, rng, lambda n: rng.normal(size=n).astype(np.float32))
    weights = LinearWeights.from_matrix(before, np.zeros(9, np.float32))
    features = np.array([0, 3, 4, 11], np.int32)
    changes = sp.random(4, 9, 0.5, "csr", np.float32, rng, lambda n: 3 * rng.normal(size=n).astype(np.float32))
    changes.data[::4] = 0  # weights that became 0
    expected = weights.to_matrix().toarray()
    expected[features] = np.where(dense_mask(changes), changes.toarray(), expected[features])
    merged = warm_start._merged(weights, features, CsrArrays(changes.data, changes.indices, changes.indptr))
    np.testing.assert_allclose(merged.to_matrix().toarray(), expected, atol=float(merged.scales.max()))
    assert (merged.values != 0).all()
    untouched = np.setdiff1d(np.arange(12), features)
    assert np.array_equal(merged.to_matrix()[untouched].toarray(), expected[untouched])


def dense_mask(matrix):
    mask = np.zeros(matrix.shape, bool)
    mask[np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices] = True
    return mask


def test_weights_by_classifier_are_columns_of_the_matrix(problem):
    weights, _ = problem
    features, wanted = np.array([1, 5, 30], np.int32), np.array([-1, 0, -1, 1, -1, -1], np.int32)
    stored = (weights.values, weights.labels, weights.starts, weights.scales)
    columns = kernels.weights_of_columns(*stored, features, wanted, 2)
    made = sp.csc_matrix((columns.weights, columns.features, columns.starts), shape=(3, 2)).toarray()
    assert np.array_equal(made, weights.to_matrix().toarray()[features][:, [1, 3]])


def test_sums_of_squares_add_up():
    X = sp.random(20, 8, 0.5, "csr", np.float32, np.random.default_rng(0))
    at_once, twice = sums_of_squares(X), sums_of_squares(X[12:], sums_of_squares(X[:12]))
    np.testing.assert_allclose(at_once, X.power(2).sum(axis=0).A1, rtol=2e-3)
    np.testing.assert_allclose(twice, at_once, rtol=2e-3)
    huge = sums_of_squares(sp.csr_matrix([[1e4]], dtype=np.float32))
    assert np.isfinite(huge).all()


@pytest.mark.parametrize("damaged", [np.nan, -1.0])
def test_damaged_sums_of_squares_are_refused(data, tmp_path, damaged):
    train, _ = data
    model = OneVsRest(max_iter=2).fit(train.X, train.Y)
    model.squares_ = np.full_like(model.squares_, damaged)
    with pytest.raises(ModelError):
        OneVsRest.load(saved(model, tmp_path))


def saved(model, folder):
    model.save(folder / "model")
    return folder / "model"
