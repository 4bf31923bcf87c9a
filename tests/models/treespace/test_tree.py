"""The label tree: hierarchies and clusters as nodes, and the nodes on the paths of documents."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelspace.models.treespace.tree import (
    TrainingSet,
    breadth_first_nodes,
    clustered_nodes,
    hierarchy_nodes,
    is_closed,
    main_parents,
    paths_to_labels,
)
from labelspace.types import Hierarchy


def ids(*values):
    return np.array(values, np.int32)


def label_matrix(rows, n_labels):
    Y = np.zeros((len(rows), n_labels), np.float32)
    for row, labels in enumerate(rows):
        Y[row, list(labels)] = 1
    return sp.csr_matrix(Y)


def paths(nodes):
    """The labels on the path to each node, -1 for a node without label; the root is left out."""
    paths_to = {0: ()}
    for node in range(len(nodes)):
        for child in range(nodes.first_child[node], nodes.last_child[node]):
            paths_to[child] = (*paths_to[node], int(nodes.label[child]))
    assert len(paths_to) == len(nodes), "every node is below the root, and has one parent"
    return sorted(paths_to.values())


@st.composite
def graphs(draw):
    """A hierarchy in which labels have up to three parents, its ids shuffled."""
    n = draw(st.integers(1, 10))
    names = draw(st.permutations(range(n)))
    edges = [
        (names[child], names[parent])
        for child in range(1, n)
        for parent in draw(st.sets(st.integers(0, child - 1), max_size=3))
    ]
    return Hierarchy.from_edges(np.array(edges).reshape(-1, 2), n)


@st.composite
def cases(draw):
    """A hierarchy, and the labels of documents."""
    hierarchy = draw(graphs())
    n = hierarchy.parents.shape[0]
    rows = draw(st.lists(st.sets(st.integers(0, n - 1)), min_size=1, max_size=6))
    rows.append({draw(st.integers(0, n - 1))})
    return hierarchy, rows


def test_data_is_closed_where_nine_in_ten_documents_with_labels_carry_all_ancestors():
    tree = Hierarchy.from_edges([[1, 0], [2, 1]], n_labels=3)
    assert is_closed(label_matrix([[0, 1, 2]] * 9 + [[2]] + [[]] * 30, 3), tree)
    assert not is_closed(label_matrix([[0, 1, 2]] * 8 + [[0, 2]] * 2 + [[]] * 30, 3), tree)
    assert not is_closed(label_matrix([[1, 2]], 3), tree)
    assert is_closed(label_matrix([[2]], 3), Hierarchy.from_edges(np.zeros((0, 2)), 3))
    dag = Hierarchy.from_edges([[2, 0], [2, 1]], n_labels=3)
    assert not is_closed(label_matrix([[0, 2]], 3), dag)
    assert is_closed(label_matrix([[0, 1, 2]], 3), dag)


@given(graphs())
def test_the_main_parent_is_the_first_of_the_deepest(hierarchy):
    for label, parent in enumerate(main_parents(hierarchy).tolist()):
        above = hierarchy.parents[label].indices.tolist()
        deepest = [other for other in sorted(above) if hierarchy.levels[other] == hierarchy.levels[label] - 1]
        assert parent == (deepest[0] if deepest else -1)
        assert bool(above) == (parent >= 0)


@given(graphs())
def test_node_ids_go_level_by_level(hierarchy):
    parents = main_parents(hierarchy)
    n = len(parents)
    nodes = breadth_first_nodes(parents, np.arange(n) + 100)
    assert (np.diff(nodes.level) >= 0).all()
    assert (np.diff(nodes.parent) >= 0).all()
    node_of = {int(label) - 100: node for node, label in enumerate(nodes.label) if label >= 0}
    assert sorted(node_of) == list(range(n))
    for label, node in node_of.items():
        above = nodes.parent[node]
        assert (int(nodes.label[above]) - 100 if above else -1) == parents[label]
        assert nodes.level[node] == hierarchy.levels[label] + 1
    leaf = nodes.first_child == nodes.last_child
    assert not nodes.last_child[leaf].any()
    assert all(part.dtype == np.int32 for part in (nodes.first_child, nodes.last_child, nodes.label))


def test_labels_and_their_ancestors_are_the_nodes_of_closed_data():
    tree = Hierarchy.from_edges([[1, 0], [2, 1], [3, 1], [5, 4]], n_labels=7)
    assert paths(hierarchy_nodes(tree, ids(2, 4, 6), closed=True)) == [(), (0,), (0, 1), (0, 1, 2), (4,), (6,)]


def test_a_given_label_with_descendants_gets_an_extra_leaf():
    tree = Hierarchy.from_edges([[1, 0], [2, 1], [3, 1], [5, 4]], n_labels=7)
    assert paths(hierarchy_nodes(tree, ids(1, 2, 4, 6), closed=False)) == [
        (),
        (-1,),
        (-1, -1),
        (-1, -1, 1),
        (-1, -1, 2),
        (4,),  # its descendants are not given
        (6,),
    ]


@given(cases(), st.booleans())
def test_each_given_label_has_one_node(case, closed):
    hierarchy, rows = case
    given_labels = ids(*sorted(set().union(*rows)))
    nodes = hierarchy_nodes(hierarchy, given_labels, closed)
    paths(nodes)
    labels = sorted(nodes.label[nodes.label >= 0].tolist())
    leaf = nodes.first_child == nodes.last_child
    assert (nodes.label[leaf] >= 0).all(), "every leaf is a label"
    assert set(nodes.label[leaf].tolist()) <= set(given_labels.tolist())
    if closed:
        parents = main_parents(hierarchy)
        closure = set(given_labels.tolist())
        while not closure >= {int(parents[label]) for label in closure} - {-1}:
            closure |= {int(parents[label]) for label in closure} - {-1}
        assert labels == sorted(closure)
    else:
        assert labels == given_labels.tolist()
        assert ((nodes.label >= 0) == leaf).all(), "only leaves are ranked"


def test_clusters_have_the_given_labels_as_leaves():
    rng = np.random.default_rng(0)
    given_labels = ids(*range(3, 93, 3))
    Z = sp.csr_matrix(rng.random((30, 8)).astype(np.float32))
    nodes = clustered_nodes(Z, given_labels, branching_factor=2, max_leaf=4, seed=1)
    leaf = nodes.first_child == nodes.last_child
    assert sorted(nodes.label[leaf].tolist()) == given_labels.tolist()
    assert (nodes.label[~leaf] == -1).all()
    assert nodes.height > 2
    assert nodes.label.dtype == np.int32
    flat = clustered_nodes(Z, given_labels, branching_factor=2, max_leaf=100, seed=1)
    assert flat.height == 1
    one = clustered_nodes(Z[:1], ids(7), branching_factor=2, max_leaf=4, seed=1)
    assert paths(one) == [(), (7,)]


@given(cases(), st.booleans())
def test_the_nodes_of_labels_and_all_ancestors_are_on_the_path(case, closed):
    hierarchy, rows = case
    n = hierarchy.parents.shape[0]
    rows = [*rows, set()]
    given_labels = ids(*sorted(set().union(*rows)))
    nodes = hierarchy_nodes(hierarchy, given_labels, closed)
    starts, on_path = paths_to_labels(label_matrix(rows, n), nodes)
    node_of = {int(label): node for node, label in enumerate(nodes.label) if label >= 0}
    assert (starts[0], starts[-1], len(starts)) == (0, len(on_path), len(rows) + 1)
    for row, labels in enumerate(rows):
        expected = {0}
        for label in labels:
            node = node_of[label]
            while node > 0:
                expected.add(node)
                node = int(nodes.parent[node])
        assert on_path[starts[row] : starts[row + 1]].tolist() == sorted(expected)


def test_a_label_without_a_node_is_ignored():
    nodes = breadth_first_nodes(ids(-1), ids(2))
    starts, on_path = paths_to_labels(label_matrix([[0, 2], [0]], 3), nodes)
    assert (starts.tolist(), on_path.tolist()) == ([0, 2, 3], [0, 1, 0])


@pytest.mark.parametrize("closed", [False, True])
def test_a_single_label(closed):
    alone = Hierarchy.from_edges(np.zeros((0, 2)), 1)
    assert paths(hierarchy_nodes(alone, ids(0), closed)) == [(), (0,)]


TREE = breadth_first_nodes(np.array([-1, 0, 0, -1]), np.array([0, 1, 2, 4]))  # 0 over 1 and 2; 4 alone; 3 has no node
X = sp.csr_matrix(np.eye(3, 4, dtype=np.float32))
Y = sp.csr_matrix(np.array([[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 1]], np.float32))
LEVEL_WEIGHTS = np.array([1, 2], np.float32)


def test_label_texts_with_features_are_further_documents_of_the_label_and_its_ancestors():
    texts = sp.csr_matrix(np.array([[0, 0, 0, 0], [3, 4, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 2]], np.float32))
    data = TrainingSet(X, Y, TREE, LEVEL_WEIGHTS, texts, 0.5, normalize=True)
    assert np.allclose(data.X[3:].toarray(), [[0, 0, 0, 1], [0.6, 0.8, 0, 0]]), "labels 4 and 1, in the order of nodes"
    assert data.weights.tolist() == [[1, 2]] * 3 + [[0.5, 1]] * 2
    on_path = np.split(data.paths.nodes, data.paths.starts[1:-1])
    assert [TREE.label[nodes].tolist() for nodes in on_path] == [
        [-1, 0, 1],
        [-1, 0, 1, 2],
        [-1, 4],
        [-1, 4],
        [-1, 0, 1],
    ]


def test_label_texts_that_are_not_normalized_stay_as_they_are():
    texts = sp.csr_matrix(np.array([[0, 0, 0, 0], [3, 4, 0, 0], [0] * 4, [0] * 4, [0] * 4], np.float32))
    data = TrainingSet(X, Y, TREE, LEVEL_WEIGHTS, texts, 0.5, normalize=False)
    assert data.X[3:].toarray().tolist() == [[3, 4, 0, 0]]


@pytest.mark.parametrize(("texts", "label_text"), [(None, 0.5), (X[[0] * 5], 0.0)])
def test_without_label_texts_or_their_weight_there_are_only_documents(texts, label_text):
    data = TrainingSet(X, Y, TREE, LEVEL_WEIGHTS, texts, label_text, normalize=True)
    assert data.X.shape == (3, 4)
    expected = {0: 2.5 / 4, 4: 1.5 / 4, 1: 2.5 / 3, 2: 1.5 / 3}
    for node in range(1, len(TREE)):
        assert data.probabilities[node] == pytest.approx(expected[int(TREE.label[node])])
