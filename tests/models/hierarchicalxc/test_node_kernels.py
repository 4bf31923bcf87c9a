import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.kernels.beam_search import Tree
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.dual_cd import SolverOptions
from labelspace.kernels.tree_classifiers import ClassifierOptions, node_training_set, train_children
from labelspace.labels.tree import TreeNodes
from labelspace.models.hierarchicalxc.dendrogram import Dendrogram, to_nodes
from labelspace.models.hierarchicalxc.kernels import classifier_targets, leaf_ranges, train_nodes
from tests.kernels.test_tree_classifiers import scratch_of


def arrays_of(tree):
    """A tree as kernels take it."""
    return Tree(tree.first_child, tree.last_child, tree.label)


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
        csr_arrays(Y), rows, leaf_of, tree.parent, arrays_of(tree), max_distance, row_index
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
    rest = (leaf_of, tree.parent, arrays_of(tree), 1, row_index)
    targets, nodes, ends = classifier_targets(csr_arrays(Y), np.zeros(0, np.int32), *rest)
    assert (len(targets), len(nodes), ends.tolist()) == (0, 0, [0])
    targets, nodes, ends = classifier_targets(csr_arrays(Y), np.arange(9, dtype=np.int32), *rest)
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
    options = ClassifierOptions(logistic, 1.0, SolverOptions(2.0, 0.1, 20), 0.001, np.ones(300))
    features, weights, stops, biases = train_nodes(
        csr_arrays(X), 200, csr_arrays(positive_rows), cuts, roots, options, 7
    )
    assert len(features) > 1024, "more than the initial capacity"
    assert stops[0] == 0
    assert stops[-1] == len(features) == len(weights)
    assert (len(stops), len(biases)) == (9, 8)
    for i in range(4):
        row_index = np.full(300, -1, np.int32)
        training_set = node_training_set(
            positive_rows.indices, positive_rows.indptr, cuts[i], roots[i], np.zeros(0, np.int32), row_index
        )
        node_features, values, ends, node_biases = train_children(
            csr_arrays(X), training_set, options, 7 + i, scratch_of(X, training_set.rows)
        )
        own = slice(stops[2 * i], stops[2 * i + 2])
        assert np.array_equal(features[own], node_features)
        assert np.array_equal(weights[own], values)
        assert np.array_equal(stops[2 * i : 2 * i + 3] - stops[2 * i], ends)
        assert np.array_equal(biases[2 * i : 2 * i + 2], node_biases)


def test_nodes_of_documents_without_features_have_a_bias_alone():
    options = ClassifierOptions(True, 1.0, SolverOptions(1.0, 0.1, 20), 0.0, np.ones(6))
    X, positive_rows = sp.csr_matrix((6, 5), dtype=np.float32), sp.csc_matrix(np.eye(6, 2, dtype=np.float32))
    features, weights, stops, biases = train_nodes(
        csr_arrays(X), 5, csr_arrays(positive_rows), np.array([[0, 1, 2]]), np.array([True]), options, 0
    )
    assert len(features) == len(weights) == 0
    assert stops.tolist() == [0, 0, 0]
    assert (biases < 0).all()
