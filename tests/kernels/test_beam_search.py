import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.kernels.beam_search import (
    LinearTrees,
    NodeVectors,
    NodeWeights,
    Search,
    Tree,
    add_all_weights,
    advance_beams,
    beam_search,
    child_margins,
    dense_beam_search,
    is_quicker_at_once,
    log_activation,
    log_activation_bound,
    lower_bound,
    sort_by_node,
)
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.types import TopK

ROOT = np.zeros(1, np.int32)


def test_lower_bound_is_searchsorted():
    values = np.array([1, 3, 3, 8], np.int32)
    assert [lower_bound(values, 0, 4, target) for target in range(10)] == np.searchsorted(values, range(10)).tolist()


def test_a_larger_margin_always_has_a_higher_activation():
    margins = np.linspace(-30, 8, 400)
    steps = [log_activation(np.float32(m), 3.0) for m in margins]
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


def node_weights(W, bias):
    """Weights as a model of few nodes has them."""
    return NodeWeights(W.data, W.indices.astype(np.uint16), W.indptr, bias)


def search(X, W, bias, first, last, label, roots, k, settings):
    """``beam_search`` for all rows."""
    out = TopK.empty(X.shape[0], k)
    trees = LinearTrees(*node_weights(W, bias), first, last, label, roots, *settings)
    beam_search(csr_arrays(X), 0, X.shape[0], trees, out.labels, out.scores)
    return out


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
    out = search(X, *parts, 16, Search(16, 3.0, -np.inf))
    scores = exhaustive(X, *parts, 3.0)
    assert np.allclose(np.sort(out.scores)[:, ::-1], np.sort(scores)[:, ::-1], atol=1e-5)
    assert np.allclose(np.take_along_axis(scores, out.labels.astype(int), 1), out.scores, atol=1e-5)


def test_a_narrow_beam_follows_the_best_node_only():
    rng = np.random.default_rng(5)
    X = sp.random(20, 30, 0.3, "csr", np.float32, rng=rng)
    W, bias, first, last, label, roots = forest(rng, trees=1, fan=4, n_features=30)
    out = search(X, W, bias, first, last, label, roots, 2, Search(1, 3.0, -np.inf))
    margins = X.toarray() @ W.toarray() + bias
    best = 1 + margins[:, 1:5].argmax(axis=1)
    for row in range(20):
        children = label[first[best[row]] : last[best[row]]]
        assert set(out.labels[row]) <= set(children)


def test_margins_of_all_nodes_at_once_are_those_along_the_beam():
    rng = np.random.default_rng(8)
    X = sp.random(20, 30, 0.3, "csr", np.float32, rng=rng)
    W, bias, first, last, label, _ = forest(rng, trees=1, fan=5, n_features=30)
    weights = node_weights(W, bias)._replace(values=rng.integers(-127, 128, W.nnz).astype(np.int8))
    tree = Tree(first, last, label)
    nodes, shift = np.array([0, 2, 3, 5], np.int32), np.empty(4, np.int64)
    every = np.empty(len(bias) + 3, np.float32)
    for row in range(20):
        document = (X[row].data, X[row].indices)
        add_all_weights(*document, weights, every)
        margins = child_margins(*document, weights, tree, nodes, shift, np.empty(1, np.float32))
        for i, node in enumerate(nodes):
            for child in range(first[node], last[node]):
                assert margins[shift[i] + child] == every[child], "the same numbers"


@pytest.mark.parametrize("fan", [3, 30])
def test_the_search_is_the_same_where_few_of_many_weights_are_read(fan):
    rng = np.random.default_rng(9)
    X = sp.csr_matrix((rng.random(12).astype(np.float32), np.arange(12), np.arange(13)), shape=(12, 12))
    W, bias, first, last, label, roots = forest(rng, trees=1, fan=fan, n_features=12)
    assert is_quicker_at_once(X[3].indices, W.indptr, len(label), 1) == (fan == 3)
    out = search(X, W, bias, first, last, label, roots, 2, Search(1, 3.0, -np.inf))
    margins = X.toarray() @ W.toarray() + bias
    steps = np.exp(-((np.logaddexp(0, 2 - 2 * margins) / 2) ** 3))
    for row in range(12):
        best = 1 + margins[row, 1 : fan + 1].argmax()
        leaves = np.arange(first[best], last[best])
        expected = np.sort(steps[row, best] * steps[row, leaves])[::-1][:2]
        assert np.allclose(out.scores[row], expected, atol=1e-5)


def test_leaves_may_lie_at_any_depth():
    """Root 0 has a leaf (label 0) and a node with two leaves: the search finds all three with a beam of one."""
    rng = np.random.default_rng(6)
    X = sp.random(15, 10, 0.5, "csr", np.float32, rng=rng)
    W = sp.random(10, 5, 0.8, "csr", np.float32, rng=rng)
    bias = rng.standard_normal(5).astype(np.float32)
    first, last, label = (np.array(a, np.int32) for a in ([1, 0, 3, 0, 0], [3, 0, 5, 0, 0], [-1, 0, -1, 1, 2]))
    for power in (3.0, 0.0):
        out = search(X, W, bias, first, last, label, ROOT, 3, Search(1, power, -np.inf))
        margins = X.toarray() @ W.toarray() + bias
        gaps = np.logaddexp(0, 2 - 2 * margins) / 2
        steps = np.exp(-(gaps**3)) if power else 1 / (1 + np.exp(-margins))
        scores = np.stack([steps[:, 1], steps[:, 2] * steps[:, 3], steps[:, 2] * steps[:, 4]], axis=1)
        assert np.allclose(np.take_along_axis(scores, out.labels.astype(int), 1), out.scores, atol=1e-5)
        assert (np.diff(out.scores) <= 0).all()


def test_the_activation_bound_is_an_upper_bound():
    for power in (0.0, 1.0, 3.0):
        for margin in np.linspace(-25, 5, 121):
            assert log_activation_bound(np.float32(margin), power) >= log_activation(np.float32(margin), power) - 1e-6


def test_advance_beams_moves_every_beam_one_level_down():
    rng = np.random.default_rng(7)
    X = sp.random(20, 30, 0.3, "csr", np.float32, rng=rng)
    W, bias, first, last, label, roots = forest(rng, trees=2, fan=4, n_features=30)
    W.data = rng.integers(-127, 128, W.nnz).astype(np.float32)
    X.data /= 127
    weights = node_weights(W, bias)._replace(values=W.data.astype(np.int8))
    beams, scores = np.full((20, 3), -1, np.int32), np.full((20, 3), -np.inf, np.float32)
    beams[:, 0], scores[:, 0] = roots[1], 0.0
    rest = (LinearTrees(*weights, first, last, label, roots, 3, 3.0), beams, scores)
    advance_beams(csr_arrays(X), 0, 20, *rest)
    margins = (X.toarray() @ W.toarray() + bias)[:, first[roots[1]] : last[roots[1]]]
    best = np.argsort(-margins, axis=1)[:, :3]
    assert np.array_equal(beams, best + first[roots[1]])
    advance_beams(csr_arrays(X), 0, 20, *rest)
    assert (beams == -1).all(), "below are leaves only"


def binary(rng, n, width):
    """A random binary tree over n labels with leaves at all depths, and a row of weights per node."""
    sizes, first, last = [n], [], []
    for size in sizes:  # grows during the loop: breadth first
        inner = size > 1
        first.append(len(sizes) if inner else 0)
        if inner:
            part = int(rng.integers(1, size))
            sizes += [part, size - part]
        last.append(len(sizes) if inner else 0)
    label = np.where(np.array(sizes) > 1, -1, 0).astype(np.int32)
    label[label == 0] = rng.permutation(n)
    weights = rng.standard_normal((len(label), width)).astype(np.float32)
    return weights, np.array(first, np.int32), np.array(last, np.int32), label


def paths(first, last, label):
    """Label -> the nodes on the path to its leaf, without the root."""
    out, stack = {}, [(0, ())]
    while stack:
        node, path = stack.pop()
        if label[node] >= 0:
            out[int(label[node])] = list(path)
        stack += [(child, (*path, child)) for child in range(first[node], last[node])]
    return out


def products(codes, weights, first, last, label, min_probability=0.0):
    """The NumPy twin: products of probabilities along every path; steps below ``min_probability`` are 0."""
    probabilities = 1 / (1 + np.exp(-(codes @ weights.T).astype(np.float64)))
    probabilities[probabilities < min_probability] = 0
    node_paths = paths(first, last, label)
    return np.stack([probabilities[:, node_paths[i]].prod(axis=1) for i in sorted(node_paths)], axis=1)


@pytest.fixture(name="planted_tree")
def a_tree():
    rng = np.random.default_rng(10)
    codes = rng.standard_normal((25, 6)).astype(np.float32)
    codes[:, -1] = 1  # what the bias is multiplied by
    return codes, *binary(rng, 14, 6)


def dense_search(codes, weights, first, last, label, k, beam, min_log_activation=-np.inf):
    out = TopK.empty(len(codes), k)
    scales = np.full(len(weights), 0.5, np.float32)
    vectors = NodeVectors(2 * weights[:, :-1], scales, weights[:, -1] * codes[0, -1])
    settings = Search(beam, 0.0, min_log_activation)
    dense_beam_search(codes[:, :-1].copy(), vectors, Tree(first, last, label), settings, out.labels, out.scores)
    return out


@pytest.mark.parametrize("k", [3, 14, 20])
def test_a_beam_as_wide_as_the_tree_finds_every_product(planted_tree, k):
    assert len({len(path) for path in paths(*planted_tree[2:]).values()}) > 2, "leaves at all depths"
    out, expected = dense_search(*planted_tree, k, beam=14), products(*planted_tree)
    best = TopK.from_scores(expected, min(k, 14))
    assert np.array_equal(out.labels[:, :14], best.labels)
    assert np.allclose(out.scores[:, :14], best.scores, rtol=1e-5)
    assert (out.labels[:, 14:] == -1).all()
    assert np.isneginf(out.scores[:, 14:]).all()


@pytest.mark.parametrize("min_probability", [0.3, 0.5, 0.9])
def test_children_of_low_probability_are_pruned(planted_tree, min_probability):
    out = dense_search(*planted_tree, 14, beam=14, min_log_activation=float(np.log(min_probability)))
    expected = products(*planted_tree, min_probability)
    for row in range(25):
        found = out.labels[row][out.labels[row] >= 0]
        assert sorted(found) == np.flatnonzero(expected[row] > 0).tolist()
        assert np.allclose(out.scores[row][: len(found)], expected[row, found], rtol=1e-5)
    assert 0 < (out.labels >= 0).mean() < 1


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_a_narrow_beam_keeps_the_best_nodes_of_each_level(planted_tree, beam):
    codes, weights, first, last, label = planted_tree
    out = dense_search(*planted_tree, 14, beam)
    probabilities = 1 / (1 + np.exp(-(codes @ weights.T).astype(np.float64)))
    for row in range(25):
        beam_nodes, found = [(1.0, 0)], {}
        while beam_nodes:
            children = [
                (score * probabilities[row, c], c) for score, node in beam_nodes for c in range(first[node], last[node])
            ]
            found.update({int(label[c]): score for score, c in children if label[c] >= 0})
            beam_nodes = sorted(((score, c) for score, c in children if label[c] < 0), reverse=True)[:beam]
        listed = out.labels[row] >= 0
        assert set(out.labels[row][listed]) == found.keys()
        assert np.allclose([found[name] for name in out.labels[row][listed]], out.scores[row][listed], rtol=1e-5)
        assert (np.diff(out.scores[row][listed]) <= 0).all()


def test_dense_rows_are_searched_as_sparse_ones(planted_tree):
    codes, weights, first, last, label = planted_tree
    X, W = sp.csr_matrix(codes), sp.csr_matrix(weights.T)
    for beam, min_log_activation in ((3, -np.inf), (14, float(np.log(0.4)))):
        settings = Search(beam, 0.0, min_log_activation)
        out = search(X, W, np.zeros(len(label), np.float32), first, last, label, ROOT, 8, settings)
        dense = dense_search(*planted_tree, 8, beam, min_log_activation)
        assert np.array_equal(dense.labels, out.labels)
        assert np.allclose(dense.scores, out.scores, rtol=1e-5)
    single = dense_search(codes[7:8], *planted_tree[1:], 8, 14, min_log_activation)
    assert np.array_equal(single.scores[0], dense.scores[7]), "a row does not depend on the others"


def test_a_node_with_many_children_enlarges_the_buffer():
    rng = np.random.default_rng(11)
    n = 1500
    first, last, label = np.zeros((3, n + 1), np.int32)
    first[0], last[0], label[0], label[1:] = 1, n + 1, -1, np.arange(n)
    codes = rng.standard_normal((2, 3)).astype(np.float32)
    codes[:, -1] = 1  # what the bias is multiplied by
    weights = rng.standard_normal((n + 1, 3)).astype(np.float32)
    out = dense_search(codes, weights, first, last, label, 5, beam=1)
    assert np.array_equal(out.labels, np.argsort(-(codes @ weights[1:].T), axis=1)[:, :5])


@pytest.mark.parametrize("size", [1e-7, 60.0])
def test_a_smaller_k_is_a_prefix_of_a_larger_one_even_if_scores_round_to_the_same(size):
    """Scores near 1, or too small for a float, must not lose the order that their logarithms have."""
    rng = np.random.default_rng(12)
    weights, first, last, label = binary(rng, 40, 1)
    weights[:, 0] = (12 if size < 1 else -size) + size * rng.random(len(label))
    W, ones = sp.csr_matrix(weights.T), sp.csr_matrix(np.ones((1, 1), np.float32))
    for k in range(1, 40):
        full, cut = (dense_search(np.ones((1, 1), np.float32), weights, first, last, label, n, 40) for n in (40, k))
        assert np.array_equal(full.labels[:, :k], cut.labels)
        bias, settings = np.zeros(len(label), np.float32), Search(40, 0.0, -np.inf)
        results = [search(ones, W, bias, first, last, label, ROOT, k_out, settings) for k_out in (40, k)]
        assert np.array_equal(results[0].labels[:, :k], results[1].labels)


def test_power_0_is_the_log_sigmoid():
    margins = np.linspace(-40, 40, 321).astype(np.float32)
    steps = [log_activation(margin, 0.0) for margin in margins]
    assert np.allclose(steps, -np.logaddexp(0, -margins.astype(np.float64)), rtol=1e-6, atol=1e-12)
