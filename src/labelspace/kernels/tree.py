"""A tree of linear classifiers: training the children of one node, and searching the whole with a beam.

All nodes of all trees are columns of one sparse matrix W (n_features, n_nodes) stored by features; the children of a
node are neighbours in it, so that a document's weights for them are one stretch of each feature's row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from labelspace.kernels.dual import descend, descend_logistic, squared_norms
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
def first_at_least(values: Ints, low: int, high: int, goal: int) -> int:
    """The first place in sorted values[low:high] that holds the goal or more, quickest where that is the first.

    The search narrows by a conditional move, not a branch: a branch would be foretold wrongly every other time.
    """
    if low >= high or values[low] >= goal:
        return low
    size = high - low
    while size > 1:
        half = size >> 1
        low = low + half if values[low + half - 1] < goal else low
        size -= half
    return low + 1 if values[low] < goal else low


@njit(cache=True, nogil=True)
def log_step(margin: float, power: float) -> np.float32:
    """The logarithm of what a step down multiplies a score by: -gap ** power, gap = log(1 + exp(2 - 2 margin)) / 2.

    The gap is max(0, 1 - margin) with its corner rounded, so that a larger margin is always better. With a power of 0
    the step is the logistic 1 / (1 + exp(-margin)).
    """
    if power == 0.0:
        return np.float32(-np.log1p(np.exp(-margin)) if margin > -20.0 else margin)
    gap = np.log1p(np.exp(2.0 - 2.0 * margin)) / 2.0 if margin > -20.0 else 1.0 - margin
    return np.float32(-(gap**power))


@njit(cache=True, nogil=True)
def log_step_at_best(margin: float, power: float) -> float:
    """What ``log_step`` does not exceed, and cheaper: the same with the corner left on."""
    if power == 0.0:
        return min(margin, 0.0)
    return -((1.0 - margin) ** power) if margin < 1.0 else 0.0


@njit(cache=True, nogil=True)
def sort_by_node(nodes: Ints, scores: Floats, size: int) -> None:
    """Order a beam by node number, in place: it is short, so one entry is moved down at a time."""
    for i in range(1, size):
        node, score, at = nodes[i], scores[i], i
        while at > 0 and nodes[at - 1] > node:
            nodes[at], scores[at] = nodes[at - 1], scores[at - 1]
            at -= 1
        nodes[at], scores[at] = node, score


@njit(cache=True, nogil=True)
def child_margins(
    data: Floats,
    indices: Ints,
    w_data: Floats,
    w_indices: Ints,
    w_indptr: Ints,
    bias: Floats,
    first_child: Ints,
    last_child: Ints,
    nodes: Ints,
    shift: Longs,
    margins: Floats,
) -> Floats:
    """The margins of the children of some nodes, sorted by number, for one document.

    Child c of nodes[i] stands at shift[i] + c of what is returned: ``margins``, or a larger array where that is short.
    """
    count = 0
    for place, node in enumerate(nodes):
        shift[place] = count - first_child[node]
        count += last_child[node] - first_child[node]
    if count > len(margins):
        margins = np.empty(2 * count, np.float32)
    for place, node in enumerate(nodes):
        for child in range(first_child[node], last_child[node]):
            margins[shift[place] + child] = bias[child]
    for j in range(len(indices)):
        value, at, end = data[j], w_indptr[indices[j]], w_indptr[indices[j] + 1]
        for place, node in enumerate(nodes):
            at = first_at_least(w_indices, at, end, first_child[node])
            last, move = last_child[node], shift[place]
            while at < end and w_indices[at] < last:
                margins[w_indices[at] + move] += value * w_data[at]
                at += 1
    return margins


@njit(cache=True, nogil=True)
def advance(
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
    power: float,
    beams: Ints,
    beam_scores: Floats,
) -> None:
    """Move the beams of rows start..stop of X one level down, in place; leaves are left out.

    ``beams`` and ``beam_scores`` (n, beam) hold nodes and logarithms of scores, -1 and -inf where there are fewer.
    """
    beam = beams.shape[1]
    shift, margins = np.empty(beam, np.int64), np.empty(1024, np.float32)
    for row in range(start, stop):
        width = 0
        while width < beam and beams[row, width] >= 0:
            width += 1
        nodes, scores = beams[row, :width].copy(), beam_scores[row, :width].copy()
        sort_by_node(nodes, scores, width)
        mine = slice(indptr[row], indptr[row + 1])
        margins = child_margins(
            data[mine], indices[mine], w_data, w_indices, w_indptr, bias, first_child, last_child, nodes, shift, margins
        )
        size = 0
        for place in range(width):
            for child in range(first_child[nodes[place]], last_child[nodes[place]]):
                if label[child] < 0:
                    score = scores[place] + log_step(margins[shift[place] + child], power)
                    size = push(beam_scores[row], beams[row], size, score, child)
        sort_best_first(beam_scores[row], beams[row], size)


@njit(cache=True, nogil=True)
def step_down(
    nodes: Ints,
    scores: Floats,
    width: int,
    margins: Floats,
    shift: Longs,
    first_child: Ints,
    last_child: Ints,
    label: Ints,
    power: float,
    least: float,
    next_nodes: Ints,
    next_scores: Floats,
    found: Ints,
    found_scores: Floats,
    n_found: int,
) -> tuple[int, int]:
    """Move a beam of ``width`` nodes and logarithms of scores one level down, in place; leaves go to ``found``.

    ``margins`` are as ``child_margins`` gives them; steps below ``least``, a logarithm, are not taken. ``next_nodes``
    and ``next_scores`` are scratch of the beam's size. Returns the new width and how many leaves are found by now.
    """
    beam, keep, size = len(next_nodes), len(found), 0
    for place in range(width):
        for child in range(first_child[nodes[place]], last_child[nodes[place]]):
            margin, leaf = margins[shift[place] + child], label[child] >= 0
            full = n_found == keep if leaf else size == beam
            worst = found_scores[0] if leaf else next_scores[0]
            if full and scores[place] + log_step_at_best(margin, power) < worst:
                continue
            step = log_step(margin, power)
            if step < least:
                continue
            score = scores[place] + step
            if leaf:
                n_found = push(found_scores, found, n_found, score, label[child])
            else:
                size = push(next_scores, next_nodes, size, score, child)
    nodes[:size], scores[:size] = next_nodes[:size], next_scores[:size]
    return size, n_found


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
    least: float,
    out_labels: Ints,
    out_scores: Floats,
) -> None:
    """The best labels of rows start..stop of X over all trees; a label's score is the mean of its path's products.

    ``first_child`` and ``last_child`` give the stretch of a node's children, which have larger numbers than the node;
    ``label`` is the label of a leaf or -1; leaves may lie at any depth. Scores are kept as logarithms on the way down,
    where steps below ``least`` are not taken.
    """
    trees, k = len(roots), out_labels.shape[1]
    keep = k if trees == 1 else max(5 * beam, 2 * k)  # leaves kept of each tree: their means may reorder them
    nodes, scores, shift = np.empty(beam, np.int32), np.empty(beam, np.float32), np.empty(beam, np.int64)
    next_nodes, next_scores = np.empty(beam, np.int32), np.empty(beam, np.float32)
    found, found_scores = np.empty((trees, keep), np.int32), np.empty((trees, keep), np.float32)
    leaves = np.zeros(trees, np.int64)
    margins = np.empty(1024, np.float32)
    for row in range(start, stop):
        mine = slice(indptr[row], indptr[row + 1])
        for tree in range(trees):
            nodes[0], scores[0], width = roots[tree], 0.0, 1
            leaves[tree] = 0
            while width > 0:
                sort_by_node(nodes, scores, width)
                margins = child_margins(
                    data[mine], indices[mine], w_data, w_indices, w_indptr, bias, first_child, last_child,
                    nodes[:width], shift, margins,
                )  # fmt: skip
                width, leaves[tree] = step_down(
                    nodes, scores, width, margins, shift, first_child, last_child, label, power, least, next_nodes,
                    next_scores, found[tree], found_scores[tree], leaves[tree],
                )  # fmt: skip
        best, ids = out_scores[row], out_labels[row]
        size = mean_of_trees(found, found_scores, leaves, best, ids)
        sort_best_first(best, ids, size)


@njit(cache=True, nogil=True, fastmath=True)
def dense_margins(
    code: Floats,
    weights: Floats,
    first_child: Ints,
    last_child: Ints,
    nodes: Ints,
    shift: Longs,
    margins: Floats,
) -> Floats:
    """``child_margins`` for a dense row (width,), with a row of ``weights`` (n_nodes, width) for each node."""
    count = 0
    for place, node in enumerate(nodes):
        shift[place] = count - first_child[node]
        count += last_child[node] - first_child[node]
    if count > len(margins):
        margins = np.empty(2 * count, np.float32)
    for place, node in enumerate(nodes):
        for child in range(first_child[node], last_child[node]):
            own, total = weights[child], np.float32(0.0)
            for m in range(len(code)):
                total += code[m] * own[m]
            margins[shift[place] + child] = total
    return margins


@njit(cache=True, nogil=True)
def dense_beam_search(
    codes: Floats,
    weights: Floats,
    first_child: Ints,
    last_child: Ints,
    label: Ints,
    beam: int,
    power: float,
    least: float,
    out_labels: Ints,
    out_scores: Floats,
) -> None:
    """``beam_search`` in one tree for dense rows (n, width): the best labels of each, by the product of a path."""
    nodes, scores, shift = np.empty(beam, np.int32), np.empty(beam, np.float32), np.empty(beam, np.int64)
    next_nodes, next_scores = np.empty(beam, np.int32), np.empty(beam, np.float32)
    margins = np.empty(1024, np.float32)
    for row in range(len(codes)):
        nodes[0], scores[0], width, n_found = 0, 0.0, 1, 0
        while width > 0:
            margins = dense_margins(codes[row], weights, first_child, last_child, nodes[:width], shift, margins)
            width, n_found = step_down(
                nodes, scores, width, margins, shift, first_child, last_child, label, power, least, next_nodes,
                next_scores, out_labels[row], out_scores[row], n_found,
            )  # fmt: skip
        for i in range(n_found):
            out_scores[row, i] = np.exp(out_scores[row, i])
        sort_best_first(out_scores[row], out_labels[row], n_found)


@njit(cache=True, nogil=True)
def decisions(
    indices: Ints, indptr: Ints, rows: Ints, leaf_of: Ints, parent: Ints, first_child: Ints, last_child: Ints,
    mark: Ints,
) -> tuple[Floats, Ints, Ints]:  # fmt: skip
    """What the classifiers of a tree have to learn from some rows of Y (CSR), as a matrix (rows, n_nodes) in parts.

    A row reaches the root and every node above one of its labels; an entry is a child of a node that it reaches, and 1
    where it reaches that child too. ``leaf_of`` (n_labels,) is the leaf of a label or -1, ``mark`` (n_nodes,) scratch of
    -1, and is left so.
    """
    capacity = 1024
    targets, nodes = np.empty(capacity, np.float32), np.empty(capacity, np.int32)
    ends, path = np.zeros(len(rows) + 1, np.int32), np.empty(len(parent), np.int32)
    size = 0
    for i, row in enumerate(rows):
        mark[0], path[0], known, needed = 0, 0, 1, last_child[0] - first_child[0]
        for j in range(indptr[row], indptr[row + 1]):
            node = leaf_of[indices[j]]
            while node > 0 and mark[node] < 0:  # up to a node that is known already
                mark[node], path[known] = 0, node
                known, needed = known + 1, needed + last_child[node] - first_child[node]
                node = parent[node]
        if size + needed > capacity:
            capacity = 2 * (size + needed)
            more_targets, more_nodes = np.empty(capacity, np.float32), np.empty(capacity, np.int32)
            more_targets[:size], more_nodes[:size] = targets[:size], nodes[:size]
            targets, nodes = more_targets, more_nodes
        for node in path[:known]:
            for child in range(first_child[node], last_child[node]):
                nodes[size], targets[size] = child, np.float32(1.0 if mark[child] >= 0 else 0.0)
                size += 1
        for node in path[:known]:
            mark[node] = -1
        ends[i + 1] = size
    return targets[:size], nodes[:size], ends


@njit(cache=True, nogil=True)
def train_nodes(
    data: Floats, indices: Ints, indptr: Ints, below: Ints, below_ends: Ints, cuts: Longs, roots: npt.NDArray[np.bool_],
    logistic: bool, bias: float, C: float, tolerance: float, max_passes: int, threshold: float, seed: int,
) -> tuple[Ints, Floats, Longs, Floats]:  # fmt: skip
    """``reached`` and ``train_children`` for many nodes of two children each, in one pass.

    Row i of ``cuts`` (nodes, 3) says where the labels of the node's children begin and end, as columns of the CSC
    matrix of documents ``below``; a root is reached by all documents. Returns what ``train_children`` does.
    """
    place, mark = np.full(indices.max() + 1 if len(indices) else 1, -1, np.int32), np.full(len(indptr) - 1, -1, np.int32)
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


@njit(cache=True, nogil=True)
def mean_of_trees(found: Ints, log_scores: Floats, leaves: Longs, best: Floats, ids: Ints) -> int:
    """Put the labels of the best mean score over all trees into a heap; the size of the heap is returned.

    ``leaves`` says how many labels each tree found. A label that a tree has not found scores 0 there.
    """
    trees, size = len(leaves), 0
    total = leaves.sum()
    names, scores = np.empty(total, np.int32), np.empty(total, np.float32)
    at = 0
    for tree in range(trees):
        for i in range(leaves[tree]):
            names[at], scores[at] = found[tree, i], np.exp(log_scores[tree, i]) / np.float32(trees)
            at += 1
    sort_by_node(names, scores, total)
    i = 0
    while i < total:
        name, score = names[i], scores[i]
        i += 1
        while i < total and names[i] == name:
            score += scores[i]
            i += 1
        size = push(best, ids, size, score, name)
    return size
