"""A tree of classifiers: what its nodes have to learn from documents, and training the children of one node or many.

All nodes of all trees are columns of one sparse matrix W (n_features, n_nodes) stored by features; the children of a
node are neighbors in it, so that a document's weights for them are one stretch of each feature's row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from labelspace.kernels.dual_cd import descend, descend_logistic, squared_norms
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
def reached(
    indices: Ints, indptr: Ints, cuts: Longs, everything: bool, others: Ints, mark: Ints
) -> tuple[Ints, Ints, Longs]:
    """The documents that reach a node, and which of them reach each of its children.

    Column l of a CSC matrix lists the documents of label l; child c has the labels cuts[c]..cuts[c + 1]. Further
    documents, negatives all, are ``others``, or ``everything`` there is. ``mark`` (n) is scratch, all -1 before and
    after. Returns documents in order, then as train_children takes them the positives and where each child's end.
    """
    below = indices[indptr[cuts[0]] : indptr[cuts[-1]]]
    size = len(mark) if everything else len(below) + len(others)
    rows = np.empty(size, np.int32)
    known = 0
    if everything:
        rows[:] = np.arange(size)
        known = size
    else:
        for listed in (below, others):
            for document in listed:
                if mark[document] < 0:
                    mark[document] = 0
                    rows[known] = document
                    known += 1
    rows = np.sort(rows[:known])
    for i, document in enumerate(rows):
        mark[document] = i
    positives, ends = np.empty(len(below), np.int32), np.zeros(len(cuts), np.int64)
    last_child = np.full(known, -1, np.int32)
    at = 0
    for child in range(len(cuts) - 1):
        for document in indices[indptr[cuts[child]] : indptr[cuts[child + 1]]]:
            place = mark[document]
            if last_child[place] != child:
                last_child[place] = child
                positives[at] = place
                at += 1
        ends[child + 1] = at
    for document in rows:
        mark[document] = -1
    return rows, positives[:at], ends


@njit(cache=True, nogil=True)
def train_children(
    data: Floats,
    indices: Ints,
    indptr: Ints,
    rows: Ints,
    positives: Ints,
    positive_ends: Longs,
    logistic: bool,
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
        if logistic:
            descend_logistic(
                values, columns, ends, norms, positive, bias, C, tolerance, max_passes, seed + child, w, alpha, order
            )
        else:
            descend(
                values, columns, ends, norms, positive, bias, C, tolerance, max_passes, seed + child, w, alpha, order
            )
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
def decisions(
    indices: Ints, indptr: Ints, rows: Ints, leaf_of: Ints, parent: Ints, first_child: Ints, last_child: Ints,
    astray: int, mark: Ints,
) -> tuple[Floats, Ints, Ints]:  # fmt: skip
    """What the classifiers of a tree have to learn from some rows of Y (CSR), as a matrix (rows, n_nodes) in parts.

    A row reaches the root and every node above one of its labels. Its entries are the nodes within ``astray`` steps
    down from one that it reaches, 1 for those that it reaches itself: with 1 step, the children of nodes it reaches.
    ``leaf_of`` (n_labels,) is the leaf of a label or -1, ``mark`` (n_nodes,) scratch, all -1 before and after.
    """
    capacity = 1024
    targets, nodes = np.empty(capacity, np.float32), np.empty(capacity, np.int32)
    ends, path = np.zeros(len(rows) + 1, np.int32), np.empty(len(parent), np.int32)
    size = 0
    for i, row in enumerate(rows):
        mark[0], path[0], known = 0, 0, 1
        for j in range(indptr[row], indptr[row + 1]):
            node = leaf_of[indices[j]]
            while node > 0 and mark[node] < 0:  # up to a node that is known already
                mark[node], path[known] = 0, node
                known, node = known + 1, parent[node]
        at = 0
        while at < known:  # steps off the ways are put behind them
            node = path[at]
            at += 1
            if mark[node] < astray:
                for child in range(first_child[node], last_child[node]):
                    if mark[child] < 0:
                        mark[child], path[known] = mark[node] + 1, child
                        known += 1
        if size + known > capacity:
            capacity = 2 * (size + known)
            more_targets, more_nodes = np.empty(capacity, np.float32), np.empty(capacity, np.int32)
            more_targets[:size], more_nodes[:size] = targets[:size], nodes[:size]
            targets, nodes = more_targets, more_nodes
        for node in path[1:known]:
            nodes[size], targets[size] = node, np.float32(1.0 if mark[node] == 0 else 0.0)
            size += 1
        for node in path[:known]:
            mark[node] = -1
        ends[i + 1] = size
    return targets[:size], nodes[:size], ends


@njit(cache=True, nogil=True)
def spans(first_child: Ints, last_child: Ints) -> Longs:
    """The leaves below each node as a stretch of all leaves, those of its first child first. Shape (n_nodes, 2)."""
    out = np.zeros((len(first_child), 2), np.int64)
    for node in range(len(first_child) - 1, -1, -1):  # children have larger numbers
        out[node, 1] = 1 if last_child[node] == 0 else 0
        for child in range(first_child[node], last_child[node]):
            out[node, 1] += out[child, 1]
    for node in range(len(first_child)):
        at = out[node, 0]
        out[node, 1] += at
        for child in range(first_child[node], last_child[node]):
            out[child, 0] = at
            at += out[child, 1]
    return out


@njit(cache=True, nogil=True)
def train_nodes(
    data: Floats, indices: Ints, indptr: Ints, n_features: int, below: Ints, below_ends: Ints, cuts: Longs,
    roots: npt.NDArray[np.bool_], logistic: bool, bias: float, C: float, tolerance: float, max_passes: int,
    threshold: float, seed: int,
) -> tuple[Ints, Floats, Longs, Floats]:  # fmt: skip
    """``reached`` and ``train_children`` for many nodes of two children each, in one pass.

    Row i of ``cuts`` (nodes, 3) says where the labels of the node's children begin and end, as columns of the CSC
    matrix of documents ``below``; a root is reached by all documents. Returns what ``train_children`` does.
    """
    place, mark = np.full(n_features, -1, np.int32), np.full(len(indptr) - 1, -1, np.int32)
    capacity, size, nobody = 1024, 0, np.zeros(0, np.int32)
    features, weights = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
    stops, biases = np.zeros(2 * len(cuts) + 1, np.int64), np.empty(2 * len(cuts), np.float32)
    for i in range(len(cuts)):
        rows, positives, ends = reached(below, below_ends, cuts[i], roots[i], nobody, mark)
        own, values, own_stops, own_biases = train_children(
            data, indices, indptr, rows, positives, ends, logistic, bias, C, tolerance, max_passes, threshold,
            seed + i, place,
        )  # fmt: skip
        if size + len(own) > capacity:
            capacity = 2 * (size + len(own))
            more_features, more_weights = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
            more_features[:size], more_weights[:size] = features[:size], weights[:size]
            features, weights = more_features, more_weights
        features[size : size + len(own)], weights[size : size + len(own)] = own, values
        stops[2 * i + 1 : 2 * i + 3], biases[2 * i : 2 * i + 2] = size + own_stops[1:], own_biases
        size += len(own)
    return features[:size].copy(), weights[:size].copy(), stops, biases
