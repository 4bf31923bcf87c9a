"""Shapley values against brute force over all coalitions."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest

from labelspace.models.blend.boosting.forest import Forest
from labelspace.models.blend.explanations import shapley_values
from tests.models.blend.boosting.test_forest_scores import random_forest, walk


def brute_force(forest, x, reference, players):
    """The mean over all orders of what a player adds when it joins."""
    n = int(players.max()) + 1

    def worth(coalition):
        return walk(forest, np.where(np.isin(players, list(coalition)), x, reference))

    values = np.zeros(n)
    for player in range(n):
        others = [other for other in range(n) if other != player]
        for size in range(n):
            weight = factorial(size) * factorial(n - size - 1) / factorial(n)
            for coalition in combinations(others, size):
                values[player] += weight * (worth((*coalition, player)) - worth(coalition))
    return values, worth(()), worth(range(n))


@pytest.mark.parametrize("n_leaves", [1, 2, 8, 16])
@pytest.mark.parametrize("groups", [[0, 1, 2, 3, 4], [0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [0, 0, 0, 0, 0]])
def test_values_are_those_of_all_coalitions(groups, n_leaves):
    rng = np.random.default_rng(n_leaves)
    players = np.array(groups, np.int32)
    for _ in range(5):
        forest = random_forest(rng, 4, n_leaves, 5)  # 16 leaves of 5 columns: some twice on a path
        x, reference = rng.random((2, 5)).astype(np.float32)
        reference[1] = x[1]  # a column that tells nothing apart
        values, before, after = shapley_values(forest, x, reference, players)
        expected, without, with_all = brute_force(forest, x, reference, players)
        np.testing.assert_allclose(values, expected, atol=1e-6)
        assert before == pytest.approx(without, abs=1e-6)
        assert after == pytest.approx(with_all, abs=1e-6)
        assert values.sum() == pytest.approx(after - before, abs=1e-6)


def test_a_column_that_occurs_twice_on_a_path():
    """Column 0 is split at 0.5 and, below, at 0.8; column 1 between them."""
    forest = Forest(
        np.array([0], np.int32), np.array([0, -1, 1, -1, 0, -1, -1], np.int32),
        np.array([0.5, 0, 0.5, 0, 0.8, 0, 0], np.float32), np.array([1, 0, 3, 0, 5, 0, 0], np.int32),
        np.array([0, 1, 0, 2, 0, 4, 8], np.float32), np.zeros(1, np.float32),
    )  # fmt: skip
    x, reference = np.array([0.9, 0.9], np.float32), np.array([0.1, 0.1], np.float32)
    values, before, after = shapley_values(forest, x, reference, np.array([0, 1], np.int32))
    assert (before, after) == (1.0, 8.0)
    # Alone, column 0 leads to 2 and column 1 to 1; together to 8.
    assert values.tolist() == [((2 - 1) + (8 - 1)) / 2, ((1 - 1) + (8 - 2)) / 2]


def test_a_tree_as_deep_as_it_has_leaves():
    """A chain, where every split is on the way to the last leaf."""
    n = 12
    column = np.array([i // 2 % 6 if i % 2 == 0 and i < 2 * n else -1 for i in range(2 * n + 1)], np.int32)
    left = np.where(column >= 0, np.arange(2 * n + 1) + 1, 0).astype(np.int32)
    threshold = np.linspace(0.1, 0.9, 2 * n + 1).astype(np.float32)
    value = np.arange(2 * n + 1).astype(np.float32)
    forest = Forest(np.zeros(1, np.int32), column, threshold, left, value, np.zeros(1, np.float32))
    x, reference, players = np.ones(6, np.float32), np.full(6, 0.5, np.float32), np.arange(6, dtype=np.int32)
    values, before, after = shapley_values(forest, x, reference, players)
    expected, without, with_all = brute_force(forest, x, reference, players)
    np.testing.assert_allclose(values, expected, atol=1e-5)
    assert (before, after) == (without, with_all)


def test_values_are_those_of_the_shap_package():
    shap = pytest.importorskip("shap")
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(0)
    X = rng.random((200, 5)).astype(np.float32)
    model = ensemble.RandomForestRegressor(5, max_depth=5, random_state=0).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    x, reference, players = X[0], X[1], np.arange(5, dtype=np.int32)
    found = [shapley_values(renumbered(one.tree_), x, reference, players)[0] for one in model.estimators_]
    explainer = shap.TreeExplainer(model, reference[None], feature_perturbation="interventional")
    np.testing.assert_allclose(np.mean(found, axis=0), explainer.shap_values(x[None])[0], atol=1e-5)


def renumbered(tree):
    """A tree of scikit-learn with the children of a node next to each other."""
    order, queue = {0: 0}, [0]
    for node in queue:
        if tree.children_left[node] >= 0:
            for child in (tree.children_left[node], tree.children_right[node]):
                order[child] = len(order)
                queue.append(child)
    inner = tree.children_left[queue] >= 0
    left = np.array(
        [order[tree.children_left[node]] if is_inner else 0 for node, is_inner in zip(queue, inner, strict=True)]
    )
    return Forest(
        np.zeros(1, np.int32), np.where(inner, tree.feature[queue], -1).astype(np.int32),
        tree.threshold[queue].astype(np.float32), left.astype(np.int32), tree.value[queue, 0, 0].astype(np.float32),
        np.zeros(1, np.float32),
    )  # fmt: skip
