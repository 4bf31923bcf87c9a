"""The probabilities of ancestors in a hierarchy, from those of the labels below them."""

import numpy as np

from labelspace.kernels.ancestor_closure import IntArray
from labelspace.kernels.compiled import kernel
from labelspace.types import Floats, Ints

SCALE = 2.0**62  # probabilities as integers, to sort by


@kernel()
def ancestor_probabilities(
    labels: Ints, probabilities: Floats, starts: IntArray, parents: IntArray, levels: Ints, start: int, stop: int,
    place: Ints, out_labels: Ints, out_probabilities: Floats,
) -> None:  # fmt: skip
    """Close the lists of rows start..stop under ancestors, and cut them to the width of the outputs, best first.

    An ancestor has the larger of its own probability and 1 - prod(1 - p) over its children in the closed list. The
    parents of label l are parents[starts[l] : starts[l + 1]]. The order is by probability, level, rank in the list
    (last where a label is not in it) and id. Outputs are filled with -1 and -inf beforehand, ``place`` (n_labels) with
    0, and so it is left.
    """
    n_ranks, n_labels = labels.shape[1], len(levels)
    closed, key = np.empty(n_labels, np.int64), np.empty((2, n_labels), np.int64)
    p, none_below = np.empty(n_labels, np.float64), np.empty(n_labels, np.float64)
    for row in range(start, stop):
        size = 0
        for rank in range(n_ranks):
            label = labels[row, rank]
            if label >= 0:
                closed[size], key[0, size], none_below[size] = label, rank, 1.0
                p[size] = min(max(np.float64(probabilities[row, rank]), 0.0), 1.0)
                size += 1
                place[label] = size
        head = 0
        while head < size:
            label = closed[head]
            for parent in parents[starts[label] : starts[label + 1]]:
                if place[parent] == 0:
                    closed[size], key[0, size], none_below[size], p[size] = parent, n_ranks, 1.0, 0.0
                    size += 1
                    place[parent] = size
            key[1, head] = -np.int64(levels[label])
            head += 1
        for at in np.argsort(key[1, :size], kind="mergesort"):  # children before their parents
            p[at] = max(p[at], 1.0 - none_below[at])
            label = closed[at]
            for parent in parents[starts[label] : starts[label + 1]]:
                above = place[parent] - 1
                p[above] = max(p[above], p[at])  # 1 - (1 - p) may be rounded to less
                none_below[above] *= 1.0 - p[at]
        for at in range(size):
            key[0, at] += np.int64(levels[closed[at]]) << 32
            key[1, at] = -np.int64(np.float64(np.float32(p[at])) * SCALE)
        order = np.argsort(closed[:size], kind="mergesort")  # stable sorts, the least important key first
        order = order[np.argsort(key[0, :size][order], kind="mergesort")]
        order = order[np.argsort(key[1, :size][order], kind="mergesort")][: out_labels.shape[1]]
        for rank in range(len(order)):
            out_labels[row, rank], out_probabilities[row, rank] = closed[order[rank]], p[order[rank]]
        for at in range(size):
            place[closed[at]] = 0
