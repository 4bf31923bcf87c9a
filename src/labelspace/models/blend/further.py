"""Answers beyond a document's candidates: where more labels are asked for, or a filter leaves too few candidates.

The candidates, and what both passes of the stacking model say of them, depend neither on k nor on a filter. So:

1. Ask every member for more labels: twice as many as asked for. With a filter, for allowed ones, and for at least
   ``FEW_LABELS`` of them. Where there are no more, the answer is exactly the list of all labels without the others.
2. Those that are no candidates are further ones. Note of each what the stacking table notes of a candidate: the scores
   are the members', ranks and best scores those of the lists without a filter, as the first pass learned them.
3. Score them by the first pass; all stay less probable than the document's candidates. The trees give many the same
   score: of these, the one with the larger sum of the members' scores is first.
"""

import numpy as np

from labelspace.labels.masks import FEW_LABELS
from labelspace.models.blend.stacking import StackingTable, rank_rows
from labelspace.models.blend.stacking_model import BELOW
from labelspace.types import Bools, Floats, Ints, TopK

HALF_STEP = 2.0**-26  # less than half of the relative distance of two numbers of 32 bits


def further_depth(k: int, n_candidates: int, n_labels: int, allowed: Bools | None) -> int:
    """The labels that every member is asked for (step 1).

    >>> further_depth(50, 10, 3000, None), further_depth(5, 10, 3000, np.arange(3000) < 300)
    (100, 300)
    """
    depth = 2 * max(k, n_candidates)
    return min(depth, n_labels) if allowed is None else min(max(depth, FEW_LABELS), int(allowed.sum()))


def rank_further(further: StackingTable, first: Floats, lowest: Floats, k: int, weights: Floats | None = None) -> TopK:
    """The best further candidates of each document, less probable than its ``lowest`` candidate (step 3).

    ``first`` are the scores of the first pass, ``weights`` (n_labels,) what a label's probability is multiplied with.
    """
    total = further.columns[:, -2].astype(np.float64)
    share = 0.5 + 0.5 * total / (1 + np.abs(total))  # from 0 to 1, in the same order
    highest = lowest * BELOW
    if weights is not None:
        first = np.minimum(first, np.repeat(highest, np.diff(further.ends))) * weights[further.labels]
    labels, keys = np.empty((len(lowest), k), np.int32), np.empty((len(lowest), k), np.float64)
    rank_rows(further.labels, first * (1 + HALF_STEP * share), further.ends, labels, keys)
    scores = keys.astype(np.float32)  # as they were
    return TopK(labels, scores if weights is not None else np.minimum(scores, highest[:, None]))


def lowest_scores(table: StackingTable, scores: Floats) -> Floats:
    """The lowest score of the candidates of each document; 1 where there is none."""
    lowest, some = np.ones(len(table.ends) - 1, np.float32), np.diff(table.ends) > 0
    if some.any():
        lowest[some] = np.minimum.reduceat(scores, table.ends[:-1][some])
    return lowest


def best_of_both(top: TopK, further: TopK) -> TopK:
    """The best of both, as many as the first has places; the first wins ties.

    >>> best_of_both(TopK.from_scores([[0.5, -np.inf]], k=2), TopK.from_scores([[-np.inf, 0.1]], k=2)).labels.tolist()
    [[0, 1]]
    """
    labels: Ints = np.concatenate([top.labels, further.labels], axis=1)
    scores: Floats = np.concatenate([top.scores, further.scores], axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, : top.k]
    return TopK(np.take_along_axis(labels, order, 1), np.take_along_axis(scores, order, 1))
