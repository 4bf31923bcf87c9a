"""Label trees that go on learning: new labels become leaves, and what new documents say of each node.

A new label descends from the root to the child whose classifier fits the mean of its documents best, as in PSLT
(Wydmuch et al., 2021), and becomes one more leaf below the node where it arrives: the last one, since the children of a
node are adjacent columns. No node is split, and none is moved to another parent.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from labelspace.errors import ModelError
from labelspace.kernels.ancestors import node_levels
from labelspace.kernels.beam_search import Tree
from labelspace.models.partial_fit import NewDocuments
from labelspace.training.linear_weights import LinearWeights, compact_ids
from labelspace.training.warm_start import REJECTED, Examples
from labelspace.types import Bools, Csr, Floats, Ints, Longs

LABELS_PER_DOCUMENT = 5  # about as many, each in another branch: so many more documents than labels are below a node


class Place(NamedTuple):
    """Where a new label becomes a leaf."""

    label: int
    parent: int


@dataclass(frozen=True)
class GrowingTrees:
    """Trees of labels with a classifier for each node: those of all trees are the columns of ``weights``."""

    weights: LinearWeights
    tree: Tree
    roots: Ints

    @property
    def parents(self) -> Ints:
        """The parent of each node; -1 for a root."""
        first, last = self.tree.first_child, self.tree.last_child
        width = last - first
        parents = np.full(len(first), -1, np.int32)
        # The children of nodes are in the order of their parents: all nodes but the roots.
        parents[np.setdiff1d(np.arange(len(first)), self.roots)] = np.repeat(np.arange(len(first)), width)
        return parents

    def places(self, X: Csr, Y: Csr) -> list[Place]:
        """Return where the labels of documents become leaves, in each tree, that are none yet."""
        is_leaf = np.zeros(Y.shape[1], bool)
        is_leaf[self.tree.label[self.tree.label >= 0]] = True
        by_label = Y.tocsc()
        labels = np.flatnonzero((np.diff(by_label.indptr) > 0) & ~is_leaf)
        totals = sp.csr_matrix(by_label[:, labels].T @ X)
        found = []
        for label, total in zip(labels.tolist(), totals, strict=True):
            mean = total.data / (by_label.indptr[label + 1] - by_label.indptr[label])
            found += [Place(label, self._descend(root, total.indices, mean)) for root in self.roots.tolist()]
        return found

    def _descend(self, node: int, features: Ints, values: Floats) -> int:
        """Return the node that a document reaches by the best inner child at each step."""
        first, last = self.tree.first_child, self.tree.last_child
        if first[node] == last[node]:
            raise ModelError("a tree that goes on learning must have labels, but a saved one has none; train it again")
        while True:
            children = np.arange(first[node], last[node], dtype=np.int32)
            inner = children[last[children] > first[children]]
            if len(inner) == 0:
                return node
            margins = self.weights.weights_of(features, inner) @ values + self.weights.bias[inner]
            if len(inner) < len(children) and margins.max() < 0:  # a leaf beside others fits as well
                return node
            node = int(inner[np.argmax(margins)])

    def with_leaves(self, places: list[Place]) -> Self:
        """Return the trees with new leaves, which have no weights, and the mean bias of their siblings."""
        if not places:
            return self
        places = sorted(places, key=lambda place: (place.parent, place.label))
        first, last, label = self.tree
        parents = np.array([place.parent for place in places])
        before = last[parents]  # the node before which a leaf is put
        added = np.bincount(parents, minlength=len(label)).astype(np.int32)
        number = _shifted(np.arange(len(label)), before)
        is_inner = last > first
        bias = self.weights.bias
        siblings = [bias[first[parent] : last[parent]].mean() for parent in parents]
        new_first = np.where(is_inner, number[np.minimum(first, len(label) - 1)], 0)
        new_last = np.where(is_inner, number[np.maximum(last - 1, 0)] + 1 + added, 0)
        tree = Tree(
            np.insert(new_first, before, 0).astype(np.int32),
            np.insert(new_last, before, 0).astype(np.int32),
            np.insert(label, before, [place.label for place in places]),
        )
        ids = compact_ids(number[self.weights.labels], len(tree.label))
        weights = replace(self.weights, labels=ids, bias=np.insert(bias, before, siblings).astype(np.float32))
        return replace(self, weights=weights, tree=tree, roots=number[self.roots])

    def examples(self, X: Csr, new: NewDocuments, fresh: Bools) -> Examples:
        """Return the new documents as positives of the nodes on the paths of their labels.

        A rejected label makes a document a negative of the leaf alone: other labels below its parents may be right.
        ``fresh`` (n_labels,) are the labels that just became leaves.
        """
        n_nodes, parents, label = len(self.tree.label), self.parents, self.tree.label
        positives = new.Y @ self._paths(np.bincount(new.Y.indices, minlength=new.n_labels) > 0, parents)
        positives.data[:] = 1.0
        rejected = new.rejected @ self._leaves(np.ones(new.n_labels, bool))
        complete = np.flatnonzero(new.are_complete)
        on_paths = positives[complete]
        rows = np.concatenate([np.repeat(complete, np.diff(on_paths.indptr)), np.repeat(complete, len(self.roots))])
        nodes = np.concatenate([parents[on_paths.indices], np.tile(self.roots, len(complete))])
        reached = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, nodes)), shape=(new.Y.shape[0], n_nodes))
        is_fresh = (label >= 0) & fresh[label]
        search_bias = np.where(is_fresh, np.float32(np.inf), self.weights.bias)
        return Examples(X, (positives - REJECTED * rejected).tocsr(), reached, search_bias)

    def shares(self) -> Floats:
        """Return for each node about the part of all documents that reach its parent. Shape (n_nodes,)."""
        parents = self.parents
        levels = node_levels(parents)
        n_below = (self.tree.label >= 0).astype(np.float32)
        for level in range(int(levels.max()), 0, -1):
            nodes = np.flatnonzero(levels == level)
            np.add.at(n_below, parents[nodes], n_below[nodes])
        of_tree = n_below[self.roots[np.searchsorted(self.roots, np.arange(len(parents)), side="right") - 1]]
        of_tree = np.maximum(of_tree, 1)  # none in a damaged model
        return np.minimum(np.where(parents >= 0, n_below[parents], of_tree) / of_tree * LABELS_PER_DOCUMENT, 1)

    def _leaves(self, wanted: Bools) -> Csr:
        """Return ones where a node is a leaf of a wanted label. Shape (n_labels, n_nodes)."""
        nodes = np.flatnonzero((self.tree.label >= 0) & wanted[self.tree.label])
        shape = (len(wanted), len(self.tree.label))
        return sp.csr_matrix((np.ones(len(nodes), np.float32), (self.tree.label[nodes], nodes)), shape=shape)

    def _paths(self, wanted: Bools, parents: Ints) -> Csr:
        """Return ones where a node, no root, is on a path to a wanted label. Shape (n_labels, n_nodes)."""
        nodes: Ints | Longs = np.flatnonzero((self.tree.label >= 0) & wanted[self.tree.label])
        labels: Ints = self.tree.label[nodes]
        paths: list[tuple[Ints, Ints | Longs]] = []
        while len(nodes):  # a step up at a time
            paths.append((labels, nodes))
            is_inner = parents[parents[nodes]] >= 0
            labels, nodes = labels[is_inner], parents[nodes][is_inner]
        rows = np.concatenate([labels for labels, _ in paths]) if paths else labels
        columns = np.concatenate([nodes for _, nodes in paths]) if paths else nodes
        shape = (len(wanted), len(self.tree.label))
        return sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)


def _shifted(nodes: Ints | Longs, before: Ints) -> Ints:
    """Return the numbers of nodes once leaves are put before some nodes."""
    return (nodes + np.searchsorted(before, nodes, side="right")).astype(np.int32)
