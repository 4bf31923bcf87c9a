"""Answers that agree with a hierarchy of the labels: who says 'rye bread' says 'bread', and says it first."""

from __future__ import annotations

from labelspace.errors import DataError
from labelspace.kernels.ancestor_closure import include_ancestors
from labelspace.kernels.threads import run_blocks
from labelspace.types import Hierarchy, TopK

ROW_BLOCK = 256


def consistent(top: TopK, hierarchy: Hierarchy, k: int) -> TopK:
    """The k best labels of lists closed upwards: no label stands before one of its ancestors, nor without it.

    Ancestors that are missing are added, and the score of an ancestor is the best of its own and those of the listed
    labels below it. The order is by score, then level; so a cut at any k keeps the ancestors of what it keeps. Of the
    several parents of a label, all as good as it is, the one that was ranked first stays so; what was not listed at all
    goes by id.

    >>> tree = Hierarchy.from_edges([[1, 0], [2, 1]], n_labels=4)  # 2 below 1 below 0
    >>> closed = consistent(TopK.from_scores([[0.5, 0, 8, 2]], k=2), tree, k=4)
    >>> closed.labels.tolist(), closed.scores.tolist()
    ([[0, 1, 2, 3]], [[8.0, 8.0, 8.0, 2.0]])
    """
    n_labels = hierarchy.parents.shape[0]
    largest = top.labels.max(initial=-1)
    if largest >= n_labels:
        raise DataError(
            f"the hierarchy must be over all labels of the TopK, but has {n_labels} labels and one is {largest}; "
            "build it with the model's number of labels"
        )
    out, above, levels = TopK.empty(len(top), k), hierarchy.ancestors, hierarchy.levels

    def close(start: int, stop: int) -> None:
        parts = (above.indptr, above.indices, levels, start, stop)
        include_ancestors(top.labels, top.scores, *parts, out.labels, out.scores)

    run_blocks(close, len(top), ROW_BLOCK)
    return out
