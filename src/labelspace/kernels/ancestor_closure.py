"""Lists of labels closed upwards in a hierarchy: every ancestor of a listed label stands before it."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit

from labelspace.types import Floats, Ints, Longs

Places: TypeAlias = Ints | Longs


@njit(cache=True, nogil=True)
def place_of(ranked: Ints, label: int) -> int:
    """Where a label stands in a list; behind its end where it does not."""
    for place in range(len(ranked)):
        if ranked[place] == label:
            return place
    return len(ranked)


@njit(cache=True, nogil=True)
def insert(labels: Ints, scores: Floats, size: int, label: int, score: np.float32, levels: Ints, ranked: Ints) -> int:
    """Put a label into a list by score, level, place in ``ranked`` and id, unless it is there; return the new size.

    Labels come best first, so the score it has already is the better one.
    """
    for at in range(size):
        if labels[at] == label:
            return size
    at = size
    while at > 0 and scores[at - 1] == score:
        before = labels[at - 1]
        if levels[before] < levels[label]:
            break
        if levels[before] == levels[label]:
            places = place_of(ranked, before), place_of(ranked, label)
            if places[0] < places[1] or (places[0] == places[1] and before < label):
                break
        labels[at], scores[at] = before, score
        at -= 1
    labels[at], scores[at] = label, score
    return size + 1


@njit(cache=True, nogil=True)
def include_ancestors(
    labels: Ints,
    scores: Floats,
    starts: Places,
    ancestors: Places,
    levels: Ints,
    start: int,
    stop: int,
    out_labels: Ints,
    out_scores: Floats,
) -> None:
    """Close rows start..stop of lists that are best first, and cut them at the places of the outputs.

    The ancestors of label l stand at starts[l]..starts[l + 1]. Outputs are filled with -1 and -inf beforehand.
    """
    k = out_labels.shape[1]
    for row in range(start, stop):
        most = 0
        for label in labels[row]:
            if label >= 0:
                most += 1 + starts[label + 1] - starts[label]
        found, worth = np.empty(most, np.int32), np.empty(most, np.float32)
        size = 0
        for place in range(labels.shape[1]):
            label, score = labels[row, place], scores[row, place]
            if label < 0:
                continue
            if size >= k and score < worth[size - 1]:  # what follows stands behind the k found
                break
            for at in range(starts[label], starts[label + 1]):
                size = insert(found, worth, size, ancestors[at], score, levels, labels[row])
            size = insert(found, worth, size, label, score, levels, labels[row])
        kept = min(size, k)
        out_labels[row, :kept], out_scores[row, :kept] = found[:kept], worth[:kept]
