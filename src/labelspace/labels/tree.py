"""Label trees, with nodes numbered as training and beam search need them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import log2
from typing import Annotated

import numpy as np

from labelspace.estimator.state_constraints import array, ids, must
from labelspace.kernels.ancestors import node_levels
from labelspace.types import Bools, Floats, Hierarchy, Ints, Longs, TopK

PRUNED_BIAS = np.float32(-1e30)  # of a node without allowed labels, which a beam search leaves out
PRUNED_LOG = -1e29  # below this log activation, such nodes are pruned; no other activation is near it
MAX_HEIGHT_FACTOR = 4.0  # a tree higher than this times (log2 of its labels + 1) is degenerate


@dataclass(frozen=True)
class TreeNodes:
    """A label tree as arrays over its nodes, which have any number of children.

    Node 0 is the root; the children of a node are consecutive, have larger ids than it, and are in the order of their
    parents.

    >>> nodes = TreeNodes(np.array([1, 0, 3, 0, 0]), np.array([3, 0, 5, 0, 0]), np.array([-1, 2, -1, 0, 1]))
    >>> nodes.parent.tolist(), nodes.level.tolist(), nodes.height, nodes.n_labels, nodes.balance
    ([-1, 0, 0, 2, 2], [0, 1, 1, 2, 2], 2, 3, 1.0)
    """

    # The children of node i are first_child[i] to last_child[i] - 1; 0 and 0 for a leaf.
    first_child: Annotated[Ints, ids("n_nodes", below="n_nodes + 1")]
    last_child: Annotated[Ints, ids("n_nodes", below="n_nodes + 1")]
    label: Annotated[Ints, ids("n_nodes", below="n_labels", at_least=-1)]  # -1 for a node that is no label
    # Of the children when they were merged, NaN for a leaf.
    similarity: Annotated[Floats | None, array("float32", "n_nodes", finite=False, optional=True)] = None

    def check_state(self) -> None:
        """Check that all nodes are in one tree."""
        check_forest(self.first_child, self.last_child, np.zeros(1, np.int32))

    def __len__(self) -> int:
        return len(self.label)

    @cached_property
    def parent(self) -> Ints:
        """Return the parent of each node; -1 for the root. Shape (n_nodes,)."""
        n_children = self.last_child - self.first_child
        before = np.cumsum(n_children) - n_children  # children of the nodes with smaller ids
        children = np.arange(n_children.sum()) + np.repeat(self.first_child - before, n_children)
        parent = np.full(len(self), -1, np.int32)
        parent[children] = np.repeat(np.arange(len(self), dtype=np.int32), n_children)
        return parent

    @cached_property
    def level(self) -> Ints:
        """Return the steps from the root to each node. Shape (n_nodes,)."""
        level: Ints = node_levels(self.parent)
        return level

    def above(self, allowed: Bools) -> Bools:
        """Return a mask of the leaves of allowed labels (n_labels,) and all nodes above them. Shape (n_nodes,).

        >>> nodes = TreeNodes(np.array([1, 0, 3, 0, 0]), np.array([3, 0, 5, 0, 0]), np.array([-1, 2, -1, 0, 1]))
        >>> nodes.above(np.array([False, True, False])).tolist()
        [True, False, True, False, True]
        """
        found = (self.label >= 0) & allowed[self.label]
        nodes = np.flatnonzero(found)
        while len(nodes):  # a step up at a time
            nodes = np.unique(self.parent[nodes])
            nodes = nodes[(nodes >= 0) & ~found[nodes] & (self.label[nodes] < 0)]
            found[nodes] = True
        return found

    @property
    def height(self) -> int:
        """Return the steps from the root to the deepest node."""
        return int(self.level.max())

    @property
    def n_labels(self) -> int:
        """Return the number of nodes that are labels."""
        return int((self.label >= 0).sum())

    @property
    def balance(self) -> float:
        """Return the height of a balanced binary tree of the same labels over this tree's; at most 1."""
        return balance(self.n_labels, self.height)

    @property
    def is_degenerate(self) -> bool:
        """Return whether the tree is much higher than a balanced one, nearly a chain."""
        return is_degenerate(self.n_labels, self.height)


def widen_beam(find: Callable[[Longs, int], TopK], n: int, k: int, wanted: int, beam_size: int, widest: int) -> TopK:
    """Return the k best labels of n documents by ``find(rows, beam_size)``, widening the beam to find ``wanted`` ones.

    Documents that lack some labels are searched again with twice the beam, up to the ``widest``.
    """
    out, lacking = TopK.empty(n, k), np.arange(n)
    while len(lacking):
        top = find(lacking, beam_size)
        out.labels[lacking], out.scores[lacking] = top.labels, top.scores
        lacking = lacking[((top.labels >= 0).sum(axis=1) < wanted) & (beam_size < widest)]
        beam_size = min(2 * beam_size, widest)
    return out


def check_forest(first_child: Ints, last_child: Ints, roots: Ints) -> None:
    """Check that saved nodes form trees, one after the other.

    A tree begins with its root. The children of a node come after it, and after those of earlier nodes.
    """
    n_trees, n_nodes = len(roots), len(first_child)
    must(n_trees > 0 and roots[0] == 0 and (roots[1:] > roots[:-1]).all(), "trees that begin with their roots")
    parents = np.flatnonzero(last_child != first_child)
    first, last = first_child[parents], last_child[parents]
    must((first < last).all(), "nodes with children from first to last")
    must((first > parents).all(), "children with larger numbers than their parents")
    must((first[1:] >= last[:-1]).all(), "children of one parent each, in the order of the parents")
    ends = np.append(roots[1:], n_nodes)[np.searchsorted(roots, parents, side="right") - 1]  # of the parent's tree
    must((last <= ends).all(), "children in the tree of their parents")
    must(int((last - first).sum(dtype=np.int64)) == n_nodes - n_trees, "nodes that have a parent, except for the roots")


def balance(n_labels: int, height: int) -> float:
    """Return the height of a balanced binary tree of n labels over the given height: 1 is balanced, near 0 a chain.

    >>> balance(8, height=3), balance(8, height=6), balance(1, height=0)
    (1.0, 0.5, 1.0)
    """
    return min(1.0, max((n_labels - 1).bit_length(), 1) / max(height, 1))


def is_degenerate(n_labels: int, height: int) -> bool:
    """Return whether a tree of n labels is much higher than a balanced one.

    >>> is_degenerate(1000, height=20), is_degenerate(1000, height=200)
    (False, True)
    """
    return height > MAX_HEIGHT_FACTOR * log2(n_labels) + MAX_HEIGHT_FACTOR


def frequent_first(order: Ints, depths: list[Longs], frequency: Longs) -> Ints:
    """Order the labels of each last cluster by frequency, so that classifiers of similar labels train together.

    >>> frequent_first(np.array([2, 0, 1, 3], np.int32), [np.array([0, 3, 4])], np.array([5, 9, 1, 7])).tolist()
    [1, 0, 2, 3]
    """
    starts = np.unique(np.concatenate([[0], *depths]))
    cluster = np.searchsorted(starts, np.arange(len(order)), side="right")
    return order[np.lexsort((-frequency[order], cluster))]


class PartitionTree:
    """A tree of nested partitions: the labels in the order of the leaves, and for each depth where clusters start.

    Nodes are numbered as in ``TreeNodes``. A cluster that a depth does not split is one node; a cluster of one label is
    a leaf, and so is each label of a cluster that is not split further.

    >>> tree = PartitionTree(np.array([2, 0, 1, 3], np.int32), [np.array([0, 3, 4])])
    >>> tree.first_child.tolist(), tree.last_child.tolist(), tree.label.tolist()
    ([1, 3, 0, 0, 0, 0], [3, 6, 0, 0, 0, 0], [-1, -1, 3, 2, 0, 1])
    """

    order: Ints  # (n_labels,)
    bounds: Longs  # (n_nodes, 2) the labels below node i are order[bounds[i, 0] : bounds[i, 1]]
    first_child: Ints  # (n_nodes,) the children of node i are first_child[i] to last_child[i] - 1; 0 and 0 for a leaf
    last_child: Ints
    label: Ints  # (n_nodes,) -1 for an inner node
    level: Ints  # (n_nodes,) steps from the root

    def __init__(self, order: Ints, depths: list[Longs]) -> None:
        self.order = order
        root = np.array([[0, len(order)]])
        bounds, children = [root], []
        size, now, depth = 1, root, np.zeros(1, np.int64)
        while len(now):  # a level at a time
            inner = np.flatnonzero((now[:, 1] - now[:, 0] > 1) | (size == 1))
            split = [self._split(int(now[i, 0]), int(now[i, 1]), int(depth[i]), depths) for i in inner]
            counts = np.zeros(len(now), np.int64)
            counts[inner] = [len(cuts) - 1 for cuts, _ in split]
            ends = size + np.cumsum(counts)
            children.append(np.where(counts > 0, [ends - counts, ends], 0).T)
            now = np.concatenate([np.zeros((0, 2), np.int64), *(np.stack([c[:-1], c[1:]], 1) for c, _ in split)])
            depth = np.concatenate([np.zeros(0, np.int64), *(np.full(len(c) - 1, at) for c, at in split)])
            bounds.append(now)
            size += len(now)
        self.bounds = np.concatenate(bounds)
        self.level = np.repeat(np.arange(len(bounds), dtype=np.int32), [len(nodes) for nodes in bounds])
        self.first_child, self.last_child = np.concatenate(children).astype(np.int32).T.copy()
        self.label = np.where(self.last_child > 0, -1, order[self.bounds[:, 0]]).astype(np.int32)

    @staticmethod
    def _split(first: int, last: int, depth: int, depths: list[Longs]) -> tuple[Longs, int]:
        """Return where the children of the cluster first..last start, and the first depth that may split them."""
        for at in range(depth, len(depths)):
            start, stop = np.searchsorted(depths[at], [first, last])
            if stop - start > 1:
                return depths[at][start : stop + 1], at + 1
        return np.arange(first, last + 1), len(depths)

    def __len__(self) -> int:
        return len(self.label)

    @property
    def nodes(self) -> TreeNodes:
        """Return the tree without its partitions."""
        return TreeNodes(self.first_child, self.last_child, self.label)

    @property
    def inner(self) -> list[int]:
        """Return the nodes with children."""
        return np.flatnonzero(self.label < 0).tolist()

    def largest_first(self, node: int) -> int:
        """Return a sort key that puts most labels first: a long task that starts last keeps other threads waiting."""
        return int(self.bounds[node, 0] - self.bounds[node, 1])

    def cuts(self, node: int) -> Longs:
        """Return where the labels of each child of a node start, and where those of the last child end."""
        first, last = self.first_child[node], self.last_child[node]
        return np.append(self.bounds[first:last, 0], self.bounds[last - 1, 1])


def hierarchy_tree(hierarchy: Hierarchy, seen: Ints) -> tuple[Ints, list[Longs]]:
    """Make the labels ``seen`` leaves of a hierarchy: return indices into ``seen`` in leaf order, and the partitions.

    A label with several parents goes to the first; a seen label with children is a leaf next to them.

    >>> tree = Hierarchy.from_edges(np.array([[1, 0], [2, 0], [3, 2]]), n_labels=5)
    >>> order, depths = hierarchy_tree(tree, np.array([0, 1, 3, 4], np.int32))
    >>> order.tolist(), [depth.tolist() for depth in depths]
    ([0, 1, 2, 3], [[0, 3, 4], [0, 1, 2, 3, 4]])
    """
    n = hierarchy.parents.shape[0]
    index = np.full(n, -1, np.int64)
    index[seen] = np.arange(len(seen))
    children: list[list[int]] = [[] for _ in range(n)]
    roots = []
    starts, parents = hierarchy.parents.indptr.tolist(), hierarchy.parents.indices
    for label in range(n):
        if starts[label] == starts[label + 1]:
            roots.append(label)
        else:
            children[parents[starts[label] : starts[label + 1]].min()].append(label)
    order, split_depths = [], []
    split_depth = 0  # the lowest depth entered since the last leaf: from it on, the next leaf is in another cluster
    stack = [(label, 0) for label in reversed(roots)]
    while stack:
        label, depth = stack.pop()
        split_depth = min(split_depth, depth)
        if index[label] >= 0:
            order.append(index[label])
            split_depths.append(split_depth)
            split_depth = n
        stack.extend((child, depth + 1) for child in reversed(children[label]))
    splits, end = np.array(split_depths), len(order)
    depths = [np.append(np.flatnonzero(splits <= depth), end) for depth in range(int(splits[1:].max(initial=-1)) + 1)]
    return np.array(order, np.int32), depths
