import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.kernels.dual import descend, squared_norms
from labelspace.kernels.tree import beam_search, first_at_least, local_rows, log_step, sort_by_node, train_children
from labelspace.types import TopK


def test_local_rows_hold_the_same_values_under_new_numbers():
    X = planted(n=60, d=80, l=5, seed=1).X
    rows, place = np.array([5, 9, 33], np.int32), np.full(80, -1, np.int32)
    values, columns, ends, names = local_rows(X.data, X.indices, X.indptr, rows, place)
    small = sp.csr_matrix((values, columns, ends), shape=(3, len(names))).toarray()
    assert np.array_equal(small, X[rows].toarray()[:, names])
    assert len(set(names)) == len(names) == len(np.unique(X[rows].indices))
    assert (place == -1).all()


def test_children_are_trained_as_alone_on_the_same_rows():
    data = planted(n=300, d=200, l=12, seed=2)
    rows = np.arange(0, 300, 2, dtype=np.int32)
    marked = [np.flatnonzero(data.Y[rows][:, child].toarray().ravel()) for child in range(3)]
    ends = np.cumsum([0, *map(len, marked)]).astype(np.int64)
    place = np.full(200, -1, np.int32)
    features, weights, stops, biases = train_children(
        data.X.data, data.X.indices, data.X.indptr, rows, np.concatenate(marked).astype(np.int32), ends,
        1.0, 1.0, 1e-5, 500, 0.01, 7, place,
    )  # fmt: skip
    X = data.X[rows]
    norms = squared_norms(X.data, X.indptr, 1.0)
    for child in range(3):
        w = np.zeros(201, np.float32)
        positive = np.zeros(len(rows), bool)
        positive[marked[child]] = True
        scratch = np.empty(len(rows), np.float32), np.empty(len(rows), np.int32)
        descend(X.data, X.indices, X.indptr, norms, positive, 1.0, 1.0, 1e-5, 500, 7 + child, w, *scratch)
        mine = np.zeros(200, np.float32)
        mine[features[stops[child] : stops[child + 1]]] = weights[stops[child] : stops[child + 1]]
        expected = np.where(np.abs(w[:-1]) >= 0.01, w[:-1], 0)
        assert np.allclose(mine, expected, atol=2e-3)
        assert np.isclose(biases[child], w[-1], atol=2e-3)


def test_first_at_least_is_searchsorted():
    values = np.array([1, 3, 3, 8], np.int32)
    assert [first_at_least(values, 0, 4, goal) for goal in range(10)] == np.searchsorted(values, range(10)).tolist()


def test_a_larger_margin_is_always_a_better_step():
    margins = np.linspace(-30, 8, 400)
    steps = [log_step(np.float32(m), 3.0) for m in margins]
    assert (np.diff(steps) > 0).all()
    assert steps == pytest.approx(-((np.logaddexp(0, 2 - 2 * margins) / 2) ** 3), rel=1e-5)


def test_a_beam_is_sorted_by_node_with_its_scores():
    nodes, scores = np.array([5, 2, 9, 1, 0], np.int32), np.array([0.5, 0.2, 0.9, 0.1, 7.0], np.float32)
    sort_by_node(nodes, scores, 4)
    assert nodes.tolist() == [1, 2, 5, 9, 0]
    assert scores == pytest.approx([0.1, 0.2, 0.5, 0.9, 7.0])


def forest(rng, trees, fan, n_features):
    """Random trees of two levels: a root, ``fan`` nodes, ``fan`` leaves below each."""
    first, last, label, roots = [], [], [], []
    for _ in range(trees):
        root = len(first)
        roots.append(root)
        inner = root + 1 + np.arange(fan)
        leaves = root + 1 + fan + np.arange(fan * fan)
        first += [inner[0], *(leaves[i * fan] for i in range(fan)), *([0] * fan * fan)]
        last += [inner[-1] + 1, *(leaves[i * fan] + fan for i in range(fan)), *([0] * fan * fan)]
        label += [-1] * (fan + 1) + rng.permutation(fan * fan).tolist()
    W = sp.random(n_features, len(first), 0.4, "csr", np.float32, rng=rng)
    bias = rng.standard_normal(len(first)).astype(np.float32)
    return W, bias, *(np.array(a, np.int32) for a in (first, last, label, roots))


def exhaustive(X, W, bias, first, last, label, roots, power):
    """The NumPy twin: the mean over trees of the product along every path, no beam."""
    margins = X.toarray() @ W.toarray() + bias
    steps = np.exp(-((np.logaddexp(0, 2 - 2 * margins) / 2) ** power))
    scores = np.zeros((X.shape[0], label.max() + 1))
    for root in roots:
        for inner in range(first[root], last[root]):
            for leaf in range(first[inner], last[inner]):
                scores[:, label[leaf]] += steps[:, inner] * steps[:, leaf] / len(roots)
    return scores


def test_a_wide_beam_finds_what_an_exhaustive_search_finds():
    rng = np.random.default_rng(4)
    X = sp.random(20, 30, 0.3, "csr", np.float32, rng=rng)
    parts = forest(rng, trees=3, fan=4, n_features=30)
    W, *rest = parts
    out = TopK.empty(20, 16)
    beam_search(X.data, X.indices, X.indptr, 0, 20, W.data, W.indices, W.indptr, *rest, 16, 3.0, out.labels, out.scores)
    scores = exhaustive(X, *parts, 3.0)
    assert np.allclose(np.sort(out.scores)[:, ::-1], np.sort(scores)[:, ::-1], atol=1e-5)
    assert np.allclose(np.take_along_axis(scores, out.labels.astype(int), 1), out.scores, atol=1e-5)


def test_a_narrow_beam_follows_the_best_node_only():
    rng = np.random.default_rng(5)
    X = sp.random(20, 30, 0.3, "csr", np.float32, rng=rng)
    W, bias, first, last, label, roots = forest(rng, trees=1, fan=4, n_features=30)
    out = TopK.empty(20, 2)
    beam_search(
        X.data, X.indices, X.indptr, 0, 20, W.data, W.indices, W.indptr, bias, first, last, label, roots,
        1, 3.0, out.labels, out.scores,
    )  # fmt: skip
    margins = X.toarray() @ W.toarray() + bias
    best = 1 + margins[:, 1:5].argmax(axis=1)
    for row in range(20):
        below = label[first[best[row]] : last[best[row]]]
        assert set(out.labels[row]) <= set(below)
