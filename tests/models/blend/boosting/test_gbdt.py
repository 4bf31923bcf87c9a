import numpy as np

from labelspace.models.blend.boosting.kernels import HALF, N_BINS, GrowthOptions, best_split, grow_tree, pack_gradients

SCALE = 2.0**16


def brute_force_split(binned, g, h, min_child_weight, l2):
    best = (1e-6, -1, 0)
    parent_score = g.sum() ** 2 / (h.sum() + l2)
    for column in range(binned.shape[1]):
        for cut in np.unique(binned[:, column])[:-1]:
            left = binned[:, column] <= cut
            if min(h[left].sum(), h[~left].sum()) >= min_child_weight:
                child_scores = sum(g[side].sum() ** 2 / (h[side].sum() + l2) for side in (left, ~left))
                if child_scores - parent_score > best[0] + 1e-9:
                    best = (child_scores - parent_score, column, int(cut))
    return best


def find_leaf(binned, row, column, bins, left):
    node = 0
    while column[node] >= 0:
        node = left[node] if binned[row, column[node]] <= bins[node] else left[node] + 1
    return node


def table(seed, n=300, columns=4):
    rng = np.random.default_rng(seed)
    binned = rng.integers(0, 12, (n, columns)).astype(np.uint8)
    return binned, rng.uniform(-1, 1, n).astype(np.float32), rng.uniform(0.1, 0.3, n).astype(np.float32)


def test_gradients_are_packed_into_halves():
    packed = pack_gradients(np.float32([0.5, -1.0, -0.25]), np.float32([0.25, 0.0, 0.125]), SCALE)
    assert (packed >> HALF).tolist() == [2**15, -(2**16), -(2**14)]
    assert (packed.sum() & (2**HALF - 1)) / SCALE == 0.375


def test_the_best_split_is_the_best_of_all():
    for seed in range(5):
        binned, g, h = table(seed)
        packed, histogram = pack_gradients(g, h, SCALE), np.zeros((4, N_BINS), np.int64)
        for row in range(len(g)):
            for column in range(4):
                histogram[column, binned[row, column]] += packed[row]
        gain, column, last_left = best_split(histogram, SCALE, 4.0, 1.0)
        expected = brute_force_split(binned, g.astype(float), h.astype(float), 4.0, 1.0)
        assert (column, last_left) == expected[1:]
        np.testing.assert_allclose(gain, expected[0], rtol=1e-2)


def test_a_tree_gives_each_row_the_value_of_its_leaf():
    binned, g, h = table(7)
    margin = np.zeros(len(g), np.float32)
    column, bins, left, value = grow_tree(binned, g, h, GrowthOptions(8, 4.0, 1.0, 0.5), margin)
    assert (column < 0).sum() == 8
    leaves = np.array([find_leaf(binned, row, column, bins, left) for row in range(len(g))])
    assert np.bincount(leaves, h)[np.unique(leaves)].min() >= 3.99
    for leaf in np.unique(leaves):
        in_leaf = leaves == leaf
        np.testing.assert_allclose(value[leaf], -0.5 * g[in_leaf].sum() / (h[in_leaf].sum() + 1.0), rtol=1e-4)
    np.testing.assert_allclose(margin, value[leaves], rtol=1e-6)
