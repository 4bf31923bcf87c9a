import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.kernels.dual_cd import descend, squared_norms
from labelspace.kernels.tree_classifiers import decisions, local_rows, reached, spans, train_children, train_nodes
from labelspace.labels.tree import Nodes
from labelspace.models.hierarchicalxc.dendrogram import Dendrogram, to_nodes


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


def random_nodes(n, seed):
    """A random binary tree over n labels, in the numbering of the search."""
    rng = np.random.default_rng(seed)
    tops, merges = list(range(n)), []
    for at in range(n - 1):
        merges.append([tops.pop(rng.integers(len(tops))) for _ in range(2)])
        tops.append(n + at)
    return to_nodes(Dendrogram(np.array(merges, np.int32).reshape(-1, 2), np.zeros(n - 1, np.float32)))


BUSHY = Nodes(  # leaves at all depths, nodes of one, two and three children
    *(np.array(a, np.int32) for a in (
        [1, 0, 4, 5, 8, 0, 0, 0, 9, 0], [4, 0, 5, 8, 9, 0, 0, 0, 10, 0], [-1, 3, -1, -1, -1, 1, 0, 4, -1, 2],
    ))
)  # fmt: skip
TREES = [BUSHY, random_nodes(1, 0), random_nodes(2, 0), random_nodes(9, 1), random_nodes(30, 2)]


def ancestors(tree, node):
    """A node and all above it."""
    return {node} if node == 0 else {node} | ancestors(tree, int(tree.parent[node]))


def leaves(tree):
    """Label -> leaf."""
    return {int(tree.label[node]): int(node) for node in np.flatnonzero(tree.label >= 0)}


@pytest.mark.parametrize("tree", TREES, ids=len)
@pytest.mark.parametrize("astray", [1, 2, 3])
def test_decisions_are_the_nodes_within_some_steps_of_those_above_a_row_s_labels(tree, astray):
    rng = np.random.default_rng(9)
    n = tree.n_labels + 2  # two labels have no leaf
    Y = sp.csr_matrix((rng.random((40, n)) < 3 / n).astype(np.float32))
    Y = sp.vstack([Y, sp.csr_matrix((1, n), dtype=np.float32)]).tocsr()  # the last has no label
    below, leaf_of = leaves(tree), np.full(n, -1, np.int32)
    leaf_of[list(below)] = list(below.values())
    rows, mark = rng.permutation(41).astype(np.int32)[:30], np.full(len(tree), -1, np.int32)
    rows[0] = 40
    targets, nodes, ends = decisions(
        Y.indices, Y.indptr, rows, leaf_of, tree.parent, tree.first_child, tree.last_child, astray, mark
    )
    assert (mark == -1).all(), "left as it was found"
    assert targets.dtype == np.float32
    assert nodes.dtype == ends.dtype == np.int32
    assert len(ends) == 31
    for i, row in enumerate(rows):
        labels = set(Y[row].indices.tolist()) & below.keys()
        on_the_way = {0}.union(*(ancestors(tree, below[label]) for label in labels))
        expected = {}
        for node in range(1, len(tree)):
            up, steps = node, 0
            while up not in on_the_way:
                up, steps = int(tree.parent[up]), steps + 1
            if steps <= astray:
                expected[node] = float(steps == 0)
        mine = slice(ends[i], ends[i + 1])
        assert len(set(nodes[mine])) == len(nodes[mine]), "each node once"
        assert dict(zip(nodes[mine].tolist(), targets[mine].tolist(), strict=True)) == expected


def test_decisions_of_no_rows_and_of_more_than_were_foreseen():
    tree = random_nodes(200, 3)
    below, leaf_of = leaves(tree), np.empty(200, np.int32)
    leaf_of[list(below)] = list(below.values())
    Y, mark = sp.csr_matrix(np.ones((9, 200), np.float32)), np.full(len(tree), -1, np.int32)
    rest = (leaf_of, tree.parent, tree.first_child, tree.last_child, 1, mark)
    targets, nodes, ends = decisions(Y.indices, Y.indptr, np.zeros(0, np.int32), *rest)
    assert (len(targets), len(nodes), ends.tolist()) == (0, 0, [0])
    targets, nodes, ends = decisions(Y.indices, Y.indptr, np.arange(9, dtype=np.int32), *rest)
    assert np.array_equal(np.sort(nodes.reshape(9, 398)), np.tile(np.arange(1, 399), (9, 1)))
    assert (targets == 1).all()


@pytest.mark.parametrize("tree", TREES, ids=len)
def test_spans_are_stretches_of_the_leaves(tree):
    bounds = spans(tree.first_child, tree.last_child)
    assert bounds.dtype == np.int64
    assert bounds[0].tolist() == [0, tree.n_labels]
    for node in range(len(tree)):
        children = bounds[tree.first_child[node] : tree.last_child[node]]
        if tree.label[node] >= 0:
            assert bounds[node, 1] - bounds[node, 0] == 1
        else:
            assert children[0, 0] == bounds[node, 0]
            assert children[-1, 1] == bounds[node, 1]
            assert np.array_equal(children[1:, 0], children[:-1, 1]), "the first child's first"


@pytest.mark.parametrize("logistic", [False, True])
def test_nodes_trained_in_one_pass_are_those_trained_one_by_one(logistic):
    data = planted(n=300, d=200, l=12, seed=2)
    X, below = data.X, data.Y.tocsc()
    cuts = np.array([[0, 5, 12], [0, 2, 5], [5, 6, 12], [3, 4, 5]])
    roots = np.array([True, False, False, False])
    settings = (logistic, 1.0, 2.0, 0.1, 20, 0.001)
    features, weights, stops, biases = train_nodes(
        X.data, X.indices, X.indptr, 200, below.indices, below.indptr, cuts, roots, *settings, 7
    )
    assert len(features) > 1024, "more than was foreseen"
    assert stops[0] == 0
    assert stops[-1] == len(features) == len(weights)
    assert (len(stops), len(biases)) == (9, 8)
    for i in range(4):
        mark, place = np.full(300, -1, np.int32), np.full(200, -1, np.int32)
        reach = reached(below.indices, below.indptr, cuts[i], roots[i], np.zeros(0, np.int32), mark)
        own, values, ends, own_biases = train_children(X.data, X.indices, X.indptr, *reach, *settings, 7 + i, place)
        mine = slice(stops[2 * i], stops[2 * i + 2])
        assert np.array_equal(features[mine], own)
        assert np.array_equal(weights[mine], values)
        assert np.array_equal(stops[2 * i : 2 * i + 3] - stops[2 * i], ends)
        assert np.array_equal(biases[2 * i : 2 * i + 2], own_biases)


def test_nodes_of_documents_without_features_have_a_bias_alone():
    X, below = sp.csr_matrix((6, 5), dtype=np.float32), sp.csc_matrix(np.eye(6, 2, dtype=np.float32))
    features, weights, stops, biases = train_nodes(
        X.data, X.indices, X.indptr, 5, below.indices, below.indptr, np.array([[0, 1, 2]]), np.array([True]),
        True, 1.0, 1.0, 0.1, 20, 0.0, 0,
    )  # fmt: skip
    assert len(features) == len(weights) == 0
    assert stops.tolist() == [0, 0, 0]
    assert (biases < 0).all()
