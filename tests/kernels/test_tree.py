import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.kernels.beam import advance, beam_search, first_at_least, log_step, log_step_at_best, sort_by_node
from labelspace.kernels.dual import descend, squared_norms
from labelspace.kernels.tree import local_rows, reached, train_children
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
        False, 1.0, 1.0, 1e-5, 500, 0.01, 7, place,
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
    beam_search(
        X.data, X.indices, X.indptr, 0, 20, W.data, W.indices, W.indptr, *rest, 16, 3.0, -np.inf, out.labels, out.scores
    )
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
        1, 3.0, -np.inf, out.labels, out.scores,
    )  # fmt: skip
    margins = X.toarray() @ W.toarray() + bias
    best = 1 + margins[:, 1:5].argmax(axis=1)
    for row in range(20):
        below = label[first[best[row]] : last[best[row]]]
        assert set(out.labels[row]) <= set(below)


def test_leaves_may_lie_at_any_depth():
    """Root 0 has a leaf (label 0) and a node with two leaves: the search finds all three with a beam of one."""
    rng = np.random.default_rng(6)
    X = sp.random(15, 10, 0.5, "csr", np.float32, rng=rng)
    W = sp.random(10, 5, 0.8, "csr", np.float32, rng=rng)
    bias = rng.standard_normal(5).astype(np.float32)
    first, last, label = (np.array(a, np.int32) for a in ([1, 0, 3, 0, 0], [3, 0, 5, 0, 0], [-1, 0, -1, 1, 2]))
    for power in (3.0, 0.0):
        out = TopK.empty(15, 3)
        beam_search(
            X.data, X.indices, X.indptr, 0, 15, W.data, W.indices, W.indptr, bias, first, last, label,
            np.zeros(1, np.int32), 1, power, -np.inf, out.labels, out.scores,
        )  # fmt: skip
        margins = X.toarray() @ W.toarray() + bias
        gaps = np.logaddexp(0, 2 - 2 * margins) / 2
        steps = np.exp(-(gaps**3)) if power else 1 / (1 + np.exp(-margins))
        scores = np.stack([steps[:, 1], steps[:, 2] * steps[:, 3], steps[:, 2] * steps[:, 4]], axis=1)
        assert np.allclose(np.take_along_axis(scores, out.labels.astype(int), 1), out.scores, atol=1e-5)
        assert (np.diff(out.scores) <= 0).all()


def test_the_cheap_bound_of_a_step_is_one():
    for power in (0.0, 1.0, 3.0):
        for margin in np.linspace(-25, 5, 121):
            assert log_step_at_best(np.float32(margin), power) >= log_step(np.float32(margin), power) - 1e-6


def test_advance_moves_every_beam_one_level_down():
    rng = np.random.default_rng(7)
    X = sp.random(20, 30, 0.3, "csr", np.float32, rng=rng)
    W, bias, first, last, label, roots = forest(rng, trees=2, fan=4, n_features=30)
    beams, scores = np.full((20, 3), -1, np.int32), np.full((20, 3), -np.inf, np.float32)
    beams[:, 0], scores[:, 0] = roots[1], 0.0
    rest = (W.data, W.indices, W.indptr, bias, first, last, label, 3.0, beams, scores)
    advance(X.data, X.indices, X.indptr, 0, 20, *rest)
    margins = (X.toarray() @ W.toarray() + bias)[:, first[roots[1]] : last[roots[1]]]
    best = np.argsort(-margins, axis=1)[:, :3]
    assert np.array_equal(beams, best + first[roots[1]])
    advance(X.data, X.indices, X.indptr, 0, 20, *rest)
    assert (beams == -1).all(), "below are leaves only"


def test_reached_is_the_union_of_the_labels_documents():
    rng = np.random.default_rng(8)
    Y = sp.random(50, 12, 0.1, "csc", np.float32, rng=rng)
    cuts, mark = np.array([2, 3, 7, 9]), np.full(50, -1, np.int32)
    others = np.array([4, 44, 4], np.int32)
    dense = Y.toarray() > 0
    for everything in (False, True):
        rows, positives, ends = reached(Y.indices, Y.indptr, cuts, everything, others, mark)
        expected = np.union1d(np.flatnonzero(dense[:, 2:9].any(axis=1)), others)
        assert rows.tolist() == (list(range(50)) if everything else expected.tolist())
        for child in range(3):
            mine = np.sort(rows[positives[ends[child] : ends[child + 1]]])
            assert mine.tolist() == np.flatnonzero(dense[:, cuts[child] : cuts[child + 1]].any(axis=1)).tolist()
        assert (mark == -1).all()
