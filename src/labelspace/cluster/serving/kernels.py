"""Do a step of a beam search whose nodes are on other machines: shards expand beams, the front end merges."""

from typing import NamedTuple, Self

import numpy as np

from labelspace.kernels.beam_search import (
    FIRST_MARGINS,
    NodeWeights,
    Search,
    Tree,
    average_trees,
    child_margins,
    empty_beam,
    expand_beam,
    sort_by_node,
    sort_log_scores,
)
from labelspace.kernels.compiled import integer, kernel
from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints


class Scored(NamedTuple):
    """Nodes or labels of each document in each tree, and their log scores: (n, n_trees, size)."""

    ids: Ints  # -1 is none
    scores: Floats

    @classmethod
    def empty(cls, n: int, n_trees: int, size: int) -> Self:
        """Return an array without nodes or labels: all are padding."""
        return cls(np.full((n, n_trees, size), -1, np.int32), np.full((n, n_trees, size), -np.inf, np.float32))

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """Return all entries of several, side by side in each tree."""
        ids, scores = zip(*parts, strict=True)
        return cls(np.concatenate(ids, axis=2), np.concatenate(scores, axis=2))

    def trimmed(self) -> Self:
        """Return a copy without the last columns that are padding only."""
        width = int((self.ids >= 0).sum(axis=2).max(initial=0))
        return type(self)(self.ids[:, :, :width].copy(), self.scores[:, :, :width].copy())


@kernel()
def expand_nodes(
    X: CsrArrays, weights: NodeWeights, tree: Tree, search: Search, beams: Scored, inner: Scored, leaves: Scored
) -> None:
    """Find the best children of the nodes of beams (n, n_trees, width): inner nodes, and leaves by label.

    -1 in a beam is no node. ``inner`` (in no order) and ``leaves`` (best first) are filled, with log scores, and padded
    with -1.
    """
    n_rows, n_trees, width = beams.ids.shape
    beam_size = inner.ids.shape[2]
    beam, margins = empty_beam(beam_size, max(width, beam_size)), np.empty(FIRST_MARGINS, np.float32)
    nodes, scores = beam.nodes, beam.scores
    for row in range(n_rows):
        span = slice(X.indptr[row], X.indptr[row + 1])
        for at in range(n_trees):
            size = integer(0)
            for i in range(width):
                if beams.ids[row, at, i] >= 0:
                    nodes[size], scores[size] = beams.ids[row, at, i], beams.scores[row, at, i]
                    size += 1
            sort_by_node(nodes, scores, size)
            margins = child_margins(X.data[span], X.indices[span], weights, tree, nodes[:size], beam.shift, margins)
            labels, label_scores = leaves.ids[row, at], leaves.scores[row, at]
            size, n_leaves = expand_beam(beam, size, margins, tree, search, labels, label_scores, integer(0))
            sort_best_first(label_scores, labels, n_leaves)
            for i in range(size):
                inner.ids[row, at, i], inner.scores[row, at, i] = nodes[i], scores[i]


@kernel()
def merge_leaves(labels: Ints, log_scores: Floats, max_leaves: int, out_labels: Ints, out_scores: Floats) -> None:
    """Find the top labels of the leaves of all shards (n, n_trees, size), with the scores that ``beam_search`` gives.

    At most ``max_leaves`` of each tree are used.
    """
    n_rows, n_trees, _ = labels.shape
    leaf_labels, leaf_scores = np.empty((n_trees, max_leaves), np.int32), np.empty((n_trees, max_leaves), np.float32)
    n_leaves = np.zeros(n_trees, np.int64)
    for row in range(n_rows):
        for tree in range(n_trees):
            size = integer(0)
            for i in range(labels.shape[2]):
                if labels[row, tree, i] >= 0:
                    score, label = log_scores[row, tree, i], labels[row, tree, i]
                    size = push(leaf_scores[tree], leaf_labels[tree], size, score, label)
            n_leaves[tree] = size
        row_scores, row_labels = out_scores[row], out_labels[row]
        if n_trees == 1:
            for i in range(n_leaves[0]):
                row_scores[i], row_labels[i] = leaf_scores[0, i], leaf_labels[0, i]
            sort_log_scores(row_scores, row_labels, n_leaves[0])
        else:
            found = average_trees(leaf_labels, leaf_scores, n_leaves, row_scores, row_labels)
            sort_best_first(row_scores, row_labels, found)
