"""Predictions that agree with a hierarchy of the labels: 'rye bread' implies 'bread', which is ranked before it."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.kernels import ancestors as kernels
from labelspace.kernels.threads import run_blocks
from labelspace.types import Bools, Hierarchy, TopK

ROW_BLOCK = 256  # documents per task


def hierarchy_among(hierarchy: Hierarchy, allowed: Bools) -> Hierarchy:
    """Return the hierarchy of the allowed labels: the parents of a label are all its ancestors that are allowed.

    >>> tree = Hierarchy.from_edges([[1, 0], [2, 1]], n_labels=3)
    >>> hierarchy_among(tree, np.array([True, False, True])).edges.tolist()
    [[2, 0]]
    """
    only = sp.diags(allowed.astype(np.float32), format="csr")
    parents = (only @ hierarchy.ancestors @ only).tocsr()
    parents.eliminate_zeros()
    parents.sort_indices()
    return Hierarchy(parents)


def include_ancestors(top: TopK, hierarchy: Hierarchy, k: int) -> TopK:
    """Return the k best labels after adding ancestors: every ancestor of a label is listed, and ranked before it.

    The score of an ancestor is the best of its own and those of the listed labels below it. The order is by score, then
    level; so a cut at any k includes the ancestors of all labels that it includes. Of several parents of a label, all
    with its score, the one that was ranked first stays first; parents that were not listed are ordered by id.

    >>> tree = Hierarchy.from_edges([[1, 0], [2, 1]], n_labels=4)  # 2 below 1 below 0
    >>> closed = include_ancestors(TopK.from_scores([[0.5, 0, 8, 2]], k=2), tree, k=4)
    >>> closed.labels.tolist(), closed.scores.tolist()
    ([[0, 1, 2, 3]], [[8.0, 8.0, 8.0, 2.0]])
    """
    return _closed(kernels.include_ancestors, top, hierarchy, k, (2, len(hierarchy.levels)))


def ancestor_probabilities(top: TopK, hierarchy: Hierarchy, k: int) -> TopK:
    """Return the k most probable labels after adding ancestors: the probability that a label or a descendant is right.

    The probability of an ancestor is the larger of its own, if it is listed, and of the probability that a child is
    right, as if its listed children were independent (noisy or). So no label is more probable than its ancestors, and
    the labels above any threshold are closed under ancestors: a label too unsure gives way to the nearest ancestor that
    is sure enough.

    >>> tree = Hierarchy.from_edges([[1, 0], [2, 0]], n_labels=3)  # 1 and 2 below 0
    >>> sure = ancestor_probabilities(TopK.from_scores([[0, 0.5, 0.5]], k=3), tree, k=3)
    >>> sure.labels.tolist(), sure.scores.tolist()
    ([[0, 1, 2]], [[0.75, 0.5, 0.5]])
    """
    return _closed(kernels.ancestor_probabilities, top, hierarchy, k, (len(hierarchy.levels),))


def _closed(kernel: Callable[..., None], top: TopK, hierarchy: Hierarchy, k: int, scratch: tuple[int, ...]) -> TopK:
    """Call a kernel of ``ancestors`` with scratch of this shape; raise DataError unless all labels are known."""
    n_labels = int(hierarchy.parents.shape[0])
    largest = top.labels.max(initial=-1)
    if largest >= n_labels:
        problem = f"has {n_labels} labels and one is {largest}; build it with the model's number of labels"
        raise DataError(f"the hierarchy must be over all labels of the TopK, but {problem}")
    ancestry = kernels.Ancestry(hierarchy.parents.indptr, hierarchy.parents.indices, hierarchy.levels)
    out = TopK.empty(len(top), k)

    def close(start: int, stop: int) -> None:
        zeros = np.zeros(scratch, np.int32)
        kernel(top.labels, top.scores, ancestry, start, stop, zeros, out.labels, out.scores)

    run_blocks(close, len(top), ROW_BLOCK)
    return out
