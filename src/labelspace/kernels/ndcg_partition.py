"""Two groups of documents such that one ranking of labels per group suits its documents: FastXML's node partition."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.types import Bools, Doubles, Floats, Ints, Longs

LEAST_GAIN = 1e-6  # of the mean nDCG by a round
MAX_ROUNDS = 100


@kernel()
def partition_by_ndcg(
    gains: Floats,
    labels: Ints,
    ends: Ints | Longs,
    n_labels: int,
    row_weights: Doubles,
    discounts: Doubles,
    positive: Bools,
) -> int:
    """Move documents between two groups, from a start in ``positive``, while the mean nDCG rises; returns the rounds.

    Document i has labels[ends[i] : ends[i + 1]] with their ``gains``. A round ranks the labels of each group by the
    sum of gains, each times its document's weight; rank r has discounts[r]. A document then goes to the group in which
    its DCG is larger, or stays.
    """
    n, n_rounds = len(row_weights), 0
    sums, advantage = np.empty((2, n_labels)), np.empty(n_labels)
    before = -np.inf
    for _ in range(MAX_ROUNDS):
        n_rounds += 1
        for label in range(n_labels):
            sums[0, label], sums[1, label], advantage[label] = 0.0, 0.0, 0.0
        for i in range(n):
            group = 1 if positive[i] else 0
            for j in range(ends[i], ends[i + 1]):
                sums[group, labels[j]] -= gains[j] * row_weights[i]  # negative: the sort is ascending
        ndcg = 0.0
        for group in range(2):
            order = np.argsort(sums[group], kind="mergesort")
            for rank, label in enumerate(order):
                advantage[label] += discounts[rank] if group == 1 else -discounts[rank]
                ndcg -= discounts[rank] * sums[group, label]
        for i in range(n):
            difference = 0.0
            for j in range(ends[i], ends[i + 1]):
                difference += gains[j] * advantage[labels[j]]
            if difference != 0.0:
                positive[i] = difference > 0.0
        ndcg /= n
        if ndcg - before < LEAST_GAIN:
            break
        before = ndcg
    return n_rounds
