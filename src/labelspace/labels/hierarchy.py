"""Predictions that agree with a hierarchy of the labels: 'rye bread' implies 'bread', which is ranked before it."""

import numpy as np
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.kernels.ancestors import ancestor_probabilities as ancestor_probabilities_of_rows
from labelspace.kernels.ancestors import include_ancestors as include_ancestors_of_rows
from labelspace.kernels.threads import run_blocks
from labelspace.types import Bools, Hierarchy, TopK

ROW_BLOCK = 256  # documents per task


def hierarchy_among(hierarchy: Hierarchy, allowed: Bools) -> Hierarchy:
    """The hierarchy of some of the labels: the parents of each are all its ancestors that are allowed.

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
    """The k best labels after adding ancestors: no label is ranked before one of its ancestors, or without it.

    The score of an ancestor is the best of its score and those of the listed labels below it. The order is by score,
    then level; so a cut at any k includes the ancestors of all it includes. Of several parents of a label, all with its
    score, the one that was ranked first stays first; those that were not listed are ordered by id.

    >>> tree = Hierarchy.from_edges([[1, 0], [2, 1]], n_labels=4)  # 2 below 1 below 0
    >>> closed = include_ancestors(TopK.from_scores([[0.5, 0, 8, 2]], k=2), tree, k=4)
    >>> closed.labels.tolist(), closed.scores.tolist()
    ([[0, 1, 2, 3]], [[8.0, 8.0, 8.0, 2.0]])
    """
    n_labels = _check_labels(top, hierarchy)
    out, parents, levels = TopK.empty(len(top), k), hierarchy.parents, hierarchy.levels

    def close(start: int, stop: int) -> None:
        parts = (parents.indptr, parents.indices, levels, start, stop, np.zeros((2, n_labels), np.int32))
        include_ancestors_of_rows(top.labels, top.scores, *parts, out.labels, out.scores)

    run_blocks(close, len(top), ROW_BLOCK)
    return out


def ancestor_probabilities(top: TopK, hierarchy: Hierarchy, k: int) -> TopK:
    """The k most probable labels after adding ancestors, each with the probability that it or a label below is right.

    That of an ancestor is the larger of its own, where it is listed, and of the probability that a child is right, were
    its listed children independent (noisy or). So none is below that of a label below it, and the labels above any
    threshold are closed under ancestors: a label too unsure gives way to the nearest ancestor that is sure enough.

    >>> tree = Hierarchy.from_edges([[1, 0], [2, 0]], n_labels=3)  # 1 and 2 below 0
    >>> sure = ancestor_probabilities(TopK.from_scores([[0, 0.5, 0.5]], k=3), tree, k=3)
    >>> sure.labels.tolist(), sure.scores.tolist()
    ([[0, 1, 2]], [[0.75, 0.5, 0.5]])
    """
    n_labels = _check_labels(top, hierarchy)
    out, parents, levels = TopK.empty(len(top), k), hierarchy.parents, hierarchy.levels

    def close(start: int, stop: int) -> None:
        parts = (parents.indptr, parents.indices, levels, start, stop, np.zeros(n_labels, np.int32))
        ancestor_probabilities_of_rows(top.labels, top.scores, *parts, out.labels, out.scores)

    run_blocks(close, len(top), ROW_BLOCK)
    return out


def _check_labels(top: TopK, hierarchy: Hierarchy) -> int:
    """The number of labels of the hierarchy, which must be over all labels of the lists."""
    n_labels = int(hierarchy.parents.shape[0])
    largest = top.labels.max(initial=-1)
    if largest >= n_labels:
        raise DataError(
            f"the hierarchy must be over all labels of the TopK, but has {n_labels} labels and one is {largest}; "
            "build it with the model's number of labels"
        )
    return n_labels
