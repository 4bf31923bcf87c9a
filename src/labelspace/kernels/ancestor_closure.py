"""Close lists of labels under ancestors in a hierarchy: every ancestor of a listed label is ranked before it."""

from typing import TypeAlias

import numpy as np
from numba import njit

from labelspace.types import Floats, Ints, Longs

IntArray: TypeAlias = Ints | Longs


@njit(cache=True, nogil=True)
def rank_of(ranking: Ints, label: int) -> int:
    """Rank of a label in a list; the length of the list if it is not there."""
    for rank in range(len(ranking)):
        if ranking[rank] == label:
            return rank
    return len(ranking)


@njit(cache=True, nogil=True)
def insert_label(
    labels: Ints, scores: Floats, size: int, label: int, score: np.float32, levels: Ints, ranking: Ints
) -> int:
    """Insert a label by score, level, rank in ``ranking`` and id, unless it is there already; return the new size.

    Labels arrive best first, so the score already stored is the better one.
    """
    for pos in range(size):
        if labels[pos] == label:
            return size
    pos = size
    while pos > 0 and scores[pos - 1] == score:
        previous = labels[pos - 1]
        if levels[previous] < levels[label]:
            break
        if levels[previous] == levels[label]:
            ranks = rank_of(ranking, previous), rank_of(ranking, label)
            if ranks[0] < ranks[1] or (ranks[0] == ranks[1] and previous < label):
                break
        labels[pos], scores[pos] = previous, score
        pos -= 1
    labels[pos], scores[pos] = label, score
    return size + 1


@njit(cache=True, nogil=True)
def include_ancestors(
    labels: Ints, scores: Floats, starts: IntArray, ancestors: IntArray, levels: Ints, start: int, stop: int,
    out_labels: Ints, out_scores: Floats,
) -> None:  # fmt: skip
    """Close the lists of rows start..stop, which are sorted best first, and cut them to the width of the outputs.

    The ancestors of label l are ancestors[starts[l] : starts[l + 1]]. Outputs are filled with -1 and -inf beforehand.
    """
    k = out_labels.shape[1]
    for row in range(start, stop):
        capacity = 0
        for label in labels[row]:
            if label >= 0:
                capacity += 1 + starts[label + 1] - starts[label]
        closed_labels, closed_scores = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
        size = 0
        for rank in range(labels.shape[1]):
            label, score = labels[row, rank], scores[row, rank]
            if label < 0:
                continue
            if size >= k and score < closed_scores[size - 1]:  # all that follows ranks behind the first k
                break
            for j in range(starts[label], starts[label + 1]):
                size = insert_label(closed_labels, closed_scores, size, ancestors[j], score, levels, labels[row])
            size = insert_label(closed_labels, closed_scores, size, label, score, levels, labels[row])
        n_out = min(size, k)
        out_labels[row, :n_out], out_scores[row, :n_out] = closed_labels[:n_out], closed_scores[:n_out]
