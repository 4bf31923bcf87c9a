"""The label tree of treespace, from a given hierarchy or clusters, and the documents to train on with their paths."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

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
    ones, children = np.ones(n, np.float32), np.arange(1, n + 1)  # the root is 0
    links = sp.csr_matrix((ones, (parents + 1, children)), shape=(n + 1, n + 1))
    nodes = breadth_first_order(links, 0, return_predecessors=False)
    counts = np.diff(links.indptr)[nodes]
    ends = 1 + np.cumsum(counts)
    first, last = np.where(counts > 0, [ends - counts, ends], 0).astype(np.int32)
    return TreeNodes(first, last, np.append(-1, label)[nodes].astype(np.int32))


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
    node_parents = np.where(parents[nodes] < 0, -1, np.searchsorted(nodes, parents[nodes]))
    if closed:
        return breadth_first_nodes(node_parents, nodes)
    is_inner, is_given = np.isin(nodes, parents[nodes]), np.isin(nodes, labels)
    extra = np.flatnonzero(is_inner & is_given)
    label = np.where(is_inner | ~is_given, -1, nodes)
    return breadth_first_nodes(np.append(node_parents, extra), np.append(label, nodes[extra]))


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


class TrainingSet:
    """Documents, and label texts as further documents, with the nodes on their paths."""

    def __init__(
        self, X: Csr, Y: Csr, tree: TreeNodes, level_weights: Floats, texts: Csr | None, weight: float, normalize: bool
    ) -> None:
        """Add ``texts`` of labels (n_labels, n_features), for labels of the tree, as documents with a ``weight``."""
        weights = np.ones(X.shape[0], np.float32)
        if weight and texts is not None:
            labels = tree.label[tree.label >= 0]
            texts = texts[labels]
            has_text = np.diff(texts.indptr) > 0
            labels, texts = labels[has_text], texts[has_text]
            own_label = sp.identity(Y.shape[1], np.float32, format="csr")[labels]
            texts = normalize_rows(texts) if normalize else texts
            X, Y = sp.vstack([X, texts]).tocsr(), sp.vstack([Y, own_label]).tocsr()
            weights = np.append(weights, np.full(len(labels), weight, np.float32))
        self.X, self.paths = X, paths_to_labels(Y, tree)
        self.weights = weights[:, None] * level_weights  # (n, levels) of the loss of a document on a level
        counts = np.bincount(self.paths.nodes, minlength=len(tree)).astype(np.float32)
        # (n_nodes,) of a node to be on a path, given its parent
        self.probabilities = (counts + 0.5) / (counts[np.maximum(tree.parent, 0)] + 1)
