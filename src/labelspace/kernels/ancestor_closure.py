"""Close lists of labels under ancestors in a hierarchy: every ancestor of a listed label is ranked before it."""

from typing import TypeAlias

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.types import Floats, Ints, Longs

IntArray: TypeAlias = Ints | Longs


@kernel()
def include_ancestors(
    labels: Ints, scores: Floats, starts: IntArray, parents: IntArray, levels: Ints, start: int, stop: int,
    scratch: Ints, out_labels: Ints, out_scores: Floats,
) -> None:  # fmt: skip
    """Close the lists of rows start..stop, which are sorted best first, and cut them to the width of the outputs.

    The parents of label l are parents[starts[l] : starts[l + 1]]. The order is by score, level, rank in the list (last
    where a label is not in it) and id. Outputs are filled with -1 and -inf beforehand, ``scratch`` (2, n_labels) with
    0. Every label is visited once per row, so the time is linear in the closed list and its edges, but for the sort.
    """
    k, n_ranks, n_labels = out_labels.shape[1], labels.shape[1], len(levels)
    seen, listed = scratch  # 1 + the last row that has the label; 1 + its rank in the list of this row
    closed, group, key = np.empty(n_labels, np.int32), np.empty(n_labels, np.int32), np.empty(n_labels, np.int64)
    closed_scores = np.empty(n_labels, np.float32)
    for row in range(start, stop):
        for rank in range(n_ranks):
            if labels[row, rank] >= 0:
                listed[labels[row, rank]] = rank + 1
        size, n_groups = 0, 0  # labels of equal score are a group
        for rank in range(n_ranks):
            label, score = labels[row, rank], scores[row, rank]
            if label < 0 or seen[label] == row + 1:
                continue
            if size > 0 and score < closed_scores[size - 1]:
                if size >= k:  # all that follows ranks behind the first k
                    break
                n_groups += 1
            seen[label], closed[size], size, head = row + 1, label, size + 1, size
            while head < size:  # the labels that are new, and then their parents that are
                label = closed[head]
                group[head], closed_scores[head] = n_groups, score
                key[head] = (np.int64(levels[label]) << 32) + (listed[label] - 1 if listed[label] else n_ranks)
                for parent in parents[starts[label] : starts[label + 1]]:
                    if seen[parent] != row + 1:
                        seen[parent], closed[size], size = row + 1, parent, size + 1
                head += 1
        order = np.argsort(closed[:size], kind="mergesort")  # stable sorts, the least important key first
        order = order[np.argsort(key[:size][order], kind="mergesort")]
        order = order[np.argsort(group[:size][order], kind="mergesort")][:k]
        for rank in range(len(order)):
            out_labels[row, rank], out_scores[row, rank] = closed[order[rank]], closed_scores[order[rank]]
        for rank in range(n_ranks):
            if labels[row, rank] >= 0:
                listed[labels[row, rank]] = 0
