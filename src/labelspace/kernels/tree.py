"""A tree of linear classifiers: training the children of one node, and searching the whole with a beam.

All nodes of all trees are columns of one sparse matrix W (n_features, n_nodes) stored by features; the children of a
node are neighbours in it, so that a document's weights for them are one stretch of each feature's row.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.kernels.dual import descend, squared_norms
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints, Longs


@njit(cache=True, nogil=True)
def local_rows(data: Floats, indices: Ints, indptr: Ints, rows: Ints, place: Ints) -> tuple[Floats, Ints, Ints, Ints]:
    """The given rows of a CSR matrix with their columns renumbered; the columns' old numbers come last.

    ``place`` (n_columns) is scratch, all -1 before and after.
    """
    size = 0
    for row in rows:
        size += indptr[row + 1] - indptr[row]
    values, columns = np.empty(size, np.float32), np.empty(size, np.int32)
    ends = np.zeros(len(rows) + 1, np.int32)
    names = np.empty(min(size, len(place)), np.int32)
    known, at = 0, 0
    for i, row in enumerate(rows):
        for j in range(indptr[row], indptr[row + 1]):
            column = indices[j]
            if place[column] < 0:
                place[column] = known
                names[known] = column
                known += 1
            values[at], columns[at] = data[j], place[column]
            at += 1
        ends[i + 1] = at
    for i in range(known):
        place[names[i]] = -1
    return values, columns, ends, names[:known]


@njit(cache=True, nogil=True)
def train_children(
    data: Floats,
    indices: Ints,
    indptr: Ints,
    rows: Ints,
    positives: Ints,
    positive_ends: Longs,
    bias: float,
    C: float,
    tolerance: float,
    max_passes: int,
    threshold: float,
    seed: int,
    place: Ints,
) -> tuple[Ints, Floats, Longs, Floats]:
    """One classifier for each child of a node, on the documents ``rows`` that reach it.

    The positives of child c are entries positive_ends[c]..positive_ends[c + 1] of ``positives``, as places in ``rows``.
    Returns features, weights (those of size ``threshold`` and more), where each child's end, and the biases.
    """
    values, columns, ends, names = local_rows(data, indices, indptr, rows, place)
    n, d, children = len(rows), len(names), len(positive_ends) - 1
    norms = squared_norms(values, ends, bias)
    w, alpha = np.empty(d + 1, np.float32), np.empty(n, np.float32)
    order, positive = np.empty(n, np.int32), np.zeros(n, np.bool_)
    capacity = 1024
    features, weights = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
    stops, biases = np.zeros(children + 1, np.int64), np.empty(children, np.float32)
    size = 0
    for child in range(children):
        mine = positives[positive_ends[child] : positive_ends[child + 1]]
        for i in mine:
            positive[i] = True
        w[:] = 0.0
        descend(values, columns, ends, norms, positive, bias, C, tolerance, max_passes, seed + child, w, alpha, order)
        for i in mine:
            positive[i] = False
        if size + d > capacity:
            capacity = max(2 * capacity, size + d)
            more_features, more_weights = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
            more_features[:size], more_weights[:size] = features[:size], weights[:size]
            features, weights = more_features, more_weights
        for j in range(d):
            if abs(w[j]) >= threshold and w[j] != 0.0:
                features[size], weights[size] = names[j], w[j]
                size += 1
        stops[child + 1] = size
        biases[child] = w[d] * bias
    return features[:size].copy(), weights[:size].copy(), stops, biases


@njit(cache=True, nogil=True)
def first_at_least(values: Ints, low: int, high: int, goal: int) -> int:
    """The first place in sorted values[low:high] that holds the goal or more."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < goal:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def beam_search(
    data: Floats,
    indices: Ints,
    indptr: Ints,
    start: int,
    stop: int,
    w_data: Floats,
    w_indices: Ints,
    w_indptr: Ints,
    bias: Floats,
    first_child: Ints,
    last_child: Ints,
    label: Ints,
    roots: Ints,
    beam: int,
    power: float,
    out_labels: Ints,
    out_scores: Floats,
) -> None:
    """The best labels of rows start..stop of X over all trees; a label's score is the mean of its path's products.

    A step down multiplies the score by exp(-max(0, 1 - margin) ** power). ``first_child`` and ``last_child`` give the
    stretch of a node's children, ``label`` the label of a leaf or -1; a root is the node above the first level.
    """
    widest = 0
    for node in range(len(first_child)):
        widest = max(widest, last_child[node] - first_child[node])
    trees, k = len(roots), out_labels.shape[1]
    keep = max(beam, 2 * k)  # leaves kept of each tree, so that trees can disagree on the last places
    nodes, scores = np.empty(keep, np.int32), np.empty(keep, np.float32)
    margins = np.empty((beam, widest), np.float32)
    next_nodes, next_scores = np.empty(keep, np.int32), np.empty(keep, np.float32)
    found, found_scores = np.empty(trees * keep, np.int32), np.empty(trees * keep, np.float32)
    for row in range(start, stop):
        total = 0
        for tree in range(trees):
            nodes[0], scores[0], width = roots[tree], 1.0, 1
            while label[nodes[0]] < 0:
                order = np.argsort(nodes[:width])
                for place in range(width):
                    node = nodes[order[place]]
                    for child in range(first_child[node], last_child[node]):
                        margins[place, child - first_child[node]] = bias[child]
                for j in range(indptr[row], indptr[row + 1]):
                    value, at, end = data[j], w_indptr[indices[j]], w_indptr[indices[j] + 1]
                    for place in range(width):
                        node = nodes[order[place]]
                        at = first_at_least(w_indices, at, end, first_child[node])
                        while at < end and w_indices[at] < last_child[node]:
                            margins[place, w_indices[at] - first_child[node]] += value * w_data[at]
                            at += 1
                below_are_leaves = label[first_child[nodes[0]]] >= 0
                room = keep if below_are_leaves else beam
                heap, heap_nodes, size = next_scores[:room], next_nodes[:room], 0
                for place in range(width):
                    node, above = nodes[order[place]], scores[order[place]]
                    for child in range(first_child[node], last_child[node]):
                        gap = max(np.float32(0.0), np.float32(1.0) - margins[place, child - first_child[node]])
                        score = above * np.exp(-(gap ** np.float32(power)))
                        if size < room or score >= heap[0]:
                            size = push(heap, heap_nodes, size, score, child)
                nodes[:size], scores[:size], width = next_nodes[:size], next_scores[:size], size
            for i in range(width):
                found[total], found_scores[total] = label[nodes[i]], scores[i] / trees
                total += 1
        order = np.argsort(found[:total])
        best, ids = out_scores[row], out_labels[row]
        size, i = 0, 0
        while i < total:
            name, score = found[order[i]], found_scores[order[i]]
            i += 1
            while i < total and found[order[i]] == name:
                score += found_scores[order[i]]
                i += 1
            size = push(best, ids, size, score, name)
        sort_best_first(best, ids, size)
