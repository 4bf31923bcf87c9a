import numpy as np
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.labels.clustering import balanced_tree, kmeans_tree
from labelspace.labels.tree import PartitionTree, hierarchy_tree
from labelspace.types import Hierarchy


def check(tree, n):
    """What the kernels rely on."""
    assert sorted(tree.label[tree.label >= 0]) == list(range(n)), "every label is one leaf"
    claimed = [child for node in tree.inner for child in range(tree.first_child[node], tree.last_child[node])]
    assert claimed == list(range(1, len(tree))), "children are consecutive, in the order of their parents"
    for node in tree.inner:
        children = slice(tree.first_child[node], tree.last_child[node])
        assert tree.first_child[node] > node
        assert (tree.level[children] == tree.level[node] + 1).all()
        cuts = tree.cuts(node)
        assert [cuts[0], cuts[-1]] == tree.bounds[node].tolist()
        assert (np.diff(cuts) > 0).all()
        assert len(cuts) - 1 > 1 or node == 0, "an inner node has several children"
    for leaf in np.flatnonzero(tree.label >= 0):
        assert tree.order[tree.bounds[leaf, 0]] == tree.label[leaf]


def rows(n, seed=0):
    return normalize_rows(sp.random(n, 40, 0.2, "csr", np.float32, rng=np.random.default_rng(seed)))


def test_a_balanced_tree_has_its_leaves_at_one_level():
    tree = PartitionTree(*balanced_tree(rows(101), max_leaf=13, seed=1))
    check(tree, 101)
    assert set(tree.level[tree.label >= 0]) == {4}


def test_a_tree_of_one_label_is_a_root_and_a_leaf():
    tree = PartitionTree(np.array([0], np.int32), [np.array([0, 1])])
    check(tree, 1)
    assert tree.label.tolist() == [-1, 0]


def test_a_kmeans_tree_is_as_deep_as_allowed_and_its_leaves_are_at_different_levels():
    Z = rows(300, 2)
    deep = PartitionTree(*kmeans_tree(Z, branching=5, max_leaf=20, max_depth=3, seed=0))
    shallow = PartitionTree(*kmeans_tree(Z, branching=5, max_leaf=20, max_depth=1, seed=0))
    check(deep, 300)
    check(shallow, 300)
    assert shallow.level.max() == 2
    assert len(set(deep.level[deep.label >= 0])) > 1


def test_labels_that_are_all_equal_are_not_split():
    Z = sp.csr_matrix(np.ones((50, 3), np.float32))
    tree = PartitionTree(*kmeans_tree(normalize_rows(Z), branching=4, max_leaf=10, max_depth=5, seed=0))
    check(tree, 50)
    assert tree.level.max() == 1


def test_a_hierarchy_keeps_relatives_together_and_inner_labels_as_leaves():
    #  0 -> 1 -> 3, 4      5 -> 6 (never seen) -> 7, 8      9 alone; 8 has a second parent, 1, which is the first
    edges = np.array([[1, 0], [3, 1], [4, 1], [6, 5], [7, 6], [8, 6], [8, 1]])
    seen = np.array([0, 1, 3, 4, 5, 7, 8, 9], np.int32)
    tree = PartitionTree(*hierarchy_tree(Hierarchy.from_edges(edges, n_labels=10), seen))
    check(tree, 8)

    def has_node_of(labels):
        return any({int(seen[i]) for i in tree.order[slice(*tree.bounds[node])]} == set(labels) for node in tree.inner)

    assert has_node_of([0, 1, 3, 4, 8])
    assert has_node_of([1, 3, 4, 8]), "a label with children and documents is a leaf beside its children"
    assert has_node_of([5, 7])
    assert tree.level[tree.label == 7].tolist() == [1], "a label without relatives is a child of the root"


def test_nodes_of_a_tree_have_their_parents_and_levels():
    tree = PartitionTree(*kmeans_tree(rows(300, 2), branching=5, max_leaf=20, max_depth=3, seed=0))
    nodes = tree.nodes
    for node in tree.inner:
        assert (nodes.parent[tree.first_child[node] : tree.last_child[node]] == node).all()
    assert nodes.parent[0] == -1
    assert np.array_equal(nodes.level, tree.level)
    assert (len(nodes), nodes.height, nodes.n_labels) == (len(tree), tree.level.max(), 300)
