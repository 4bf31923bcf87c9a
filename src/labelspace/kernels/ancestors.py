"""Close lists of labels under ancestors: every ancestor of a listed label in a hierarchy is ranked before the label."""

from typing import NamedTuple, TypeAlias

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.types import Floats, Ints, Longs

IntArray: TypeAlias = Ints | Longs
SCALE = 2.0**62  # probabilities become integers of at most this size, to sort by: larger ones overflow 64 bits


class Ancestry(NamedTuple):
    """A hierarchy: the parents of label l are ``parents[starts[l]:starts[l + 1]]``."""

    starts: IntArray
    parents: IntArray
    levels: Ints  # steps from a root to each label


@kernel()
def include_ancestors(
    labels: Ints, scores: Floats, ancestry: Ancestry, start: int, stop: int, flags: Ints, out: Ints, out_scores: Floats
) -> None:
    """Close the lists of rows start..stop, which are sorted best first, and cut them to the width of the outputs.

    The order is by score, level, rank in the list (last for a label that is not listed) and id. The caller fills the
    outputs with -1 and -inf, and ``flags`` (2, n_labels) with 0. Every label is visited once per row, so the time is
    linear in the closed list and its edges, except for the sort.
    """
    starts, parents, levels = ancestry
    k, n_ranks, n_labels = out.shape[1], labels.shape[1], len(levels)
    seen, listed = flags  # 1 + the last row that has the label; 1 + its rank in the list of this row
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
                if size >= k:  # all labels that follow rank behind the first k
                    break
                n_groups += 1
            seen[label], closed[size], size, head = row + 1, label, size + 1, size
            while head < size:  # the new label, then its parents that are new, and so on
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
            out[row, rank], out_scores[row, rank] = closed[order[rank]], closed_scores[order[rank]]
        for rank in range(n_ranks):
            if labels[row, rank] >= 0:
                listed[labels[row, rank]] = 0


@kernel()
def ancestor_probabilities(
    labels: Ints, scores: Floats, ancestry: Ancestry, start: int, stop: int, place: Ints, out: Ints, out_scores: Floats
) -> None:
    """Close the lists of rows start..stop under ancestors, and cut them to the width of the outputs, best first.

    An ancestor has the larger of its own probability and 1 - prod(1 - p) over its children in the closed list. The
    order is by probability, level, rank in the list (last for a label that is not listed) and id. The caller fills the
    outputs with -1 and -inf, and ``place`` (n_labels) with 0; ``place`` is all zeros again afterwards.
    """
    starts, parents, levels = ancestry
    n_ranks, n_labels = labels.shape[1], len(levels)
    closed, key = np.empty(n_labels, np.int64), np.empty((2, n_labels), np.int64)
    p, none_below = np.empty(n_labels, np.float64), np.empty(n_labels, np.float64)
    for row in range(start, stop):
        size = 0
        for rank in range(n_ranks):
            label = labels[row, rank]
            if label >= 0:
                closed[size], key[0, size], none_below[size] = label, rank, 1.0
                p[size] = min(max(np.float64(scores[row, rank]), 0.0), 1.0)
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
        order = order[np.argsort(key[1, :size][order], kind="mergesort")][: out.shape[1]]
        for rank in range(len(order)):
            out[row, rank], out_scores[row, rank] = closed[order[rank]], p[order[rank]]
        for at in range(size):
            place[closed[at]] = 0


@kernel()
def node_levels(parent: Ints) -> Ints:
    """Return the depth of each node below the root, node 0; parents have smaller numbers than their children."""
    level = np.zeros(len(parent), np.int32)
    for node in range(1, len(parent)):
        level[node] = level[parent[node]] + 1
    return level
