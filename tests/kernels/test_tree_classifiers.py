import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.dual_cd import SolverOptions, solve_squared_hinge, squared_norms
from labelspace.kernels.lanes import LANES
from labelspace.kernels.tree_classifiers import (
    classifier_targets,
    compact_rows,
    count_entries,
    leaf_ranges,
    node_training_set,
    train_children,
    train_nodes,
)
from labelspace.labels.tree import TreeNodes
from labelspace.models.hierarchicalxc.dendrogram import Dendrogram, to_nodes


def test_compact_rows_have_the_same_values_in_new_columns():
    X = planted(n=60, d=80, l=5, seed=1).X
    rows, new_column = np.array([5, 9, 33], np.int32), np.full(80, -1, np.int32)
    values, columns, ends, column_ids = compact_rows(X.data, X.indices, X.indptr, rows, new_column)
    assert ends.dtype == np.int64, "there may be more than 2**31 entries"
    small = sp.csr_matrix((values, columns, ends), shape=(3, len(column_ids))).toarray()
    assert np.array_equal(small, X[rows].toarray()[:, column_ids])
    assert len(set(column_ids)) == len(column_ids) == len(np.unique(X[rows].indices))
    assert (new_column == -1).all()


def row_buffers(X, rows):
    """What ``train_children`` copies the rows into."""
    n_entries = count_entries(X.indptr, rows)
    assert n_entries == X[rows].nnz
    return np.empty(n_entries, np.float32), np.empty(n_entries, np.int32)


def test_children_are_trained_like_single_classifiers():
    data = planted(n=300, d=200, l=12, seed=2)
    rows = np.arange(0, 300, 2, dtype=np.int32)
    positive_rows = [np.flatnonzero(data.Y[rows][:, child].toarray().ravel()) for child in range(3)]
    ends = np.cumsum([0, *map(len, positive_rows)]).astype(np.int64)
    new_column = np.full(200, -1, np.int32)
    features, weights, stops, biases = train_children(
        data.X.data, data.X.indices, data.X.indptr, rows, np.concatenate(positive_rows).astype(np.int32), ends,
        False, 1.0, 1.0, 1e-5, 500, 0.01, 7, new_column, *row_buffers(data.X, rows),
    )  # fmt: skip
    X = data.X[rows]
    norms = squared_norms(X.data, X.indptr, 1.0)
    for child in range(3):
        signs = np.zeros((len(rows), LANES), np.float32)
        signs[:, 0] = -1
        signs[positive_rows[child], 0] = 1
        w, scratch = np.zeros((201, LANES), np.float32), (np.empty_like(signs), np.empty(len(rows), np.int32))
        solve_squared_hinge(csr_arrays(X), norms, signs, 1.0, SolverOptions(1.0, 1e-5, 500), 7 + child, w, *scratch)
        w = w[:, 0]
        own = np.zeros(200, np.float32)
        own[features[stops[child] : stops[child + 1]]] = weights[stops[child] : stops[child + 1]]
        expected = np.where(np.abs(w[:-1]) >= 0.01, w[:-1], 0)
        assert np.allclose(own, expected, atol=2e-3)
        assert np.isclose(biases[child], w[-1], atol=2e-3)


def test_the_training_set_of_a_node_is_the_union_of_its_labels_documents():
    rng = np.random.default_rng(8)
    Y = sp.random(50, 12, 0.1, "csc", np.float32, rng=rng)
    cuts, row_index = np.array([2, 3, 7, 9]), np.full(50, -1, np.int32)
    negatives = np.array([4, 44, 4], np.int32)
    dense = Y.toarray() > 0
    for all_rows in (False, True):
        rows, positives, ends = node_training_set(Y.indices, Y.indptr, cuts, all_rows, negatives, row_index)
        expected = np.union1d(np.flatnonzero(dense[:, 2:9].any(axis=1)), negatives)
        assert rows.tolist() == (list(range(50)) if all_rows else expected.tolist())
        for child in range(3):
            own = np.sort(rows[positives[ends[child] : ends[child + 1]]])
            assert own.tolist() == np.flatnonzero(dense[:, cuts[child] : cuts[child + 1]].any(axis=1)).tolist()
        assert (row_index == -1).all()


def random_nodes(n, seed):
    """A random binary tree over n labels, in the numbering of the search."""
    rng = np.random.default_rng(seed)
    nodes, merges = list(range(n)), []
    for at in range(n - 1):
        merges.append([nodes.pop(rng.integers(len(nodes))) for _ in range(2)])
        nodes.append(n + at)
    return to_nodes(Dendrogram(np.array(merges, np.int32).reshape(-1, 2), np.zeros(n - 1, np.float32)))


BUSHY = TreeNodes(  # leaves at all depths, nodes of one, two and three children
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
@pytest.mark.parametrize("max_distance", [1, 2, 3])
def test_classifier_targets_are_the_nodes_near_the_paths_to_a_row_s_labels(tree, max_distance):
    rng = np.random.default_rng(9)
    n = tree.n_labels + 2  # two labels have no leaf
    Y = sp.csr_matrix((rng.random((40, n)) < 3 / n).astype(np.float32))
    Y = sp.vstack([Y, sp.csr_matrix((1, n), dtype=np.float32)]).tocsr()  # the last has no label
    leaf_by_label, leaf_of = leaves(tree), np.full(n, -1, np.int32)
    leaf_of[list(leaf_by_label)] = list(leaf_by_label.values())
    rows, row_index = rng.permutation(41).astype(np.int32)[:30], np.full(len(tree), -1, np.int32)
    rows[0] = 40
    targets, nodes, ends = classifier_targets(
        Y.indices, Y.indptr, rows, leaf_of, tree.parent, tree.first_child, tree.last_child, max_distance, row_index
    )
    assert (row_index == -1).all(), "scratch is reset"
    assert targets.dtype == np.float32
    assert nodes.dtype == ends.dtype == np.int32
    assert len(ends) == 31
    for i, row in enumerate(rows):
        labels = set(Y[row].indices.tolist()) & leaf_by_label.keys()
        on_path = {0}.union(*(ancestors(tree, leaf_by_label[label]) for label in labels))
        expected = {}
        for node in range(1, len(tree)):
            up, steps = node, 0
            while up not in on_path:
                up, steps = int(tree.parent[up]), steps + 1
            if steps <= max_distance:
                expected[node] = float(steps == 0)
        own = slice(ends[i], ends[i + 1])
        assert len(set(nodes[own])) == len(nodes[own]), "each node once"
        assert dict(zip(nodes[own].tolist(), targets[own].tolist(), strict=True)) == expected


def test_classifier_targets_of_no_rows_and_of_more_than_the_capacity():
    tree = random_nodes(200, 3)
    leaf_by_label, leaf_of = leaves(tree), np.empty(200, np.int32)
    leaf_of[list(leaf_by_label)] = list(leaf_by_label.values())
    Y, row_index = sp.csr_matrix(np.ones((9, 200), np.float32)), np.full(len(tree), -1, np.int32)
    rest = (leaf_of, tree.parent, tree.first_child, tree.last_child, 1, row_index)
    targets, nodes, ends = classifier_targets(Y.indices, Y.indptr, np.zeros(0, np.int32), *rest)
    assert (len(targets), len(nodes), ends.tolist()) == (0, 0, [0])
    targets, nodes, ends = classifier_targets(Y.indices, Y.indptr, np.arange(9, dtype=np.int32), *rest)
    assert np.array_equal(np.sort(nodes.reshape(9, 398)), np.tile(np.arange(1, 399), (9, 1)))
    assert (targets == 1).all()


@pytest.mark.parametrize("tree", TREES, ids=len)
def test_leaf_ranges_are_contiguous(tree):
    bounds = leaf_ranges(tree.first_child, tree.last_child)
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
def test_nodes_trained_in_one_call_equal_those_trained_one_by_one(logistic):
    data = planted(n=300, d=200, l=12, seed=2)
    X, positive_rows = data.X, data.Y.tocsc()
    cuts = np.array([[0, 5, 12], [0, 2, 5], [5, 6, 12], [3, 4, 5]])
    roots = np.array([True, False, False, False])
    settings = (logistic, 1.0, 2.0, 0.1, 20, 0.001)
    features, weights, stops, biases = train_nodes(
        X.data, X.indices, X.indptr, 200, positive_rows.indices, positive_rows.indptr, cuts, roots, *settings, 7
    )
    assert len(features) > 1024, "more than the initial capacity"
    assert stops[0] == 0
    assert stops[-1] == len(features) == len(weights)
    assert (len(stops), len(biases)) == (9, 8)
    for i in range(4):
        row_index, new_column = np.full(300, -1, np.int32), np.full(200, -1, np.int32)
        training_set = node_training_set(
            positive_rows.indices, positive_rows.indptr, cuts[i], roots[i], np.zeros(0, np.int32), row_index
        )
        node_features, values, ends, node_biases = train_children(
            X.data, X.indices, X.indptr, *training_set, *settings, 7 + i, new_column, *row_buffers(X, training_set[0])
        )
        own = slice(stops[2 * i], stops[2 * i + 2])
        assert np.array_equal(features[own], node_features)
        assert np.array_equal(weights[own], values)
        assert np.array_equal(stops[2 * i : 2 * i + 3] - stops[2 * i], ends)
        assert np.array_equal(biases[2 * i : 2 * i + 2], node_biases)


def test_nodes_of_documents_without_features_have_a_bias_alone():
    X, positive_rows = sp.csr_matrix((6, 5), dtype=np.float32), sp.csc_matrix(np.eye(6, 2, dtype=np.float32))
    features, weights, stops, biases = train_nodes(
        X.data, X.indices, X.indptr, 5, positive_rows.indices, positive_rows.indptr, np.array([[0, 1, 2]]),
        np.array([True]), True, 1.0, 1.0, 0.1, 20, 0.0, 0,
    )  # fmt: skip
    assert len(features) == len(weights) == 0
    assert stops.tolist() == [0, 0, 0]
    assert (biases < 0).all()
