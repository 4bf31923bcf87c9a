"""The label tree of treespace, from a given hierarchy or clusters, and the documents to train on with their paths."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.labels.clustering import balanced_levels
from labelspace.labels.tree import PartitionTree, TreeNodes
from labelspace.models.treespace.kernels import Paths
from labelspace.types import Csr, Floats, Hierarchy, Ints, Longs

CLOSED_SHARE = 0.9  # of the documents with labels must carry all ancestors; below 1, a few gaps in the data are allowed


def is_closed(Y: Csr, hierarchy: Hierarchy) -> bool:
    """Return whether nearly all documents also carry the ancestors of their labels.

    >>> import scipy.sparse as sp
    >>> tree = Hierarchy.from_edges([[1, 0]], n_labels=2)
    >>> is_closed(sp.csr_matrix([[1, 1], [1, 0]]), tree), is_closed(sp.csr_matrix([[0, 1]]), tree)
    (True, False)
    """
    n_labels = np.diff(Y.indptr)
    closed = np.diff(hierarchy.closed(Y).indptr) == n_labels
    return bool(closed[n_labels > 0].mean() >= CLOSED_SHARE)


def main_parents(hierarchy: Hierarchy) -> Ints:
    """Return one parent per label: the deepest, the first of equally deep ones; -1 for a root. Shape (n_labels,).

    So a label keeps its level when a DAG is read as a tree.

    >>> main_parents(Hierarchy.from_edges([[1, 0], [2, 1], [2, 0]], n_labels=3)).tolist()
    [-1, 0, 1]
    """
    edges, levels = hierarchy.edges, hierarchy.levels
    order = np.lexsort((edges[:, 1], -levels[edges[:, 1]], edges[:, 0]))
    children, first = np.unique(edges[order, 0], return_index=True)
    parents = np.full(len(levels), -1, np.int32)
    parents[children] = edges[order, 1][first]
    return parents


def breadth_first_nodes(parents: Ints | Longs, label: Ints | Longs) -> TreeNodes:
    """Put a forest below one root, with node ids level by level; ``parents`` is -1 for the children of the root.

    >>> nodes = breadth_first_nodes(np.array([-1, 0, -1, 0]), np.arange(4))
    >>> nodes.label.tolist(), nodes.parent.tolist()
    ([-1, 0, 2, 1, 3], [-1, 0, 0, 1, 1])
    """
    n = len(parents)
    by_parent = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[by_parent], np.arange(-1, n + 1))  # of the children of node i at i + 1
    n_children = np.diff(starts)
    order, level = [np.full(1, -1)], np.full(1, -1)
    while len(level):  # the children of one level are the next
        counts = n_children[level + 1]
        before = np.cumsum(counts) - counts
        level = by_parent[np.arange(counts.sum()) + np.repeat(starts[level + 1] - before, counts)]
        order.append(level)
    nodes = np.concatenate(order)
    counts = n_children[nodes + 1]
    ends = 1 + np.cumsum(counts)
    first, last = np.where(counts > 0, [ends - counts, ends], 0).astype(np.int32)
    return TreeNodes(first, last, np.append(label, -1)[nodes].astype(np.int32))


def hierarchy_nodes(hierarchy: Hierarchy, labels: Ints, closed: bool) -> TreeNodes:
    """Make nodes of the given labels and their ancestors.

    With ``closed`` every node is its label. Otherwise a document with a label need not carry its ancestors, so
    a given label with descendants gets an extra leaf below its node.

    >>> tree = Hierarchy.from_edges([[1, 0], [2, 0]], n_labels=4)
    >>> hierarchy_nodes(tree, np.array([0, 1]), closed=True).label.tolist()
    [-1, 0, 1]
    >>> hierarchy_nodes(tree, np.array([0, 1]), closed=False).label.tolist()
    [-1, -1, 1, 0]
    """
    parents, n = main_parents(hierarchy), len(hierarchy.levels)
    is_node, frontier = np.zeros(n, bool), labels
    while len(frontier):  # up to the roots
        is_node[frontier] = True
        frontier = np.unique(parents[frontier])
        frontier = frontier[(frontier >= 0) & ~is_node[frontier]]
    nodes = np.flatnonzero(is_node)
    node_of = np.full(n + 1, -1)  # the last entry is for the parent -1 of a root
    node_of[nodes] = np.arange(len(nodes))
    node_parents = node_of[parents[nodes]]
    if closed:
        return breadth_first_nodes(node_parents, nodes)
    is_inner, is_given = np.zeros(n, bool), np.zeros(n, bool)
    is_inner[nodes[node_parents[node_parents >= 0]]] = True
    is_given[labels] = True
    extra = labels[is_inner[labels]]
    label = np.where(is_inner[nodes] | ~is_given[nodes], -1, nodes)
    return breadth_first_nodes(np.append(node_parents, node_of[extra]), np.append(label, extra))


def clustered_nodes(Z: Csr, labels: Ints, branching_factor: int, max_leaf: int, seed: int) -> TreeNodes:
    """Put the given labels, whose embeddings are the rows of Z, as leaves below clusters of clusters."""
    tree = PartitionTree(*balanced_levels(Z, branching_factor, max_leaf, seed))
    label = np.where(tree.label < 0, -1, labels[tree.label])
    return TreeNodes(tree.first_child, tree.last_child, label.astype(np.int32))


def paths_to_labels(Y: Csr, tree: TreeNodes) -> Paths:
    """Return the nodes on the paths of each document: the root, the nodes of its labels and their ancestors.

    >>> import scipy.sparse as sp
    >>> tree = breadth_first_nodes(np.array([-1, 0, -1]), np.arange(3))
    >>> [array.tolist() for array in paths_to_labels(sp.csr_matrix([[0, 1, 0], [0, 0, 1]]), tree)]
    [[0, 3, 5], [0, 1, 3, 0, 2]]
    """
    n, n_nodes = Y.shape[0], len(tree)
    node_of = np.full(Y.shape[1], -1, np.int64)
    labeled = np.flatnonzero(tree.label >= 0)
    node_of[tree.label[labeled]] = labeled
    rows, nodes = np.repeat(np.arange(n), np.diff(Y.indptr)), node_of[Y.indices]
    rows, nodes = rows[nodes >= 0], nodes[nodes >= 0]
    keys = [np.arange(n) * n_nodes]  # a key is row * n_nodes + node; these are the roots
    while len(nodes):  # up to the root
        keys.append(np.unique(rows * n_nodes + nodes))
        rows, nodes = keys[-1] // n_nodes, tree.parent[keys[-1] % n_nodes]
        rows, nodes = rows[nodes > 0], nodes[nodes > 0]
    all_keys = np.unique(np.concatenate(keys))
    starts = np.searchsorted(all_keys, np.arange(n + 1) * n_nodes)
    return Paths(starts, (all_keys % n_nodes).astype(np.int32))


@dataclass(frozen=True)
class TrainingSet:
    """Documents, and label texts as further documents, with the nodes on their paths."""

    X: Csr
    paths: Paths
    weights: Floats  # (n, levels) of the loss of a document on a level
    probabilities: Floats  # (n_nodes,) of a node to be on a path, given its parent

    @classmethod
    def build(
        cls, X: Csr, Y: Csr, tree: TreeNodes, level_weights: Floats, texts: Csr | None, weight: float, normalize: bool
    ) -> Self:
        """Add ``texts`` of labels (n_labels, n_features), for labels of the tree, as documents with a ``weight``."""
        weights = np.ones(X.shape[0], np.float32)
        if weight and texts is not None:
            labels = tree.label[tree.label >= 0]
            texts = texts[labels]
            has_text = np.diff(texts.indptr) > 0
            labels, texts = labels[has_text], texts[has_text]
            n = len(labels)
            own_label = sp.csr_matrix((np.ones(n, np.float32), labels, np.arange(n + 1)), (n, Y.shape[1]))
            texts = normalize_rows(texts) if normalize else texts
            X, Y = sp.vstack([X, texts]).tocsr(), sp.vstack([Y, own_label]).tocsr()
            weights = np.append(weights, np.full(n, weight, np.float32))
        paths = paths_to_labels(Y, tree)
        counts = np.bincount(paths.nodes, minlength=len(tree)).astype(np.float32)
        probabilities = (counts + 0.5) / (counts[np.maximum(tree.parent, 0)] + 1)
        return cls(X, paths, weights[:, None] * level_weights, probabilities)
