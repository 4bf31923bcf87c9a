"""Labels level by level: the tree that a search goes down, made of a hierarchy that is given or of clusters."""

from __future__ import annotations

import numpy as np

from labelspace.labels.clustering import balanced_levels
from labelspace.labels.tree import Nodes, Tree
from labelspace.types import Csr, Hierarchy, Ints, Longs

CLOSED = 0.9  # of the documents with labels must carry the labels above theirs too, for data to count as closed


def is_closed(Y: Csr, hierarchy: Hierarchy) -> bool:
    """Whether documents carry the labels above their labels too, nearly all of them.

    >>> import scipy.sparse as sp
    >>> tree = Hierarchy.from_edges([[1, 0]], n_labels=2)
    >>> is_closed(sp.csr_matrix([[1, 1], [1, 0]]), tree), is_closed(sp.csr_matrix([[0, 1]]), tree)
    (True, False)
    """
    own = np.diff(Y.indptr)
    whole = np.diff(hierarchy.closed(Y).indptr) == own
    return bool(whole[own > 0].mean() >= CLOSED)


def main_parents(hierarchy: Hierarchy) -> Ints:
    """One parent a label: of several the deepest, and the first of those; -1 for a root. Shape (n_labels,).

    So a label stays on its level when a DAG is read as a tree.

    >>> main_parents(Hierarchy.from_edges([[1, 0], [2, 1], [2, 0]], n_labels=3)).tolist()
    [-1, 0, 1]
    """
    edges, levels = hierarchy.edges, hierarchy.levels
    order = np.lexsort((edges[:, 1], -levels[edges[:, 1]], edges[:, 0]))
    children, first = np.unique(edges[order, 0], return_index=True)
    parents = np.full(len(levels), -1, np.int32)
    parents[children] = edges[order, 1][first]
    return parents


def numbered_by_level(parents: Ints | Longs, label: Ints | Longs) -> Nodes:
    """A forest below one root, its nodes numbered level by level; ``parents`` is -1 for the children of the root.

    >>> nodes = numbered_by_level(np.array([-1, 0, -1, 0]), np.arange(4))
    >>> nodes.label.tolist(), nodes.parent.tolist()
    ([-1, 0, 2, 1, 3], [-1, 0, 0, 1, 1])
    """
    n = len(parents)
    by_parent = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[by_parent], np.arange(-1, n + 1))  # of the children of node i at i + 1
    width = np.diff(starts)
    order, now = [np.full(1, -1)], np.full(1, -1)
    while len(now):  # the children of one level are the next
        counts = width[now + 1]
        before = np.cumsum(counts) - counts
        now = by_parent[np.arange(counts.sum()) + np.repeat(starts[now + 1] - before, counts)]
        order.append(now)
    nodes = np.concatenate(order)
    counts = width[nodes + 1]
    ends = 1 + np.cumsum(counts)
    first, last = np.where(counts > 0, [ends - counts, ends], 0).astype(np.int32)
    return Nodes(first, last, np.append(label, -1)[nodes].astype(np.int32))


def hierarchy_nodes(hierarchy: Hierarchy, used: Ints, closed: bool) -> Nodes:
    """The labels ``used`` and those above them as nodes.

    With ``closed`` every node stands for its label. Otherwise a document that carries a label need not carry those
    above it, so a label that is used and has others below gets a leaf of its own beside them.

    >>> tree = Hierarchy.from_edges([[1, 0], [2, 0]], n_labels=4)
    >>> hierarchy_nodes(tree, np.array([0, 1]), closed=True).label.tolist()
    [-1, 0, 1]
    >>> hierarchy_nodes(tree, np.array([0, 1]), closed=False).label.tolist()
    [-1, -1, 1, 0]
    """
    parents, n = main_parents(hierarchy), len(hierarchy.levels)
    there = np.zeros(n, bool)
    above = used
    while len(above):
        there[above] = True
        above = np.unique(parents[above])
        above = above[(above >= 0) & ~there[above]]
    kept = np.flatnonzero(there)
    place = np.full(n + 1, -1)
    place[kept] = np.arange(len(kept))
    own = place[parents[kept]]  # -1 stays -1: it is the last place
    if closed:
        return numbered_by_level(own, kept)
    inner = np.zeros(n, bool)
    inner[kept[own[own >= 0]]] = True
    doubled = used[inner[used]]
    wanted = np.zeros(n, bool)
    wanted[used] = True
    label = np.where(inner[kept] | ~wanted[kept], -1, kept)
    return numbered_by_level(np.append(own, place[doubled]), np.append(label, doubled))


def learned_nodes(Z: Csr, used: Ints, branching: int, max_leaf: int, seed: int) -> Nodes:
    """The labels ``used``, described by the rows of Z, as leaves below clusters of clusters."""
    tree = Tree(*balanced_levels(Z, branching, max_leaf, seed))
    label = np.where(tree.label < 0, -1, used[tree.label])
    return Nodes(tree.first_child, tree.last_child, label.astype(np.int32))


def node_rows(Y: Csr, nodes: Nodes) -> tuple[Longs, Ints]:
    """The nodes that each document reaches, in order: the root, those of its labels and all above them.

    >>> import scipy.sparse as sp
    >>> nodes = numbered_by_level(np.array([-1, 0, -1]), np.arange(3))
    >>> [array.tolist() for array in node_rows(sp.csr_matrix([[0, 1, 0], [0, 0, 1]]), nodes)]
    [[0, 3, 5], [0, 1, 3, 0, 2]]
    """
    node_of = np.full(Y.shape[1], -1, np.int64)
    labeled = np.flatnonzero(nodes.label >= 0)
    node_of[nodes.label[labeled]] = labeled
    at = node_of[Y.indices]
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))[at >= 0]
    at = at[at >= 0]
    parts = [np.arange(Y.shape[0]) * len(nodes)]  # the root of each
    while len(at):
        parts.append(np.unique(rows * len(nodes) + at))
        rows, at = parts[-1] // len(nodes), nodes.parent[parts[-1] % len(nodes)]
        rows, at = rows[at > 0], at[at > 0]
    reached = np.unique(np.concatenate(parts))
    starts = np.searchsorted(reached, np.arange(Y.shape[0] + 1) * len(nodes))
    return starts, (reached % len(nodes)).astype(np.int32)
