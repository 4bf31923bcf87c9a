import numpy as np
import pytest

from labelspace.estimator.state_constraints import StateError
from labelspace.models.blend.boosting.forest import Forest
from labelspace.models.blend.boosting.kernels import MAX_LEAVES, ROWS_AT_ONCE


def random_forest(rng, n_trees, n_leaves, n_columns):
    """Trees that are grown at random leaves: some long and narrow."""
    roots, column, left = [], [], []
    for _ in range(n_trees):
        root = len(column)
        roots.append(root)
        column, left = [*column, -1], [*left, 0]
        for _ in range(n_leaves - 1):
            leaf = rng.choice([node for node in range(root, len(column)) if column[node] < 0])
            column[leaf], left[leaf] = int(rng.integers(n_columns)), len(column)
            column, left = [*column, -1, -1], [*left, 0, 0]
    threshold, value = rng.random((2, len(column))).astype(np.float32)
    ints = (np.array(a, np.int32) for a in (roots, column, left))
    roots, column, left = ints
    return Forest(roots, column, threshold, left, value, np.zeros(1, np.float32))


def walk(forest, row):
    """The twin: from each root down to a leaf."""
    total = 0.0
    for node in forest.roots:
        while forest.column[node] >= 0:
            node = forest.left[node] + (row[forest.column[node]] > forest.threshold[node])
        total += forest.value[node]
    return total


@pytest.mark.parametrize("n_leaves", [1, 2, 16, MAX_LEAVES])
@pytest.mark.parametrize("n_rows", [1, 17, 2 * ROWS_AT_ONCE + 5])
def test_scores_are_those_of_a_walk_down_each_tree(n_leaves, n_rows):
    rng = np.random.default_rng(n_leaves)
    forest = random_forest(rng, 5, n_leaves, 4)
    forest.check_state()
    F = rng.random((n_rows, 4), np.float32)
    F[0, :] = forest.threshold[0]  # a value that equals a threshold goes left
    odds = np.log(forest.probabilities(F) / (1 - forest.probabilities(F)))
    assert np.allclose(odds, [walk(forest, row) for row in F], atol=1e-4)


def test_what_is_no_forest_of_small_trees_is_refused():
    rng = np.random.default_rng(0)
    forest = random_forest(rng, 2, 4, 3)
    with pytest.raises(StateError, match="at most 32 leaves"):
        random_forest(rng, 2, MAX_LEAVES + 1, 3).check_state()
    shared = forest.left.copy()
    inner = np.flatnonzero(forest.column >= 0)
    shared[inner[1]] = forest.left[inner[0]] if forest.left[inner[0]] > inner[1] else shared[inner[2]]
    with pytest.raises(StateError, match="one tree each"):
        Forest(forest.roots, forest.column, forest.threshold, shared, forest.value, forest.base).check_state()
