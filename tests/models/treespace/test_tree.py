"""The tree of levels: hierarchies and clusters as nodes, and the nodes that documents reach."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelspace.models.treespace.tree import (
    hierarchy_nodes,
    is_closed,
    learned_nodes,
    main_parents,
    node_rows,
    numbered_by_level,
)
from labelspace.types import Hierarchy


def ids(*values):
    return np.array(values, np.int32)


def marked(rows, n_labels):
    Y = np.zeros((len(rows), n_labels), np.float32)
    for row, labels in enumerate(rows):
        Y[row, list(labels)] = 1
    return sp.csr_matrix(Y)


def paths(nodes):
    """The labels on the way to each node, -1 for one that is no label; the root is left out."""
    found = {0: ()}
    for node in range(len(nodes)):
        for child in range(nodes.first_child[node], nodes.last_child[node]):
            found[child] = (*found[node], int(nodes.label[child]))
    assert len(found) == len(nodes), "every node hangs below the root, and below one parent"
    return sorted(found.values())


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
    """A hierarchy and what documents carry; every used label is used by one at least."""
    hierarchy = draw(graphs())
    n = hierarchy.parents.shape[0]
    rows = draw(st.lists(st.sets(st.integers(0, n - 1)), min_size=1, max_size=6))
    rows.append({draw(st.integers(0, n - 1))})
    return hierarchy, rows


def test_closed_is_said_of_nine_in_ten_of_the_documents_that_have_labels():
    tree = Hierarchy.from_edges([[1, 0], [2, 1]], n_labels=3)
    assert is_closed(marked([[0, 1, 2]] * 9 + [[2]] + [[]] * 30, 3), tree)
    assert not is_closed(marked([[0, 1, 2]] * 8 + [[0, 2]] * 2 + [[]] * 30, 3), tree)
    assert not is_closed(marked([[1, 2]], 3), tree)
    assert is_closed(marked([[2]], 3), Hierarchy.from_edges(np.zeros((0, 2)), 3))
    dag = Hierarchy.from_edges([[2, 0], [2, 1]], n_labels=3)
    assert not is_closed(marked([[0, 2]], 3), dag)
    assert is_closed(marked([[0, 1, 2]], 3), dag)


@given(graphs())
def test_the_main_parent_is_the_first_of_the_deepest(hierarchy):
    for label, parent in enumerate(main_parents(hierarchy).tolist()):
        above = hierarchy.parents[label].indices.tolist()
        deepest = [other for other in sorted(above) if hierarchy.levels[other] == hierarchy.levels[label] - 1]
        assert parent == (deepest[0] if deepest else -1)
        assert bool(above) == (parent >= 0)


@given(graphs())
def test_numbers_go_level_by_level(hierarchy):
    parents = main_parents(hierarchy)
    n = len(parents)
    nodes = numbered_by_level(parents, np.arange(n) + 100)
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


def test_labels_and_those_above_them_are_the_nodes_of_closed_data():
    tree = Hierarchy.from_edges([[1, 0], [2, 1], [3, 1], [5, 4]], n_labels=7)
    assert paths(hierarchy_nodes(tree, ids(2, 4, 6), closed=True)) == [(), (0,), (0, 1), (0, 1, 2), (4,), (6,)]


def test_a_used_label_with_others_below_gets_a_leaf_of_its_own():
    tree = Hierarchy.from_edges([[1, 0], [2, 1], [3, 1], [5, 4]], n_labels=7)
    assert paths(hierarchy_nodes(tree, ids(1, 2, 4, 6), closed=False)) == [
        (),
        (-1,),
        (-1, -1),
        (-1, -1, 1),
        (-1, -1, 2),
        (4,),  # nobody uses what is below it
        (6,),
    ]


@given(cases(), st.booleans())
def test_each_label_used_has_one_node(case, closed):
    hierarchy, rows = case
    used = ids(*sorted(set().union(*rows)))
    nodes = hierarchy_nodes(hierarchy, used, closed)
    paths(nodes)
    own = sorted(nodes.label[nodes.label >= 0].tolist())
    leaf = nodes.first_child == nodes.last_child
    assert (nodes.label[leaf] >= 0).all(), "every leaf is a label"
    assert set(nodes.label[leaf].tolist()) <= set(used.tolist())
    if closed:
        parents = main_parents(hierarchy)
        above = set(used.tolist())
        while not above >= {int(parents[label]) for label in above} - {-1}:
            above |= {int(parents[label]) for label in above} - {-1}
        assert own == sorted(above)
    else:
        assert own == used.tolist()
        assert ((nodes.label >= 0) == leaf).all(), "only leaves are ranked"


def test_clusters_have_the_used_labels_for_leaves():
    rng = np.random.default_rng(0)
    used = ids(*range(3, 93, 3))
    Z = sp.csr_matrix(rng.random((30, 8)).astype(np.float32))
    nodes = learned_nodes(Z, used, branching=2, max_leaf=4, seed=1)
    leaf = nodes.first_child == nodes.last_child
    assert sorted(nodes.label[leaf].tolist()) == used.tolist()
    assert (nodes.label[~leaf] == -1).all()
    assert nodes.height > 2
    assert nodes.label.dtype == np.int32
    flat = learned_nodes(Z, used, branching=2, max_leaf=100, seed=1)
    assert flat.height == 1
    one = learned_nodes(Z[:1], ids(7), branching=2, max_leaf=4, seed=1)
    assert paths(one) == [(), (7,)]


@given(cases(), st.booleans())
def test_documents_reach_their_nodes_and_all_above(case, closed):
    hierarchy, rows = case
    n = hierarchy.parents.shape[0]
    rows = [*rows, set()]
    used = ids(*sorted(set().union(*rows)))
    nodes = hierarchy_nodes(hierarchy, used, closed)
    starts, reached = node_rows(marked(rows, n), nodes)
    node_of = {int(label): node for node, label in enumerate(nodes.label) if label >= 0}
    assert (starts[0], starts[-1], len(starts)) == (0, len(reached), len(rows) + 1)
    for row, labels in enumerate(rows):
        want = {0}
        for label in labels:
            node = node_of[label]
            while node > 0:
                want.add(node)
                node = int(nodes.parent[node])
        assert reached[starts[row] : starts[row + 1]].tolist() == sorted(want)


def test_a_label_without_a_node_is_passed_over():
    nodes = numbered_by_level(ids(-1), ids(2))
    starts, reached = node_rows(marked([[0, 2], [0]], 3), nodes)
    assert (starts.tolist(), reached.tolist()) == ([0, 2, 3], [0, 1, 0])


@pytest.mark.parametrize("closed", [False, True])
def test_a_single_label(closed):
    alone = Hierarchy.from_edges(np.zeros((0, 2)), 1)
    assert paths(hierarchy_nodes(alone, ids(0), closed)) == [(), (0,)]
