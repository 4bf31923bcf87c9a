"""Answers beyond a document's candidates: where more labels are asked for, or a filter leaves too few candidates.

The candidates, and what both passes of the stacking model say of them, depend neither on k nor on a filter. So:

1. Ask every member for more labels, of the allowed ones: all of them where they are at most ``FEW_LABELS``, else twice
   as many as asked for, and as for the candidates.
2. Those that are no candidates are further ones. Note of each what the stacking table notes of a candidate: the scores
   are the members', ranks and best scores those of the lists without a filter, as the first pass learned them.
3. Score them by the first pass; all stay below the document's candidates. The trees give many the same score: of
   these, the one with the larger sum of the members' scores is first.
"""

import numpy as np

from labelspace.labels.masks import FEW_LABELS
from labelspace.models.blend.stacking import StackingTable, rank_rows
from labelspace.models.blend.stacking_model import BELOW
from labelspace.types import Bools, Floats, Ints, TopK

HALF_STEP = 2.0**-26  # less than half of the relative distance of two numbers of 32 bits


def further_depth(k: int, n_candidates: int, n_allowed: int) -> int:
    """The labels that every member is asked for (step 1).

    >>> further_depth(5, 10, 300), further_depth(5, 10, 3000), further_depth(50, 10, 3000)
    (300, 20, 100)
    """
    return n_allowed if n_allowed <= FEW_LABELS else min(2 * max(k, n_candidates), n_allowed)


def lowest_scores(table: StackingTable, scores: Floats) -> Floats:
    """The lowest score of the candidates of each document; 1 where there is none."""
    lowest, some = np.ones(len(table.ends) - 1, np.float32), np.diff(table.ends) > 0
    if some.any():
        lowest[some] = np.minimum.reduceat(scores, table.ends[:-1][some])
    return lowest


def rank_further(table: StackingTable, scores: Floats, lowest: Floats, k: int) -> TopK:
    """The best further candidates of each document, below its ``lowest`` score (step 3)."""
    total = table.columns[:, -2].astype(np.float64)
    share = 0.5 + 0.5 * total / (1 + np.abs(total))  # from 0 to 1, in the same order
    n = len(lowest)
    labels, keys = np.empty((n, k), np.int32), np.empty((n, k), np.float64)
    rank_rows(table.labels, scores * (1 + HALF_STEP * share), table.ends, labels, keys)
    ranked = keys.astype(np.float32)  # the score alone
    return TopK(labels, np.where(labels >= 0, np.minimum(ranked, lowest[:, None] * BELOW), -np.inf))


def appended(top: TopK, further: TopK) -> TopK:
    """The labels of the first, then those of the second, as many as the first has places.

    >>> one, two = TopK.from_scores([[0.5, -np.inf]], k=2), TopK.from_scores([[-np.inf, 0.1]], k=2)
    >>> appended(one, two).labels.tolist()
    [[0, 1]]
    """
    labels: Ints = np.concatenate([top.labels, further.labels], axis=1)
    scores: Floats = np.concatenate([top.scores, further.scores], axis=1)
    every: Bools = np.ones(int(labels.max(initial=0)) + 1, bool)
    return TopK(labels, scores).among(every, top.k)
